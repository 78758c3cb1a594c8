//! The search over abstract states, breadth first.

use std::collections::VecDeque;
use std::rc::Rc;

use charter_expr::Fuel;
use charter_kernel::definition::PropertyRule;
use charter_kernel::{
    Code, Envelope, Event, FingerprintFilter, Query, Refusal, Snapshot, Status, Step, Unknowns, Verdict,
};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::anybody;
use super::moves::by_anybody;
use super::moves::{Move, Moves};
use super::oracle::Oracle;
use super::slice::{Level, Path};
use super::store::Store;
use super::widen::Constants;
use crate::effort::{FUEL_PER_STEP, units};
use crate::explore::{Obstacle, START, condition_of, key};
use crate::model::Model;

/// How the obstacle begins that the effort was too little.
pub(super) const ENDED: &str = "the effort ended";

/// What a step costs besides the fuel that it uses: a state is copied, compared and remembered.
pub(super) const FUEL_PER_MOVE: u64 = FUEL_PER_STEP / 2;
/// The bytes of a state that cost a unit of fuel.
const BYTES_PER_UNIT: usize = 16;

/// Limits of one search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Fuel that it may use.
    pub(super) effort: u64,
    /// Bytes that its states may take.
    pub(super) memory: usize,
}

/// The result of a search.
pub(super) struct Outcome {
    /// For each property: what was decided both ways before it was violated.
    pub(super) violated: Vec<Option<Violation>>,
    /// For each property: whether it was evaluated in every state.
    pub(super) followed: Vec<bool>,
    /// Why not everything was covered.
    pub(super) obstacle: Option<Obstacle>,
    pub(super) reached: Vec<Vec<bool>>,
    pub(super) taken: Vec<Vec<bool>>,
    pub(super) states: usize,
    pub(super) steps: usize,
    /// The fuel that it has used.
    pub(super) work: u64,
}

/// An abstract state that violates a property.
pub(super) struct Violation {
    pub(super) obstacle: Obstacle,
    /// The way to it.
    pub(super) path: Option<Rc<Path>>,
}

pub(super) struct AbstractState {
    pub(super) snapshot: Snapshot,
    pub(super) store: Store,
    /// The `unless-before` events that have happened, as bits.
    pub(super) seen: u64,
    /// A run that is being resumed: some of the answers that it has held are delivered.
    resuming: bool,
    /// What was decided both ways on the way here.
    pub(super) path: Option<Rc<Path>>,
    /// What copying it costs.
    pub(super) cost: u64,
}

pub(super) struct Rule {
    pub(super) query: Query,
    /// The value that violates it.
    pub(super) bad: bool,
    /// The bit of its `unless-before` event.
    pub(super) before: u64,
    event: Option<String>,
}

pub(super) struct Search<'m, 'd> {
    pub(super) model: &'m Model<'d>,
    pub(super) level: Level,
    limits: Limits,
    /// The fuel that is left, with a reserve of one evaluation: so none ever fails for the lack of
    /// effort, which would be a wrong answer.
    pub(super) fuel: Fuel,
    pub(super) reserve: u64,
    /// The memory that the known states take, roughly.
    bytes: usize,
    pub(super) constants: Constants,
    pub(super) oracle: Rc<Oracle>,
    pub(super) unknowns: Rc<dyn Unknowns>,
    pub(super) rules: Vec<Option<Rule>>,
    /// The property that the search is for.
    only: Option<usize>,
    known: FxHashMap<u128, ()>,
    waiting: VecDeque<AbstractState>,
    pub(super) out: Outcome,
}

/// Writes everything: what is not followed was replaced before.
struct Everything;

impl FingerprintFilter for Everything {
    fn variable(&self, _: usize, _: usize, value: &Json, out: &mut Vec<u8>) {
        write(value, out);
    }
    fn input(&self, _: usize, value: &Json, out: &mut Vec<u8>) {
        write(value, out);
    }
    fn entry(&self, value: &Json, out: &mut Vec<u8>) {
        write(value, out);
    }
}

fn write(value: &Json, out: &mut Vec<u8>) {
    // Writing to a `Vec` cannot fail.
    let _ = serde_json::to_writer(&mut *out, value);
    out.push(0);
}

impl<'m, 'd> Search<'m, 'd> {
    pub(super) fn new(model: &'m Model<'d>, level: Level, limits: Limits) -> Self {
        let oracle = Rc::new(Oracle::new(level.unread(model)));
        oracle.repeats.replace(level.repeats(model));
        let unknowns: Rc<dyn Unknowns> = oracle.clone();
        let mut events = 0u32;
        let anybody = anybody::spawns(model);
        oracle.anybody.set(anybody);
        let rule = |number: usize, property: &charter_kernel::definition::Property, events: &mut u32| {
            if super::undecidable(model, number, anybody).is_some() {
                return None;
            }
            let (cel, bad, event) = match &property.rule {
                PropertyRule::Never { when, unless_before } => (when, true, unless_before.clone()),
                PropertyRule::Always(cel) => (cel, false, None),
                PropertyRule::Eventually(_) => return None,
            };
            let before = match &event {
                Some(_) => {
                    let bit = 1u64.checked_shl(*events)?;
                    *events = events.saturating_add(1);
                    bit
                }
                None => 0,
            };
            Some(Rule { query: model.machine.query(cel).ok()?, bad, before, event })
        };
        let rules: Vec<Option<Rule>> =
            model.def.properties.iter().enumerate().map(|(i, p)| rule(i, p, &mut events)).collect();
        let out = Outcome {
            violated: rules.iter().map(|_| None).collect(),
            followed: rules.iter().map(Option::is_some).collect(),
            obstacle: None,
            reached: model.charts.iter().map(|c| vec![false; c.states.len()]).collect(),
            taken: model.charts.iter().map(|c| vec![false; c.transitions.len()]).collect(),
            states: 0,
            steps: 0,
            work: 0,
        };
        let reserve = model.def.limits.expression.saturating_add(1);
        let fuel = Fuel::new(limits.effort.saturating_add(reserve));
        let constants = Constants::of(model, &level);
        let (known, waiting) = (FxHashMap::default(), VecDeque::new());
        Search {
            model,
            level,
            limits,
            fuel,
            reserve,
            bytes: 0,
            constants,
            oracle,
            unknowns,
            rules,
            only: None,
            known,
            waiting,
            out,
        }
    }

    /// Searches. Properties that are `proved` already are left out.
    pub(super) fn run(mut self, proved: &[bool]) -> Outcome {
        for (rule, proved) in self.rules.iter_mut().zip(proved) {
            if *proved {
                *rule = None;
            }
        }
        self.search()
    }

    /// Searches until a property is violated.
    pub(super) fn run_for(mut self, property: usize) -> Outcome {
        self.rules.iter_mut().enumerate().filter(|(i, _)| *i != property).for_each(|(_, rule)| *rule = None);
        self.only = Some(property);
        self.search()
    }

    fn search(mut self) -> Outcome {
        let Some(moves) = Moves::new(self.model) else {
            self.out.obstacle = Some(Obstacle::new("/roles", "an event has too many sets of roles"));
            return self.out;
        };
        self.start();
        while let Some(state) = self.waiting.pop_front() {
            if self.is_over() {
                break;
            }
            if state.snapshot.status() != Status::Active {
                continue;
            }
            self.spend(moves.cost(&state.snapshot));
            for how in moves.of(self.model, &state.snapshot) {
                if !state.resuming || matches!(how, Move::Done { .. } | Move::Failed { .. }) {
                    self.follow(&moves, &state, &how);
                }
            }
        }
        // The last step of all may be the one that is not covered.
        self.note_gap();
        self.out.states = self.known.len();
        self.out.work = self.limits.effort.saturating_add(self.reserve).saturating_sub(self.fuel.left());
        self.out
    }

    fn start(&mut self) {
        let empty = Store::default();
        let starter = self.model.reads_starter_or_answerer();
        self.oracle.interlocks.set(true);
        loop {
            self.oracle.begin(&empty);
            let input = self.oracle.fresh(self.oracle.matching(self.model.def.root.input.as_ref()));
            let envelope = Envelope::host(0, Event::Start { input }, START);
            let envelope = if starter { by_anybody(&self.oracle, envelope) } else { envelope };
            self.spend(FUEL_PER_MOVE);
            let result = self.model.machine.start_with("explored", &envelope, &self.unknowns, &mut self.fuel);
            if let Some(step) = self.taken(result) {
                self.arrive(step, 0, false, &None);
            }
            if self.is_over() || !self.oracle.tape.borrow_mut().next() {
                break;
            }
        }
    }

    /// Notes what the oracle does not cover.
    fn note_gap(&mut self) {
        if let Some(gave_up) = self.oracle.gave_up.borrow().clone() {
            let obstacle = match gave_up.expression {
                Some(cel) => Obstacle::of(&self.place(&cel), &cel, gave_up.why),
                None => Obstacle::whole(gave_up.why),
            };
            self.out.obstacle.get_or_insert(obstacle);
        }
    }

    /// Whether the search has to end: it does not cover something, or takes too long.
    pub(super) fn is_over(&mut self) -> bool {
        self.note_gap();
        if self.fuel.left() <= self.reserve {
            let why = format!("{ENDED} at step {}, state {}", self.out.steps, self.known.len());
            self.out.obstacle.get_or_insert(Obstacle::whole(why));
        }
        if self.bytes > self.limits.memory {
            let why = format!("the limit of memory was reached at state {}", self.known.len());
            self.out.obstacle.get_or_insert(Obstacle::whole(why));
        }
        let found = self.only.is_some_and(|only| matches!(self.out.violated.get(only), Some(Some(_))));
        found || self.out.obstacle.is_some()
    }

    /// Spends fuel for what is done beside steps.
    pub(super) fn spend(&mut self, units: u64) {
        self.fuel = Fuel::new(self.fuel.left().saturating_sub(units));
    }

    /// The result of a step, unless it is refused; counts it.
    fn taken(&mut self, result: Result<Step, Refusal>) -> Option<Step> {
        self.out.steps = self.out.steps.saturating_add(1);
        if result.as_ref().is_err_and(|refusal| refusal.code == Code::TooLarge) {
            let why = "one event builds more values than are followed";
            self.out.obstacle.get_or_insert_with(|| Obstacle::whole(why));
        }
        result.ok().filter(|_| self.fuel.left() > self.reserve)
    }

    /// Where an expression is in the charter.
    pub(super) fn place(&self, cel: &str) -> String {
        let mut found = None;
        self.model.visit_all(&mut |at, item| {
            if let crate::model::walk::Item::Cel(text) = item
                && text == cel
            {
                found.get_or_insert_with(|| at.to_string());
            }
        });
        let property = || {
            let place = self.model.def.properties.iter().position(|p| condition_of(p) == cel)?;
            Some(format!("/properties/{place}"))
        };
        found.or_else(property).unwrap_or_else(|| "/root".into())
    }

    /// Takes all steps of one move.
    fn follow(&mut self, moves: &Moves, from: &AbstractState, how: &Move) {
        // A resumed run delivers the answers that it has held in one event, so that interlocks do
        // not hold between them.
        let answers = matches!(how, Move::Done { .. } | Move::Failed { .. });
        let held = from.snapshot.invocations().filter(|(_, i)| !i.is_machine()).count() > 1;
        let resuming = !self.model.def.interlocks.is_empty() && answers && (held || from.resuming);
        let ways = if resuming { &[true, false][..] } else { &[true][..] };
        for checked in ways {
            self.oracle.interlocks.set(*checked);
            self.oracle.tape.take();
            loop {
                if self.is_over() {
                    return;
                }
                self.oracle.begin(&from.store);
                let before = self.with_unknowns(&from.snapshot);
                let seq = before.seq().saturating_add(1);
                let Some(envelope) = moves.envelope(self.model, &self.oracle, how, seq) else { return };
                self.spend(FUEL_PER_MOVE.saturating_add(from.cost));
                let result = self.model.machine.step_with(&before, &envelope, &self.unknowns, &mut self.fuel);
                if let Some(step) = self.taken(result)
                    && !(step.verdict == Verdict::Ignored && step.snapshot.seq() == before.seq())
                {
                    let event = moves.event_of(how).filter(|_| step.verdict == Verdict::Accepted);
                    let seen = self.rules.iter().flatten().filter(|r| r.event.is_some() && r.event.as_deref() == event);
                    let seen = seen.fold(from.seen, |seen, rule| seen | rule.before);
                    self.arrive(step, seen, !*checked, &from.path);
                }
                if !self.oracle.tape.borrow_mut().next() {
                    break;
                }
            }
        }
    }

    /// Adds the state after a step, unless it is known.
    fn arrive(&mut self, step: Step, seen: u64, resuming: bool, before: &Option<Rc<Path>>) {
        for (chart, transition) in step.taken() {
            if let Some(place) = self.out.taken.get_mut(chart).and_then(|c| c.get_mut(transition as usize)) {
                *place = true;
            }
        }
        let Some((snapshot, store)) = self.canonical(step.snapshot) else {
            let obstacle = Obstacle::whole("the charter follows too many unknown values at once");
            self.out.obstacle.get_or_insert(obstacle);
            return;
        };
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&seen.to_le_bytes());
        bytes.push(u8::from(resuming));
        self.model.machine.fingerprint(&snapshot, &Everything, &mut bytes);
        bytes.extend_from_slice(format!("{store:?}").as_bytes());
        let cost = units(bytes.len().checked_div(BYTES_PER_UNIT).unwrap_or(0));
        self.spend(cost);
        if self.known.insert(key(&bytes), ()).is_some() {
            return;
        }
        // What a state takes in memory is a small multiple of its text.
        self.bytes = self.bytes.saturating_add(bytes.len().saturating_mul(4)).saturating_add(2_048);
        let path = self.path(before);
        let state = AbstractState { snapshot, store, seen, resuming, path, cost };
        if !resuming {
            for actor in state.snapshot.actors() {
                let (chart, configuration) = actor.configuration();
                let Some(reached) = self.out.reached.get_mut(chart) else { continue };
                for number in configuration {
                    if let Some(place) = reached.get_mut(*number as usize) {
                        *place = true;
                    }
                }
            }
            self.judge(&state);
        }
        self.waiting.push_back(state);
    }

    /// The way to what follows in this step.
    pub(super) fn path(&self, before: &Option<Rc<Path>>) -> Option<Rc<Path>> {
        let decided = self.oracle.decided.borrow();
        match decided.as_slice() {
            [] => before.clone(),
            decided => Some(Rc::new(Path { decided: decided.into(), before: before.clone() })),
        }
    }
}
