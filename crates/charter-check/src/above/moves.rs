//! The moves of an abstract state: every event with every kind of sender, every answer, every
//! timer.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use charter_kernel::Unknowns as _;
use charter_kernel::definition::Action;
use charter_kernel::{Auth, Envelope, Event, Principal, PrincipalKind, Snapshot, Status};
use serde_json::Value as Json;

use super::domain::Values;
use super::oracle::Oracle;
use crate::effort::units;
use crate::explore::{START, takes};
use crate::model::{Model, Transition, Trigger, matches};

/// Upper limit of the roles that the transitions of an event distinguish: each set of them is a
/// sender.
const MAX_ROLES: usize = 6;

/// The events that principals send.
pub(super) struct Moves {
    events: Vec<Sent>,
    /// What is known of the outputs of actors, by their names.
    outputs: BTreeMap<String, OnceCell<Values>>,
    /// Whether a cancelled run executes actions.
    cancels: bool,
    /// Whether it matters who answers.
    answerer: bool,
}

struct Sent {
    name: String,
    schema: Option<Json>,
    /// What is known of the data.
    values: OnceCell<Values>,
    senders: Vec<(Vec<String>, PrincipalKind, Auth)>,
}

/// A move from one state.
#[derive(Debug, Clone)]
pub(super) enum Move {
    Send { event: usize, sender: usize, to: String },
    Done { to: String, invocation: String, src: String },
    Failed { to: String, invocation: String },
    Timer { timer: String, generation: u64 },
    Cancel,
}

impl Moves {
    /// The moves of a charter; `None` if it distinguishes too many roles.
    pub(super) fn new(model: &Model<'_>) -> Option<Moves> {
        let mut events = Vec::new();
        for (name, decl) in &model.def.events {
            let all = model.charts.iter().flat_map(|c| &c.transitions);
            let takers: Vec<&Transition<'_>> =
                all.filter(|t| matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, name)))).collect();
            if takers.is_empty() {
                continue;
            }
            let senders = senders(&decl.by, &takers)?;
            events.push(Sent { name: name.clone(), schema: decl.data.clone(), values: OnceCell::new(), senders });
        }
        let exits = model.charts.iter().flat_map(|c| &c.states).any(|s| s.def.exit.iter().flatten().any(decides));
        let outputs = model.def.actors.keys().map(|name| (name.clone(), OnceCell::new())).collect();
        Some(Moves { events, outputs, cancels: exits, answerer: model.reads_starter_or_answerer() })
    }

    /// The moves from a state.
    pub(super) fn of(&self, model: &Model<'_>, snapshot: &Snapshot) -> Vec<Move> {
        let mut out = Vec::new();
        for (actor, invocation) in snapshot.invocations().filter(|(_, i)| !i.is_machine()) {
            let (to, invocation, src) = (actor.id().to_string(), invocation.id.to_string(), invocation.src.to_string());
            out.push(Move::Failed { to: to.clone(), invocation: invocation.clone() });
            out.push(Move::Done { to, invocation, src });
        }
        for timer in snapshot.timers() {
            out.push(Move::Timer { timer: timer.id.to_string(), generation: timer.generation });
        }
        for (event, sent) in self.events.iter().enumerate() {
            for actor in snapshot.actors().filter(|a| a.status() == Status::Active) {
                let (chart, configuration) = actor.configuration();
                let Some(chart) = model.charts.get(chart) else { continue };
                if !configuration.iter().any(|s| takes(chart, *s, &sent.name)) {
                    continue;
                }
                for sender in 0..sent.senders.len() {
                    out.push(Move::Send { event, sender, to: actor.id().to_string() });
                }
            }
        }
        if self.cancels {
            out.push(Move::Cancel);
        }
        out
    }

    /// What it costs to find the moves from a state.
    pub(super) fn cost(&self, snapshot: &Snapshot) -> u64 {
        let states = snapshot.actors().map(|a| a.configuration().1.len()).fold(0, usize::saturating_add);
        units(self.events.len().saturating_mul(states)).checked_div(4).unwrap_or(0)
    }

    /// The name of the event that a principal sends.
    pub(super) fn event_of(&self, how: &Move) -> Option<&str> {
        match how {
            Move::Send { event, .. } => self.events.get(*event).map(|e| e.name.as_str()),
            _ => None,
        }
    }

    /// Builds the envelope of a move, with unknown data.
    pub(super) fn envelope(&self, model: &Model<'_>, oracle: &Oracle, how: &Move, seq: u64) -> Option<Envelope> {
        let host = |event: Event| Envelope::host(seq, event, START);
        // A person answers a task, and who resumes a run gives it the answers that it has held.
        let answer = |event: Event| match self.answerer {
            true => by_anybody(oracle, host(event)),
            false => host(event),
        };
        Some(match how {
            Move::Send { event, sender, to } => {
                let sent = self.events.get(*event)?;
                let (roles, kind, auth) = sent.senders.get(*sender)?;
                let data = sent.values.get_or_init(|| oracle.matching(sent.schema.as_ref()));
                let data = oracle.fresh(data.clone());
                let id = oracle.fresh(Values::short_text());
                let id = id.as_str().unwrap_or_default();
                let by = Principal { roles: roles.clone(), ..Principal::new(id, &[]) };
                let by = by.of_kind(*kind).authenticated(*auth);
                Envelope::event(seq, &sent.name, data, by, START).to(to)
            }
            Move::Done { to, invocation, src } => {
                let schema = model.def.actors.get(src).and_then(|a| a.output.as_ref());
                let values = self.outputs.get(src).map(|known| known.get_or_init(|| oracle.matching(schema)));
                let output = oracle.fresh(values.cloned().unwrap_or_else(|| oracle.matching(None)));
                answer(Event::Done { invocation: invocation.clone(), effect: None, output }).to(to)
            }
            Move::Failed { to, invocation } => {
                let error = oracle.anything();
                answer(Event::Failed { invocation: invocation.clone(), effect: None, error }).to(to)
            }
            Move::Timer { timer, generation } => host(Event::Timer { timer: timer.clone(), generation: *generation }),
            Move::Cancel => {
                let by = Principal::new("operator", &["operator"]);
                let cancel = Envelope::event(seq, "charter.cancel", Json::Null, by, START);
                cancel.by(Principal { roles: vec!["operator".into()], ..anybody(oracle) })
            }
        })
    }
}

/// Somebody of whom nothing is known: expressions that read `by` have an unknown value.
fn anybody(oracle: &Oracle) -> Principal {
    let id = oracle.fresh(Values::short_text());
    Principal::new(id.as_str().unwrap_or_default(), &[])
}

/// The envelope, from anybody.
pub(super) fn by_anybody(oracle: &Oracle, envelope: Envelope) -> Envelope {
    envelope.by(anybody(oracle))
}

/// Whether an action can matter to the run.
fn decides(action: &Action) -> bool {
    !matches!(action, Action::Log { .. } | Action::Emit { .. })
}

/// The senders that the transitions of an event can tell apart, whatever else they are.
fn senders(of_event: &[String], takers: &[&Transition<'_>]) -> Option<Vec<(Vec<String>, PrincipalKind, Auth)>> {
    let mut roles: Vec<String> = Vec::new();
    for t in takers {
        roles.extend(t.def.by.iter().chain(t.def.quorum.iter().filter_map(|q| q.of.as_ref())).cloned());
    }
    roles.sort();
    roles.dedup();
    roles.retain(|r| r != "system");
    if roles.len() > MAX_ROLES {
        return None;
    }
    // A role that only admits to the event makes no difference besides.
    let admits = of_event.iter().find(|r| *r != "system" && !roles.contains(r));
    let persons = takers.iter().any(|t| (t.def.approves.is_some() || t.def.quorum.is_some()) && !t.def.agents);
    let authenticated = takers.iter().any(|t| t.def.not_by.is_some() || t.def.quorum.is_some());
    let kinds = if persons { &PrincipalKind::ALL[..2] } else { &PrincipalKind::ALL[..1] };
    let auths = if authenticated { &[Auth::Local, Auth::None][..] } else { &[Auth::Local][..] };
    let mut out = Vec::new();
    for set in 0..1usize.checked_shl(u32::try_from(roles.len()).ok()?)? {
        let held = |place: &usize| u32::try_from(*place).is_ok_and(|p| set.checked_shr(p).unwrap_or(0) & 1 == 1);
        let mut held: Vec<String> = (0..roles.len()).filter(held).filter_map(|p| roles.get(p).cloned()).collect();
        held.extend(admits.cloned());
        if !of_event.is_empty() && !held.iter().any(|r| of_event.contains(r)) {
            continue;
        }
        for kind in kinds {
            out.extend(auths.iter().map(|auth| (held.clone(), *kind, *auth)));
        }
    }
    Some(out)
}
