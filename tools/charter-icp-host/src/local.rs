//! The host of this crate: canisters, a queue of messages, a clock that stands still.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use candid::Principal;

use crate::canister::{Callback, Canister, Context, Line, Origin, Spent, Status};
use crate::code::{Code, Method};
use crate::entry::Entry;
use crate::limits::{InjectedFault, InjectedFaults, Limits};
use crate::management::Management;
use crate::reject::{Answer, Reject};
use crate::run::{Call, NewCall, Ran, Said, Target};

/// When the clock begins: 2026-01-01 00:00:00 UTC.
const BEGINNING: u64 = 1_767_225_600_000_000_000;

/// A piece of work.
pub(crate) enum Task {
    /// A user's message.
    Message { call: u64, to: Principal, caller: Principal, method: String, arg: Vec<u8> },
    /// A canister's call.
    Request { from: Principal, callback: u64, to: Principal, method: String, arg: Vec<u8>, deadline: u64 },
    /// The answer to one.
    Response { to: Principal, callback: u64, answer: Answer },
}

/// What a step has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which canister; the management canister too.
    pub canister: Principal,
    /// What of it.
    pub entry: Entry,
    /// The method; in callbacks that of the call they belong to; empty for a timer.
    pub method: String,
    /// What it took, cleanup included.
    pub instructions: u64,
    /// Why it was taken back, or did not even begin.
    pub failed: Option<Reject>,
}

/// An Internet Computer of one process: no subnets, no consensus, no cycles, and the same run every time.
pub struct LocalHost {
    pub(crate) canisters: BTreeMap<Principal, Canister>,
    pub(crate) queue: VecDeque<Task>,
    pub(crate) answers: BTreeMap<u64, Option<Answer>>,
    pub(crate) faults: InjectedFaults,
    pub(crate) limits: Limits,
    pub(crate) now: u64,
    management: Management,
    /// The last id that was given to a call, a callback or a context.
    last: u64,
    created: u64,
    /// The last step was a timer: a message is next.
    fired: bool,
}

impl Default for LocalHost {
    fn default() -> LocalHost {
        LocalHost::new()
    }
}

impl LocalHost {
    /// An empty one, at the beginning of 2026.
    pub fn new() -> LocalHost {
        LocalHost::with_seed(0)
    }

    /// An empty one; the seed is what `raw_rand` draws from.
    pub fn with_seed(seed: u64) -> LocalHost {
        LocalHost {
            canisters: BTreeMap::new(),
            queue: VecDeque::new(),
            answers: BTreeMap::new(),
            faults: InjectedFaults::default(),
            limits: Limits::default(),
            now: BEGINNING,
            management: Management::new(seed),
            last: 0,
            created: 0,
            fired: false,
        }
    }

    /// The limits of instructions, to be set.
    pub fn limits_mut(&mut self) -> &mut Limits {
        &mut self.limits
    }

    /// An execution to come will trap.
    pub fn fault(&mut self, canister: Principal, fault: InjectedFault) {
        self.faults.add(canister, fault);
    }

    /// Forgets the faults that have not struck.
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

    /// Whether it runs.
    pub fn status(&self, canister: Principal) -> Option<Status> {
        self.canisters.get(&canister).map(|canister| canister.status)
    }

    /// What a canister has printed since this was asked last. Traps do not take it back.
    pub fn printed(&mut self, canister: Principal) -> Vec<Line> {
        self.canisters.get_mut(&canister).map(|canister| canister.lines.drain(..).collect()).unwrap_or_default()
    }

    /// What the executions of a canister have cost so far, by kind.
    pub fn spent(&self, canister: Principal) -> BTreeMap<Entry, Spent> {
        self.canisters.get(&canister).map(|canister| canister.spent.clone()).unwrap_or_default()
    }

    /// Instructions of a canister so far, queries too.
    pub fn instructions(&self, canister: Principal) -> u64 {
        let spent = self.canisters.get(&canister).map(|canister| canister.spent.values());
        spent.into_iter().flatten().fold(0, |sum, spent| sum.saturating_add(spent.instructions))
    }

    /// Bytes of its heap.
    pub fn heap(&self, canister: Principal) -> usize {
        self.canisters.get(&canister).map_or(0, Canister::heap)
    }

    /// Pages (of 64 KiB) of its stable memory.
    pub fn stable_pages(&self, canister: Principal) -> u64 {
        self.canisters.get(&canister).map_or(0, |canister| canister.stable.size())
    }

    /// A part of its stable memory, if there is that much.
    pub fn stable(&self, canister: Principal, offset: u64, size: usize) -> Option<Vec<u8>> {
        self.canisters.get(&canister)?.stable.bytes(offset, size)
    }

    /// The data it has certified last.
    pub fn certified(&self, canister: Principal) -> Vec<u8> {
        self.canisters.get(&canister).map(|canister| canister.certified.clone()).unwrap_or_default()
    }

    /// When its timer is due, in nanoseconds since 1970.
    pub fn timer(&self, canister: Principal) -> Option<u64> {
        self.canisters.get(&canister).map(|canister| canister.timer).filter(|timer| *timer != 0)
    }

    /// Calls that it has begun and not finished: it waits for answers to its own calls in them.
    pub fn open_calls(&self, canister: Principal) -> usize {
        self.canisters.get(&canister).map_or(0, |canister| canister.contexts.len())
    }

    /// Messages, calls and answers that wait for a step.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.last = self.last.saturating_add(1);
        self.last
    }

    /// The id of a new canister, as the first subnet of the Internet Computer gives them out.
    pub(crate) fn next_canister(&mut self) -> Principal {
        let [a, b, c, d, e, f, g, h] = self.created.to_be_bytes();
        self.created = self.created.saturating_add(1);
        Principal::from_slice(&[a, b, c, d, e, f, g, h, 1, 1])
    }

    /// Lets time pass; nothing runs.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Does one thing: a timer that is due, a message, a call, an answer. Timers and messages take turns if both wait. Nothing, if
    /// nothing waits at the present time. Each step takes a nanosecond.
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

    /// Runs an entry point of a canister: changes stay, unless it is one that only looks.
    fn run(
        &mut self,
        id: Principal,
        entry: Entry,
        target: Target,
        context: &Context,
        arg: Vec<u8>,
        reject: Option<(u32, String)>,
    ) -> Ran {
        let limit = self.limits.of(entry);
        let limit = self.faults.limit(id, entry, &context.method, limit);
        let call = Call {
            entry,
            target,
            arg,
            caller: context.caller,
            method: context.method.clone(),
            reject,
            deadline: context.deadline,
            answerable: !context.answered && context.origin != Origin::System,
            before: context.instructions,
            time: self.now,
            limit,
        };
        match self.canisters.get_mut(&id) {
            Some(canister) if entry == Entry::ReplicatedQuery => canister.look(call),
            Some(canister) => canister.execute(call),
            None => crate::canister::empty(),
        }
    }

    /// Whether a canister can take a message, and as what it takes this method.
    fn admit(&self, to: Principal, method: &str) -> Result<Method, Reject> {
        let canister = self.canisters.get(&to).ok_or_else(|| Reject::new(301, format!("Canister {to} not found.")))?;
        match canister.status {
            Status::Running => {}
            Status::Stopping => {
                return Err(Reject::new(509, format!("Canister {to} is stopping.")));
            }
            Status::Stopped => return Err(Reject::new(508, format!("Canister {to} is stopped."))),
        }
        let code = canister.code().ok_or_else(|| {
            Reject::new(537, format!("Error from Canister {to}: Attempted to execute a message, but the canister contains no Wasm module."))
        })?;
        code.method(method).ok_or_else(|| {
            Reject::new(536, format!("Error from Canister {to}: Canister has no update method '{method}'."))
        })
    }

    /// A message or a call reaches its canister.
    fn begin(
        &mut self,
        to: Principal,
        origin: Origin,
        caller: Principal,
        method: String,
        arg: Vec<u8>,
        deadline: u64,
    ) -> Step {
        let admitted = self.admit(to, &method).and_then(|kind| match kind {
            Method::Update => Ok((Entry::Update, kind)),
            Method::Query => Ok((Entry::ReplicatedQuery, kind)),
            Method::CompositeQuery => Err(Reject::new(
                527,
                format!("Error from Canister {to}: composite query '{method}' cannot be called in replicated mode."),
            )),
        });
        let (entry, kind) = match admitted {
            Ok(admitted) => admitted,
            Err(reject) => {
                self.deliver(origin, Err(reject.clone()));
                return Step { canister: to, entry: Entry::Update, method, instructions: 0, failed: Some(reject) };
            }
        };
        let target = Target::Export(kind.export(&method));
        let context = Context { origin, caller, method, answered: false, outstanding: 0, instructions: 0, deadline };
        let ran = self.run(to, entry, target, &context, arg, None);
        self.after(to, entry, None, context, ran)
    }

    /// The answer to a call reaches the canister that made it.
    fn respond(&mut self, to: Principal, id: u64, answer: Answer) -> Option<Step> {
        let canister = self.canisters.get_mut(&to)?;
        let callback = canister.callbacks.remove(&id)?;
        let mut context = canister.contexts.remove(&callback.context)?;
        context.outstanding = context.outstanding.saturating_sub(1);
        let (entry, closure, arg, reject) = match answer {
            Ok(reply) => (Entry::Reply, callback.reply, reply, None),
            Err(reject) => (Entry::Reject, callback.reject, Vec::new(), Some((reject.code as u32, reject.message))),
        };
        let mut ran = self.run(to, entry, Target::Table(closure), &context, arg, reject.clone());
        if ran.result.is_err()
            && let Some(cleanup) = callback.cleanup
        {
            let cleaned = self.run(to, Entry::Cleanup, Target::Table(cleanup), &context, Vec::new(), reject);
            ran.instructions = ran.instructions.saturating_add(cleaned.instructions);
        }
        Some(self.after(to, entry, Some(callback.context), context, ran))
    }

    /// After an execution: its answer and its calls leave, or its failure is the answer.
    fn after(&mut self, id: Principal, entry: Entry, known: Option<u64>, mut context: Context, ran: Ran) -> Step {
        context.instructions = context.instructions.saturating_add(ran.instructions);
        let method = context.method.clone();
        let owed = context.origin != Origin::System;
        let context_id = known.unwrap_or_else(|| self.next_id());
        let mut failed = None;
        match ran.result {
            Ok(effects) => {
                if let Some(said) = effects.answer {
                    context.answered = true;
                    self.deliver(context.origin, said_answer(said));
                }
                for call in effects.calls {
                    self.send(id, context_id, call);
                    context.outstanding = context.outstanding.saturating_add(1);
                }
                if owed && context.outstanding == 0 && !context.answered {
                    let reject =
                        Reject::new(506, format!("Error from Canister {id}: Canister did not reply to the call."));
                    self.deliver(context.origin, Err(reject));
                }
            }
            Err(trap) => {
                let reject = trap.reject(id);
                if owed && context.outstanding == 0 && !context.answered {
                    self.deliver(context.origin, Err(reject.clone()));
                }
                failed = Some(reject);
            }
        }
        if context.outstanding > 0
            && let Some(canister) = self.canisters.get_mut(&id)
        {
            canister.contexts.insert(context_id, context);
        }
        Step { canister: id, entry, method, instructions: ran.instructions, failed }
    }

    /// A call leaves its canister.
    fn send(&mut self, from: Principal, context: u64, call: NewCall) {
        let callback = self.next_id();
        let deadline =
            call.timeout.map_or(0, |seconds| self.now.saturating_add(u64::from(seconds).saturating_mul(1_000_000_000)));
        if let Some(canister) = self.canisters.get_mut(&from) {
            let waiting = Callback {
                context,
                reply: call.reply,
                reject: call.reject,
                cleanup: call.cleanup,
                deadline,
                answered: false,
            };
            canister.callbacks.insert(callback, waiting);
        }
        let NewCall { callee, method, arg, .. } = call;
        self.queue.push_back(Task::Request { from, callback, to: callee, method, arg, deadline });
    }

    /// An answer leaves; one that nobody waits for any more is dropped.
    fn deliver(&mut self, origin: Origin, answer: Answer) {
        match origin {
            Origin::User(call) => {
                self.answers.insert(call, Some(answer));
            }
            Origin::Canister(to, callback) => {
                let waiting = self.canisters.get_mut(&to).and_then(|canister| canister.callbacks.get_mut(&callback));
                if let Some(waiting) = waiting
                    && !std::mem::replace(&mut waiting.answered, true)
                {
                    self.queue.push_back(Task::Response { to, callback, answer });
                }
            }
            Origin::System => {}
        }
    }

    /// A query, or an inspection: on a copy.
    pub(crate) fn look(
        &mut self,
        to: Principal,
        entry: Entry,
        export: String,
        caller: Principal,
        method: &str,
        arg: &[u8],
    ) -> Ran {
        let limit = self.limits.of(entry);
        let limit = self.faults.limit(to, entry, method, limit);
        let call = Call {
            entry,
            target: Target::Export(export),
            arg: arg.to_vec(),
            caller,
            method: method.to_string(),
            reject: None,
            deadline: 0,
            answerable: entry == Entry::Query,
            before: 0,
            time: self.now,
            limit,
        };
        match self.canisters.get_mut(&to) {
            Some(canister) => canister.look(call),
            None => crate::canister::empty(),
        }
    }

    /// Whether a message may come in: the canister takes messages, and inspection accepts this one.
    pub(crate) fn inspect(&mut self, to: Principal, caller: Principal, method: &str, arg: &[u8]) -> Result<(), Reject> {
        match self.admit(to, method) {
            // That there is no such method is told as the answer.
            Ok(_) | Err(Reject { error: 536, .. }) => {}
            Err(reject) => return Err(reject),
        }
        let hook = Code::hook(Entry::Inspect);
        if !self.canisters.get(&to).and_then(Canister::code).is_some_and(|code| code.has(hook)) {
            return Ok(());
        }
        match self.look(to, Entry::Inspect, hook.to_string(), caller, method, arg).result {
            Ok(effects) if effects.accepted => Ok(()),
            Ok(_) => {
                Err(Reject::new(406, format!("Canister {to} rejected the message: it did not call `accept_message`.")))
            }
            Err(trap) => Err(trap.reject(to)),
        }
    }

    /// As what a query would run.
    pub(crate) fn admit_query(&self, to: Principal, method: &str) -> Result<Method, Reject> {
        match self.admit(to, method) {
            Ok(Method::Update) | Err(Reject { error: 536, .. }) => {
                Err(Reject::new(536, format!("Error from Canister {to}: Canister has no query method '{method}'.")))
            }
            other => other,
        }
    }
}

pub(crate) fn said_answer(said: Said) -> Answer {
    match said {
        Said::Reply(reply) => Ok(reply),
        Said::Reject(message) => Err(Reject::new(406, message)),
    }
}
