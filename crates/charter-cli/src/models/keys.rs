//! Keys of models, in variables of the environment.

use charter_actors::Secret;
use charter_models::Provider;

use super::DEFAULTS;
use crate::io::Failure;

/// The variable with the key for the address that the user sets, which is sent nowhere else.
pub(super) const OWN: &str = "CHARTER_MODEL_KEY";

/// The keys that are set, whether they are used or not.
pub(super) fn all(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
    let names = DEFAULTS.iter().map(|(_, name, _)| *name).chain([OWN]);
    names.filter_map(variable).map(|key| Secret::new(key.trim())).collect()
}

/// The variable with the key of a model: at the provider's own address, that of the provider.
pub(super) fn of(provider: Provider, elsewhere: bool) -> Option<&'static str> {
    match elsewhere {
        true => Some(OWN),
        false => DEFAULTS.iter().find(|(known, ..)| *known == provider).map(|(_, key, _)| *key),
    }
}

/// The failure of a model at its provider's own address without its key.
pub(super) fn missing(title: &str, key: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> Failure {
    let elsewhere = format!("{OWN} is sent to the address of `--model-url` or CHARTER_MODEL_URL only");
    let what = match variable(OWN) {
        Some(_) => format!("missing API key for `{title}`: {elsewhere}"),
        None => format!("missing API key for `{title}`"),
    };
    let how = key.map_or_else(|| "set its address with `--model-url`".to_owned(), |key| format!("set {key}"));
    Failure::with_help(what, format!("{how}, or use `--model offline`"))
}

/// Reads a key, which must be one that a header can have.
///
/// # Errors
/// It is not set, or not a key.
pub(super) fn read(name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Secret, String> {
    let key = variable(name).ok_or_else(|| format!("the variable {name} with its key is not set"))?;
    let key = key.trim();
    let is_sendable = |c: char| c == ' ' || c.is_ascii_graphic();
    match key.chars().position(|c| !is_sendable(c)) {
        None => Ok(Secret::new(key)),
        Some(at) => Err(format!(
            "the variable {name} with its key has a line break, a control character or one that is not ASCII, which no key has, after {at} characters"
        )),
    }
}
