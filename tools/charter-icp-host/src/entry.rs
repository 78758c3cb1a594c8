//! The entry points of a canister, and the system functions that each may use.

use std::fmt;

/// An entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    /// The module's start function.
    Start,
    /// `canister_init`.
    Init,
    /// `canister_pre_upgrade`.
    PreUpgrade,
    /// `canister_post_upgrade`.
    PostUpgrade,
    /// An update method, called by a user or a canister.
    Update,
    /// A query method called as an update, by a user or a canister.
    ReplicatedQuery,
    /// A query.
    Query,
    /// The callback for a reply.
    Reply,
    /// The callback for a rejection.
    Reject,
    /// The cleanup after a callback has trapped.
    Cleanup,
    /// `canister_inspect_message`.
    Inspect,
    /// `canister_global_timer`.
    Timer,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entry::Start => "start",
            Entry::Init => "init",
            Entry::PreUpgrade => "pre upgrade",
            Entry::PostUpgrade => "post upgrade",
            Entry::Update => "update",
            Entry::ReplicatedQuery => "replicated query",
            Entry::Query => "non replicated query",
            Entry::Reply => "reply callback",
            Entry::Reject => "reject callback",
            Entry::Cleanup => "cleanup callback",
            Entry::Inspect => "inspect message",
            Entry::Timer => "system task",
        })
    }
}

/// A set of entry points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entries(u16);

impl Entries {
    pub(crate) const fn of(entries: &[Entry]) -> Entries {
        let mut bits = 0;
        let mut rest = entries;
        while let [entry, others @ ..] = rest {
            bits |= 1 << *entry as u16;
            rest = others;
        }
        Entries(bits)
    }

    pub(crate) fn has(self, entry: Entry) -> bool {
        self.0 & (1 << entry as u16) != 0
    }

    /// Every entry point, including the start function: `* s` in the specification.
    pub(crate) const ALL: Entries = Entries(u16::MAX);
    /// Every entry point except the start function: `*`.
    pub(crate) const ANY: Entries = Entries(!(1 << Entry::Start as u16));
    /// `I U RQ NRQ Ry F`
    pub(crate) const ARGUMENT: Entries = Entries::of(&[
        Entry::Init,
        Entry::PostUpgrade,
        Entry::Update,
        Entry::ReplicatedQuery,
        Entry::Query,
        Entry::Reply,
        Entry::Inspect,
    ]);
    /// `U RQ NRQ Ry Rt C F`
    pub(crate) const CALLER_INFO: Entries = Entries::of(&[
        Entry::Update,
        Entry::ReplicatedQuery,
        Entry::Query,
        Entry::Reply,
        Entry::Reject,
        Entry::Cleanup,
        Entry::Inspect,
    ]);
    /// `Ry Rt C`
    pub(crate) const REJECT_CODE: Entries = Entries::of(&[Entry::Reply, Entry::Reject, Entry::Cleanup]);
    /// `Rt`
    pub(crate) const REJECT_MESSAGE: Entries = Entries::of(&[Entry::Reject]);
    /// `U RQ NRQ Ry Rt`
    pub(crate) const ANSWER: Entries =
        Entries::of(&[Entry::Update, Entry::ReplicatedQuery, Entry::Query, Entry::Reply, Entry::Reject]);
    /// `U RQ Ry Rt`
    pub(crate) const CYCLES: Entries =
        Entries::of(&[Entry::Update, Entry::ReplicatedQuery, Entry::Reply, Entry::Reject]);
    /// `Ry Rt`
    pub(crate) const REFUND: Entries = Entries::of(&[Entry::Reply, Entry::Reject]);
    /// `I G U RQ Ry Rt C T`
    pub(crate) const REPLICATED: Entries = Entries::of(&[
        Entry::Init,
        Entry::PreUpgrade,
        Entry::PostUpgrade,
        Entry::Update,
        Entry::ReplicatedQuery,
        Entry::Reply,
        Entry::Reject,
        Entry::Cleanup,
        Entry::Timer,
    ]);
    /// `F`
    pub(crate) const INSPECT: Entries = Entries::of(&[Entry::Inspect]);
    /// `U Ry Rt T`
    pub(crate) const CALL: Entries = Entries::of(&[Entry::Update, Entry::Reply, Entry::Reject, Entry::Timer]);
    /// `I G U Ry Rt T`
    pub(crate) const CERTIFY: Entries = Entries::of(&[
        Entry::Init,
        Entry::PreUpgrade,
        Entry::PostUpgrade,
        Entry::Update,
        Entry::Reply,
        Entry::Reject,
        Entry::Timer,
    ]);
    /// `NRQ`
    pub(crate) const CERTIFICATE: Entries = Entries::of(&[Entry::Query]);
    /// `I G U Ry Rt C T`
    pub(crate) const TIMER: Entries = Entries::of(&[
        Entry::Init,
        Entry::PreUpgrade,
        Entry::PostUpgrade,
        Entry::Update,
        Entry::Reply,
        Entry::Reject,
        Entry::Cleanup,
        Entry::Timer,
    ]);
}
