//! The host of this crate: canisters, a queue of messages, a manual clock.

mod messages;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use candid::Principal;

use crate::canister::{Canister, Context, Line, Origin, Spent, Status};
use crate::code::Code;
use crate::entry::Entry;
use crate::limits::{InjectedFault, InjectedFaults, Limits};
use crate::management::Management;
use crate::reject::{Answer, Reject};
use crate::run::{Said, Target};

/// The initial time: 2026-01-01 00:00:00 UTC.
const START_TIME: u64 = 1_767_225_600_000_000_000;

/// An entry of the queue.
pub(crate) enum Task {
    /// A user's message.
    Message { call: u64, to: Principal, caller: Principal, method: String, arg: Vec<u8> },
    /// A canister's call.
    Request { from: Principal, callback: u64, to: Principal, method: String, arg: Vec<u8>, deadline: u64 },
    /// The answer to a canister's call.
    Response { to: Principal, callback: u64, answer: Answer },
}

/// The execution that a step performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The canister that executed it, possibly the management canister.
    pub canister: Principal,
    /// The entry point.
    pub entry: Entry,
    /// The method; for callbacks, the method that made the call; empty for timers.
    pub method: String,
    /// The number of instructions, including cleanup.
    pub instructions: u64,
    /// Why the execution was rolled back or did not happen; `None` if it succeeded.
    pub failed: Option<Reject>,
}

/// An Internet Computer in one process: no subnets, no consensus, no cycles, and deterministic.
pub struct LocalHost {
    pub(crate) canisters: BTreeMap<Principal, Canister>,
    pub(crate) queue: VecDeque<Task>,
    pub(crate) answers: BTreeMap<u64, Option<Answer>>,
    pub(crate) faults: InjectedFaults,
    pub(crate) limits: Limits,
    pub(crate) now: u64,
    management: Management,
    /// The last id of a call, a callback or a context.
    last: u64,
    created: u64,
    /// Whether the last step was a timer, so that a message comes next.
    fired: bool,
}

impl Default for LocalHost {
    fn default() -> LocalHost {
        LocalHost::new()
    }
}

impl LocalHost {
    /// Creates an empty host whose clock shows the beginning of 2026.
    pub fn new() -> LocalHost {
        LocalHost::with_seed(0)
    }

    /// Creates an empty host; `seed` is the seed of `raw_rand`.
    pub fn with_seed(seed: u64) -> LocalHost {
        LocalHost {
            canisters: BTreeMap::new(),
            queue: VecDeque::new(),
            answers: BTreeMap::new(),
            faults: InjectedFaults::default(),
            limits: Limits::default(),
            now: START_TIME,
            management: Management::new(seed),
            last: 0,
            created: 0,
            fired: false,
        }
    }

    /// The instruction limits, which can be changed.
    pub fn limits_mut(&mut self) -> &mut Limits {
        &mut self.limits
    }

    /// Makes a later execution trap.
    pub fn inject(&mut self, canister: Principal, fault: InjectedFault) {
        self.faults.add(canister, fault);
    }

    /// Removes the injected faults that have not occurred yet.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Sets an environment variable of a canister.
    pub fn set_variable(&mut self, canister: Principal, name: &str, value: &str) {
        if let Some(canister) = self.canisters.get_mut(&canister) {
            canister.variables.insert(name.to_string(), value.to_string());
            canister.version = canister.version.saturating_add(1);
        }
    }

    /// The status of a canister.
    pub fn status(&self, canister: Principal) -> Option<Status> {
        self.canisters.get(&canister).map(|canister| canister.status)
    }

    /// Takes what a canister has printed since the last call. Traps do not roll it back.
    pub fn printed(&mut self, canister: Principal) -> Vec<Line> {
        self.canisters.get_mut(&canister).map(|canister| canister.lines.drain(..).collect()).unwrap_or_default()
    }

    /// The cost of all executions of a canister, by entry point.
    pub fn spent(&self, canister: Principal) -> BTreeMap<Entry, Spent> {
        self.canisters.get(&canister).map(|canister| canister.spent.clone()).unwrap_or_default()
    }

    /// Instructions of all executions of a canister, including queries.
    pub fn instructions(&self, canister: Principal) -> u64 {
        let spent = self.canisters.get(&canister).map(|canister| canister.spent.values());
        spent.into_iter().flatten().fold(0, |sum, spent| sum.saturating_add(spent.instructions))
    }

    /// The size of a canister's heap, in bytes.
    pub fn heap(&self, canister: Principal) -> usize {
        self.canisters.get(&canister).map_or(0, Canister::heap)
    }

    /// The size of a canister's stable memory, in pages of 64 KiB.
    pub fn stable_pages(&self, canister: Principal) -> u64 {
        self.canisters.get(&canister).map_or(0, |canister| canister.stable.size())
    }

    /// Returns a part of a canister's stable memory; `None` if the memory is smaller.
    pub fn stable(&self, canister: Principal, offset: u64, size: usize) -> Option<Vec<u8>> {
        self.canisters.get(&canister)?.stable.bytes(offset, size)
    }

    /// The data that the canister last certified.
    pub fn certified(&self, canister: Principal) -> Vec<u8> {
        self.canisters.get(&canister).map(|canister| canister.certified.clone()).unwrap_or_default()
    }

    /// When the canister's timer is due, in nanoseconds since 1970.
    pub fn timer(&self, canister: Principal) -> Option<u64> {
        self.canisters.get(&canister).map(|canister| canister.timer).filter(|timer| *timer != 0)
    }

    /// Number of unfinished calls, which wait for the answers to other calls.
    pub fn open_calls(&self, canister: Principal) -> usize {
        self.canisters.get(&canister).map_or(0, |canister| canister.contexts.len())
    }

    /// Number of queued messages, calls and answers.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.last = self.last.saturating_add(1);
        self.last
    }

    /// Returns the id of a new canister, as assigned by the first subnet of the Internet Computer.
    pub(crate) fn next_canister(&mut self) -> Principal {
        let [a, b, c, d, e, f, g, h] = self.created.to_be_bytes();
        self.created = self.created.saturating_add(1);
        Principal::from_slice(&[a, b, c, d, e, f, g, h, 1, 1])
    }

    /// Advances the time without executing anything.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Executes one due timer, message, call or answer; timers and messages alternate. Returns
    /// `None` if nothing is left to do at the current time. Each step takes a nanosecond.
    pub fn step(&mut self) -> Option<Step> {
        self.pass(Duration::from_nanos(1));
        self.expire();
        if !self.fired
            && let Some(step) = self.fire()
        {
            self.fired = true;
            return Some(step);
        }
        self.fired = false;
        while let Some(task) = self.queue.pop_front() {
            if let Some(step) = self.work(task) {
                return Some(step);
            }
        }
        let step = self.fire();
        self.fired = step.is_some();
        step
    }

    /// Rejects calls whose callers no longer wait.
    fn expire(&mut self) {
        for (id, canister) in &mut self.canisters {
            for (callback, waiting) in &mut canister.callbacks {
                if waiting.deadline != 0 && waiting.deadline <= self.now && !waiting.answered {
                    waiting.answered = true;
                    let answer = Err(Reject::new(601, "Call has timed out."));
                    self.queue.push_back(Task::Response { to: *id, callback: *callback, answer });
                }
            }
        }
    }

    /// Runs a timer that is due.
    fn fire(&mut self) -> Option<Step> {
        let due = self
            .canisters
            .values_mut()
            .find(|canister| canister.status == Status::Running && canister.timer != 0 && canister.timer <= self.now)?;
        due.timer = 0;
        let id = due.id;
        if !due.code().is_some_and(|code| code.has(Code::hook(Entry::Timer))) {
            return None;
        }
        let context = Context {
            origin: Origin::System,
            caller: Principal::management_canister(),
            method: String::new(),
            answered: false,
            outstanding: 0,
            instructions: 0,
            deadline: 0,
        };
        let target = Target::Export(Code::hook(Entry::Timer).to_string());
        let ran = self.run(id, Entry::Timer, target, &context, Vec::new(), None);
        Some(self.after(id, Entry::Timer, None, context, ran))
    }

    fn work(&mut self, task: Task) -> Option<Step> {
        match task {
            Task::Message { call, to, caller, method, arg } => {
                Some(self.begin(to, Origin::User(call), caller, method, arg, 0))
            }
            Task::Request { deadline, .. } if deadline != 0 && deadline <= self.now => None,
            Task::Request { from, callback, to, method, arg, deadline: _ }
                if to == Principal::management_canister() =>
            {
                let answer = self.management.answer(&method, &arg);
                let failed = answer.as_ref().err().cloned();
                self.deliver(Origin::Canister(from, callback), answer);
                Some(Step { canister: to, entry: Entry::Update, method, instructions: 0, failed })
            }
            Task::Request { from, callback, to, method, arg, deadline } => {
                Some(self.begin(to, Origin::Canister(from, callback), from, method, arg, deadline))
            }
            Task::Response { to, callback, answer } => self.respond(to, callback, answer),
        }
    }
}

pub(crate) fn said_answer(said: Said) -> Answer {
    match said {
        Said::Reply(reply) => Ok(reply),
        Said::Reject(message) => Err(Reject::new(406, message)),
    }
}
