//! The example of a host of one's own stores and answers the same as the other hosts.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use charter::journal::Record;
use charter::kernel::{EffectId, Timestamp};
use charter::run::{Fault, Input, InvocationRequest, Reply, Resume, Run};
use charter_equivalence::{Answer, OTHER, RUN, Setup, Sources, Subject, TraceInput, answer_code, compare, idempotent};
use charter_test_support::cases;
use serde_json::Value as Json;

use crate::host::{Host, Storage};

type Attempt = (EffectId, u32);
type Ends = (Sender<Result<Json, Fault>>, Option<Receiver<Result<Json, Fault>>>);

/// How the attempts of a host end; `None` once the host has ended.
#[derive(Clone)]
struct Told(Arc<Mutex<Option<BTreeMap<Attempt, Ends>>>>);

impl Told {
    fn new() -> Told {
        Told(Arc::new(Mutex::new(Some(BTreeMap::new()))))
    }

    fn with<R>(&self, attempt: Attempt, f: impl FnOnce(&mut Ends) -> R) -> Option<R> {
        let open = || {
            let (sender, receiver) = channel();
            (sender, Some(receiver))
        };
        Some(f(self.0.lock().unwrap().as_mut()?.entry(attempt).or_insert_with(open)))
    }

    fn wait(&self, attempt: Attempt) -> Result<Json, Fault> {
        let gone = || Fault::new("gone", "the host has ended");
        let receiver = self.with(attempt, |(_, receiver)| receiver.take()).flatten().ok_or_else(gone)?;
        receiver.recv().map_err(|_| gone())?
    }

    /// Ends an attempt; false if it has ended or its host is gone. A host that never begins an
    /// attempt would wait for its end for ever: that is a failure of the test.
    fn end(&self, attempt: Attempt, result: Result<Json, Fault>) -> bool {
        let begun = || self.with(attempt, |(_, receiver)| receiver.is_none());
        for _ in 0..200 {
            match begun() {
                None => return false,
                Some(true) => return self.with(attempt, |(sender, _)| sender.send(result).is_ok()) == Some(true),
                Some(false) => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
        panic!("the host has not begun the attempt {attempt:?}");
    }
}

struct Mine {
    setup: Setup,
    host: Host,
    told: Told,
    /// Attempts that are running on threads.
    running: Vec<Attempt>,
    /// Attempts that a restart has answered as `unknown`. Until a paused run reads the answer, they
    /// are open, but no thread makes them.
    unknown: Vec<Attempt>,
}

impl Mine {
    fn new(setup: &Setup) -> Mine {
        let told = Told::new();
        let mut host = Mine::host(setup, &told, Storage::new(), Timestamp(0));
        if let Some(first) = setup.others.first() {
            host.give(OTHER, Input::start(Json::Null, first.by.clone())).unwrap();
            setup.others.iter().for_each(|event| drop(host.give(OTHER, Input::Event(event.clone())).unwrap()));
        }
        Mine { setup: setup.clone(), host, told, running: Vec::new(), unknown: Vec::new() }
    }

    fn host(setup: &Setup, told: &Told, storage: Storage, now: Timestamp) -> Host {
        let told = told.clone();
        let perform = move |request: &InvocationRequest| told.wait((request.effect, request.attempt));
        let mut host = Host::new(setup.machine.clone(), setup.bounds, Arc::new(perform), storage);
        host.now = now;
        host
    }

    fn answer(&mut self, input: Input) -> Answer {
        let reply = self.host.give(RUN, input).unwrap();
        self.note_running();
        match reply {
            // The index of the record among the last ones; there is one of each input.
            Reply::Made(_) => Answer::Made(self.records_now().last().unwrap().seq),
            Reply::Repeated(record) => Answer::Repeated(record.seq),
            Reply::Denied(denied) => Answer::Denied(answer_code(&denied)),
            Reply::NotAwaited => Answer::NotAwaited,
            other => panic!("{other:?}"),
        }
    }

    fn records_now(&self) -> &[Record] {
        self.host.storage.get(RUN).map_or(&[], |(records, _, _)| records)
    }

    fn note_running(&mut self) {
        let Some((_, kept, _)) = self.host.storage.get(RUN) else {
            return;
        };
        let actors = &self.setup.machine.definition().actors;
        for request in Run::restore(&self.setup.machine, RUN, 1, kept.clone()).unwrap().open() {
            let attempt = (request.effect, request.attempt);
            let runs = request.not_before <= self.host.now && actors[request.src.as_ref()].kind != "human";
            if runs && !self.running.contains(&attempt) && !self.unknown.contains(&attempt) {
                self.running.push(attempt);
            }
        }
    }

    fn wake(&mut self) {
        self.host.wake().unwrap();
        self.note_running();
    }
}

impl Subject for Mine {
    fn give(&mut self, at: Timestamp, input: &TraceInput) -> Vec<Answer> {
        self.host.now = at;
        let answers = match input {
            TraceInput::Start { input, by } => {
                vec![self.answer(Input::start(input.clone(), by.clone()))]
            }
            TraceInput::Batch(events, ended) => {
                if ended.is_some() {
                    self.wake();
                }
                let answers = events.iter().map(|event| self.answer(Input::Event(event.clone()))).collect();
                if let Some(ended) = ended {
                    let attempt = (ended.effect, ended.attempt);
                    // Also of calls that the run no longer waits for.
                    if self.running.contains(&attempt) {
                        self.running.retain(|a| *a != attempt);
                        // A thread ends once: the answer of a paused run was given, and waits.
                        if self.told.end(attempt, ended.result.clone()) {
                            self.host.receive().unwrap();
                            self.note_running();
                        }
                    }
                }
                answers
            }
            TraceInput::Task { effect, answer, by } => vec![self.answer(answer.input(*effect, by))],
            TraceInput::Due => Vec::new(),
        };
        self.wake();
        answers
    }

    fn kill(&mut self, at: Timestamp) {
        *self.told.0.lock().unwrap() = None;
        self.told = Told::new();
        let storage = std::mem::take(&mut self.host.storage);
        if let Some((_, kept, _)) = storage.get(RUN) {
            let actors = &self.setup.machine.definition().actors;
            let mut run = Run::restore(&self.setup.machine, RUN, 1, kept.clone()).unwrap();
            for request in run.open() {
                let attempt = (request.effect, request.attempt);
                if let Resume::Unknown(_) =
                    run.after_restart(request.clone(), idempotent(actors.get(request.src.as_ref())), at)
                {
                    self.unknown.push(attempt);
                }
            }
        }
        self.host = Mine::host(&self.setup, &self.told, storage, at);
        self.running.clear();
        self.host.recover().unwrap();
        self.note_running();
    }

    fn records(&mut self, from: u64) -> Vec<String> {
        self.records_now().iter().skip(usize::try_from(from).unwrap()).map(|r| r.text().to_owned()).collect()
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        // The threads that wait end.
        *self.told.0.lock().unwrap() = None;
    }
}

#[test]
fn the_example_host_stores_the_same_as_the_other_hosts() {
    compare(cases(5, 100), Sources::Only("shop"), &[("example", &|setup| Some(Box::new(Mine::new(setup))))]);
    compare(cases(30, 2_000), Sources::All, &[("example", &|setup| Some(Box::new(Mine::new(setup))))]);
}
