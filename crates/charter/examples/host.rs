//! A host of your own: a map as storage, a thread for each call of an actor. `charter::run` decides
//! what an input does to a run; a host commits the records, executes the actions, keeps the time.
//! This one passes the tests that compare all hosts. `cargo run -p charter --example host`
#![allow(clippy::indexing_slicing)] // what is indexed is in this file

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use charter::journal::{Record, Verdict};
use charter::kernel::{Event, Machine, Principal, TakenKeys, Timestamp};
use charter::run::{Action, Bounds, EventInput, Fault, Input, InvocationRequest, Kept, Known, Reply, Resume, Run};
use serde_json::{Value as Json, json};

const CHARTER: &str = "
charter: 1
id: order
events: {ADD: {data: {type: object, required: [n], properties: {n: {type: integer}}}}, PAY: {}}
context: {sum: 0, receipt: null}
actors: {bank: {kind: bank, idempotent: true, retry: {attempts: 3, backoff: 1s}}}
initial: open
states:
  open: {on: {ADD: {actions: {assign: {sum: '= context.sum + event.n'}}}, PAY: paying}}
  paying: {invoke: {src: bank, input: {sum: '= context.sum'}, onDone: {target: paid, actions: {assign: {receipt: '= event.output'}}}, onError: open}}
  paid: {type: final}
";

/// Makes an attempt, on a thread of its own.
pub(crate) type Perform = Arc<dyn Fn(&InvocationRequest) -> Result<Json, Fault> + Send + Sync>;

/// What the host stores of each run: its records, the state to continue from, its next timer.
pub(crate) type Storage = BTreeMap<String, (Vec<Record>, Kept, Option<Timestamp>)>;
type Attempted = (String, InvocationRequest, Result<Json, Fault>);

pub(crate) struct Host {
    machine: Arc<Machine>,
    bounds: Bounds,
    perform: Perform,
    pub(crate) now: Timestamp,
    pub(crate) storage: Storage,
    /// The unique keys that runs have.
    keys: TakenKeys,
    /// Attempts that start later.
    later: Vec<(String, InvocationRequest)>,
    results: (Sender<Attempted>, Receiver<Attempted>),
}

impl Host {
    pub(crate) fn new(machine: Arc<Machine>, bounds: Bounds, perform: Perform, storage: Storage) -> Host {
        let mut host = Host {
            machine,
            bounds,
            perform,
            now: Timestamp(0),
            storage: Storage::new(),
            keys: TakenKeys::default(),
            later: Vec::new(),
            results: channel(),
        };
        storage.iter().for_each(|(id, (records, ..))| host.keep_keys(id, records.iter()));
        Host { storage, ..host }
    }

    /// Passes an input to a run: restores the run from its stored form, commits, executes the
    /// actions.
    pub(crate) fn give(&mut self, id: &str, input: Input) -> Result<Reply, Box<dyn Error>> {
        let (records, kept, due) = self.storage.entry(id.to_owned()).or_default();
        let mut run = Run::restore(&self.machine, id, 1, kept.clone())?;
        let mut known = Known::among(records, &input);
        if let Input::Event(EventInput { r#type, data, by, .. }) = &input {
            let event = Event::External { r#type: r#type.clone(), data: data.clone() };
            known.unique = self.keys.look_up(&self.machine, &event, by);
        }
        let handled = run.handle(&self.machine, &self.bounds, self.now, input, known);
        // Commit. With a database, do all of this in one transaction.
        records.extend(handled.appended.iter().map(|a| a.append.record.clone()));
        (*kept, *due) = (run.kept(&self.machine, records.last().cloned()), run.next_due());
        self.keep_keys(id, handled.appended.iter().map(|a| &a.append.record));
        for action in handled.appended.into_iter().flat_map(|a| a.actions) {
            match action {
                Action::Invoke(request) => self.call(id, request),
                // A call that is running may end.
                Action::Stop(effect) | Action::Hold(effect) => {
                    self.later.retain(|(run, r)| run != id || r.effect != effect)
                }
                other => println!("{id}: {other:?}"),
            }
        }
        Ok(handled.reply)
    }

    /// Gives the unique keys of accepted events to their run.
    fn keep_keys<'r>(&mut self, run: &str, records: impl Iterator<Item = &'r Record>) {
        for record in records.filter(|r| r.verdict == Verdict::Accepted) {
            if let Some(unique) = &record.unique {
                self.keys.insert(&record.event.r#type, &unique.key, run);
            }
        }
    }

    /// Starts an attempt. A task waits for `Input::Settled` instead.
    fn call(&mut self, id: &str, request: InvocationRequest) {
        if self.machine.definition().actors[request.src.as_ref()].kind == "human" {
            return;
        }
        if request.not_before > self.now {
            self.later.push((id.to_owned(), request));
            return;
        }
        let (id, perform, results) = (id.to_owned(), self.perform.clone(), self.results.0.clone());
        thread::spawn(move || drop(results.send((id, request.clone(), perform(&request)))));
    }

    /// Waits for the end of an attempt and passes it to the run.
    pub(crate) fn receive(&mut self) -> Result<Reply, Box<dyn Error>> {
        let (id, request, result) = self.results.1.recv()?;
        self.give(&id, Input::attempted(&self.machine, &id, &request, result, self.now))
    }

    /// Does what is due: fires timers and starts attempts.
    pub(crate) fn wake(&mut self) -> Result<(), Box<dyn Error>> {
        while let Some((id, _)) = self.storage.iter().find(|(_, (_, _, due))| due.is_some_and(|due| due <= self.now)) {
            self.give(&id.clone(), Input::Due)?;
        }
        std::mem::take(&mut self.later).into_iter().for_each(|(id, request)| self.call(&id, request));
        Ok(())
    }

    /// Continues after a restart: repeats interrupted calls, or answers them as `unknown`.
    pub(crate) fn recover(&mut self) -> Result<(), Box<dyn Error>> {
        for (id, (_, kept, _)) in self.storage.clone() {
            let mut run = Run::restore(&self.machine, &id, 1, kept)?;
            for request in run.open() {
                let decl = &self.machine.definition().actors[request.src.as_ref()];
                let idempotent = decl.config.get("idempotent") == Some(&json!(true)) || decl.kind == "human";
                let effect = request.effect;
                match run.after_restart(request, idempotent, self.now) {
                    Resume::Again(request) => self.call(&id, request),
                    Resume::Held => self.storage.entry(id.clone()).or_default().1.attempts = run.attempts(),
                    Resume::Unknown(fault) => drop(self.give(&id, Input::answer(effect, Err(fault.json())))?),
                }
            }
        }
        self.wake()
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let document = charter::format::read(CHARTER, "order.yaml", &Default::default())?;
    let machine = Arc::new(Machine::compile(document.definition).map_err(|problems| format!("{problems:?}"))?);
    // The first attempt fails.
    let bank = |request: &InvocationRequest| match request.attempt {
        1 => Err(Fault::new("busy", "the bank is busy").retryable()),
        _ => Ok(json!({"paid": request.input["sum"]})),
    };
    let bounds = Bounds { records: 1_000, data_bytes: 1 << 20 };
    let mut host = Host::new(machine.clone(), bounds, Arc::new(bank), Storage::new());
    let ann = || Principal::new("ann", &[]);
    host.give("o1", Input::start(json!(null), ann()))?;
    for (kind, id) in [("ADD", "e1"), ("ADD", "e2"), ("ADD", "e1"), ("PAY", "e3")] {
        let event = EventInput { id: Some(id.into()), ..EventInput::new(kind, json!({"n": 5}), ann()) };
        host.give("o1", Input::Event(event))?;
    }
    host.receive()?;
    // The host restarts; the next attempt is due after a second.
    host = Host::new(machine, bounds, Arc::new(bank), host.storage);
    host.recover()?;
    host.now = Timestamp(1_000);
    host.wake()?;
    host.receive()?;
    let records = &host.storage["o1"].0;
    records.iter().for_each(|r| println!("{:>2}  {:<22} {}", r.seq, r.event.r#type, r.state.join(", ")));
    assert_eq!(records.len(), 6, "`e1` was given twice and counts once");
    Ok(())
}
