//! A host of your own: a map as storage, and a thread for each call of an actor. `charter::run`
//! decides what an input does to a run; a host commits the records, executes the actions and keeps
//! the time.
//!
//! `cargo run -p charter --example host`
#![allow(clippy::indexing_slicing)] // what is indexed is in this file

use std::collections::HashMap;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use charter::journal::Record;
use charter::kernel::{EffectId, Machine, Principal, Timestamp};
use charter::run::{
    Action, ActorPolicy, Bounds, EventInput, Fault, Input, InvocationRequest, Kept, Known, Reply, Run, after_failure,
};
use serde_json::{Value as Json, json};

const CHARTER: &str = "
charter: 1
id: order
events: {ADD: {data: {type: object, required: [n], properties: {n: {type: integer}}}}, PAY: {}}
context: {sum: 0, receipt: null}
actors:
  bank: {kind: bank, idempotent: true, retry: {attempts: 3, backoff: 1s}}
initial: open
states:
  open: {on: {ADD: {actions: {assign: {sum: '= context.sum + event.n'}}}, PAY: paying}}
  paying:
    invoke: {src: bank, input: {sum: '= context.sum'}, onDone: {target: paid, actions: {assign: {receipt: '= event.output'}}}, onError: open}
  paid: {type: final}
";

/// Answers for the actor `bank`; the first attempt fails.
fn bank(request: &InvocationRequest) -> Result<Json, Fault> {
    match request.attempt {
        1 => Err(Fault::new("busy", "the bank is busy").retryable()),
        _ => Ok(json!({"paid": request.input["sum"]})),
    }
}

type Answer = (String, InvocationRequest, Result<Json, Fault>);

struct Host {
    machine: Machine,
    now: Timestamp,
    records: HashMap<String, Vec<Record>>,
    kept: HashMap<String, Kept>,
    answers: (Sender<Answer>, Receiver<Answer>),
    calls: usize,
    /// Attempts that start later.
    later: Vec<(String, InvocationRequest)>,
}

impl Host {
    /// Passes an input to a run: restores the run from its stored form, commits, executes the
    /// actions.
    fn give(&mut self, id: &str, input: Input) -> Result<Reply, Box<dyn Error>> {
        let records = self.records.entry(id.to_owned()).or_default();
        let kept = self.kept.remove(id).unwrap_or_default();
        let mut run = Run::restore(&self.machine, id, 1, kept)?;
        let same = match &input {
            Input::Event(EventInput { id: Some(id), .. }) => records.iter().find(|r| r.id == *id).cloned(),
            _ => None,
        };
        let known = Known { first: records.first().cloned(), same };
        let bounds = Bounds { records: 1_000, data_bytes: 1 << 20 };
        let handled = run.handle(&self.machine, &bounds, self.now, input, known);
        // Commit. With a database, do both in one transaction.
        records.extend(handled.appended.iter().map(|a| a.append.record.clone()));
        self.kept.insert(id.to_owned(), run.kept(&self.machine, records.last().cloned()));
        for action in handled.appended.into_iter().flat_map(|a| a.actions) {
            match action {
                Action::Invoke(request) => self.call(id.to_owned(), request),
                // The run no longer waits for the answer, so it has no record.
                Action::Stop(effect) => self.later.retain(|(_, r)| r.effect != effect),
                other => println!("{id}: {other:?}"),
            }
        }
        Ok(handled.reply)
    }

    fn call(&mut self, run: String, request: InvocationRequest) {
        self.calls = self.calls.saturating_add(1);
        let answers = self.answers.0.clone();
        thread::spawn(move || {
            let result = bank(&request);
            // Sending fails only if the host has ended.
            let _ = answers.send((run, request, result));
        });
    }

    /// Waits for the answers of all calls; the clock of this host jumps to the next attempt.
    fn settle(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            if self.calls == 0 {
                self.later.sort_by_key(|(_, request)| request.not_before);
                if self.later.is_empty() {
                    return Ok(());
                }
                let (run, request) = self.later.remove(0);
                self.now = self.now.max(request.not_before);
                self.call(run, request);
            }
            let (run, request, result) = self.answers.1.recv()?;
            self.calls = self.calls.saturating_sub(1);
            self.answered(&run, request, result)?;
        }
    }

    fn answered(
        &mut self,
        run: &str,
        request: InvocationRequest,
        result: Result<Json, Fault>,
    ) -> Result<(), Box<dyn Error>> {
        let InvocationRequest { effect, attempt, .. } = request;
        let (outcome, again_at) = match result {
            Ok(output) => (Ok(output), None),
            Err(fault) => {
                let policy = ActorPolicy::read(&self.machine.definition().actors[request.src.as_ref()])?;
                let (error, again_at) = after_failure(&policy.retry, &effect.text(run), attempt, fault, self.now);
                (Err(error), again_at)
            }
        };
        if let Some(not_before) = again_at {
            self.later.push((
                run.to_owned(),
                InvocationRequest { attempt: attempt.saturating_add(1), not_before, ..request },
            ));
        }
        self.give(run, Input::Outcome { effect, attempt, outcome, again_at }).map(drop)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let document = charter::format::read(CHARTER, "order.yaml", &Default::default())?;
    let machine = Machine::compile(document.definition).map_err(|problems| format!("{problems:?}"))?;
    let mut host = Host {
        machine,
        now: Timestamp(1_795_255_200_000),
        records: HashMap::new(),
        kept: HashMap::new(),
        answers: channel(),
        calls: 0,
        later: Vec::new(),
    };
    let ann = Principal::new("ann", &[]);
    host.give("o1", Input::Start { input: json!(null), by: ann.clone() })?;
    for id in ["e1", "e2", "e1"] {
        let add = EventInput { id: Some(id.into()), ..EventInput::new("ADD", json!({"n": 5}), ann.clone()) };
        host.give("o1", Input::Event(add))?;
    }
    host.give("o1", Input::Event(EventInput::new("PAY", json!(null), ann)))?;
    host.settle()?;
    for record in &host.records["o1"] {
        println!(
            "{:>2}  {:<22} {:<8} {}",
            record.seq,
            record.event.r#type,
            record.verdict.word(),
            record.state.join(", ")
        );
    }
    assert_eq!(host.records["o1"].len(), 6, "`e1` was given twice and counts once");
    let late = host.give("o1", Input::answer(EffectId { seq: 3, index: 0 }, Ok(json!(1))))?;
    assert_eq!(late, Reply::NotAwaited);
    Ok(())
}
