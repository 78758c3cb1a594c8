//! `--models FILE`: several providers, with their addresses, limits and the names of the variables
//! that have their keys. The file has no key.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use charter_models::limits::{self, Limits};
use charter_models::price::{dollars, per_million};
use charter_models::{MAX_COST, Model, ModelError, Price, Provider, Providers};
use serde::Deserialize;

use super::keys;
use crate::io::Failure;
use crate::options_file;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    default: Option<String>,
    #[serde(default)]
    providers: BTreeMap<String, Entry>,
    #[serde(default)]
    prices: BTreeMap<String, Prices>,
    #[serde(default)]
    budget: Budget,
}

/// Dollars per million tokens, as texts: a float would not be exact.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Prices {
    input: String,
    output: String,
    cached: Option<String>,
    cache_write: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Budget {
    actor: Allowed,
    run: Allowed,
    day: Allowed,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Allowed {
    tokens: Option<u64>,
    usd: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    kind: Provider,
    address: Option<String>,
    key: Option<String>,
    concurrent: Option<u32>,
    per_minute: Option<u32>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Adds the providers of a file to those of the environment; a name in the file wins.
///
/// `model` is the default instead of that of the file.
///
/// # Errors
/// The file cannot be used, or the default is a model of an unknown provider.
pub(crate) fn add(
    path: &Path,
    model: Option<&str>,
    providers: &mut Providers,
    allow_insecure: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let file: File = options_file::read(path)?;
    let name = path.display();
    for (host, entry) in file.providers {
        let wrong = |why: &dyn std::fmt::Display| Failure::new(format!("`{name}`: provider `{host}`: {why}"));
        if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            return Err(wrong(&"its name may have letters, digits, `-` and `_` only"));
        }
        let model = entry.model(&host, allow_insecure).map_err(|why| wrong(&why))?;
        providers.named.remove(&host);
        providers.unusable.remove(&host);
        if entry.key.as_deref().is_some_and(|key| !is_name(key)) {
            let upper = host.to_uppercase().replace('-', "_");
            let why = format!(
                "`key` must be the name of an environment variable with the key, such as `{upper}_KEY`, not the key"
            );
            return Err(wrong(&why));
        }
        // At its provider's own address, a model has that key unless the file names another one.
        let own =
            keys::of(model.provider, model.base_url != model.provider.base_url()).filter(|name| *name != keys::OWN);
        match entry.key.as_deref().or(own).map(|key| keys::read(key, variable)) {
            Some(Err(why)) => drop(providers.unusable.insert(host, why)),
            Some(Ok(key)) => drop(providers.named.insert(host, model.key(key))),
            None => drop(providers.named.insert(host, model)),
        }
    }
    for (title, given) in file.prices {
        let wrong = |why: String| Failure::new(format!("`{name}`: the price of `{title}`: {why}"));
        if !title.split_once(':').is_some_and(|(host, model)| !host.is_empty() && !model.is_empty()) {
            return Err(wrong("expected the name of a model, `PROVIDER:NAME`".into()));
        }
        let read = |key: &str, text: &str| {
            let expected = "expected dollars per million tokens with up to six decimal places, e.g. `\"0.25\"`";
            per_million(text).ok_or_else(|| wrong(format!("invalid `{key}`: `{text}`: {expected}")))
        };
        let input = read("input", &given.input)?;
        let cached = given.cached.as_deref().map_or(Ok(input), |text| read("cached", text))?;
        let cache_write = given.cache_write.as_deref().map_or(Ok(input), |text| read("cache-write", text))?;
        let price = Price { input, output: read("output", &given.output)?, cached, cache_write };
        providers.prices.insert(title, price);
    }
    let Budget { actor, run, day } = &file.budget;
    for (key, allowed, place) in [
        ("actor", actor, &mut providers.budgets.actor),
        ("run", run, &mut providers.budgets.run),
        ("day", day, &mut providers.budgets.day),
    ] {
        place.tokens = allowed.tokens;
        place.cost = match &allowed.usd {
            None => None,
            Some(text) => Some(dollars(text).filter(|cost| *cost <= MAX_COST).ok_or_else(|| {
                let expected = "expected at most a million dollars with up to six decimal places, e.g. `\"2.50\"`";
                Failure::new(format!("`{name}`: invalid `budget.{key}.usd`: `{text}`: {expected}"))
            })?),
        };
    }
    let chosen = match (model, &file.default) {
        (Some(model), _) => Some(("`--model`".to_owned(), model)),
        (None, Some(default)) => Some((format!("`{name}`: `default`"), default.as_str())),
        (None, None) => None,
    };
    if let Some((key, chosen)) = chosen {
        providers.default = Some(find(chosen, providers).map_err(|why| Failure::new(format!("{key}: {why}")))?);
    }
    Ok(())
}

/// Finds a model of the providers.
fn find(title: &str, providers: &Providers) -> Result<Model, String> {
    let (host, model) =
        title.split_once(':').ok_or_else(|| format!("invalid model `{title}`: expected `PROVIDER:NAME`"))?;
    if let Some(why) = providers.unusable.get(host) {
        return Err(format!("the provider `{host}` cannot be used: {why}"));
    }
    let found = providers.named.get(host).ok_or_else(|| format!("unknown provider `{host}`"))?;
    found.named(model).map_err(|e| e.to_string())
}

impl Entry {
    /// Any model of this provider, without its key.
    fn model(&self, host: &str, allow_insecure: bool) -> Result<Model, String> {
        let mut model = Model::provider(host, self.kind);
        if let Some(address) = &self.address {
            let placed = if allow_insecure { model.at_insecure(address) } else { model.at(address) };
            model = placed.map_err(|e| match e {
                ModelError::Plain(_) => format!("{e}, or `--allow-insecure`"),
                e => e.to_string(),
            })?;
        } else if self.kind == Provider::Azure {
            return Err("missing `address`, e.g. `https://RESOURCE.openai.azure.com/openai/v1`".into());
        }
        for (header, value) in &self.headers {
            model = model.header(header, value).map_err(|e| e.to_string())?;
        }
        for (key, limit) in [("concurrent", self.concurrent), ("per-minute", self.per_minute)] {
            if limit.is_some_and(|limit| !(1..=limits::MAX).contains(&limit)) {
                return Err(format!("`{key}` must be a number from 1 to {}", limits::MAX));
            }
        }
        if self.concurrent.is_some() || self.per_minute.is_some() {
            model.limits = Some(Arc::new(Limits::new(self.concurrent, self.per_minute)));
        }
        Ok(model)
    }
}
/// Whether a text is the name of a variable, as they are written, and not a key by mistake.
fn is_name(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit();
    text.len() <= 64 && text.bytes().all(is_part) && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}
