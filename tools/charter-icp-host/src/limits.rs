//! Instruction limits, and injected faults.

use candid::Principal;

use crate::entry::Entry;

/// Maximum number of instructions of one execution, by entry point. The defaults are the limits of
/// the Internet Computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Updates, callbacks, timers: 40 billion.
    pub update: u64,
    /// Queries and inspections: 5 billion.
    pub query: u64,
    /// Install and upgrade, all steps together: 300 billion.
    pub install: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { update: 40_000_000_000, query: 5_000_000_000, install: 300_000_000_000 }
    }
}

impl Limits {
    pub(crate) fn of(&self, entry: Entry) -> u64 {
        match entry {
            Entry::Start | Entry::Init | Entry::PreUpgrade | Entry::PostUpgrade => self.install,
            Entry::Query | Entry::Inspect => self.query,
            _ => self.update,
        }
    }
}

/// Makes an execution trap after a number of instructions, so that a canister can be interrupted
/// anywhere without special code in it.
///
/// ```
/// use charter_icp_host::{Entry, InjectedFault};
/// // The third reply callback traps after 10,000 instructions.
/// let fault = InjectedFault::new(Entry::Reply, 10_000).after(2);
/// // The next call of this method.
/// let fault = InjectedFault::new(Entry::Update, 0).method("wake");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedFault {
    pub(crate) entry: Entry,
    pub(crate) method: Option<String>,
    pub(crate) skip: u64,
    pub(crate) instructions: u64,
}

impl InjectedFault {
    /// Makes the next execution of this entry point trap after `instructions`, if it takes that
    /// many.
    pub fn new(entry: Entry, instructions: u64) -> InjectedFault {
        InjectedFault { entry, method: None, skip: 0, instructions }
    }

    /// Skips the first `executions` executions.
    #[must_use]
    pub fn after(mut self, executions: u64) -> InjectedFault {
        self.skip = executions;
        self
    }

    /// Restricts the fault to executions of this method; for callbacks, to the method that made the
    /// call.
    #[must_use]
    pub fn method(mut self, name: impl Into<String>) -> InjectedFault {
        self.method = Some(name.into());
        self
    }
}

/// The injected faults that have not occurred yet.
#[derive(Debug, Default)]
pub(crate) struct InjectedFaults(Vec<(Principal, InjectedFault)>);

impl InjectedFaults {
    pub(crate) fn add(&mut self, canister: Principal, fault: InjectedFault) {
        self.0.push((canister, fault));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the limit of an execution, lowered by an injected fault.
    pub(crate) fn limit(&mut self, canister: Principal, entry: Entry, method: &str, limit: u64) -> u64 {
        let struck = self.strike(canister, entry, method);
        struck.map_or(limit, |struck| struck.min(limit))
    }

    /// Returns the number of instructions after which this execution traps, if a fault is injected.
    fn strike(&mut self, canister: Principal, entry: Entry, method: &str) -> Option<u64> {
        let mut struck = None;
        self.0.retain_mut(|(whose, fault)| {
            let meant =
                *whose == canister && fault.entry == entry && fault.method.as_deref().is_none_or(|name| name == method);
            if !meant {
                return true;
            }
            match fault.skip.checked_sub(1) {
                Some(skip) => {
                    fault.skip = skip;
                    true
                }
                None if struck.is_none() => {
                    struck = Some(fault.instructions);
                    false
                }
                None => true,
            }
        });
        struck
    }
}
