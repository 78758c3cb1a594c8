//! The general exploration: executes steps in the kernel and compares the fingerprints of
//! snapshots.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::sync::Arc;

use charter_kernel::{Code, FingerprintFilter, Machine, Principal, Snapshot, Status, TakenKeys, Verdict};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::cone::{ConeOfInfluence, cone_of_influence};
use super::input::input_matters;
use super::moves::{Move, MoveKind, Moves, START, StepRefused, start};
use super::obstacle::{Obstacle, obstacle};
use super::predecessors::{NO_PARENT, PredecessorTree};
use super::{Exploration, NotStarted, RefusedMove};
use crate::Options;
use crate::effort::{Effort, fuel, units};
use crate::model::Model;
use crate::properties::PropertyMonitor;

/// Upper limit of distinct refusals in the report.
const MAX_REFUSED: usize = 50;

/// What a move costs besides the fuel of the kernel: its snapshot is copied and compared.
pub(crate) const FUEL_PER_MOVE: u64 = 200;
/// What explaining a refusal costs besides taking the step again.
const FUEL_PER_EXPLANATION: u64 = 2_000;
/// The bytes of a fingerprint that cost a unit of fuel.
const BYTES_PER_UNIT: usize = 16;

/// Restricts fingerprints to the cone of influence.
pub(crate) struct ConeFilter {
    /// Whether each variable is in the cone, by chart and slot.
    variables: Vec<Vec<bool>>,
    inputs: bool,
    entries: bool,
}

impl ConeFilter {
    pub(crate) fn new(model: &Model<'_>, cone: &ConeOfInfluence) -> ConeFilter {
        let of = |(chart, names): (&crate::model::Chart<'_>, &rustc_hash::FxHashSet<String>)| {
            chart.outline.variables.iter().map(|v| names.contains(*v)).collect()
        };
        ConeFilter {
            variables: model.charts.iter().zip(&cone.variables).map(of).collect(),
            inputs: cone.inputs,
            entries: cone.entries,
        }
    }
}

impl FingerprintFilter for ConeFilter {
    fn variable(&self, chart: usize, slot: usize, value: &Json, out: &mut Vec<u8>) {
        if self.variables.get(chart).and_then(|v| v.get(slot)) == Some(&true) {
            write(value, out);
        }
    }
    fn input(&self, _: usize, value: &Json, out: &mut Vec<u8>) {
        if self.inputs {
            write(value, out);
        }
    }
    fn entry(&self, value: &Json, out: &mut Vec<u8>) {
        if self.entries {
            write(value, out);
        }
    }
}

fn write(value: &Json, out: &mut Vec<u8>) {
    // Writing to a `Vec` cannot fail.
    let _ = serde_json::to_writer(&mut *out, value);
    out.push(0);
}

/// Returns a 128-bit fingerprint made of two hashes. With a million states, the probability of a
/// collision is below 10^-26.
pub(crate) fn key(bytes: &[u8]) -> u128 {
    #[allow(clippy::disallowed_types)] // SipHash with fixed keys: the same on every machine
    let hash = |salt: u8| {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(bytes);
        hasher.finish()
    };
    (u128::from(hash(0)) << 64) | u128::from(hash(1))
}

/// An explored state whose successors have not been computed yet.
struct FrontierState {
    node: u32,
    snapshot: Snapshot,
    now: i64,
    depth: usize,
    /// The `unless-before` events that have happened, as bits.
    seen: u64,
    /// The ids of the persons who have sent an event.
    used: Arc<[String]>,
    /// The unique keys of the events that lead to it.
    keys: TakenKeys,
}

/// Adds the sender of a move to those before.
fn used_after(used: &Arc<[String]>, how: &Move) -> Arc<[String]> {
    match &how.kind {
        MoveKind::Send { by, .. } if !used.contains(&by.id) => used.iter().cloned().chain([by.id.clone()]).collect(),
        _ => used.clone(),
    }
}

struct Search<'m> {
    machine: &'m Machine,
    filter: ConeFilter,
    out: Exploration,
    steps: Vec<(u32, Arc<Move>)>,
    known: FxHashMap<u128, u32>,
    frontier: VecDeque<FrontierState>,
    monitor: PropertyMonitor,
    buffer: Vec<u8>,
    /// Whether an event has a unique key.
    has_keys: bool,
    effort: Effort,
}

pub(crate) fn search(model: &Model<'_>, options: &Options) -> Exploration {
    let mut cone = cone_of_influence(model);
    let obstacle = obstacle(model);
    if obstacle.is_none() {
        // All behavior is covered only if states that differ in a variable are told apart: an
        // action that copies it may fail for one of its values.
        cone.add_all(model);
    }
    let moves = Moves::new(model, &cone, options);
    let mut s = Search {
        machine: model.machine,
        filter: ConeFilter::new(model, &cone),
        out: Exploration::new(model),
        steps: Vec::new(),
        known: FxHashMap::default(),
        frontier: VecDeque::new(),
        monitor: PropertyMonitor::new(model),
        buffer: Vec::new(),
        has_keys: model.machine.unique_event().is_some(),
        effort: Effort::new(fuel(options.effort)),
    };
    s.out.obstacle = obstacle;
    moves.cut.iter().for_each(|why| s.out.cut(why.clone()));
    s.out.missing.clone_from(&moves.missing);
    if let Some((at, what)) = moves.missing.first() {
        s.out.hinder(Some(Obstacle::new(at, format!("no data could be generated for {what}"))));
    }
    (s.out.explored.principals, s.out.explored.data) = moves.tried();
    for (input, by) in moves.starts(&moves.inputs) {
        s.begin(model, input, by);
    }
    if s.known.is_empty() {
        // The inputs that conditions distinguish do not work: try the plainest ones.
        let plain = moves.plain_inputs(options);
        moves.starts(&plain).for_each(|(input, by)| s.begin(model, input, by));
    }
    s.run(&moves, options);
    s.monitor.finish();
    s.out.verdicts = s.monitor.verdicts();
    s.out.explored.states = s.known.len();
    s.out.predecessors = PredecessorTree::Moves(s.steps);
    s.out
}

impl Search<'_> {
    fn begin(&mut self, model: &Model<'_>, input: &Json, by: &Option<Arc<Principal>>) {
        let how = Arc::new(Move { at: START, kind: MoveKind::Start { input: input.clone(), by: by.clone() } });
        self.effort.spend(FUEL_PER_MOVE);
        match start(self.machine, input, by.as_deref(), START) {
            Ok(outcome) => {
                self.effort.spend(outcome.fuel);
                let seen = self.monitor.seen_after(0, None);
                self.took(NO_PARENT, &how, &outcome.taken);
                let node = self.arrive(None, &how, outcome.snapshot, seen);
                self.monitor.start(node, &how);
            }
            Err(StepRefused { refusal, envelope, fuel, .. }) => {
                self.effort.spend(fuel.saturating_add(FUEL_PER_EXPLANATION));
                let message = self.machine.explain(None, &envelope, &refusal).message;
                let details = self.machine.refusal_details(None, &envelope, &refusal);
                self.out.hinder(Some(Obstacle::whole("a run could not be started with an input that was tried")));
                let is_certain = !input_matters(model, &details);
                // Another person may have started it with the same input.
                if !self.out.not_started.iter().any(|start| start.input == *input) {
                    self.out.not_started.push(NotStarted { input: input.clone(), message, is_certain });
                }
            }
        }
    }

    fn run(&mut self, moves: &Moves<'_, '_>, options: &Options) {
        let mut list = Vec::new();
        while let Some(w) = self.frontier.pop_front() {
            if self.effort.is_over() {
                self.ended();
                break;
            }
            if w.snapshot.status() != Status::Active {
                self.monitor.rests(w.node);
                continue;
            }
            if w.depth >= options.max_depth {
                self.out.cut(format!("paths of more than {} events were not followed", options.max_depth));
                continue;
            }
            if w.snapshot.timers().len() > 1 {
                let why = "two timers are pending at once, and not every order of them was tried";
                self.out.hinder(Some(Obstacle::whole(why)));
            }
            list.clear();
            moves.of(&w.snapshot, w.now, &w.used, &mut list);
            self.effort.spend(moves.spent());
            if self.has_keys {
                // A counterexample that uses a key twice is none: reach new states with free keys.
                list.sort_by_cached_key(|how| how.is_taken(self.machine, &w.keys));
            }
            let mut accepted = false;
            let mut later = Vec::new();
            list.reverse();
            while let Some(how) = list.pop().or_else(|| later.pop()) {
                if self.effort.is_over() {
                    // Not everything that could be accepted in this state was tried.
                    self.ended();
                    return;
                }
                self.effort.spend(FUEL_PER_MOVE);
                let outcome = match how.apply(self.machine, &w.snapshot) {
                    Ok(outcome) => outcome,
                    Err(refused) => {
                        self.effort.spend(refused.fuel);
                        self.out.forbid(&refused.forbidden);
                        if !how.is_from_outside() {
                            let why = "a timer or an answer can be refused, so that the run may stay where it is";
                            self.out.hinder(Some(Obstacle::whole(why)));
                        }
                        // A later timer may change what the refused one needs.
                        if let MoveKind::Tick = how.kind
                            && let Some(next) =
                                w.snapshot.timers().iter().map(|t| t.due.0).filter(|due| *due > how.at).min()
                        {
                            later.push(Move { at: next, kind: MoveKind::Tick });
                        }
                        self.refused(&w, how, &refused);
                        continue;
                    }
                };
                self.effort.spend(outcome.fuel);
                if outcome.records > 1 {
                    let why = "several timers fire at once, and the states between them were left out";
                    self.out.hinder(Some(Obstacle::whole(why)));
                }
                if outcome.verdict == Verdict::Ignored && outcome.snapshot.seq() == w.snapshot.seq() {
                    continue;
                }
                accepted = true;
                self.out.explored.edges = self.out.explored.edges.saturating_add(1);
                let how = Arc::new(how);
                self.took(w.node, &how, &outcome.taken);
                let event = Some(how.as_ref()).filter(|_| outcome.verdict == Verdict::Accepted);
                let seen = self.monitor.seen_after(w.seen, event);
                let full = self.known.len() >= options.max_states;
                self.step(&w, &how, outcome.snapshot, seen, full);
                if full {
                    self.out.cut(format!("more than {} states", options.max_states));
                }
            }
            if !accepted {
                let stuck = self.machine.is_stuck(&w.snapshot);
                self.out.ends.push((w.node, stuck));
            }
            if !accepted || !w.snapshot.invocations().any(|(_, i)| !i.is_machine()) && w.snapshot.timers().is_empty() {
                // Only events from outside could continue the run, and they may never arrive.
                self.monitor.rests(w.node);
            }
        }
    }

    fn ended(&mut self) {
        let left = self.frontier.len().saturating_add(1);
        self.out.cut(format!("the effort ended, and {left} states were not followed"));
    }

    /// Adds an edge and, if it is new, the state that it leads to.
    fn step(&mut self, from: &FrontierState, how: &Arc<Move>, snapshot: Snapshot, seen: u64, full: bool) {
        let same = if self.monitor.wants_edges() { self.monitor.continuing(&from.snapshot, &snapshot) } else { 0 };
        let to = if full { self.find(&snapshot, seen) } else { Some(self.arrive(Some(from), how, snapshot, seen)) };
        if let Some(to) = to {
            self.monitor.edge(from.node, to, how, same);
        }
    }

    fn key_of(&mut self, snapshot: &Snapshot, seen: u64) -> u128 {
        self.buffer.clear();
        self.buffer.extend_from_slice(&seen.to_le_bytes());
        self.machine.fingerprint(snapshot, &self.filter, &mut self.buffer);
        self.effort.spend(units(self.buffer.len().checked_div(BYTES_PER_UNIT).unwrap_or(0)));
        key(&self.buffer)
    }

    fn find(&mut self, snapshot: &Snapshot, seen: u64) -> Option<u32> {
        let key = self.key_of(snapshot, seen);
        self.known.get(&key).copied()
    }

    /// Adds a state unless it is known; returns its index.
    fn arrive(&mut self, from: Option<&FrontierState>, how: &Arc<Move>, snapshot: Snapshot, seen: u64) -> u32 {
        let key = self.key_of(&snapshot, seen);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let node = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        self.known.insert(key, node);
        self.steps.push((from.map_or(NO_PARENT, |f| f.node), how.clone()));
        for actor in snapshot.actors() {
            let (chart, configuration) = actor.configuration();
            let Some(reached) = self.out.reached.get_mut(chart) else {
                continue;
            };
            for state in configuration {
                if let Some(place) = reached.get_mut(*state as usize) {
                    place.get_or_insert(node);
                }
            }
        }
        let fuel = self.monitor.state(self.machine, node, &snapshot, how.at, seen);
        self.effort.spend(fuel);
        let depth = from.map_or(0, |f| f.depth.saturating_add(1));
        let used = from.map_or_else(|| Arc::from([]), |f| used_after(&f.used, how));
        let mut keys = from.map_or_else(TakenKeys::default, |f| f.keys.clone());
        if self.has_keys {
            how.take_key(self.machine, &mut keys);
        }
        self.frontier.push_back(FrontierState { node, snapshot, now: how.at, depth, seen, used, keys });
        node
    }

    fn took(&mut self, from: u32, how: &Arc<Move>, taken: &[(usize, u32)]) {
        for (chart, transition) in taken {
            if let Some(place) = self.out.taken.get_mut(*chart).and_then(|c| c.get_mut(*transition as usize)) {
                place.get_or_insert_with(|| (from, how.clone()));
            }
        }
    }

    /// Records a refusal for the report, unless a similar one is known.
    fn refused(&mut self, w: &FrontierState, how: Move, refused: &StepRefused) {
        let code = refused.refusal.code;
        let reported =
            matches!(code, Code::Execution | Code::Runaway | Code::Interlock | Code::TooCostly | Code::TooLarge);
        if matches!(code, Code::Execution | Code::TooCostly | Code::TooLarge) {
            let why = "an action failed with the data that was tried, and may not fail with other data";
            self.out.hinder(Some(Obstacle::whole(why)));
        }
        if !reported || self.out.refused.len() >= MAX_REFUSED {
            return;
        }
        let label = how.label();
        // Explaining takes longer than the step.
        let alike = |r: &RefusedMove| {
            r.code == code && r.how.is_from_outside() == how.is_from_outside() && r.how.label() == label
        };
        if code != Code::Interlock && self.out.refused.iter().any(alike) {
            return;
        }
        self.effort.spend(refused.fuel.saturating_add(FUEL_PER_EXPLANATION));
        let explanation = self.machine.explain(Some(&w.snapshot), &refused.envelope, &refused.refusal);
        let same = |r: &RefusedMove| match code {
            Code::Interlock => r.code == code && r.interlock == explanation.interlock,
            _ => r.code == code && r.message == explanation.message && r.how.is_from_outside() == how.is_from_outside(),
        };
        if !self.out.refused.iter().any(same) {
            self.out.refused.push(RefusedMove {
                node: w.node,
                how: Arc::new(how),
                code,
                interlock: explanation.interlock,
                message: explanation.message,
            });
        }
    }
}
