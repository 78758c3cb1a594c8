//! A canister: its state, and executions that are committed or rolled back.
//!
//! Rolling back the heap would require a copy of it before each message. Instead, the host keeps a
//! copy that is some messages old (the checkpoint), and the inputs of the messages since then.
//! After a trap, these messages are executed again, which gives the same state, because an
//! execution depends only on its input and the state. A new copy is made when it costs little
//! compared with the executions since the last one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use candid::Principal;

use crate::BadModule;
use crate::code::Code;
use crate::entry::Entry;
use crate::instance::{Image, Instance};
use crate::run::{Call, Closure, Effects, Facts, Input, Ran, Trap};
use crate::stable::Stable;

/// Minimum number of instructions between two copies of the heap.
const MIN_BETWEEN: u64 = 20_000_000;
/// The same minimum per byte of heap, so that copies take only a few percent of the time.
const BETWEEN_PER_BYTE: u64 = 2;
/// Maximum number of messages between two copies.
const MAX_BETWEEN: usize = 5_000;
/// Maximum number of stored lines that a canister printed.
const MAX_LINES: usize = 10_000;

/// The status of a canister.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The canister accepts messages.
    Running = 1,
    /// The canister receives answers to its calls, but no messages.
    Stopping = 2,
    /// The canister accepts nothing.
    Stopped = 3,
}

/// A line that a canister printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Time, in nanoseconds since 1970.
    pub time: u64,
    /// The text.
    pub text: String,
}

/// The cost of the executions of one entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Number of executions, including trapped ones.
    pub messages: u64,
    /// Instructions of all executions together.
    pub instructions: u64,
    /// Instructions of the most expensive execution.
    pub most: u64,
}

/// The receiver of the answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A user.
    User(u64),
    /// The callback of a canister.
    Canister(Principal, u64),
    /// No caller: a timer.
    System,
}

/// An unfinished call.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) origin: Origin,
    pub(crate) caller: Principal,
    pub(crate) method: String,
    pub(crate) answered: bool,
    /// Number of calls made in this context that have not been answered.
    pub(crate) outstanding: usize,
    pub(crate) instructions: u64,
    /// When the caller stops waiting, or zero.
    pub(crate) deadline: u64,
}

/// How the answer to a call is processed.
#[derive(Debug, Clone)]
pub(crate) struct Callback {
    pub(crate) context: u64,
    pub(crate) reply: Closure,
    pub(crate) reject: Closure,
    pub(crate) cleanup: Option<Closure>,
    /// The time at which the call times out; zero if it does not.
    pub(crate) deadline: u64,
    /// Whether an answer is queued.
    pub(crate) answered: bool,
}

/// A module with its state.
struct Loaded {
    code: Arc<Code>,
    live: Instance,
    /// For executions without effect: its state is copied before each use.
    scratch: Option<Instance>,
    checkpoint: Image,
    /// The executions since the checkpoint, with their instructions.
    since: Vec<(Arc<Input>, u64)>,
    instructions: u64,
}

/// A canister.
pub(crate) struct Canister {
    pub(crate) id: Principal,
    pub(crate) controllers: Vec<Principal>,
    pub(crate) status: Status,
    pub(crate) version: u64,
    pub(crate) timer: u64,
    pub(crate) certified: Vec<u8>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) contexts: BTreeMap<u64, Context>,
    pub(crate) callbacks: BTreeMap<u64, Callback>,
    pub(crate) lines: VecDeque<Line>,
    pub(crate) spent: BTreeMap<Entry, Spent>,
    pub(crate) stable: Stable,
    loaded: Option<Loaded>,
}

impl Canister {
    pub(crate) fn new(id: Principal, controllers: Vec<Principal>) -> Canister {
        Canister {
            id,
            controllers,
            status: Status::Running,
            version: 0,
            timer: 0,
            certified: Vec::new(),
            variables: BTreeMap::new(),
            contexts: BTreeMap::new(),
            callbacks: BTreeMap::new(),
            lines: VecDeque::new(),
            spent: BTreeMap::new(),
            stable: Stable::default(),
            loaded: None,
        }
    }

    pub(crate) fn code(&self) -> Option<&Arc<Code>> {
        self.loaded.as_ref().map(|loaded| &loaded.code)
    }

    /// The size of the heap in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.loaded.as_ref().map_or(0, |loaded| loaded.live.heap())
    }

    fn input(&self, call: Call, version: u64) -> Arc<Input> {
        let facts = Facts {
            id: self.id,
            controllers: self.controllers.clone(),
            version,
            status: self.status as u32,
            timer: self.timer,
            variables: self.variables.clone(),
        };
        Arc::new(Input { call, facts })
    }

    /// Counts an execution and stores what it printed.
    fn note(&mut self, input: &Input, ran: &mut Ran) {
        let spent = self.spent.entry(input.call.entry).or_default();
        spent.messages = spent.messages.saturating_add(1);
        spent.instructions = spent.instructions.saturating_add(ran.instructions);
        spent.most = spent.most.max(ran.instructions);
        for text in ran.printed.drain(..) {
            if self.lines.len() >= MAX_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back(Line { time: input.call.time, text });
        }
    }

    /// Executes a call; commits its changes, or rolls them back if it traps.
    pub(crate) fn execute(&mut self, call: Call) -> Ran {
        let input = self.input(call, self.version);
        let Some(loaded) = self.loaded.as_mut() else {
            return empty();
        };
        self.stable.begin();
        let mut ran = loaded.live.run(&input, &mut self.stable);
        match &ran.result {
            Ok(effects) => {
                self.stable.commit();
                loaded.instructions = loaded.instructions.saturating_add(ran.instructions);
                loaded.since.push((Arc::clone(&input), ran.instructions));
                let heap = u64::try_from(loaded.live.heap()).unwrap_or(u64::MAX);
                let enough = MIN_BETWEEN.max(heap.saturating_mul(BETWEEN_PER_BYTE));
                if loaded.instructions > enough || loaded.since.len() >= MAX_BETWEEN {
                    loaded.save(&mut self.stable);
                }
                self.timer = effects.timer.unwrap_or(self.timer);
                if let Some(certified) = &effects.certified {
                    self.certified.clone_from(certified);
                }
                self.version = self.version.saturating_add(1);
            }
            Err(_) => {
                self.stable.undo();
                if let Err(broken) = loaded.go_back(&mut self.stable) {
                    ran.result = Err(Trap::Wasm(broken.to_string()));
                }
            }
        }
        self.note(&input, &mut ran);
        ran
    }

    /// Executes a call on a copy of the state, without effect.
    pub(crate) fn look(&mut self, call: Call) -> Ran {
        let input = self.input(call, self.version);
        let Some(loaded) = self.loaded.as_mut() else {
            return empty();
        };
        self.stable.begin();
        let ran = loaded.scratch().map(|scratch| scratch.run(&input, &mut self.stable));
        self.stable.undo();
        let mut ran = ran.unwrap_or_else(|bad| Ran {
            result: Err(Trap::Wasm(bad.to_string())),
            instructions: 0,
            printed: Vec::new(),
        });
        self.note(&input, &mut ran);
        ran
    }

    /// Installs a module into an empty canister, or (with `keep`) replaces the module and keeps
    /// stable memory. Runs as one transaction: if anything traps, nothing changes.
    ///
    /// `calls` returns the call of each entry point; the limit applies to all of them together.
    pub(crate) fn put(
        &mut self,
        code: &Arc<Code>,
        keep: bool,
        mut calls: impl FnMut(Entry, u64) -> Call,
    ) -> Result<(), PutError> {
        let mut instance = Instance::new(code).map_err(PutError::Module)?;
        let mut spent = 0_u64;
        let mut effects = Effects::default();
        let before = if keep { None } else { Some(std::mem::take(&mut self.stable)) };
        self.stable.begin();
        let timer = self.timer;
        let mut outcome = Ok(());
        if keep && self.code().is_some_and(|code| code.has(Code::hook(Entry::PreUpgrade))) {
            let input = self.input(calls(Entry::PreUpgrade, spent), self.version);
            if let Some(loaded) = self.loaded.as_mut() {
                let ran = loaded.live.run(&input, &mut self.stable);
                outcome = self.part(&input, ran, &mut spent, &mut effects);
            }
        }
        // An upgrade clears the timer, even one that `canister_pre_upgrade` set.
        self.timer = 0;
        effects.timer = None;
        let version = self.version.saturating_add(1);
        let init = if keep { Entry::PostUpgrade } else { Entry::Init };
        for entry in [Entry::Start, init] {
            let there = if entry == Entry::Start { code.has_start } else { code.has(Code::hook(entry)) };
            if outcome.is_err() || !there {
                continue;
            }
            let input = self.input(calls(entry, spent), version);
            let ran = instance.run(&input, &mut self.stable);
            outcome = self.part(&input, ran, &mut spent, &mut effects);
        }
        if let Err(trap) = outcome {
            self.timer = timer;
            match before {
                Some(stable) => self.stable = stable,
                None => {
                    self.stable.undo();
                    if let Some(loaded) = self.loaded.as_mut() {
                        loaded.go_back(&mut self.stable).map_err(PutError::Module)?;
                    }
                }
            }
            return Err(PutError::Trap(trap));
        }
        self.stable.commit();
        let mut loaded = Loaded {
            code: Arc::clone(code),
            live: instance,
            scratch: None,
            checkpoint: Image::default(),
            since: Vec::new(),
            instructions: 0,
        };
        loaded.save(&mut self.stable);
        self.loaded = Some(loaded);
        self.version = version;
        self.timer = effects.timer.unwrap_or(0);
        if let Some(certified) = effects.certified {
            self.certified = certified;
        } else if !keep {
            self.certified.clear();
        }
        Ok(())
    }

    /// Processes one of several executions in a transaction.
    fn part(&mut self, input: &Input, mut ran: Ran, spent: &mut u64, effects: &mut Effects) -> Result<(), Trap> {
        self.note(input, &mut ran);
        *spent = spent.saturating_add(ran.instructions);
        let done = ran.result?;
        effects.timer = done.timer.or(effects.timer);
        effects.certified = done.certified.or(effects.certified.take());
        Ok(())
    }
}

/// Why a module could not be installed.
#[derive(Debug)]
pub(crate) enum PutError {
    Module(BadModule),
    Trap(Trap),
}

impl Loaded {
    /// Makes the current state the checkpoint.
    fn save(&mut self, stable: &mut Stable) {
        self.live.save(&mut self.checkpoint);
        stable.checkpoint();
        self.since.clear();
        self.instructions = 0;
    }

    /// Recovers after a trap: loads the checkpoint and executes everything since then again. Stable
    /// memory is already rolled back.
    fn go_back(&mut self, stable: &mut Stable) -> Result<(), BadModule> {
        stable.rewind();
        self.live.load(&self.checkpoint)?;
        for (input, instructions) in &self.since {
            stable.begin();
            let again = self.live.run(input, stable);
            stable.commit();
            if again.result.is_err() || again.instructions != *instructions {
                return Err(BadModule::new(format!(
                    "bug in the test host: executed again, `{}` took {} instructions instead of {instructions}, so the state after the trap is wrong",
                    input.call.method, again.instructions
                )));
            }
        }
        if !self.since.is_empty() {
            self.save(stable);
        }
        Ok(())
    }

    /// Returns an instance with a copy of the current state.
    fn scratch(&mut self) -> Result<&mut Instance, BadModule> {
        if self.scratch.is_none() {
            self.scratch = Some(Instance::new(&self.code)?);
        }
        let scratch = self.scratch.as_mut().ok_or_else(|| BadModule::new("no instance"))?;
        scratch.copy(&self.live)?;
        Ok(scratch)
    }
}

/// Returns the result for a canister without a module; callers check for one first.
pub(crate) fn empty() -> Ran {
    Ran { result: Err(Trap::Contract("there is no module".to_string())), instructions: 0, printed: Vec::new() }
}
