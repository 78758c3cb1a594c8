//! An automaton in this process: memories on the heap, a manual clock.

use charter_canister::{Automaton, Bounds, EventInput, Input};
use charter_journal::Record;
use charter_kernel::Principal;
use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use serde_json::Value as Json;

pub const BEGIN: i64 = 1_795_255_200_000;

pub type Memory = VirtualMemory<DefaultMemoryImpl>;

pub fn ana() -> Principal {
    Principal::new("ana", &["controller"])
}

pub struct Host {
    memories: MemoryManager<DefaultMemoryImpl>,
    pub automaton: Automaton<Memory>,
    pub now: i64,
    pub records: Vec<Record>,
}

impl Host {
    pub fn start(bounds: Bounds, input: Json) -> Host {
        let memories = MemoryManager::init(DefaultMemoryImpl::default());
        let memory = |id| memories.get(MemoryId::new(id));
        let automaton = Automaton::start(memory, "a", bounds, BEGIN, input, ana()).unwrap();
        let records = vec![automaton.record(0).unwrap()];
        let mut host = Host { memories, automaton, now: BEGIN, records };
        host.work();
        host
    }

    pub fn handle(&mut self, mail: Input) -> Record {
        let made = self.automaton.handle(self.now, mail).unwrap();
        self.records.extend(made.iter().cloned());
        made.last().cloned().unwrap_or_else(|| self.records.last().unwrap().clone())
    }

    /// Sends an event and answers the resulting invocations.
    pub fn send(&mut self, r#type: &str, data: Json) -> Record {
        let record = self.only_send(r#type, data);
        self.work();
        record
    }

    pub fn only_send(&mut self, r#type: &str, data: Json) -> Record {
        self.handle(Input::Event(EventInput::new(r#type, data, ana())))
    }

    pub fn work(&mut self) {
        while self.work_once() {}
    }

    pub fn work_once(&mut self) -> bool {
        let Some(asked) = self.automaton.take_request() else {
            return false;
        };
        if let Some(outcome) = self.automaton.perform(asked.effect) {
            self.handle(Input::answer(asked.effect, outcome));
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
        let memory = |id| self.memories.get(MemoryId::new(id));
        let mut automaton = Automaton::open(memory).unwrap();
        self.records.extend(automaton.recover(self.now).unwrap());
        self.automaton = automaton;
        self.work();
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
