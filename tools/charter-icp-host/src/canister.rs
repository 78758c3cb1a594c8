//! A canister: its state, and executions that either stay or leave no trace.
//!
//! Taking back the heap would need a copy of it before each message. Instead there is a copy from some messages ago (the
//! checkpoint) and the inputs of the messages since; after a trap they are run again, which gives the very same state, because an
//! execution depends on nothing but its input and the state. A copy is made when it costs little against what was run since.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use candid::Principal;

use crate::BadModule;
use crate::code::Code;
use crate::entry::Entry;
use crate::instance::{Image, Instance};
use crate::run::{Call, Closure, Effects, Facts, Input, Ran, Trap};
use crate::stable::Stable;

/// At least as many instructions lie between two copies of the heap ...
const LEAST_BETWEEN: u64 = 20_000_000;
/// ... and as many for each of its bytes: a copy is then some percent of the time.
const BETWEEN_PER_BYTE: u64 = 2;
/// At most as many messages, however small.
const MAX_BETWEEN: usize = 5_000;
/// Lines that are kept of what a canister prints.
const MAX_LINES: usize = 10_000;

/// Whether a canister takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Running = 1,
    /// It still gets answers to its calls, and nothing else.
    Stopping = 2,
    /// It does not.
    Stopped = 3,
}

/// A line that a canister has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// What.
    pub text: String,
}

/// What executions of one kind have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// How many there were, trapped ones too.
    pub messages: u64,
    /// Instructions of all of them.
    pub instructions: u64,
    /// Instructions of the most expensive one.
    pub most: u64,
}

/// Where the answer to a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// To a user.
    User(u64),
    /// To the callback of a canister.
    Canister(Principal, u64),
    /// Nowhere: the timer.
    System,
}

/// A call that has begun and is not over.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) origin: Origin,
    pub(crate) caller: Principal,
    pub(crate) method: String,
    pub(crate) answered: bool,
    /// Calls whose answers it still gets.
    pub(crate) outstanding: usize,
    pub(crate) instructions: u64,
    /// When its caller no longer waits, or zero.
    pub(crate) deadline: u64,
}

/// What happens with the answer to a call.
#[derive(Debug, Clone)]
pub(crate) struct Callback {
    pub(crate) context: u64,
    pub(crate) reply: Closure,
    pub(crate) reject: Closure,
    pub(crate) cleanup: Option<Closure>,
    /// When it is rejected without an answer, or zero.
    pub(crate) deadline: u64,
    /// An answer is on its way.
    pub(crate) answered: bool,
}

/// A module with its state.
struct Loaded {
    code: Arc<Code>,
    live: Instance,
    /// For what leaves no trace: its state is a copy that is made before each use.
    scratch: Option<Instance>,
    checkpoint: Image,
    /// What was run since the checkpoint, with the instructions it took.
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

    /// Bytes of heap.
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

    /// Counts an execution and keeps what it has printed.
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

    /// Runs and keeps what it did, or, if it traps, leaves everything as it was.
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
                let enough = LEAST_BETWEEN.max(heap.saturating_mul(BETWEEN_PER_BYTE));
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

    /// Runs on a copy: whatever it does leaves no trace.
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

    /// Puts a module in: into an empty canister, or (with `keep`) in the place of another, whose stable memory stays. One
    /// transaction: if anything traps, everything is as before.
    ///
    /// `calls` says what is called of each of the entry points; the limit is that of all together.
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
        // Whatever was set before, also by `canister_pre_upgrade`, is over.
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

    /// One execution of several that stand and fall together.
    fn part(&mut self, input: &Input, mut ran: Ran, spent: &mut u64, effects: &mut Effects) -> Result<(), Trap> {
        self.note(input, &mut ran);
        *spent = spent.saturating_add(ran.instructions);
        let done = ran.result?;
        effects.timer = done.timer.or(effects.timer);
        effects.certified = done.certified.or(effects.certified.take());
        Ok(())
    }
}

/// Why a module could not be put in.
#[derive(Debug)]
pub(crate) enum PutError {
    Module(BadModule),
    Trap(Trap),
}

impl Loaded {
    /// From here on, a trap comes back to now.
    fn save(&mut self, stable: &mut Stable) {
        self.live.save(&mut self.checkpoint);
        stable.checkpoint();
        self.since.clear();
        self.instructions = 0;
    }

    /// After a trap: the checkpoint, and what was run since once more. Stable memory is already where it was before the message.
    fn go_back(&mut self, stable: &mut Stable) -> Result<(), BadModule> {
        stable.rewind();
        self.live.load(&self.checkpoint)?;
        for (input, instructions) in &self.since {
            stable.begin();
            let again = self.live.run(input, stable);
            stable.commit();
            if again.result.is_err() || again.instructions != *instructions {
                return Err(BadModule::new(format!(
                    "the test host is wrong: run again, `{}` took {} instructions and not {instructions}, and the state after the trap is not the one before it",
                    input.call.method, again.instructions
                )));
            }
        }
        if !self.since.is_empty() {
            self.save(stable);
        }
        Ok(())
    }

    /// An instance with the present state, to be thrown away.
    fn scratch(&mut self) -> Result<&mut Instance, BadModule> {
        if self.scratch.is_none() {
            self.scratch = Some(Instance::new(&self.code)?);
        }
        let scratch = self.scratch.as_mut().ok_or_else(|| BadModule::new("no instance"))?;
        scratch.copy(&self.live)?;
        Ok(scratch)
    }
}

/// The caller has seen that there is a module; if not, nothing runs.
pub(crate) fn empty() -> Ran {
    Ran { result: Err(Trap::Contract("there is no module".to_string())), instructions: 0, printed: Vec::new() }
}
