//! What happens in a case, without the details that depend on the state of the run: proptest
//! generates and shrinks it.

use charter_kernel::{EffectId, Millis, Principal, Timestamp};
use charter_run::{EventInput, Fault, InvocationRequest, tasks};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value as Json, json};

use crate::charters::{Charter, Input, Route, Step, value};
use crate::core::Core;
use crate::inputs::{AttemptInput, TaskAnswer, TraceInput};
use crate::subject::{RUN, Setup};

#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Milliseconds pass.
    Wait(i64),
    /// Time passes until the next timer or attempt is due, and some milliseconds more.
    WaitForDue(i64),
    /// The next step of the route.
    Follow {
        id: Option<u8>,
    },
    /// An event of the route, at a wrong moment or from a wrong sender.
    Send(Sent),
    /// Two events at once, and then the end of an attempt.
    Together {
        first: Sent,
        second: Option<Sent>,
        ended: Option<(Index, Ended)>,
    },
    /// An earlier event again, with its id.
    Repeat {
        which: Index,
        other: bool,
    },
    /// An attempt ends.
    Ends {
        which: Index,
        how: Ended,
    },
    /// An attempt ends whose answer the run does not wait for.
    Late {
        which: Index,
        how: Ended,
    },
    Task {
        which: Index,
        done: bool,
        who: u8,
        output: Index,
    },
    Control(&'static str),
    StartAgain {
        other: bool,
    },
    Kill,
}

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    which: Index,
    data: Data,
    who: u8,
    id: Id,
    expected: Expected,
}

#[derive(Debug, Clone, Copy)]
enum Data {
    AsFound,
    Number(i64),
    Large,
}

#[derive(Debug, Clone, Copy)]
enum Id {
    None,
    Small(u8),
    Reserved,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    None,
    Last,
    Stale,
    Future,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ended {
    Output(Index),
    Junk(i64),
    Fails { retryable: bool },
}

fn ended() -> impl Strategy<Value = Ended> {
    prop_oneof![
        4 => any::<Index>().prop_map(Ended::Output),
        2 => (-1..3i64).prop_map(Ended::Junk),
        2 => any::<bool>().prop_map(|retryable| Ended::Fails { retryable }),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    let data = prop_oneof![4 => Just(Data::AsFound), 3 => (-2..5i64).prop_map(Data::Number), 1 => Just(Data::Large)];
    let id = prop_oneof![3 => Just(Id::None), 5 => (0..4u8).prop_map(Id::Small), 1 => Just(Id::Reserved)];
    let expected = prop_oneof![
        6 => Just(Expected::None),
        1 => Just(Expected::Last),
        1 => Just(Expected::Stale),
        1 => Just(Expected::Future),
    ];
    (any::<Index>(), data, 0..6u8, id, expected).prop_map(|(which, data, who, id, expected)| Sent {
        which,
        data,
        who,
        id,
        expected,
    })
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let wait = prop_oneof![Just(0), 1..60i64, 100..900i64, Just(60_000), Just(3_600_000), Just(100_000_000)];
    let control = prop_oneof![3 => Just("charter.pause"), 4 => Just("charter.resume"), 1 => Just("charter.cancel")];
    prop_oneof![
        3 => wait.prop_map(Act::Wait),
        3 => prop_oneof![Just(0), 0..300i64].prop_map(Act::WaitForDue),
        8 => proptest::option::of(0..4u8).prop_map(|id| Act::Follow { id }),
        4 => sent().prop_map(Act::Send),
        2 => (sent(), proptest::option::of(sent()), proptest::option::of((any::<Index>(), ended())))
            .prop_map(|(first, second, ended)| Act::Together { first, second, ended }),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(which, other)| Act::Repeat { which, other }),
        5 => (any::<Index>(), ended()).prop_map(|(which, how)| Act::Ends { which, how }),
        1 => (any::<Index>(), ended()).prop_map(|(which, how)| Act::Late { which, how }),
        2 => (any::<Index>(), any::<bool>(), 0..6u8, any::<Index>())
            .prop_map(|(which, done, who, output)| Act::Task { which, done, who, output }),
        2 => control.prop_map(Act::Control),
        1 => any::<bool>().prop_map(|other| Act::StartAgain { other }),
        2 => Just(Act::Kill),
    ]
}

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
}

impl<'c> Director<'c> {
    pub(crate) fn new(charter: &'c Charter, setup: &'c Setup, route: &'c Route) -> Director<'c> {
        Director { charter, setup, route, now: route.begin, step: 0, sent: Vec::new(), begun: Vec::new() }
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
                let attempts = core.run().open().into_iter().map(|r| r.not_before).filter(|at| *at > self.now);
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
            Act::Late { which, how } => {
                let gone = self.begun.iter().filter(|(effect, _)| core.run().request(*effect).is_none());
                let gone: Vec<_> = gone.copied().collect();
                let (effect, attempt) = *pick(*which, &gone)?;
                TraceInput::Batch(Vec::new(), Some(AttemptInput { effect, attempt, result: self.result(*how, "") }))
            }
            Act::Task { which, done, who, output } => {
                let open = tasks(&self.setup.machine, core.run().snapshot()?);
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
            Act::Kill => return Some(Move::Kill),
        };
        Some(Move::Give(input))
    }

    fn batch(&mut self, events: Vec<EventInput>, ended: Option<AttemptInput>) -> TraceInput {
        self.sent.extend(events.iter().filter(|e| e.id.is_some()).cloned());
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
                let open = tasks(&self.setup.machine, snapshot);
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
            r.not_before <= self.now && actors.get(r.src.as_ref()).is_some_and(|decl| decl.kind != "human")
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
