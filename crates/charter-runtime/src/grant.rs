//! Roles, and where they count.

use serde::{Deserialize, Serialize};

/// The role that may pause, resume and cancel runs.
pub const OPERATOR: &str = "operator";

/// A role that a key gives: everywhere, or in one charter or run only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The role.
    pub role: String,
    /// The id of the charter whose runs it is for; `None`: those of every charter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charter: Option<String>,
    /// The run that it is for; `None`: every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Grant {
    /// Whether the role is given for the runs of a charter in general (`run`: `None`), or for one
    /// of them.
    #[must_use]
    pub fn is_for(&self, charter: &str, run: Option<&str>) -> bool {
        let charter = self.charter.as_deref().is_none_or(|c| c == charter);
        charter && self.run.as_deref().is_none_or(|r| Some(r) == run)
    }
}

/// Reads `role`, `charter/role` or `charter/run/role`, as `charter key add --role` takes it.
impl std::str::FromStr for Grant {
    type Err = BadGrant;

    fn from_str(text: &str) -> Result<Grant, BadGrant> {
        let parts: Vec<&str> = text.split('/').collect();
        let (charter, run, role) = match parts.as_slice() {
            [role] => (None, None, role),
            [charter, role] => (Some(charter), None, role),
            [charter, run, role] => (Some(charter), Some(run), role),
            _ => return Err(BadGrant(text.to_owned())),
        };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(BadGrant(text.to_owned()));
        }
        let owned = |part: Option<&&str>| part.map(|part| (*part).to_owned());
        Ok(Grant { role: (*role).to_owned(), charter: owned(charter), run: owned(run) })
    }
}

impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.charter, &self.run) {
            (None, None) => f.write_str(&self.role),
            (Some(charter), None) => write!(f, "{charter}/{}", self.role),
            (charter, Some(run)) => write!(f, "{}/{run}/{}", charter.as_deref().unwrap_or("*"), self.role),
        }
    }
}

/// A text that is no role of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role: write `ROLE`, `CHARTER/ROLE` or `CHARTER/RUN/ROLE`")]
pub struct BadGrant(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_as_it_is_shown() {
        for text in ["a", "fred/a", "fred/r/a"] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        for text in ["", "/", "a/", "/a", "a//b", "a/b/c/d"] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }
}
