//! The core in this process stores and answers the same as the other hosts.

use std::collections::BTreeMap;

use charter_canister::{Automaton, Bounds, CanisterError, Committed, Input, InvocationRequest};
use charter_equivalence::{Answer, AttemptInput, RUN, Setup, Sources, Subject, TraceInput, answer_code, compare};
use charter_kernel::{EffectId, Timestamp};
use charter_test_support::cases;
use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager};

use crate::support::Memory;

/// Pages of 64 KiB in a bucket of a memory: small, because there are many cases.
const BUCKET_PAGES: u16 = 2;
/// Upper limit of the messages of the timer at one moment.
const MAX_TICKS: usize = 10_000;

/// A canister whose actors answer when the suite says so.
struct InProcess {
    memories: MemoryManager<DefaultMemoryImpl>,
    setup: Setup,
    automaton: Automaton<Memory>,
    /// Attempts that have begun.
    begun: BTreeMap<(EffectId, u32), InvocationRequest>,
}

impl InProcess {
    /// `None`: a canister reserves no unique keys, so it refuses a charter that has some.
    fn new(setup: &Setup) -> Option<InProcess> {
        let memories = MemoryManager::init_with_bucket_size(DefaultMemoryImpl::default(), BUCKET_PAGES);
        let memory = |id| memories.get(MemoryId::new(id));
        let mut automaton = match Automaton::create(setup.stored.clone(), memory, RUN, Bounds::default()) {
            Ok(automaton) => automaton,
            Err(refused) => {
                assert!(refused.to_string().contains("canisters do not reserve keys"), "{refused}");
                return None;
            }
        };
        automaton.limit(setup.bounds);
        Some(InProcess { memories, setup: setup.clone(), automaton, begun: BTreeMap::new() })
    }

    fn handle(&mut self, now: Timestamp, input: Input) -> Answer {
        let handled = self.automaton.handle(now.0, input);
        answer(handled)
    }

    /// Begins the attempts that may begin.
    fn begin_attempts(&mut self, now: Timestamp) {
        while let Some(request) = self.automaton.take_request(now.0) {
            self.begun.insert((request.effect, request.attempt), request);
        }
        assert!(!self.automaton.has_request(now.0));
    }

    /// What the timer of the canister does.
    fn pass_time(&mut self, now: Timestamp) {
        for _ in 0..MAX_TICKS {
            self.begin_attempts(now);
            if self.automaton.next_due().is_none_or(|due| due > now.0) {
                return;
            }
            self.handle(now, Input::Due);
        }
        panic!("timers never settle");
    }

    fn attempt_ends(&mut self, now: Timestamp, ended: &AttemptInput) {
        if let Some(request) = self.begun.remove(&(ended.effect, ended.attempt)) {
            let made = self.automaton.attempted(now.0, &request, ended.result.clone());
            answer(made);
        }
    }
}

fn answer(handled: Result<Committed, CanisterError>) -> Answer {
    match handled {
        Ok(Committed { result: Some(record), repeated: true, .. }) => Answer::Repeated(record.seq),
        Ok(Committed { result: Some(record), .. }) => Answer::Made(record.seq),
        Ok(Committed { result: None, .. }) => Answer::NotAwaited,
        Err(CanisterError::Denied(denied)) => Answer::Denied(answer_code(&denied)),
        Err(other) => panic!("{other}"),
    }
}

impl Subject for InProcess {
    fn give(&mut self, at: Timestamp, input: &TraceInput) -> Vec<Answer> {
        let answers = match input {
            TraceInput::Start { input, by } => {
                vec![self.handle(at, Input::start(input.clone(), by.clone()))]
            }
            TraceInput::Batch(events, ended) => {
                self.begin_attempts(at);
                let answers = events.iter().map(|event| self.handle(at, Input::Event(event.clone()))).collect();
                if let Some(ended) = ended {
                    self.attempt_ends(at, ended);
                }
                answers
            }
            TraceInput::Task { effect, answer, by } => vec![self.handle(at, answer.input(*effect, by))],
            TraceInput::Due => Vec::new(),
        };
        self.pass_time(at);
        answers
    }

    /// An upgrade: only stable memory remains.
    fn kill(&mut self, at: Timestamp) {
        self.automaton = Automaton::open(|id| self.memories.get(MemoryId::new(id))).unwrap();
        self.automaton.limit(self.setup.bounds);
        self.begun.clear();
        self.automaton.recover(at.0).unwrap();
        self.pass_time(at);
    }

    fn records(&mut self, from: u64) -> Vec<String> {
        let log = &self.automaton.stable.log;
        (from..log.end()).map(|seq| log.text(seq).unwrap()).collect()
    }
}

#[test]
fn the_canister_stores_the_same_as_the_other_hosts() {
    compare(cases(60, 500), Sources::All, &[("canister", &|setup| Some(Box::new(InProcess::new(setup)?)))]);
}

#[test]
fn the_canister_refuses_a_charter_with_unique_keys() {
    let asked = std::cell::Cell::new(0);
    let open = |setup: &Setup| {
        asked.set(asked.get() + 1);
        assert!(InProcess::new(setup).is_none());
        None
    };
    compare(2, Sources::Only("shop"), &[("canister", &open)]);
    assert!(asked.get() > 0);
}
