//! Helpers for all tests of the kernel: a tiny charter in YAML, events, and a log of what happened.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::result_large_err
)]

use std::sync::Arc;

use charter_kernel::{
    EffectKind, Envelope, Event, Explanation, Machine, Principal, Refusal, RefusalDetails, Snapshot, Status, Step,
};
pub use charter_test_support::machine;
use serde_json::{Value as Json, json};

/// Returns the problems that compiling reports, as code and message.
pub fn problems(yaml: &str) -> Vec<(String, String)> {
    let definition = match charter_test_support::try_definition(yaml) {
        Ok(definition) => definition,
        Err(d) => return d.list.iter().map(|d| (d.code.to_string(), d.message.clone())).collect(),
    };
    match Machine::compile(definition) {
        Ok(_) => Vec::new(),
        Err(p) => p.into_iter().map(|p| (p.code.to_string(), format!("{}: {}", p.at, p.message))).collect(),
    }
}

#[derive(Clone)]
pub struct Run {
    pub machine: Arc<Machine>,
    pub snapshot: Snapshot,
    pub last: Option<Step>,
    pub seq: u64,
    pub at: i64,
    pub by: Principal,
    /// Values of `log` actions, in order.
    pub log: Vec<String>,
}

impl Run {
    pub fn start(yaml: &str) -> Run {
        Run::with_input(yaml, json!({}))
    }

    pub fn with_input(yaml: &str, input: Json) -> Run {
        match Run::try_start(yaml, input) {
            Ok(run) => run,
            Err(refusal) => panic!("{refusal:?}"),
        }
    }

    pub fn try_start(yaml: &str, input: Json) -> Result<Run, Refusal> {
        Run::on(Arc::new(machine(yaml)), input)
    }

    /// Starts a run of a compiled machine.
    pub fn on(machine: Arc<Machine>, input: Json) -> Result<Run, Refusal> {
        let step = machine.start("r", &Envelope::host(0, Event::Start { input }, 0))?;
        let mut run = Run {
            snapshot: step.snapshot.clone(),
            last: None,
            seq: 0,
            at: 0,
            by: Principal::default(),
            log: Vec::new(),
            machine,
        };
        run.note(&step);
        run.last = Some(step);
        Ok(run)
    }

    fn note(&mut self, step: &Step) {
        for effect in &step.effects {
            if let EffectKind::Log { value, .. } = &effect.kind {
                self.log.push(value.as_str().map_or_else(|| value.to_string(), Into::into));
            }
        }
    }

    pub fn apply(&mut self, envelope: &Envelope) -> Result<&Step, Explanation> {
        let before = self.machine.snapshot_json(&self.snapshot);
        self.seq = envelope.seq;
        match self.machine.step(&self.snapshot, envelope) {
            Ok(step) => {
                self.note(&step);
                self.snapshot = step.snapshot.clone();
                let back = self
                    .machine
                    .restore(&self.machine.snapshot_json(&self.snapshot))
                    .expect("a snapshot can be restored");
                assert_eq!(back, self.snapshot, "a snapshot is its JSON");
                self.last = Some(step);
                Ok(self.last.as_ref().unwrap())
            }
            Err(refusal) => {
                assert_eq!(before, self.machine.snapshot_json(&self.snapshot), "refused is unchanged");
                Err(self.machine.explain(Some(&self.snapshot), envelope, &refusal))
            }
        }
    }

    fn envelope(&self, event: Event) -> Envelope {
        let event = Envelope::host(self.seq + 1, event, self.at);
        Envelope { by: self.by.clone(), ..event }
    }

    /// Returns the details that the record of a refused event would contain.
    pub fn refusal_details(&self, kind: &str, data: Json) -> RefusalDetails {
        let envelope = self.envelope(Event::External { r#type: kind.into(), data });
        let refusal = self.machine.step(&self.snapshot, &envelope).map(drop).unwrap_err();
        self.machine.refusal_details(Some(&self.snapshot), &envelope, &refusal)
    }

    pub fn try_send(&mut self, kind: &str, data: Json) -> Result<&Step, Explanation> {
        let envelope = self.envelope(Event::External { r#type: kind.into(), data });
        self.apply(&envelope)
    }

    pub fn try_send_to(&mut self, to: &str, kind: &str, data: Json) -> Result<&Step, Explanation> {
        let mut envelope = self.envelope(Event::External { r#type: kind.into(), data });
        envelope.to = Some(to.into());
        self.apply(&envelope)
    }

    /// Sends an event that must be accepted.
    pub fn send(&mut self, kind: &str) -> &mut Run {
        self.send_data(kind, json!({}))
    }

    pub fn send_data(&mut self, kind: &str, data: Json) -> &mut Run {
        if let Err(e) = self.try_send(kind, data) {
            panic!("{kind} was refused: {e:#?}");
        }
        self
    }

    /// Sends an event that must be refused; returns the code.
    pub fn refused(&mut self, kind: &str, data: Json) -> String {
        match self.try_send(kind, data) {
            Ok(step) => panic!("{kind} was {:?}", step.verdict),
            Err(e) => e.code.to_string(),
        }
    }

    pub fn by(&mut self, id: &str, roles: &[&str]) -> &mut Run {
        self.by = Principal::new(id, roles);
        self
    }

    pub fn done(&mut self, invocation: &str, output: Json) -> &mut Run {
        let envelope = self.envelope(Event::Done { invocation: invocation.into(), effect: None, output });
        if let Err(e) = self.apply(&envelope) {
            panic!("the answer of {invocation} was refused: {e:#?}");
        }
        self
    }

    pub fn failed(&mut self, invocation: &str, error: Json) -> &mut Run {
        let envelope = self.envelope(Event::Failed { invocation: invocation.into(), effect: None, error });
        self.apply(&envelope).expect("taken");
        self
    }

    /// Advances the clock and fires due timers in order.
    pub fn wait(&mut self, ms: i64) -> &mut Run {
        let until = self.at + ms;
        while let Some(timer) = self.snapshot.next_timer().filter(|t| t.due.0 <= until).cloned() {
            self.at = timer.due.0.max(self.at);
            let envelope = self.envelope(Event::Timer { timer: timer.id.to_string(), generation: timer.generation });
            self.apply(&envelope).expect("a timer is taken");
        }
        self.at = until;
        self
    }

    pub fn state(&self) -> String {
        self.state_of("root")
    }

    pub fn state_of(&self, actor: &str) -> String {
        self.snapshot.actor(actor).map(|a| a.state().collect::<Vec<_>>().join(" ")).unwrap_or_else(|| "none".into())
    }

    pub fn var(&self, name: &str) -> Json {
        self.snapshot.actor("root").unwrap().variable(name).cloned().unwrap_or(Json::Null)
    }

    pub fn status(&self) -> Status {
        self.snapshot.status()
    }

    pub fn verdict(&self) -> &'static str {
        self.last.as_ref().unwrap().verdict.word()
    }

    pub fn logged(&self) -> String {
        self.log.join(" ")
    }

    pub fn effects(&self) -> Vec<String> {
        self.last.as_ref().unwrap().effects.iter().map(|e| e.kind.word().to_string()).collect()
    }
}

/// Starts a chart, sends events, and compares the log and the state.
pub fn check(yaml: &str, events: &[&str], log: &str, state: &str) {
    let mut run = Run::start(&format!("strict: false\n{yaml}"));
    for event in events {
        run.send(event);
    }
    assert_eq!((run.logged().as_str(), run.state().as_str()), (log, state));
}
