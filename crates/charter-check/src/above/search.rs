//! The search over abstract states, breadth first.

use std::collections::VecDeque;
use std::rc::Rc;

use charter_kernel::definition::PropertyRule;
use charter_kernel::{Envelope, Event, FingerprintFilter, Place, Query, Snapshot, Status, Step, Unknowns, Verdict};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::moves::{Move, Moves};
use super::oracle::Oracle;
use super::slice::{Depth, Level, Path};
use super::store::{ANYTHING, Store};
use super::widen::Constants;
use super::{anybody, domain};
use crate::explore::{Obstacle, START, condition_of, key};
use crate::model::Model;

/// How the obstacle begins that the effort was too little.
pub(super) const ENDED: &str = "the effort ended";

/// Limits of one search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Steps that it may take.
    pub(super) effort: usize,
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
    level: Level,
    pub(super) limits: Limits,
    /// The memory that the known states take, roughly.
    bytes: usize,
    constants: Constants,
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
        };
        let constants = Constants::of(model, &level);
        let (known, waiting) = (FxHashMap::default(), VecDeque::new());
        Search { model, level, limits, bytes: 0, constants, oracle, unknowns, rules, only: None, known, waiting, out }
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
            for how in moves.of(self.model, &state.snapshot) {
                if !state.resuming || matches!(how, Move::Done { .. } | Move::Failed { .. }) {
                    self.follow(&moves, &state, &how);
                }
            }
        }
        // The last step of all may be the one that is not covered.
        self.note_gap();
        self.out.states = self.known.len();
        self.out
    }

    fn start(&mut self) {
        let empty = Store::default();
        self.oracle.interlocks.set(true);
        loop {
            self.oracle.begin(&empty);
            let input = self.oracle.fresh(self.oracle.matching(self.model.def.root.input.as_ref()));
            let envelope = Envelope::host(0, Event::Start { input }, START);
            let result = self.model.machine.start_with("explored", &envelope, &self.unknowns);
            self.out.steps = self.out.steps.saturating_add(1);
            if let Ok(step) = result {
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
        if self.out.steps >= self.limits.effort {
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
                let result = self.model.machine.step_with(&before, &envelope, &self.unknowns);
                self.out.steps = self.out.steps.saturating_add(1);
                if let Ok(step) = result
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

    /// Gives a name to each unknown value that has none.
    pub(super) fn with_unknowns(&self, snapshot: &Snapshot) -> Snapshot {
        let mut snapshot = snapshot.clone();
        snapshot.replace_values(&mut |_, value| (value.as_str() == Some(ANYTHING)).then(|| self.oracle.anything()));
        snapshot
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
        if self.known.insert(key(&bytes), ()).is_some() {
            return;
        }
        // What a state takes in memory is a small multiple of its text.
        self.bytes = self.bytes.saturating_add(bytes.len().saturating_mul(4)).saturating_add(2_048);
        let path = self.path(before);
        let state = AbstractState { snapshot, store, seen, resuming, path };
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

    /// The state with its values in a form in which equal ones are found again.
    fn canonical(&self, mut snapshot: Snapshot) -> Option<(Snapshot, Store)> {
        let oracle = &self.oracle;
        let followed = |place: Place| match place {
            Place::Variable(chart, slot) => {
                self.level.variables.get(chart).and_then(|v| v.get(slot)).copied().unwrap_or(Depth::Not)
            }
            Place::Input if self.level.inputs => Depth::All,
            Place::Event | Place::Voter => Depth::All,
            Place::Input | Place::Unread => Depth::Not,
        };
        let mut values = Vec::new();
        snapshot.replace_values(&mut |place, value| {
            values.push(match (followed(place), place) {
                (Depth::Not, Place::Unread) => Json::Null,
                (Depth::Not, _) => Json::from(ANYTHING),
                (depth, _) => {
                    let value = oracle.store.borrow().resolve(value);
                    let value = if depth == Depth::Shape { oracle.shape(value) } else { value };
                    self.constants.blur(oracle, &value, 0)
                }
            });
            None
        });
        let mut store = oracle.store.borrow().compact(&mut values)?;
        store.widen(&|values: &mut domain::Values| self.constants.widen(values));
        let mut values = values.into_iter();
        snapshot.replace_values(&mut |_, _| values.next());
        Some((snapshot, store))
    }
}
