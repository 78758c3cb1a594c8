//! The `verify` command of an input or a configuration.

use std::path::PathBuf;
use std::time::Duration;

use charter_kernel::definition::ActorDecl;
use charter_workspace::VerifyCommand;
use serde_json::Value as Json;

use super::Workspaces;
use crate::error::ConfigError;
use charter_run::{delay, texts};

/// Variables that no input can name: they are keys of the host.
const KEPT_VARIABLES: [&str; 2] = ["CHARTER_KEY", "CHARTER_SERVER"];

impl Workspaces {
    /// Returns the `verify` command of the input, or else of the configuration.
    pub(super) fn verify(&self, actor: &ActorDecl, input: &Json) -> Result<Option<VerifyCommand>, ConfigError> {
        let of = |key: &str| input.get(key).filter(|value| !value.is_null());
        let given = if input.is_object() { of("command").unwrap_or(&Json::Null) } else { input };
        let command = if given.is_null() { actor.config.get("verify").unwrap_or(&Json::Null) } else { given };
        if command.is_null() {
            return Ok(None);
        }
        let mut verify = VerifyCommand::new(Vec::new());
        verify.commands = match command.as_array() {
            Some(list) if list.first().is_some_and(Json::is_array) => {
                list.iter().map(|one| texts("verify", one)).collect::<Result<_, _>>()?
            }
            _ => vec![texts("verify", command)?],
        };
        if let Some(limit) = of("timeout").or_else(|| actor.config.get("verifyTimeout")) {
            let limit = delay("verifyTimeout", limit)?;
            verify.time_limit = Duration::from_millis(u64::try_from(limit.0).unwrap_or_default());
        }
        if let Some(limit) = actor.config.get("verifyOutput").and_then(Json::as_u64) {
            verify.output_limit = usize::try_from(limit).unwrap_or(usize::MAX);
        }
        verify.git = of("git") == Some(&Json::Bool(true));
        verify.unconfined = of("unconfined") == Some(&Json::Bool(true));
        verify.environment.clone_from(&self.env);
        if let Some(names) = of("env") {
            for name in texts("verifyEnv", names)? {
                let value = self.given.get(&name).filter(|_| !KEPT_VARIABLES.contains(&name.as_str()));
                let value = value.ok_or_else(|| {
                    ConfigError::invalid(
                        "verifyEnv",
                        "names of variables that this host has and may give",
                        &name.clone().into(),
                    )
                })?;
                verify.environment.insert(name, value.clone());
            }
        }
        verify.home = verify.environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Ok(Some(verify))
    }
}
