//! The variables of a command in the configuration of an actor.

use serde_json::Value as Json;

use crate::error::ConfigError;
use crate::executor::FindSecret;
use crate::secret::Secret;

/// Environment variables: values of the charter, and secrets that it names.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    plain: Vec<(String, String)>,
    secret: Vec<(String, Secret)>,
}

impl Variables {
    /// Reads the value of the key `key`: an object with a string, a number, `true` or `false`, or
    /// `{secret: NAME}` for each variable.
    ///
    /// # Errors
    /// It has another form, or the host has no such secret.
    pub fn read(key: &str, value: Option<&Json>, find: &FindSecret) -> Result<Variables, ConfigError> {
        let mut all = Variables::default();
        let Some(env) = value.filter(|value| !value.is_null()) else {
            return Ok(all);
        };
        let invalid =
            || ConfigError::invalid(key, "an object with a string or `{secret: NAME}` for each variable", env);
        for (name, value) in env.as_object().ok_or_else(invalid)? {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(invalid());
            }
            if let Some(secret) = Secret::named(value, find, key, &format!("variable `{name}`"))? {
                if secret.expose().contains('\0') {
                    return Err(ConfigError::Other(format!("`{key}`: the secret for `{name}` contains a null byte")));
                }
                all.secret.push((name.clone(), secret));
                continue;
            }
            let text = match value {
                Json::String(text) if !text.contains('\0') => text.clone(),
                Json::Number(number) => number.to_string(),
                Json::Bool(flag) => flag.to_string(),
                _ => return Err(invalid()),
            };
            all.plain.push((name.clone(), text));
        }
        Ok(all)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let plain = self.plain.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        plain.chain(self.secret.iter().map(|(name, secret)| (name.as_str(), secret.expose())))
    }

    /// The values that the charter contains, which may name files.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.plain.iter().map(|(_, value)| value.as_str())
    }

    /// The secrets among them.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.secret.iter().map(|(_, secret)| secret)
    }
}
