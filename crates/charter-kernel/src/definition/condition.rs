//! Conditions on a whole run: interlocks, enforced by the kernel, and properties, checked by
//! `charter check`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// An entry of `interlocks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interlock {
    /// Its name in refusals.
    pub id: String,
    /// The condition.
    pub rule: InterlockRule,
    /// Why the interlock exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The two forms of an interlock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum InterlockRule {
    /// For each state of an actor, the states that actors of a machine may be in.
    Table {
        /// Id of the actor whose state is looked up.
        given: String,
        /// The machine whose actors are checked.
        machine: String,
        /// The allowed states for each state of `given`. A state that is not listed allows none.
        allow: IndexMap<String, Vec<String>>,
        /// Whether actors that were already final before the event are checked.
        #[serde(default)]
        r#final: FinalRule,
    },
    /// CEL over the candidate snapshot.
    Assert(String),
}

/// Which final actors a table checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FinalRule {
    /// Actors that were final before the event are exempt until `given` is final.
    Settled,
    /// All actors are checked.
    #[default]
    Always,
}

/// An entry of `properties`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// Its name.
    pub id: String,
    /// The condition to check.
    pub rule: PropertyRule,
    /// Why the property should hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The forms of a property; all strings but `unless_before` are CEL over a reachable snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PropertyRule {
    /// Holds in no reachable snapshot, or in none before an accepted event of the type
    /// `unless_before` (precedence).
    Never {
        /// The condition.
        when: String,
        /// An event type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unless_before: Option<String>,
    },
    /// Holds in every reachable snapshot.
    Always(String),
    /// Holds eventually on every path, if effects are answered fairly.
    Eventually(String),
}
