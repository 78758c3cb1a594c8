//! A single move: applies it to a snapshot, and formats it as an input line of `charter step`.

use std::sync::Arc;

use charter_kernel::{
    Code, Envelope, Event, Machine, Principal, Refusal, Snapshot, Status, Step, TakenKeys, Timer, Verdict,
};
use serde_json::{Map, Value as Json, json};

/// The time at which explorations start: 2026-01-01T00:00:00Z, in milliseconds since 1970.
pub(crate) const START: i64 = 1_767_225_600_000;
/// The id of the explored run.
const RUN: &str = "explored";
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
    /// Without `by`, the system starts the run: nothing depends on who does.
    Start {
        input: Json,
        by: Option<Arc<Principal>>,
    },
    Send {
        to: Arc<str>,
        kind: Arc<str>,
        data: Arc<Json>,
        by: Arc<Principal>,
    },
    /// Without `by`, the actor itself answers.
    Done {
        to: Arc<str>,
        invocation: Arc<str>,
        output: Arc<Json>,
        by: Option<Arc<Principal>>,
    },
    Failed {
        to: Arc<str>,
        invocation: Arc<str>,
        error: Arc<Json>,
        by: Option<Arc<Principal>>,
    },
    Tick,
}

impl Move {
    /// The move as an input line of `charter step`.
    pub(crate) fn line(&self) -> Json {
        let mut line = Map::new();
        let to_actor = |line: &mut Map<String, Json>, to: &Arc<str>| {
            if to.as_ref() != "root" {
                line.insert("to".into(), json!(to.as_ref()));
            }
        };
        let from = |line: &mut Map<String, Json>, by: &Option<Arc<Principal>>| {
            if let Some(by) = by {
                line.insert("by".into(), json!(by.as_ref()));
            }
        };
        match &self.kind {
            MoveKind::Start { input, by } => {
                let mut start = Map::new();
                // Without an input, it has this.
                if *input != json!({}) {
                    start.insert("input".into(), input.clone());
                }
                from(&mut start, by);
                start.insert("at".into(), json!(time(self.at)));
                line.insert("start".into(), Json::Object(start));
            }
            MoveKind::Send { to, kind, data, by } => {
                line.insert("type".into(), json!(kind.as_ref()));
                // Without data, it has this (`Machine::absent_data`).
                if **data != json!({}) {
                    line.insert("data".into(), data.as_ref().clone());
                }
                to_actor(&mut line, to);
                line.insert("by".into(), json!(by.as_ref()));
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Done { to, invocation, output, by } => {
                line.insert("done".into(), json!(invocation.as_ref()));
                line.insert("output".into(), output.as_ref().clone());
                to_actor(&mut line, to);
                from(&mut line, by);
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Failed { to, invocation, error, by } => {
                line.insert("failed".into(), json!(invocation.as_ref()));
                line.insert("error".into(), error.as_ref().clone());
                to_actor(&mut line, to);
                from(&mut line, by);
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

    /// Applies the move to a snapshot, as if its unique key were free.
    pub(crate) fn apply(&self, machine: &Machine, snapshot: &Snapshot) -> Result<Successor, StepRefused> {
        self.follow(machine, snapshot, &mut TakenKeys::default())
    }

    /// The unique key of the event.
    pub(crate) fn key(&self, machine: &Machine) -> Option<Json> {
        match &self.kind {
            MoveKind::Send { kind, data, by, .. } => machine.unique_key(kind, data, by),
            _ => None,
        }
    }

    /// Whether the unique key of the event is taken.
    pub(crate) fn is_taken(&self, machine: &Machine, keys: &TakenKeys) -> bool {
        let key = self.key(machine);
        key.is_some_and(|key| keys.run(self.event_type().unwrap_or_default(), &key).is_some())
    }

    /// Takes the unique key of the event.
    pub(crate) fn take_key(&self, machine: &Machine, keys: &mut TakenKeys) {
        if let (Some(kind), Some(key)) = (self.event_type(), self.key(machine)) {
            keys.insert(kind, &key, RUN);
        }
    }

    /// The move with other data, whose unique key is free.
    pub(crate) fn with_free_key(&self, machine: &Machine, keys: &TakenKeys, number: u64) -> Option<Move> {
        let MoveKind::Send { to, kind, data, by } = &self.kind else { return None };
        let taken = |key: &Json| keys.run(kind, key).is_some();
        let data = charter_scenario::example::with_free_key(machine, kind, (**data).clone(), ("a", number), &taken)?;
        let kind = MoveKind::Send { to: to.clone(), kind: kind.clone(), data: Arc::new(data), by: by.clone() };
        Some(Move { kind, at: self.at })
    }

    /// Applies the move to a snapshot, after moves that have taken `keys`.
    pub(crate) fn follow(
        &self,
        machine: &Machine,
        snapshot: &Snapshot,
        keys: &mut TakenKeys,
    ) -> Result<Successor, StepRefused> {
        let seq = snapshot.seq().saturating_add(1);
        let step = |snapshot: &Snapshot, envelope: Envelope| match machine.step_metered(snapshot, &envelope) {
            (Ok(step), fuel) => Ok(Successor::of(step, fuel)),
            (Err(refusal), fuel) if refusal.code == Code::Interlock => {
                let free = machine.step_without_interlocks(snapshot, &envelope);
                let forbidden = free.map(|step| step.taken().collect()).unwrap_or_default();
                let fuel = fuel.saturating_mul(2);
                Err(StepRefused { refusal, envelope: Box::new(envelope), fuel, forbidden })
            }
            (Err(refusal), fuel) => Err(StepRefused::of(refusal, envelope, fuel)),
        };
        let host = |to: &str, by: &Option<Arc<Principal>>, event: Event| {
            let envelope = Envelope::host(seq, event, self.at).to(to);
            match by {
                Some(by) => envelope.by(by.as_ref().clone()),
                None => envelope,
            }
        };
        match &self.kind {
            MoveKind::Start { input, by } => start(machine, input, by.as_deref(), self.at),
            MoveKind::Send { to, kind, data, by } => {
                let mut envelope =
                    Envelope::event(seq, kind, data.as_ref().clone(), by.as_ref().clone(), self.at).to(to);
                envelope.unique = keys.look_up(machine, &envelope.event, by);
                let key = envelope.unique.as_ref().map(|unique| unique.key.clone());
                let next = step(snapshot, envelope)?;
                if let Some(key) = key.filter(|_| next.verdict == Verdict::Accepted) {
                    keys.insert(kind, &key, RUN);
                }
                Ok(next)
            }
            MoveKind::Done { to, invocation, output, by } => step(
                snapshot,
                host(
                    to,
                    by,
                    Event::Done { invocation: invocation.to_string(), effect: None, output: output.as_ref().clone() },
                ),
            ),
            MoveKind::Failed { to, invocation, error, by } => step(
                snapshot,
                host(
                    to,
                    by,
                    Event::Failed { invocation: invocation.to_string(), effect: None, error: error.as_ref().clone() },
                ),
            ),
            MoveKind::Tick => {
                // Fire all due timers, as a host does: one that is refused is tried again after a
                // change.
                let mut whole = Successor {
                    verdict: Verdict::Ignored,
                    snapshot: snapshot.clone(),
                    taken: Vec::new(),
                    fuel: 0,
                    records: 0,
                };
                let mut refused: Vec<(Arc<str>, u64)> = Vec::new();
                let mut first = None;
                for _ in 0..MAX_FIRINGS {
                    let now = &whole.snapshot;
                    let is_open =
                        |t: &&Timer| t.due.0 <= self.at && !refused.iter().any(|r| r.0 == t.id && r.1 == t.generation);
                    let active = now.status() == Status::Active;
                    let Some(timer) = now.timers().iter().map(AsRef::as_ref).find(is_open).filter(|_| active) else {
                        break;
                    };
                    let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
                    match step(now, Envelope::host(now.seq().saturating_add(1), event, self.at)) {
                        Ok(next) => {
                            refused.clear();
                            whole.fuel = whole.fuel.saturating_add(next.fuel);
                            whole.taken.extend(next.taken);
                            whole.snapshot = next.snapshot;
                            whole.records = whole.records.saturating_add(1);
                            if next.verdict != Verdict::Ignored {
                                whole.verdict = next.verdict;
                            }
                        }
                        Err(why) => {
                            whole.fuel = whole.fuel.saturating_add(why.fuel);
                            whole.records = whole.records.saturating_add(1);
                            refused.push((timer.id.clone(), timer.generation));
                            first.get_or_insert(why);
                        }
                    }
                }
                match first {
                    Some(why) if whole.snapshot.seq() == snapshot.seq() => Err(why),
                    _ => Ok(whole),
                }
            }
        }
    }
}

/// Starts a run; without `by`, the system does.
pub(crate) fn start(
    machine: &Machine,
    input: &Json,
    by: Option<&Principal>,
    at: i64,
) -> Result<Successor, StepRefused> {
    let envelope = Envelope::host(0, Event::Start { input: input.clone() }, at);
    let envelope = match by {
        Some(by) => envelope.by(by.clone()),
        None => envelope,
    };
    match machine.start_metered(RUN, &envelope) {
        (Ok(step), fuel) => Ok(Successor::of(step, fuel)),
        (Err(refusal), fuel) => Err(StepRefused::of(refusal, envelope, fuel)),
    }
}

/// The result of a move.
pub(crate) struct Successor {
    pub(crate) verdict: Verdict,
    pub(crate) snapshot: Snapshot,
    /// The transitions that were taken: indices of chart and transition.
    pub(crate) taken: Vec<(usize, u32)>,
    /// The fuel that the kernel has used.
    pub(crate) fuel: u64,
    /// How many records a host writes: a tick may fire several timers.
    pub(crate) records: usize,
}

impl Successor {
    fn of(step: Step, fuel: u64) -> Successor {
        Successor { verdict: step.verdict, taken: step.taken().collect(), snapshot: step.snapshot, fuel, records: 1 }
    }
}

/// A move that the kernel refused.
pub(crate) struct StepRefused {
    pub(crate) refusal: Refusal,
    pub(crate) envelope: Box<Envelope>,
    /// As in [`Successor`].
    pub(crate) fuel: u64,
    /// The transitions that would be taken if no interlock refused it.
    pub(crate) forbidden: Vec<(usize, u32)>,
}

impl StepRefused {
    fn of(refusal: Refusal, envelope: Envelope, fuel: u64) -> StepRefused {
        StepRefused { refusal, envelope: Box::new(envelope), fuel, forbidden: Vec::new() }
    }
}

/// Formats a time as RFC 3339.
pub(crate) fn time(ms: i64) -> String {
    let value = charter_expr::Value::timestamp_millis(ms).to_json();
    value.ok().and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default()
}
