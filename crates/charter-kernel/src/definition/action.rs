//! What a step does: the actions of the core form.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Delay, Template};

/// Actions run in order; the first error ends the block.
pub type Block = Vec<Action>;

/// Something a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Action {
    /// An entry of `actions`.
    Name(String),
    /// Sets context variables: `name`, `name.field`, `name[CEL]`. All values are computed before the first is set.
    Assign(IndexMap<String, Template>),
    /// An event at the end of the internal queue of this actor.
    Raise {
        /// Event type.
        r#type: Template,
        /// Event data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// An event for an actor of the run, now or later.
    Send(Send),
    /// Takes back a delayed `send`, by its id.
    Cancel(Template),
    /// An event for subscribers outside the run.
    Emit {
        /// Event type.
        r#type: Template,
        /// Event data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// A line for people.
    Log {
        /// What to say.
        value: Template,
        /// A word in front of it.
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
    /// Ends a spawned actor.
    Stop(Template),
    /// The first branch whose `when` holds.
    If(Vec<Branch>),
    /// Runs a block for each item of a list (or each key of a map).
    Each {
        /// CEL of the list.
        r#in: String,
        /// Name of the item.
        r#as: String,
        /// Name of the position (of the key, for a map).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        /// The block.
        r#do: Block,
    },
    /// Gives a permit.
    Grant {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; used once in a run.
        key: Template,
        /// How often it may be used; default: without limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uses: Option<Template>,
        /// Until when (a timestamp, RFC 3339 text, or milliseconds since 1970).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Template>,
        /// Its scope and whatever else belongs to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Ends a permit, or all of a kind.
    Revoke {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Template>,
    },
    /// Opens an obligation.
    Open {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; used once in a run.
        key: Template,
        /// When it is overdue: a delay from now (`24h`, a duration), a timestamp, or RFC 3339 text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Template>,
        /// Whatever belongs to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Fulfils an obligation, or all of a kind.
    Close {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Template>,
        /// How it was fulfilled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        r#as: Option<Template>,
    },
}

/// `send`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// An actor id, `parent` or `self` (default); imports: also SCXML's `#_internal`, `#_parent`, `#_ID`, `#_scxml_RUN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Template>,
    /// Event type.
    pub r#type: Template,
    /// Event data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Template>,
    /// How long to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// A name by which `cancel` finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Template>,
    /// A context variable that receives the id (SCXML's `idlocation`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_location: Option<String>,
    /// CEL of the event processor's name (SCXML's `type`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Template>,
}

/// A branch of `if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// CEL; none: always (the last branch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The block.
    #[serde(default)]
    pub r#do: Block,
}
