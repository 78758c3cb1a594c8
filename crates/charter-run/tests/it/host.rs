//! The smallest host: it keeps records in a list and looks ids up in it.

use charter_journal::Record;
use charter_kernel::{EffectId, Machine, Principal, Timestamp};
use charter_run::{Bounds, EventInput, Handled, Input, Kept, Known, Reply, Run};
use serde_json::{Value as Json, json};

pub const BOUNDS: Bounds = Bounds { records: 1_000, data_bytes: 10_000 };

/// A charter whose run calls a service, waits, asks a person and has timers.
pub const JOB: &str = "
charter: 1
id: job
roles: {boss: {}}
events: {STOP: {by: boss}, NOTE: {data: {type: object, properties: {n: {type: integer}}}}, CHANGE: {}}
context: {got: null, share: null}
actors:
  worker: {kind: scripted, retry: {attempts: 3}}
  judge: {kind: human, by: boss}
initial: working
states:
  working:
    invoke:
      src: worker
      id: work
      onDone: {target: reviewing, actions: {assign: {got: '= event.output', share: '= 1 / event.output.n'}}}
      onError: failed
    on: {STOP: failed, NOTE: {actions: {log: '= event.n'}}, CHANGE: {actions: {assign: {got: 7}}}}
    after:
      1h: {actions: {assign: {share: '= 1 / (context.got == null ? 0 : 1)'}}}
      2h: failed
  reviewing:
    invoke: {src: judge, id: review, onDone: done, onError: failed}
    on: {NOTE: {actions: {log: '= event.n'}}}
  done: {type: final}
  failed: {type: final}
";

pub fn machine() -> Machine {
    charter_test_support::machine(JOB)
}

pub fn boss() -> Principal {
    Principal::new("bo", &["boss"])
}

pub struct Host<'m> {
    pub machine: &'m Machine,
    pub run: Run,
    pub records: Vec<Record>,
    pub now: Timestamp,
    /// Whether to restore the run from its stored form before each input.
    pub forgetful: bool,
}

impl<'m> Host<'m> {
    pub fn new(machine: &'m Machine) -> Host<'m> {
        Host { machine, run: Run::new("r", 1), records: Vec::new(), now: Timestamp(0), forgetful: false }
    }

    pub fn started(machine: &'m Machine) -> Host<'m> {
        let mut host = Host::new(machine);
        host.give(Input::start(json!(null), boss()));
        host
    }

    pub fn give(&mut self, input: Input) -> Handled {
        if self.forgetful {
            let kept = self.run.kept(self.machine, self.records.last().cloned());
            self.run = Run::restore(self.machine, "r", 1, Kept::read(kept.json()).unwrap()).unwrap();
        }
        let known = Known::among(&self.records, &input);
        let handled = self.run.handle(self.machine, &BOUNDS, self.now, input, known);
        self.records.extend(handled.appended.iter().map(|a| a.append.record.clone()));
        handled
    }

    pub fn send(&mut self, kind: &str, data: Json, id: Option<&str>) -> Handled {
        self.give(Input::Event(EventInput { id: id.map(Into::into), ..EventInput::new(kind, data, boss()) }))
    }

    /// Returns the event and the verdict of each record, starting with the record `from`.
    pub fn story(&self, from: usize) -> Vec<String> {
        self.records[from..].iter().map(|r| format!("{} {}", r.event.r#type, r.verdict.word())).collect()
    }
}

pub const WORK: EffectId = EffectId { seq: 0, index: 0 };

pub fn made(handled: &Handled) -> &Record {
    match handled.reply {
        Reply::Made(index) => &handled.appended[index].append.record,
        ref other => panic!("{other:?}"),
    }
}
