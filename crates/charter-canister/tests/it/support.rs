//! An automaton in this process: memories on the heap, a manual clock.

use charter_actors::{BoxFuture, Call, ConfigError, Executor, Executors, Fault, Folder, Outcome};
use charter_automaton::SkillSource as _;
use charter_canister::{Automaton, Bounds, BuiltInSkills, CanisterError, Committed, EventInput, Input};
use charter_format::ReadOptions;
use charter_journal::{Record, StoredCharter};
use charter_kernel::Principal;
use charter_kernel::definition::ActorDecl;
use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use serde_json::{Value as Json, json};

pub const BEGIN: i64 = 1_795_255_200_000;

pub type Memory = VirtualMemory<DefaultMemoryImpl>;

pub fn ana() -> Principal {
    Principal::new("ana", &["controller"])
}

/// The skills as in the canister: they are part of the program, not files that a run has.
struct Skills;

impl Executor for Skills {
    fn check(&self, _: &str, _: &ActorDecl, _: &Folder) -> Result<(), ConfigError> {
        Ok(())
    }
    fn is_idempotent(&self) -> bool {
        true
    }
    fn call(&self, _: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async { Ok(Outcome::Done(json!({"skills": BuiltInSkills.skills().unwrap()}))) })
    }
}

/// The executors of the automaton on the embedded host, for records equal to those of the canister.
pub fn add_executors(executors: &mut Executors) {
    charter_automaton::host::add_executors(executors);
    executors.insert("skills".to_owned(), std::sync::Arc::new(Skills));
}

pub struct Host {
    memories: MemoryManager<DefaultMemoryImpl>,
    pub automaton: Automaton<Memory>,
    pub now: i64,
    pub records: Vec<Record>,
}

impl Host {
    pub fn start(bounds: Bounds, input: Json) -> Host {
        let mut host = Host::with(|memory| Automaton::start(memory, "a", bounds, BEGIN, input, ana()));
        host.work();
        host
    }

    /// Starts a run of another charter. Its invocations wait.
    pub fn of_charter(charter: &str) -> Host {
        let document = charter_format::read(charter, "charter.yaml", &ReadOptions::default()).unwrap();
        let stored = StoredCharter::new(&document.definition, "charter.yaml", charter);
        Host::with(|memory| {
            let mut automaton = Automaton::create(stored, memory, "a", Bounds::default())?;
            automaton.handle(BEGIN, Input::start(json!({}), ana()))?;
            Ok(automaton)
        })
    }

    fn with(start: impl FnOnce(&dyn Fn(u8) -> Memory) -> Result<Automaton<Memory>, CanisterError>) -> Host {
        let memories = MemoryManager::init(DefaultMemoryImpl::default());
        let automaton = start(&|id| memories.get(MemoryId::new(id))).unwrap();
        let records = vec![automaton.record(0).unwrap()];
        Host { memories, automaton, now: BEGIN, records }
    }

    pub fn handle(&mut self, input: Input) -> Committed {
        let made = self.automaton.handle(self.now, input).unwrap();
        self.records.extend(made.records.iter().cloned());
        made
    }

    /// Sends an event and answers the resulting invocations.
    pub fn send(&mut self, r#type: &str, data: Json) -> Record {
        let record = self.only_send(r#type, data);
        self.work();
        record
    }

    pub fn only_send(&mut self, r#type: &str, data: Json) -> Record {
        self.handle(Input::Event(EventInput::new(r#type, data, ana()))).result.unwrap()
    }

    pub fn work(&mut self) {
        while self.work_once() {}
    }

    pub fn work_once(&mut self) -> bool {
        let Some(request) = self.automaton.take_request(self.now) else {
            return false;
        };
        if let Some(result) = self.automaton.perform(request.effect) {
            let made = self.automaton.attempted(self.now, &request, result).unwrap();
            self.records.extend(made.records);
        }
        true
    }

    /// Advances the clock, stopping at each timer.
    pub fn advance(&mut self, ms: i64) {
        let end = self.now + ms;
        while let Some(due) = self.automaton.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.handle(Input::Due);
            self.work();
        }
        self.now = end;
    }

    /// Stops the host and starts it again.
    pub fn restart(&mut self) {
        self.only_restart();
        self.work();
    }

    pub fn only_restart(&mut self) {
        let memory = |id| self.memories.get(MemoryId::new(id));
        let mut automaton = Automaton::open(memory).unwrap();
        self.records.extend(automaton.recover(self.now).unwrap());
        self.automaton = automaton;
    }

    /// Opens a second automaton from the same memories.
    pub fn reopened(&self) -> Automaton<Memory> {
        Automaton::open(|id| self.memories.get(MemoryId::new(id))).unwrap()
    }

    pub fn state(&self) -> String {
        self.automaton.stable.view().state.join(" ")
    }
}

/// Marsaglia's xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}
