//! Keys of models, in variables of the environment.

use charter_actors::Secret;

use super::DEFAULTS;

/// The variable with a key for any address.
pub(super) const OWN: &str = "CHARTER_MODEL_KEY";

/// The keys that are set, whether they are used or not.
pub(super) fn all(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Secret> {
    let names = DEFAULTS.iter().map(|(_, name, _)| *name).chain([OWN]);
    names.filter_map(variable).map(|key| Secret::new(key.trim())).collect()
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
