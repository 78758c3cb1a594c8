//! The search over abstract states, breadth first.

use std::collections::VecDeque;
use std::rc::Rc;

use charter_kernel::definition::PropertyRule;
use charter_kernel::{Envelope, Event, FingerprintFilter, Place, Query, Snapshot, Status, Step, Unknowns, Verdict};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::domain;
use super::moves::{Move, Moves};
use super::oracle::Oracle;
use super::store::{ANYTHING, Store};
use super::widen::Constants;
use crate::explore::{Obstacle, START, condition_of, key};
use crate::model::Model;

/// Which values a search follows; the others are unknown in every state.
pub(super) struct Level {
    /// Whether each variable is followed, by chart and slot.
    pub(super) variables: Vec<Vec<bool>>,
    pub(super) inputs: bool,
}

/// The result of a search.
pub(super) struct Outcome {
    /// For each property: what was decided both ways before it was violated.
    pub(super) violated: Vec<Option<Obstacle>>,
    /// For each property: whether it was evaluated in every state.
    pub(super) followed: Vec<bool>,
    /// Why not everything was covered.
    pub(super) obstacle: Option<Obstacle>,
    pub(super) reached: Vec<Vec<bool>>,
    pub(super) taken: Vec<Vec<bool>>,
    pub(super) states: usize,
    pub(super) steps: usize,
}

struct AbstractState {
    snapshot: Snapshot,
    store: Store,
    /// The `unless-before` events that have happened, as bits.
    seen: u64,
    /// A run that is being resumed: some of the answers that it has held are delivered.
    resuming: bool,
    /// What was last decided both ways on the way here.
    undecided: Option<Rc<str>>,
}

struct Rule {
    query: Query,
    /// The value that violates it.
    bad: bool,
    /// The bit of its `unless-before` event.
    before: u64,
    event: Option<String>,
}

pub(super) struct Search<'m, 'd> {
    model: &'m Model<'d>,
    level: Level,
    effort: usize,
    constants: Constants,
    oracle: Rc<Oracle>,
    unknowns: Rc<dyn Unknowns>,
    rules: Vec<Option<Rule>>,
    known: FxHashMap<u128, ()>,
    waiting: VecDeque<AbstractState>,
    out: Outcome,
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
    pub(super) fn new(model: &'m Model<'d>, level: Level, effort: usize) -> Self {
        let oracle = Rc::new(Oracle::default());
        let unknowns: Rc<dyn Unknowns> = oracle.clone();
        let mut events = 0u32;
        let rule = |property: &charter_kernel::definition::Property, events: &mut u32| {
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
        let rules: Vec<Option<Rule>> = model.def.properties.iter().map(|p| rule(p, &mut events)).collect();
        let out = Outcome {
            violated: vec![None; rules.len()],
            followed: rules.iter().map(Option::is_some).collect(),
            obstacle: None,
            reached: model.charts.iter().map(|c| vec![false; c.states.len()]).collect(),
            taken: model.charts.iter().map(|c| vec![false; c.transitions.len()]).collect(),
            states: 0,
            steps: 0,
        };
        let constants = Constants::of(model);
        let (known, waiting) = (FxHashMap::default(), VecDeque::new());
        Search { model, level, effort, constants, oracle, unknowns, rules, known, waiting, out }
    }

    /// Searches. Properties that are `proved` already are left out.
    pub(super) fn run(mut self, proved: &[bool]) -> Outcome {
        for (rule, proved) in self.rules.iter_mut().zip(proved) {
            if *proved {
                *rule = None;
            }
        }
        let Some(moves) = Moves::new(self.model) else {
            self.out.obstacle = Some(Obstacle::new("/roles", "an event has too many sets of roles"));
            return self.out;
        };
        self.start();
        while let Some(state) = self.waiting.pop_front() {
            if self.out.obstacle.is_some() {
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
        self.out.states = self.known.len();
        self.out
    }

    fn start(&mut self) {
        let empty = Store::default();
        self.oracle.interlocks.set(true);
        loop {
            self.oracle.begin(&empty);
            let input = self.oracle.matching(self.model.def.root.input.as_ref());
            let envelope = Envelope::host(0, Event::Start { input }, START);
            let result = self.model.machine.start_with("explored", &envelope, &self.unknowns);
            self.out.steps = self.out.steps.saturating_add(1);
            if let Ok(step) = result {
                self.arrive(step, 0, false, None);
            }
            if self.is_over() || !self.oracle.tape.borrow_mut().next() {
                break;
            }
        }
    }

    /// Whether the search has to end: it does not cover something, or takes too long.
    fn is_over(&mut self) -> bool {
        if let Some(gave_up) = self.oracle.gave_up.borrow().clone() {
            let obstacle = match gave_up.expression {
                Some(cel) => Obstacle::of(&self.place(&cel), &cel, gave_up.why),
                None => Obstacle::new("/root", gave_up.why),
            };
            self.out.obstacle.get_or_insert(obstacle);
        }
        if self.out.steps >= self.effort {
            let why = format!("all data was followed for {} steps only", self.effort);
            self.out.obstacle.get_or_insert(Obstacle::new("/root", why));
        }
        self.out.obstacle.is_some()
    }

    /// Where an expression is in the charter.
    fn place(&self, cel: &str) -> String {
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
                    self.arrive(step, seen, !*checked, from.undecided.clone());
                }
                if !self.oracle.tape.borrow_mut().next() {
                    break;
                }
            }
        }
    }

    /// Gives a name to each unknown value that has none.
    fn with_unknowns(&self, snapshot: &Snapshot) -> Snapshot {
        let mut snapshot = snapshot.clone();
        snapshot.replace_values(&mut |_, value| (value.as_str() == Some(ANYTHING)).then(|| self.oracle.anything()));
        snapshot
    }

    /// Adds the state after a step, unless it is known.
    fn arrive(&mut self, step: Step, seen: u64, resuming: bool, undecided: Option<Rc<str>>) {
        for (chart, transition) in step.taken() {
            if let Some(place) = self.out.taken.get_mut(chart).and_then(|c| c.get_mut(transition as usize)) {
                *place = true;
            }
        }
        let undecided = self.oracle.undecided.borrow().as_deref().map(Rc::from).or(undecided);
        let Some((snapshot, store)) = self.canonical(step.snapshot) else {
            let obstacle = Obstacle::new("/root", "the charter follows too many unknown values at once");
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
        let state = AbstractState { snapshot, store, seen, resuming, undecided };
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

    /// Evaluates the properties in a state.
    fn judge(&mut self, state: &AbstractState) {
        for number in 0..self.rules.len() {
            let Some(Some(rule)) = self.rules.get(number) else { continue };
            if state.seen & rule.before != 0 || self.out.violated.get(number).is_none_or(Option::is_some) {
                continue;
            }
            let tape = self.oracle.tape.take();
            let mut violated = None;
            loop {
                self.oracle.begin(&state.store);
                let snapshot = self.with_unknowns(&state.snapshot);
                let answer = self.model.machine.ask_with(&snapshot, &rule.query, START, &self.unknowns);
                self.out.steps = self.out.steps.saturating_add(1);
                if answer.is_err() || answer.is_ok_and(|answer| answer == rule.bad) {
                    let cel = self.oracle.undecided.borrow().clone();
                    violated = Some(cel.or_else(|| state.undecided.as_deref().map(str::to_string)));
                    break;
                }
                if !self.oracle.tape.borrow_mut().next() {
                    break;
                }
            }
            self.oracle.tape.replace(tape);
            if let Some(cel) = violated {
                let why = "it could be neither solved nor refuted";
                let obstacle = match cel {
                    Some(cel) => Obstacle::of(&self.place(&cel), &cel, why),
                    None => Obstacle::new(&format!("/properties/{number}"), "no data was found that violates it"),
                };
                if let Some(place) = self.out.violated.get_mut(number) {
                    *place = Some(obstacle);
                }
            }
        }
    }

    /// The state with its values in a form in which equal ones are found again.
    fn canonical(&self, mut snapshot: Snapshot) -> Option<(Snapshot, Store)> {
        let oracle = &self.oracle;
        let followed = |place: Place| match place {
            Place::Variable(chart, slot) => self.level.variables.get(chart).and_then(|v| v.get(slot)) == Some(&true),
            Place::Input => self.level.inputs,
            Place::Event | Place::Voter => true,
            Place::Unread => false,
        };
        let mut values = Vec::new();
        snapshot.replace_values(&mut |place, value| {
            values.push(match (followed(place), place) {
                (true, _) => {
                    let value = oracle.store.borrow().resolve(value);
                    self.constants.blur(oracle, &value, 0)
                }
                (false, Place::Unread) => Json::Null,
                (false, _) => Json::from(ANYTHING),
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
