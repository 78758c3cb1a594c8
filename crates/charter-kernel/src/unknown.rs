//! Steps with values that are not known, for analyses that cover all data at once: the kernel's
//! algorithm with an [`Unknowns`] that decides whatever depends on such a value.
//!
//! An unknown value is a string that only the analysis understands; the kernel stores and copies
//! it. Timers fire in any order, the ledger is empty (a requirement holds or does not), votes for
//! one value of the data are counted, and the limits on what an event may cost do not matter; the
//! analysis limits its own work. Of the actors that are spawned under an unknown id, one for each
//! machine is followed, any of them, as [`ANYBODY`].

use std::rc::Rc;
use std::sync::Arc;

use charter_expr::{EvalError, Fuel, Program, Scope, Value};
use serde_json::Value as Json;

use crate::budget::{Budget, Work};
use crate::candidates::Reached;
use crate::digest::Digest;
use crate::envelope::{Envelope, Event};
use crate::fault::Fault;
use crate::machine::{Machine, Quorum, TransitionId};
use crate::query::Query;
use crate::refusal::{Code, Refusal};
use crate::run::within;
use crate::scope::EvalContext;
use crate::selection::Evaluation;
use crate::snapshot::{Identity, Snapshot, TimerKind, Vote};
use crate::step::Step;
use crate::time::{Millis, Timestamp};
use crate::transaction::StepTransaction;

/// The id of the actor that is followed of those that a machine is spawned for under an unknown id;
/// the name of the machine comes after it.
pub const ANYBODY: &str = "\u{E000}actor ";

/// Decides what depends on unknown values. The analysis runs a step once for each sequence of
/// decisions.
pub trait Unknowns {
    /// Returns one of `ways` possibilities, from 0; the analysis tries all of them.
    fn choose(&self, ways: u32) -> u32;
    /// Evaluates an expression; the result may be unknown.
    ///
    /// # Errors
    /// The expression fails, or may fail.
    fn eval<'a>(&self, scope: &dyn Scope<'a>, program: &'a Program, fuel: &mut Fuel) -> Result<Value<'a>, EvalError>;
    /// The fuel that its decisions have used since it was asked last, beside that of evaluations.
    fn cost(&self) -> u64;
    /// Decides whether a value is true; `None` if it is not a bool.
    fn truth(&self, value: &Value<'_>) -> Option<bool>;
    /// Whether a value, or a part of it, is unknown.
    fn is_unknown(&self, value: &Json) -> bool;
    /// Whether a number in it may have a fraction.
    fn has_fraction(&self, value: &Json) -> bool;
    /// Whether a value of `not_by` names a principal; `None` if it is not an id or a list of ids.
    fn names(&self, value: &Value<'_>, id: &str) -> Option<bool>;
    /// Whether the event has the digest of a value that it is to approve.
    fn approves(&self, value: &Json, event: &Json) -> bool;
    /// An unknown value.
    fn anything(&self) -> Json;
    /// An unknown list or map.
    fn container(&self) -> Json;
    /// The `error` of an event for which the kernel has built this one: what it says about values
    /// may be different.
    fn error(&self, error: &Json) -> Json;
    /// Whether an `each` over an unknown list, given by the source of the expression, has the same
    /// effect however often its actions run, as long as they run at all.
    fn repeats(&self, list: &str) -> bool;
    /// Whether interlocks are checked after this step.
    fn checks_interlocks(&self) -> bool;
    /// Ends the analysis: it does not cover what comes now.
    fn give_up(&self, why: &'static str) -> EvalError;
}

/// Where a value of a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A context variable of an actor, by the indices of its chart and of its slot.
    Variable(usize, usize),
    /// The input of an actor.
    Input,
    /// The data of a delayed event.
    Event,
    /// The id of a principal who has voted.
    Voter,
    /// An output, or the input of an invocation: no expression reads it.
    Unread,
}

impl Machine {
    /// Like [`Machine::start`], with unknown values. The input is not compared with its schema.
    /// Spends what it costs of `fuel`.
    ///
    /// # Errors
    /// See [`Machine::start`]; `too-costly` if the fuel does not suffice.
    pub fn start_with(
        &self,
        run: &str,
        envelope: &Envelope,
        unknowns: &Rc<dyn Unknowns>,
        fuel: &mut Fuel,
    ) -> Result<Step, Refusal> {
        self.metered(unknowns, fuel, |budget| within(budget, self.start_within(run, envelope, budget)))
    }

    /// Like [`Machine::step`], with unknown values. The data of an event is not compared with its
    /// schema. Spends what it costs of `fuel`.
    ///
    /// # Errors
    /// See [`Machine::step`]; `too-costly` if the fuel does not suffice.
    pub fn step_with(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        unknowns: &Rc<dyn Unknowns>,
        fuel: &mut Fuel,
    ) -> Result<Step, Refusal> {
        self.metered(unknowns, fuel, |budget| {
            let result = match &envelope.event {
                Event::External { r#type, data } => self.external(snapshot, envelope, r#type, data, true, budget),
                _ => self.step_within(snapshot, envelope, budget),
            };
            within(budget, result)
        })
    }

    /// Decides a condition over a snapshot with unknown values, in the scope of the root; see
    /// [`Machine::ask`]. Spends what it costs of `fuel`.
    ///
    /// # Errors
    /// The evaluation fails, its value is not a bool, or the fuel does not suffice.
    pub fn ask_with(
        &self,
        snapshot: &Snapshot,
        query: &Query,
        at: impl Into<Timestamp>,
        unknowns: &Rc<dyn Unknowns>,
        fuel: &mut Fuel,
    ) -> Result<bool, EvalError> {
        self.metered(unknowns, fuel, |budget| self.holds_in(snapshot, query, at.into(), budget))
    }

    /// Works with the fuel as its budget, and spends what it costs.
    fn metered<T>(&self, unknowns: &Rc<dyn Unknowns>, fuel: &mut Fuel, work: impl FnOnce(&Budget) -> T) -> T {
        let budget = Budget::of_analysis(unknowns, fuel.left(), &self.definition.limits);
        let result = work(&budget);
        budget.spend(unknowns.cost(), Work::Expressions);
        *fuel = Fuel::new(fuel.left().saturating_sub(budget.fuel_used()));
        result
    }
}

/// The vote of somebody, for data that is not known. The votes of an analysis are those for one of
/// the values that the data has: a vote is for this value, or for another one, or a second one.
pub(crate) fn vote_of_anybody(
    ctx: &EvalContext<'_>,
    id: TransitionId,
    quorum: &Quorum,
    unknowns: &dyn Unknowns,
) -> Evaluation {
    let Some(votes) = ctx.actor.votes.iter().find(|v| v.transition == id) else {
        return Evaluation::Vote;
    };
    let reached = u32::try_from(votes.by.len()).unwrap_or(u32::MAX).saturating_add(1) >= quorum.count;
    let ways = if reached && !has_voted(votes, &ctx.by.id, unknowns) { 3 } else { 2 };
    match unknowns.choose(ways) {
        0 => Evaluation::Vote,
        1 => Evaluation::Failed(Code::Authority, Reached::Quorum),
        _ => Evaluation::Enabled,
    }
}

/// Whether a principal, who may not be known, is one of those who have voted.
fn has_voted(votes: &Vote, id: &str, unknowns: &dyn Unknowns) -> bool {
    votes.by.iter().any(|by| unknowns.names(&Value::from(&**by), id) == Some(true))
}

impl StepTransaction<'_> {
    /// Counts a vote for data that is not known, up to one less than the quorum: one more reaches
    /// it.
    pub(crate) fn vote_for_anything(&mut self, actor_ix: usize, transitions: &[TransitionId]) {
        let budget = self.budget;
        let Some(unknowns) = budget.unknowns() else { return };
        let by: Box<str> = self.by.id.as_str().into();
        for t in transitions {
            let quorum = self.chart(actor_ix).transition(*t).quorum.as_ref().map_or(0, |q| q.count as usize);
            let digest = Digest::of_json(&Json::Null);
            let votes = self.actor_mut(actor_ix).votes.list();
            let place = votes.iter().position(|v| v.transition == *t).unwrap_or_else(|| {
                votes.push(Vote { transition: *t, digest, by: Vec::new() });
                votes.len().saturating_sub(1)
            });
            let Some(vote) = votes.get_mut(place) else { continue };
            let room = vote.by.len().saturating_add(1) < quorum;
            if room && (vote.by.is_empty() || unknowns.choose(2) == 0 && !has_voted(vote, &by, unknowns)) {
                vote.by.push(by.clone());
            }
        }
    }
}

impl StepTransaction<'_> {
    /// The id under which an actor is spawned whose id is not known; `None` if this one is not
    /// followed. The id may be in use or invalid.
    pub(crate) fn spawned_as(&self, chart: u32, unknowns: &dyn Unknowns) -> Result<Option<Arc<str>>, Fault> {
        let id = format!("{ANYBODY}{}", self.m.chart(chart).shape.machine);
        let ways = if self.s.actors.find(&id).is_some() { 2 } else { 3 };
        match unknowns.choose(ways) {
            0 => Ok(None),
            1 => Err(Fault::execution("actor-exists")),
            _ => Ok(Some(id.into())),
        }
    }

    /// Sets the timer of an obligation with an unknown key. There is one for all of a kind.
    pub(crate) fn set_due(&mut self, actor_ix: usize, kind: u32) -> Result<(), Fault> {
        let actor = self.actor(actor_ix).identity().id.clone();
        let timer: Arc<str> = format!("due/{}/{actor}", self.m.ledger_name(kind)).into();
        if self.s.timers.iter().any(|t| t.id == timer) {
            return Ok(());
        }
        self.set_timer(timer, actor, Millis(1), TimerKind::Due { kind, key: "".into() })
    }
}

impl Snapshot {
    /// Replaces values: `with` returns the new value of a place, or `None` to keep it.
    pub fn replace_values(&mut self, with: &mut dyn FnMut(Place, &Json) -> Option<Json>) {
        let mut put = |place: Place, value: &mut Arc<Json>| {
            if let Some(new) = with(place, value) {
                *value = Arc::new(new);
            }
        };
        for actor in self.actors.iter_mut() {
            let actor = Arc::make_mut(actor);
            let chart = actor.chart() as usize;
            for (slot, value) in Arc::make_mut(&mut actor.context.values).iter_mut().enumerate() {
                value.iter_mut().for_each(|value| put(Place::Variable(chart, slot), value));
            }
            let mut input = actor.identity().input.clone();
            put(Place::Input, &mut input);
            if !Arc::ptr_eq(&input, &actor.identity().input) {
                let Identity { id, parent, invocation, shape, .. } = actor.identity();
                let (id, parent, invocation, shape) = (id.clone(), parent.clone(), *invocation, shape.clone());
                actor.context.identity = Arc::new(Identity { id, parent, invocation, input, shape });
            }
            for by in actor.votes.list().iter_mut().flat_map(|vote| &mut vote.by) {
                let mut id = Arc::new(Json::from(&**by));
                put(Place::Voter, &mut id);
                if let Some(id) = id.as_str() {
                    *by = id.into();
                }
            }
            actor.output.iter_mut().for_each(|output| put(Place::Unread, output));
            for invocation in &mut actor.invocations {
                put(Place::Unread, &mut Arc::make_mut(invocation).input);
            }
        }
        for timer in &mut self.timers {
            if let TimerKind::Send { data, .. } = &mut Arc::make_mut(timer).what {
                put(Place::Event, data);
            }
        }
        self.output.iter_mut().for_each(|output| put(Place::Unread, output));
    }
}
