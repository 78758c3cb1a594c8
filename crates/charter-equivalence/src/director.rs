//! Turns the acts of a case into inputs of a run, in the state that the reference is in.

use charter_kernel::{EffectId, Millis, Principal, Timestamp};
use charter_run::{EventInput, Fault, InvocationRequest, Resume, tasks};
use proptest::sample::Index;
use serde_json::{Value as Json, json};

use crate::act::{Act, Data, Ended, Expected, Id, Sent};
use crate::charters::{Charter, Input, Route, Step, value};
use crate::core::Core;
use crate::inputs::{AttemptInput, TaskAnswer, TraceInput};
use crate::subject::{RUN, Setup, idempotent};

/// What to do with a host, and when.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    Give(TraceInput),
    Kill,
}

/// Makes moves from acts, in the state that the reference is in.
pub(crate) struct Director<'c> {
    pub(crate) charter: &'c Charter,
    pub(crate) setup: &'c Setup,
    pub(crate) route: &'c Route,
    pub(crate) now: Timestamp,
    /// The next step of the route.
    step: usize,
    /// Events that were sent with an id.
    sent: Vec<EventInput>,
    /// Attempts that have begun.
    begun: Vec<(EffectId, u32)>,
    /// Attempts that have ended or were lost in a restart. The run may still wait for an answer, if
    /// it has refused this one.
    over: Vec<(EffectId, u32)>,
}

impl<'c> Director<'c> {
    pub(crate) fn new(charter: &'c Charter, setup: &'c Setup, route: &'c Route) -> Director<'c> {
        Director {
            charter,
            setup,
            route,
            now: route.begin,
            step: 0,
            sent: Vec::new(),
            begun: Vec::new(),
            over: Vec::new(),
        }
    }

    pub(crate) fn start(&self) -> TraceInput {
        TraceInput::Start { input: self.route.input.clone(), by: self.who(0) }
    }

    /// Returns the next move; `None` if the act is not possible in this state.
    pub(crate) fn next(&mut self, act: &Act, core: &Core) -> Option<Move> {
        for request in self.running(core) {
            let attempt = (request.effect, request.attempt);
            if !self.begun.contains(&attempt) {
                self.begun.push(attempt);
            }
        }
        let input = match act {
            Act::Wait(ms) => {
                self.now = self.now.saturating_add(Millis(*ms));
                TraceInput::Due
            }
            Act::WaitForDue(ms) => {
                let attempts = core
                    .run()
                    .open()
                    .into_iter()
                    .map(|r| r.not_before)
                    .filter(|at| *at > self.now && *at < Timestamp::MAX);
                let due = core.run().next_due().into_iter().chain(attempts).min()?;
                self.now = self.now.max(due).saturating_add(Millis(*ms));
                TraceInput::Due
            }
            Act::Follow { id } => self.follow(*id, core)?,
            Act::Send(sent) => self.batch(vec![self.event(sent, core)?], None),
            Act::Together { first, second, ended } => {
                let events = [Some(first), second.as_ref()].into_iter().flatten();
                let events: Option<Vec<EventInput>> = events.map(|sent| self.event(sent, core)).collect();
                let ended = ended.as_ref().and_then(|(which, how)| self.ends(which, *how, core));
                self.batch(events?, ended)
            }
            Act::Repeat { which, other } => {
                let mut event = pick(*which, &self.sent)?.clone();
                match (other, &mut event.data) {
                    (true, Json::Object(map)) => drop(map.insert("n".into(), json!(77))),
                    (true, data) => *data = json!({"n": 77}),
                    (false, _) => {}
                }
                TraceInput::Batch(vec![event], None)
            }
            Act::Ends { which, how } => {
                let ended = self.ends(which, *how, core)?;
                self.batch(Vec::new(), Some(ended))
            }
            Act::Early { which, how } => {
                let waiting: Vec<_> = core.run().open().into_iter().filter(|r| r.not_before > self.now).collect();
                let InvocationRequest { effect, attempt, invocation, .. } = pick(*which, &waiting)?.clone();
                let result = self.result(*how, &invocation);
                TraceInput::Batch(Vec::new(), Some(AttemptInput { effect, attempt, result }))
            }
            Act::Late { which, how } => {
                let gone = self.begun.iter().filter(|(effect, _)| core.run().request(*effect).is_none());
                let gone: Vec<_> = gone.copied().collect();
                let (effect, attempt) = *pick(*which, &gone)?;
                TraceInput::Batch(Vec::new(), Some(AttemptInput { effect, attempt, result: self.result(*how, "") }))
            }
            Act::Task { which, done, who, output } => {
                let open = tasks(&self.setup.machine, core.run().snapshot()?, false);
                let task = pick(*which, &open)?;
                let answer = match done {
                    true => TaskAnswer::Done(self.output(*output, &task.invocation)),
                    false => TaskAnswer::Declined("not now".into()),
                };
                TraceInput::Task { effect: EffectId::parse(&task.effect)?, answer, by: self.who(*who) }
            }
            Act::Control(kind) => {
                let by = Principal::new("op", &["operator"]);
                self.batch(vec![EventInput::new(kind, json!(null), by)], None)
            }
            Act::StartAgain { other } => match (other, self.start()) {
                (true, TraceInput::Start { by, .. }) => TraceInput::Start { input: json!({"other": 1}), by },
                (_, start) => start,
            },
            Act::Kill => {
                self.kill(core);
                return Some(Move::Kill);
            }
        };
        Some(Move::Give(input))
    }

    /// A restart repeats some attempts and loses the others.
    fn kill(&mut self, core: &Core) {
        let actors = &self.setup.machine.definition().actors;
        for request in core.run().open() {
            let attempt = (request.effect, request.attempt);
            let idempotent = idempotent(actors.get(request.src.as_ref()));
            match core.run().clone().after_restart(request, idempotent, self.now) {
                Resume::Again(_) | Resume::Held => self.over.retain(|over| *over != attempt),
                Resume::Unknown(_) => self.over.push(attempt),
            }
        }
    }

    fn batch(&mut self, events: Vec<EventInput>, ended: Option<AttemptInput>) -> TraceInput {
        self.sent.extend(events.iter().filter(|e| e.id.is_some()).cloned());
        self.over.extend(ended.iter().map(|ended| (ended.effect, ended.attempt)));
        TraceInput::Batch(events, ended)
    }

    fn follow(&mut self, id: Option<u8>, core: &Core) -> Option<TraceInput> {
        let step = self.route.steps.get(self.step)?;
        self.step += 1;
        self.now = self.now.max(step.at.unwrap_or(self.now));
        let snapshot = core.run().snapshot()?;
        match &step.what {
            Input::Tick => {
                self.now = self.now.max(core.run().next_due()?);
                Some(TraceInput::Due)
            }
            Input::Event { to, r#type, data, by } => {
                let event = EventInput::new(r#type, value(data, Some(snapshot)), by.clone());
                let id = id.map(|id| format!("route-{}-{id}", self.step));
                Some(self.batch(vec![EventInput { to: to.clone(), id, ..event }], None))
            }
            Input::Answer { invocation, result } => {
                let open = tasks(&self.setup.machine, snapshot, false);
                if let Some(task) = open.iter().find(|t| t.invocation == *invocation) {
                    let answer = match result {
                        Ok(output) => TaskAnswer::Done(value(output, Some(snapshot))),
                        Err(_) => TaskAnswer::Declined("no".into()),
                    };
                    let effect = EffectId::parse(&task.effect)?;
                    return Some(TraceInput::Task { effect, answer, by: with_roles("ann", &task.by) });
                }
                let request = self.running(core).into_iter().find(|r| *r.invocation == **invocation)?;
                let result = match result {
                    Ok(output) => Ok(value(output, Some(snapshot))),
                    Err(error) => {
                        let error = value(error, Some(snapshot));
                        let text = |key: &str| error[key].as_str().unwrap_or("failed").to_owned();
                        Err(Fault::new(&text("code"), text("message")))
                    }
                };
                let ended = AttemptInput { effect: request.effect, attempt: request.attempt, result };
                Some(self.batch(Vec::new(), Some(ended)))
            }
        }
    }

    /// The attempts that have begun and that a host executes.
    fn running(&self, core: &Core) -> Vec<InvocationRequest> {
        let actors = &self.setup.machine.definition().actors;
        let mut open = core.run().open();
        open.retain(|r| {
            let executed = actors.get(r.src.as_ref()).is_some_and(|decl| decl.kind != "human");
            executed && r.not_before <= self.now && !self.over.contains(&(r.effect, r.attempt))
        });
        open
    }

    fn ends(&self, which: &Index, how: Ended, core: &Core) -> Option<AttemptInput> {
        let running = self.running(core);
        let request = pick(*which, &running)?;
        let result = self.result(how, &request.invocation);
        Some(AttemptInput { effect: request.effect, attempt: request.attempt, result })
    }

    fn result(&self, how: Ended, invocation: &str) -> Result<Json, Fault> {
        match how {
            Ended::Output(which) => Ok(self.output(which, invocation)),
            Ended::Junk(n) => Ok(json!({"n": n})),
            Ended::Fails { retryable: true } => Err(Fault::new("busy", "try later").retryable()),
            Ended::Fails { retryable: false } => Err(Fault::new("broken", "it does not work").with("n", 1)),
        }
    }

    /// Returns an output that a route has for this invocation, if there is one.
    fn output(&self, which: Index, invocation: &str) -> Json {
        let steps = self.charter.routes.iter().flat_map(|route| &route.steps);
        let outputs = steps.filter_map(|step| match &step.what {
            Input::Answer { invocation: id, result: Ok(output) } if id == invocation => Some(output),
            _ => None,
        });
        let outputs: Vec<_> = outputs.collect();
        pick(which, &outputs).map_or(json!(which.index(5)), |output| value(output, None))
    }

    fn event(&self, sent: &Sent, core: &Core) -> Option<EventInput> {
        let is_event = |step: &&Step| matches!(step.what, Input::Event { .. });
        let steps: Vec<&Step> = self.route.steps.iter().filter(is_event).collect();
        let Input::Event { to, r#type, data, by } = &pick(sent.which, &steps)?.what else {
            return None;
        };
        let data = match sent.data {
            Data::AsFound => value(data, core.run().snapshot()),
            Data::Number(n) => json!({"n": n}),
            Data::Large => json!({"n": 1, "text": "x".repeat(2_000)}),
        };
        let seq = core.run().snapshot().map_or(0, |s| s.seq());
        Some(EventInput {
            to: to.clone(),
            id: match sent.id {
                Id::None => None,
                Id::Small(n) => Some(format!("k{n}")),
                Id::Reserved => Some(format!("{RUN}/0/0")),
            },
            expected_seq: match sent.expected {
                Expected::None => None,
                Expected::Last => Some(seq),
                Expected::Stale => Some(seq.saturating_sub(1)),
                Expected::Future => Some(seq + 1_000),
            },
            // Most senders are those of the route.
            ..EventInput::new(r#type, data, if sent.who < 3 { by.clone() } else { self.who(sent.who) })
        })
    }

    fn who(&self, who: u8) -> Principal {
        let roles: Vec<String> = self.setup.machine.definition().roles.keys().cloned().collect();
        match who % 3 {
            0 => with_roles("ann", &roles),
            1 => with_roles("bo", roles.get(..1).unwrap_or_default()),
            _ => Principal::new("eve", &[]),
        }
    }
}

fn with_roles(id: &str, roles: &[String]) -> Principal {
    Principal::new(id, &roles.iter().map(String::as_str).collect::<Vec<_>>())
}

fn pick<T>(which: Index, list: &[T]) -> Option<&T> {
    (!list.is_empty()).then(|| which.get(list))
}
