//! A single move: applies it to a snapshot, and formats it as an input line of `charter step`.

use std::sync::Arc;

use charter_kernel::{Envelope, Event, Machine, Principal, Refusal, Snapshot, Step, TakenKeys, Verdict};
use serde_json::{Map, Value as Json, json};

/// The time at which explorations start: 2026-01-01T00:00:00Z, in milliseconds since 1970.
pub(crate) const START: i64 = 1_767_225_600_000;
/// Upper limit of timer firings in one tick.
const MAX_FIRINGS: usize = 1_000;

/// A move and its time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Move {
    pub(crate) at: i64,
    pub(crate) kind: MoveKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MoveKind {
    Start { input: Json },
    Send { to: Arc<str>, kind: Arc<str>, data: Json, by: Principal },
    Done { to: Arc<str>, invocation: Arc<str>, output: Json },
    Failed { to: Arc<str>, invocation: Arc<str>, error: Json },
    Tick,
}

impl Move {
    /// The move as an input line of `charter step`; for the start of a run, its input.
    pub(crate) fn line(&self) -> Json {
        let mut line = Map::new();
        let to_actor = |line: &mut Map<String, Json>, to: &Arc<str>| {
            if to.as_ref() != "root" {
                line.insert("to".into(), json!(to.as_ref()));
            }
        };
        match &self.kind {
            MoveKind::Start { input } => drop(line.insert("input".into(), input.clone())),
            MoveKind::Send { to, kind, data, by } => {
                line.insert("type".into(), json!(kind.as_ref()));
                if !data.is_null() {
                    line.insert("data".into(), data.clone());
                }
                to_actor(&mut line, to);
                line.insert("by".into(), json!(by));
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Done { to, invocation, output } => {
                line.insert("done".into(), json!(invocation.as_ref()));
                line.insert("output".into(), output.clone());
                to_actor(&mut line, to);
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Failed { to, invocation, error } => {
                line.insert("failed".into(), json!(invocation.as_ref()));
                line.insert("error".into(), error.clone());
                to_actor(&mut line, to);
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Tick => drop(line.insert("tick".into(), json!(time(self.at)))),
        }
        Json::Object(line)
    }

    /// The name of the move in messages.
    pub(crate) fn label(&self) -> String {
        match &self.kind {
            MoveKind::Start { .. } => "the start".into(),
            MoveKind::Send { kind, .. } => format!("`{kind}`"),
            MoveKind::Done { invocation, .. } => format!("the answer of `{invocation}`"),
            MoveKind::Failed { invocation, .. } => format!("the failure of `{invocation}`"),
            MoveKind::Tick => "a timer".into(),
        }
    }

    /// The type of the event, if a principal sends one.
    pub(crate) fn event_type(&self) -> Option<&str> {
        match &self.kind {
            MoveKind::Send { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Whether a principal sends it and can react to a refusal; otherwise it comes from the
    /// platform.
    pub(crate) fn is_from_outside(&self) -> bool {
        matches!(self.kind, MoveKind::Send { .. })
    }

    /// Applies the move to a snapshot.
    pub(crate) fn apply(&self, machine: &Machine, snapshot: &Snapshot) -> Result<Successor, StepRefused> {
        let seq = snapshot.seq().saturating_add(1);
        let step = |snapshot: &Snapshot, envelope: Envelope| match machine.step(snapshot, &envelope) {
            Ok(step) => Ok(Successor::of(step)),
            Err(refusal) => Err(StepRefused { refusal, envelope: Box::new(envelope) }),
        };
        let host = |to: &str, event: Event| Envelope::host(seq, event, self.at).to(to);
        match &self.kind {
            MoveKind::Start { input } => start(machine, input, self.at),
            MoveKind::Send { to, kind, data, by } => {
                let mut envelope = Envelope::event(seq, kind, data.clone(), by.clone(), self.at).to(to);
                // Any key may be free: the exploration does not remember which are taken.
                envelope.unique = TakenKeys::default().look_up(machine, &envelope.event, by);
                step(snapshot, envelope)
            }
            MoveKind::Done { to, invocation, output } => step(
                snapshot,
                host(to, Event::Done { invocation: invocation.to_string(), effect: None, output: output.clone() }),
            ),
            MoveKind::Failed { to, invocation, error } => step(
                snapshot,
                host(to, Event::Failed { invocation: invocation.to_string(), effect: None, error: error.clone() }),
            ),
            MoveKind::Tick => {
                // Fire all due timers, as a host does.
                let mut whole = Successor { verdict: Verdict::Ignored, snapshot: snapshot.clone(), taken: Vec::new() };
                for _ in 0..MAX_FIRINGS {
                    let now = &whole.snapshot;
                    let Some(timer) = now.next_timer().filter(|t| t.due.0 <= self.at) else {
                        break;
                    };
                    let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
                    let next = step(now, Envelope::host(now.seq().saturating_add(1), event, self.at))?;
                    whole.taken.extend(next.taken);
                    whole.snapshot = next.snapshot;
                    if next.verdict != Verdict::Ignored {
                        whole.verdict = next.verdict;
                    }
                }
                Ok(whole)
            }
        }
    }
}

/// Starts a run.
pub(crate) fn start(machine: &Machine, input: &Json, at: i64) -> Result<Successor, StepRefused> {
    let envelope = Envelope::host(0, Event::Start { input: input.clone() }, at);
    match machine.start("explored", &envelope) {
        Ok(step) => Ok(Successor::of(step)),
        Err(refusal) => Err(StepRefused { refusal, envelope: Box::new(envelope) }),
    }
}

/// The result of a move.
pub(crate) struct Successor {
    pub(crate) verdict: Verdict,
    pub(crate) snapshot: Snapshot,
    /// The transitions that were taken: indices of chart and transition.
    pub(crate) taken: Vec<(usize, u32)>,
}

impl Successor {
    fn of(step: Step) -> Successor {
        Successor { verdict: step.verdict, taken: step.taken().collect(), snapshot: step.snapshot }
    }
}

/// A move that the kernel refused.
pub(crate) struct StepRefused {
    pub(crate) refusal: Refusal,
    pub(crate) envelope: Box<Envelope>,
}

/// Formats a time as RFC 3339.
pub(crate) fn time(ms: i64) -> String {
    let value = charter_expr::Value::timestamp_millis(ms).to_json();
    value.ok().and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default()
}
