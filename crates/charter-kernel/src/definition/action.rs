//! The actions of the core form.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Delay, Template};

/// Actions run in order; the first error ends the block.
pub type Block = Vec<Action>;

/// An action of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Action {
    /// An entry of `actions`.
    Name(String),
    /// Sets context variables: `name`, `name.field`, `name[CEL]`. All values are computed before
    /// the first is set.
    Assign(IndexMap<String, Template>),
    /// Appends an event to the internal queue of this actor.
    Raise {
        /// Event type.
        r#type: Template,
        /// Event data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Sends an event to an actor of the run, now or after a delay.
    Send(Send),
    /// Cancels a delayed `send` by its id.
    Cancel(Template),
    /// Emits an event to subscribers outside the run.
    Emit {
        /// Event type.
        r#type: Template,
        /// Event data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Writes a line to the log.
    Log {
        /// The message.
        value: Template,
        /// A label before the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Starts a machine (or a service) as an actor of the run that outlives the state.
    Spawn {
        /// An entry of `machines` or of `actors`.
        machine: String,
        /// Id of the new actor.
        id: Template,
        /// Its input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Template>,
    },
    /// Stops a spawned actor.
    Stop(Template),
    /// Runs the first branch whose `when` holds.
    If(Vec<Branch>),
    /// Runs a block for each item of a list (or each key of a map).
    Each {
        /// CEL expression for the list.
        r#in: String,
        /// Variable for the item.
        r#as: String,
        /// Variable for the index (for a map, the key).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        /// The actions.
        r#do: Block,
    },
    /// Grants a permit.
    Grant {
        /// An entry of `ledger`.
        kind: String,
        /// Its key, unique in the run.
        key: Template,
        /// How many times it may be used; unlimited by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uses: Option<Template>,
        /// When it expires (a timestamp, RFC 3339 text, or milliseconds since 1970).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Template>,
        /// Its scope and other data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Revokes a permit, or all permits of a kind.
    Revoke {
        /// An entry of `ledger`.
        kind: String,
        /// The key of the permit; `None`: all permits of the kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Template>,
    },
    /// Opens an obligation.
    Open {
        /// An entry of `ledger`.
        kind: String,
        /// Its key, unique in the run.
        key: Template,
        /// When it is overdue: a delay from now (`24h`, a duration), a timestamp, or RFC 3339 text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Template>,
        /// Its data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Closes an obligation, or all obligations of a kind.
    Close {
        /// An entry of `ledger`.
        kind: String,
        /// The key of the obligation; `None`: all obligations of the kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Template>,
        /// How it was fulfilled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        r#as: Option<Template>,
    },
}

/// The arguments of `send`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// An actor id, `parent` or `self` (default); imports: also SCXML's `#_internal`, `#_parent`,
    /// `#_ID`, `#_scxml_RUN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Template>,
    /// Event type.
    pub r#type: Template,
    /// Event data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Template>,
    /// The delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// The id for `cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Template>,
    /// A context variable that receives the id (SCXML's `idlocation`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_location: Option<String>,
    /// CEL expression for the event processor (SCXML's `type`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Template>,
}

/// A branch of `if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// CEL condition; `None`: always (the last branch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The actions.
    #[serde(default)]
    pub r#do: Block,
}
