//! Webhooks: facts about records, sent to addresses that administrators have named, signed, in
//! order, at least once.

mod asked;
mod deliver;
mod event;
mod office;
mod progress;
mod schedule;
mod send;
mod sign;
mod status;
mod target;

pub(crate) use deliver::{Hooks, supervise};
pub use event::{BadEvent, HookEvent};
pub(crate) use progress::{forget, prepare};
pub use sign::HookSecret;
pub use status::{DeadLetter, HookStatus, dead_letters, statuses};
pub use target::{BadUrl, check_url};

use serde::{Deserialize, Serialize};

/// Hooks of a journal that are open at the same time. The charter `host` has the same number.
pub const MAX_HOOKS: usize = 100;

/// A hook, as the run `host` has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hook {
    /// Where events are sent.
    pub url: String,
    /// Which events.
    pub on: Vec<HookEvent>,
    /// The id of the charter whose runs it is about; `None`: those of every charter.
    #[serde(default)]
    pub charter: Option<String>,
    /// Whether the address may be one that is not public.
    pub private: bool,
    /// What the person who added it wrote down.
    #[serde(default)]
    pub note: Option<String>,
    /// Who added it.
    pub by: HookAuthor,
    /// How often somebody asked to try again.
    pub retries: u64,
    /// Why nothing is sent any more.
    #[serde(default)]
    pub closed: Option<String>,
    /// Whether it was removed.
    pub removed: bool,
}

/// Who added a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAuthor {
    /// The id of the principal.
    pub id: String,
}

/// A hook to add.
#[derive(Debug, Clone)]
pub struct NewHook {
    /// Where events are sent.
    pub url: String,
    /// Which events.
    pub on: Vec<HookEvent>,
    /// The id of the charter whose runs it is about; `None`: those of every charter.
    pub charter: Option<String>,
    /// Whether the address may be one that is not public.
    pub private: bool,
    /// A remark.
    pub note: Option<String>,
}
