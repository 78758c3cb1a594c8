//! The providers of a host, and which models an actor names: the keys `provider`, `model`,
//! `fallback` and `headers` of its configuration.

use std::collections::BTreeMap;

use charter_actors::{ConfigError, Secret, Secrets};
use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::ledger::Budgets;
use crate::model::{Model, check_header};
use crate::price::Price;

/// Keys of the configuration.
pub(crate) const KEYS: [&str; 4] = ["provider", "model", "fallback", "headers"];
/// Maximum number of models in `fallback`.
const MAX_FALLBACKS: usize = 8;
/// Maximum number of headers.
const MAX_HEADERS: usize = 16;

/// The models of a host.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    /// The model of actors that name none, and of all actors if there are no providers.
    pub default: Option<Model>,
    /// The providers that actors may name. The name of each model is that of its provider.
    pub named: BTreeMap<String, Model>,
    /// Providers that cannot be used, and why.
    pub unusable: BTreeMap<String, String>,
    /// The model of a cassette that is replayed. It is asked last, because actors may have asked it
    /// instead of those that they name (`--model`).
    pub recorded: Option<Model>,
    /// Further keys of the host. They are not sent, but removed wherever a text quotes them.
    pub hidden: Vec<Secret>,
    /// The prices of models, by `PROVIDER:NAME`.
    pub prices: BTreeMap<String, Price>,
    /// What questions may take together.
    pub budgets: Budgets,
}

impl Providers {
    /// The secrets of all providers.
    pub(crate) fn secrets(&self) -> Secrets {
        self.keys().collect()
    }

    fn keys(&self) -> impl Iterator<Item = &Secret> {
        self.default.iter().chain(self.named.values()).filter_map(|model| model.key.as_ref()).chain(&self.hidden)
    }

    /// The models that an actor asks, one after another; none if it names none, and there is no
    /// default.
    pub(crate) fn models(&self, selection: &Selection) -> Result<Vec<Model>, ConfigError> {
        let mut models = self.selected(selection)?;
        for model in &mut models {
            model.price = self.prices.get(&model.title()).copied().or(model.price);
            model.others.extend(self.keys().cloned());
        }
        Ok(models)
    }

    fn selected(&self, selection: &Selection) -> Result<Vec<Model>, ConfigError> {
        let recorded = self.recorded.clone().map(|model| Model { recorded: true, ..model });
        if self.named.is_empty() && self.unusable.is_empty() {
            return Ok(self.default.clone().into_iter().chain(recorded).collect());
        }
        let mut models: Vec<Model> = Vec::new();
        match &selection.first {
            Some(name) => {
                let mut model = self.find("model", name)?;
                model.headers.extend(selection.headers.iter().cloned());
                models.push(model);
            }
            None => models.extend(self.default.clone()),
        }
        for name in &selection.fallback {
            models.push(self.find("fallback", name)?);
        }
        models.extend(recorded);
        Ok(models)
    }

    /// The models that an actor asks, without that of a cassette unless there is no other: a replay
    /// names the same models as the run that was recorded.
    pub(crate) fn named_by(&self, selection: &Selection) -> Result<Vec<Model>, ConfigError> {
        let mut models = self.selected(selection)?;
        if models.len() > 1 && self.recorded.is_some() {
            models.pop();
        }
        Ok(models)
    }

    fn find(&self, key: &str, (provider, name): &(String, String)) -> Result<Model, ConfigError> {
        if let Some(why) = self.unusable.get(provider) {
            return Err(ConfigError::Other(format!("`{key}`: the provider `{provider}` cannot be used: {why}")));
        }
        let Some(found) = self.named.get(provider) else {
            let known: Vec<&str> = self.named.keys().chain(self.unusable.keys()).map(String::as_str).collect();
            let message = format!("`{key}`: this host has no provider `{provider}`; it has `{}`", known.join("`, `"));
            return Err(ConfigError::Other(message));
        };
        found.named(name).map_err(|e| ConfigError::Other(format!("`{key}`: {e}")))
    }
}

/// The models that an actor names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Selection {
    /// Provider and name; `None`: the default of the host.
    first: Option<(String, String)>,
    fallback: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Selection {
    pub(crate) fn read(decl: &ActorDecl) -> Result<Selection, ConfigError> {
        let get = |key: &str| decl.config.get(key).filter(|value| !value.is_null());
        let first = match (get("provider"), get("model")) {
            (None, None) => None,
            (None, Some(model)) => Some(pair("model", model)?),
            (Some(Json::String(provider)), Some(Json::String(model))) => Some((provider.clone(), model.clone())),
            (Some(provider), Some(model)) => {
                let (key, wrong) = if provider.is_string() { ("model", model) } else { ("provider", provider) };
                return Err(ConfigError::invalid(key, "a name", wrong));
            }
            (Some(_), None) => return Err(ConfigError::missing("model", "the name of a model of the `provider`")),
        };
        let fallback = match get("fallback") {
            None => Vec::new(),
            Some(Json::Array(list)) if list.len() <= MAX_FALLBACKS => {
                list.iter().map(|name| pair("fallback", name)).collect::<Result<_, _>>()?
            }
            Some(other) => {
                let expected = format!("a list of at most {MAX_FALLBACKS} names such as `openai:NAME`");
                return Err(ConfigError::invalid("fallback", &expected, other));
            }
        };
        let headers = match get("headers") {
            None => Vec::new(),
            Some(_) if first.is_none() => {
                return Err(ConfigError::missing("model", "with `headers`, which are sent to this model only"));
            }
            Some(Json::Object(map)) if map.len() <= MAX_HEADERS => {
                let one = |(name, value): (&String, &Json)| {
                    let text = value.as_str().unwrap_or_default();
                    check_header(name, text).map_err(|e| ConfigError::Other(format!("`headers`: {e}")))?;
                    Ok((name.to_lowercase(), text.to_owned()))
                };
                map.iter().map(one).collect::<Result<_, ConfigError>>()?
            }
            Some(other) => {
                let expected = format!("an object of at most {MAX_HEADERS} texts");
                return Err(ConfigError::invalid("headers", &expected, other));
            }
        };
        Ok(Selection { first, fallback, headers })
    }
}

fn pair(key: &str, value: &Json) -> Result<(String, String), ConfigError> {
    let found = value.as_str().and_then(|text| text.split_once(':'));
    let found = found.filter(|(provider, name)| !provider.is_empty() && !name.is_empty());
    let (provider, name) =
        found.ok_or_else(|| ConfigError::invalid(key, "`PROVIDER:NAME`, e.g. `openai:gpt-5-mini`", value))?;
    Ok((provider.to_owned(), name.to_owned()))
}
