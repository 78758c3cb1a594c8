//! Exploration: covers all behavior of a run with the data, principals and times that are tried.
//! It is breadth first, so the first trace found to a state is a shortest one. It is complete, and
//! what it did not find is proved not to happen, only if nothing else could be tried (`obstacle`).
//!
//! Two snapshots are the same explored state if they agree in everything that affects behavior:
//! configurations, histories, pending invocations, the order (not the times) of timers, the ledger,
//! and the context variables in the cone of influence. Whether a run is paused is ignored, because
//! a pause does not change the behavior after it.
//!
//! Every unique key counts as free, also one that the run has taken before: a `taken` event changes
//! nothing, as if it had not been sent, so what is proved holds whatever keys are taken. What is
//! reported as possible is replayed with the keys of its own events.

mod cone;
mod data;
mod input;
mod moves;
mod obstacle;
mod predecessors;
mod search;
mod set;
mod table;
mod tries;

use std::sync::Arc;

use charter_format::Document;
use charter_kernel::definition::StateKind;
use charter_kernel::{Code, Machine, Snapshot, Status, TakenKeys};

use crate::effort::Effort;
use crate::finding::Explored;
use crate::model::Model;
use crate::{Options, Trace};
pub(crate) use cone::cone_of_influence;
pub(crate) use moves::{FUEL_PER_QUESTION, Move, MoveKind, START, start, takes};
pub(crate) use obstacle::{Obstacle, condition_of};
use predecessors::PredecessorTree;
pub(crate) use predecessors::trace_of;
pub(crate) use search::{FUEL_PER_MOVE, key};
pub use tries::event_data;

/// The explored state, and the move from it, in which something first happened.
type First = Option<(u32, Arc<Move>)>;

/// The result of an exploration.
pub struct Exploration {
    pub(crate) explored: Explored,
    pub(crate) predecessors: PredecessorTree,
    /// For each state, by chart: the first explored state in which it is active.
    pub(crate) reached: Vec<Vec<Option<u32>>>,
    /// For each state, by chart: the first explored state from which an event enters and exits it.
    pub(crate) passed: Vec<Vec<First>>,
    /// For each transition, by chart: the first explored state in which it is taken, and the move
    /// that takes it.
    pub(crate) taken: Vec<Vec<First>>,
    /// For each transition, by chart: whether an interlock has refused an event that would take it.
    pub(crate) forbidden: Vec<Vec<bool>>,
    /// Explored states in which none of the events that were tried is accepted, and whether none
    /// can be (a deadlock).
    pub(crate) ends: Vec<(u32, bool)>,
    /// Moves that were refused because of an action, an interlock or the microstep limit.
    pub(crate) refused: Vec<RefusedMove>,
    /// Why runs could not be started.
    pub(crate) not_started: Vec<NotStarted>,
    /// Schemas for which no data could be generated: pointer and name.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) verdicts: Vec<crate::properties::PropertyVerdict>,
    /// What keeps the exploration from covering all behavior.
    pub(crate) obstacle: Option<Obstacle>,
    /// What the exploration from above has proved, if this one is not complete.
    pub(crate) above: Option<crate::above::Above>,
    /// What is left of the effort for replaying what was found.
    pub(crate) replays: Effort,
    names: Vec<ChartNames>,
}

pub(crate) struct RefusedMove {
    pub(crate) node: u32,
    pub(crate) how: Arc<Move>,
    pub(crate) code: Code,
    pub(crate) interlock: Option<String>,
    pub(crate) message: String,
}

/// A run that the kernel refused to start.
pub(crate) struct NotStarted {
    pub(crate) input: serde_json::Value,
    pub(crate) message: String,
    /// Whether no other input can start a run.
    pub(crate) is_certain: bool,
}

/// The states and transitions of a chart by name.
struct ChartNames {
    machine: String,
    states: Vec<String>,
    transitions: Vec<(String, String)>,
}

/// Explores a charter, to measure coverage and to propose scenarios.
///
/// ```
/// # use charter_check::{Options, explore};
/// # use charter_format::{ReadOptions, read};
/// # use charter_kernel::Machine;
/// # let source = "{charter: 1, id: t, events: {GO: {}, BACK: {}}, states: {a: {on: {GO: b}}, b: {on: {GO: c, BACK: a}}, c: {type: final}}}";
/// # let definition = read(source, "t.yaml", &ReadOptions::default())?.definition;
/// let machine = Machine::compile(definition).unwrap();
/// let exploration = explore(&machine, &Options::default());
/// let trace = exploration.trace_to_state("root", "c").unwrap();
/// assert_eq!(trace.events.len(), 2);
/// # Ok::<(), charter_format::Diagnostics>(())
/// ```
#[must_use]
pub fn explore(machine: &Machine, options: &Options) -> Exploration {
    let model = Model::new(machine.definition(), machine);
    let mut exploration = run(&model, options);
    exploration.name_obstacle(None);
    exploration
}

/// Whether something keeps the exploration from covering all behavior, whatever it finds.
pub(crate) fn cannot_be_complete(model: &Model<'_>) -> bool {
    table::table(model).is_none() && obstacle::obstacle(model).is_some()
}

pub(crate) fn run(model: &Model<'_>, options: &Options) -> Exploration {
    let mut exploration = match table::table(model) {
        Some(table) => table.explore(model, options),
        None => search::search(model, options),
    };
    exploration.explored.complete &= exploration.obstacle.is_none();
    for ((chart, taken), passed) in model.charts.iter().zip(&exploration.taken).zip(&mut exploration.passed) {
        for (t, found) in chart.transitions.iter().zip(taken) {
            let Some(found) = found else { continue };
            for state in chart.passed_by(t) {
                if let Some(place) = passed.get_mut(state as usize) {
                    place.get_or_insert_with(|| found.clone());
                }
            }
        }
    }
    exploration
}

/// Applies moves, of which the first starts the run, in the kernel. `None` if it refuses one. A
/// unique key is free until an event of the run takes it.
pub(crate) fn replay(machine: &Machine, moves: &[Arc<Move>], effort: &Effort) -> Option<Snapshot> {
    replay_with_keys(machine, moves, effort).map(|(snapshot, _)| snapshot)
}

fn replay_with_keys(machine: &Machine, moves: &[Arc<Move>], effort: &Effort) -> Option<(Snapshot, TakenKeys)> {
    let mut at: Option<Snapshot> = None;
    let mut keys = TakenKeys::default();
    for how in moves {
        let next = match (&how.kind, at) {
            (moves::MoveKind::Start { input, by }, None) => moves::start(machine, input, by.as_deref(), how.at).ok()?,
            (_, Some(snapshot)) => how.follow(machine, &snapshot, &mut keys).ok()?,
            (_, None) => return None,
        };
        effort.spend(next.fuel.saturating_add(FUEL_PER_MOVE));
        at = Some(next.snapshot);
    }
    Some((at?, keys))
}

/// Gives events that are refused because of their unique key other data, with a key that is free.
/// Without such data, the moves stay as they are.
fn with_free_keys(machine: &Machine, moves: Vec<Arc<Move>>, effort: &Effort) -> Vec<Arc<Move>> {
    if machine.unique_event().is_none() {
        return moves;
    }
    let changed = || {
        let (mut at, mut keys): (Option<Snapshot>, _) = (None, TakenKeys::default());
        let mut changed = Vec::new();
        for how in &moves {
            let (next, how) = match (&how.kind, at) {
                (moves::MoveKind::Start { input, by }, None) => {
                    (moves::start(machine, input, by.as_deref(), how.at).ok()?, how.clone())
                }
                (_, Some(snapshot)) => match how.follow(machine, &snapshot, &mut keys) {
                    Err(refused) if refused.refusal.code == Code::Taken => {
                        let other = Arc::new(how.with_free_key(machine, &keys, snapshot.seq())?);
                        (other.follow(machine, &snapshot, &mut keys).ok()?, other)
                    }
                    next => (next.ok()?, how.clone()),
                },
                (_, None) => return None,
            };
            effort.spend(next.fuel.saturating_add(FUEL_PER_MOVE));
            at = Some(next.snapshot);
            changed.push(how);
        }
        Some(changed)
    };
    changed().unwrap_or(moves)
}

/// Whether two events of the moves have the same unique key.
pub(crate) fn repeat_a_key(machine: &Machine, moves: &[Arc<Move>]) -> bool {
    let mut keys = TakenKeys::default();
    moves.iter().any(|how| {
        let taken = how.is_taken(machine, &keys);
        how.take_key(machine, &mut keys);
        taken
    })
}

impl Exploration {
    fn new(model: &Model<'_>) -> Exploration {
        let names = model.charts.iter().map(|c| ChartNames {
            machine: c.name.to_string(),
            states: c.states.iter().map(|s| s.path.to_string()).collect(),
            transitions: c.transitions.iter().map(|t| (t.name.to_string(), t.at.to_string())).collect(),
        });
        Exploration {
            explored: Explored { complete: true, ..Explored::default() },
            predecessors: PredecessorTree::default(),
            reached: model.charts.iter().map(|c| vec![None; c.states.len()]).collect(),
            passed: model.charts.iter().map(|c| vec![None; c.states.len()]).collect(),
            taken: model.charts.iter().map(|c| vec![None; c.transitions.len()]).collect(),
            forbidden: model.charts.iter().map(|c| vec![false; c.transitions.len()]).collect(),
            ends: Vec::new(),
            refused: Vec::new(),
            not_started: Vec::new(),
            missing: Vec::new(),
            verdicts: Vec::new(),
            obstacle: None,
            above: None,
            replays: Effort::new(u64::MAX),
            names: names.collect(),
        }
    }

    /// How much was explored.
    #[must_use]
    pub fn explored(&self) -> &Explored {
        &self.explored
    }

    /// Returns a shortest trace to a state, given by machine (`root` for the run's own chart) and
    /// path.
    #[must_use]
    pub fn trace_to_state(&self, machine: &str, state: &str) -> Option<Trace> {
        let chart = self.names.iter().position(|c| c.machine == machine)?;
        let number = self.names.get(chart)?.states.iter().position(|s| s == state)?;
        if let Some(node) = self.reached.get(chart)?.get(number).copied().flatten() {
            return Some(self.predecessors.trace(node));
        }
        // The state is never active between events: the same event enters and exits it.
        let (node, how) = self.passed.get(chart)?.get(number)?.as_ref()?;
        Some(self.predecessors.trace_with(*node, how))
    }

    /// Returns a shortest trace whose last event takes a transition, given by its name
    /// (`review/on/APPROVE/0`).
    #[must_use]
    pub fn trace_to_transition(&self, machine: &str, name: &str) -> Option<Trace> {
        let chart = self.names.iter().position(|c| c.machine == machine)?;
        let number = self.names.get(chart)?.transitions.iter().position(|(n, _)| n == name)?;
        let (node, how) = self.taken.get(chart)?.get(number)?.as_ref()?;
        Some(self.predecessors.trace_with(*node, how))
    }

    /// The transitions that were never taken: machine, name, pointer into the core form.
    pub fn not_taken(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.names.iter().zip(&self.taken).flat_map(|(names, taken)| {
            let open = names.transitions.iter().zip(taken).filter(|(_, t)| t.is_none());
            open.map(|((name, at), _)| (names.machine.as_str(), name.as_str(), at.as_str()))
        })
    }

    /// The transitions that were taken: machine, name, pointer into the core form.
    pub fn taken(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.names.iter().zip(&self.taken).flat_map(|(names, taken)| {
            let done = names.transitions.iter().zip(taken).filter(|(_, t)| t.is_some());
            done.map(|((name, at), _)| (names.machine.as_str(), name.as_str(), at.as_str()))
        })
    }

    /// Whether the kernel refuses a move in an explored state with this code.
    pub(crate) fn is_refused(&self, machine: &Machine, refused: &RefusedMove) -> bool {
        if matches!(refused.how.kind, moves::MoveKind::Start { .. }) {
            return false;
        }
        let before = replay_with_keys(machine, &self.predecessors.moves(refused.node), &self.replays);
        before.is_some_and(|(snapshot, mut keys)| {
            let next = refused.how.follow(machine, &snapshot, &mut keys);
            next.is_err_and(|e| e.refusal.code == refused.code)
        })
    }

    /// Computes the snapshot of an explored state by replaying its trace.
    pub(crate) fn snapshot(&self, machine: &Machine, node: u32) -> Option<Snapshot> {
        replay(machine, &self.moves(machine, node), &self.replays)
    }

    /// The moves that lead to an explored state, each with a unique key that is free if possible.
    pub(crate) fn moves(&self, machine: &Machine, node: u32) -> Vec<Arc<Move>> {
        with_free_keys(machine, self.predecessors.moves(node), &self.replays)
    }

    /// The location of findings about an explored state: the pointer of an active state of the
    /// root, and the names of all active states.
    pub(crate) fn where_is(&self, model: &Model<'_>, node: u32) -> (String, String) {
        let Some(snapshot) = self.snapshot(model.machine, node) else {
            return ("/root".into(), "one state".into());
        };
        let mut names: Vec<String> = Vec::new();
        for actor in snapshot.actors().filter(|a| a.id() == "root" || a.status() == Status::Active).take(5) {
            let name = |state: &str| match state {
                "" => "the chart without `states`".to_owned(),
                state => format!("`{state}`"),
            };
            let states: Vec<String> = actor.state().map(name).collect();
            names.push(if actor.id() == "root" {
                states.join(" and ")
            } else {
                format!("{} of actor `{}`", states.join(" and "), actor.id())
            });
        }
        let of_root = |s: &u32| model.charts.first().and_then(|c| c.states.get(*s as usize));
        let root = snapshot.actors().next().map(|a| a.configuration().1.to_vec()).unwrap_or_default();
        let leaf = root.iter().filter_map(of_root).rfind(|s| matches!(s.kind, StateKind::Atomic | StateKind::Final));
        (leaf.map_or_else(|| "/root".into(), |s| s.at.clone()), names.join(", "))
    }

    /// Whether a state was ever active, even if only while an event was processed.
    pub(crate) fn saw(&self, chart: usize, state: u32) -> bool {
        let reached = self.reached.get(chart).and_then(|c| c.get(state as usize)).is_some_and(Option::is_some);
        reached || self.passed.get(chart).and_then(|c| c.get(state as usize)).is_some_and(Option::is_some)
    }

    /// Whether an interlock has refused an event that would take a transition.
    pub(crate) fn is_forbidden(&self, chart: usize, transition: u32) -> bool {
        self.forbidden.get(chart).and_then(|c| c.get(transition as usize)) == Some(&true)
    }

    /// Notes transitions of an event that an interlock has refused.
    pub(crate) fn forbid(&mut self, taken: &[(usize, u32)]) {
        for (chart, transition) in taken {
            if let Some(place) = self.forbidden.get_mut(*chart).and_then(|c| c.get_mut(*transition as usize)) {
                *place = true;
            }
        }
    }

    /// Whether the exploration from above has proved a property.
    pub(crate) fn is_proved_above(&self, property: usize) -> bool {
        self.above.as_ref().is_some_and(|above| above.proved.get(property) == Some(&true))
    }

    /// Why the exploration from above has not proved a property, as the end of a sentence.
    pub(crate) fn stands_in_the_way(&self, property: usize, document: Option<&Document>) -> Option<String> {
        let obstacle = self.above.as_ref().and_then(|above| above.open.get(property)?.as_ref())?;
        Some(format!("not proved for all data: {}", obstacle.named(document)))
    }

    /// Records what keeps the exploration from covering all behavior; the first one is reported.
    pub(crate) fn hinder(&mut self, obstacle: Option<Obstacle>) {
        self.obstacle = self.obstacle.take().or(obstacle);
    }

    /// Adds the obstacle, with its place in the document, to what the exploration lacks.
    pub(crate) fn name_obstacle(&mut self, document: Option<&Document>) {
        let Some(obstacle) = self.obstacle.take() else { return };
        self.explored.cut.insert(0, obstacle.named(document));
    }

    pub(crate) fn cut(&mut self, why: String) {
        self.explored.complete = false;
        if !self.explored.cut.contains(&why) {
            self.explored.cut.push(why);
        }
    }
}
