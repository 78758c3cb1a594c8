//! A fast path for the most common event: one that is refused, or that only moves a run from one
//! state to another.
//!
//! It is only an optimization: [`evaluate`] decides whether a transition is enabled, and for
//! everything that is not trivial the fast path returns `None`, so that the algorithm runs.
//! Property tests compare the two.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::{Budget, Work};
use crate::candidates::Furthest;
use crate::definition::StateKind;
use crate::event::Ev;
use crate::machine::{Chart, Domain, Machine, NONE, RoleSet, StateId, StateNode, Transition, TransitionId};
use crate::observer::GuardError;
use crate::refusal::Code;
use crate::scope::EvalContext;
use crate::selection::{Evaluation, candidates, evaluate};
use crate::snapshot::{Actor, Snapshot, Status, ThinVec, Vote};
use crate::step::{Step, Taken, Verdict};
use crate::transaction::TAKEN_BYTES;

/// The effect of a trivial transition: the active states inside `domain` are exited, and the states
/// in `entered` are entered, in document order.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    domain: StateId,
    entered: Box<[StateId]>,
}

/// Returns, for each transition of a chart, its move if the transition is trivial.
pub(crate) fn moves(chart: &Chart) -> Vec<Option<Move>> {
    let single = !chart.has_always && !chart.forwards && !chart.has_parallel;
    if !single {
        return chart.transitions.iter().map(|_| None).collect();
    }
    let mut counts = NontrivialCounts(vec![0]);
    let mut sum = 0u32;
    for node in &chart.states {
        sum = sum.saturating_add(u32::from(!is_trivial_to_exit(node)));
        counts.0.push(sum);
    }
    chart.transitions.iter().map(|t| trivial_move(chart, t, &counts)).collect()
}

/// For each state, the number of nontrivial states before it in document order. A chart may have
/// 100,000 states with a transition each, so scanning all states for each transition would take
/// minutes.
struct NontrivialCounts(Vec<u32>);

impl NontrivialCounts {
    /// Whether exiting or entering a state inside this one has any other effect.
    fn any_inside(&self, chart: &Chart, domain: StateId) -> bool {
        let before = |id: StateId| self.0.get(id as usize).copied().unwrap_or(u32::MAX);
        let (first, end) = (domain.saturating_add(1), chart.state(domain).last.saturating_add(1));
        before(first) != before(end)
    }
}

/// Whether entering or exiting a state changes only the configuration.
fn is_trivial(node: &StateNode) -> bool {
    node.entry.is_empty()
        && node.exit.is_empty()
        && node.invokes.is_empty()
        && node.after.is_empty()
        && node.data.is_empty()
        && node.histories.is_empty()
        && matches!(node.kind, StateKind::Atomic | StateKind::Compound)
}

/// Whether a state is trivial to exit. A final state without exit actions is, although it is not
/// trivial to enter.
fn is_trivial_to_exit(node: &StateNode) -> bool {
    match node.kind {
        StateKind::Final => node.exit.is_empty(),
        _ => is_trivial(node),
    }
}

fn trivial_move(chart: &Chart, t: &Transition, counts: &NontrivialCounts) -> Option<Move> {
    let simple = t.block.is_empty() && t.requires.is_empty() && t.approves.is_none() && t.quorum.is_none();
    let (Domain::State(domain), [target]) = (t.domain, t.targets.as_slice()) else {
        return None;
    };
    if !simple || counts.any_inside(chart, domain) {
        return None;
    }
    let mut entered = vec![*target];
    let mut up = chart.state(*target).parent;
    while up != NONE && up != domain {
        entered.push(up);
        up = chart.state(up).parent;
    }
    entered.reverse();
    let mut down = *target;
    while chart.state(down).kind == StateKind::Compound {
        let initial = chart.state(down).initial.as_ref()?;
        let ([next], true) = (initial.targets.as_slice(), initial.block.is_empty()) else {
            return None;
        };
        // Only a direct child: a deeper initial state would skip the states between.
        if chart.state(*next).parent != down {
            return None;
        }
        entered.push(*next);
        down = *next;
    }
    (chart.state(down).kind == StateKind::Atomic).then(|| Move { domain, entered: entered.into() })
}

impl Machine {
    /// Tries the fast path for an external event; `None`: the algorithm has to run.
    ///
    /// Returns only the move; the caller builds the step ([`Machine::moved`]), because a step is
    /// large and each frame that returns it copies it.
    pub(crate) fn fast_path(
        &self,
        snapshot: &Snapshot,
        actor_ix: usize,
        ev: &Ev<'_>,
        ctx: &EvalContext<'_>,
        held: RoleSet,
    ) -> Option<Result<(TransitionId, &Move), Code>> {
        if self.only_algorithm
            || snapshot.ledger.is_some()
            || !self.interlocks.is_empty()
            || snapshot.status != Status::Active
        {
            return None;
        }
        let actor = snapshot.actors.get(actor_ix)?;
        let chart = self.chart(actor.chart());
        if chart.has_parallel {
            return None;
        }
        let atomic = *actor.configuration.last()?;
        let mut furthest = Furthest::default();
        let mut state = atomic;
        while state != NONE {
            let node = chart.state(state);
            for id in candidates(node, ev).iter().copied() {
                let t = chart.transition(id);
                // Evaluating these twice, here and in the algorithm, would cost more than it saves.
                if t.refuse.is_some() || t.approves.is_some() || t.quorum.is_some() {
                    return None;
                }
                let mut guard = GuardError::default();
                match evaluate(ctx, held, Some(ev), id, t, &mut guard) {
                    Evaluation::Enabled => {
                        let trivial = chart.moves.get(id as usize)?.as_ref()?;
                        return Some(Ok((id, trivial)));
                    }
                    // If a guard failed with an error, the algorithm runs and notes the error.
                    Evaluation::Failed(code, reached) if guard.0.is_none() => furthest.note(code, reached),
                    _ => return None,
                }
            }
            state = node.parent;
        }
        self.definition.strict.then(|| Err(furthest.code()))
    }

    /// Builds the step of a trivial transition. Unchanged parts are shared with the previous
    /// snapshot.
    #[inline(always)]
    pub(crate) fn moved(
        &self,
        before: &Snapshot,
        actor_ix: usize,
        id: TransitionId,
        trivial: &Move,
        seq: u64,
        budget: &Budget,
    ) -> Step {
        let mut taken = SmallVec::new();
        let mut moved = |old: &Actor| {
            let chart = self.chart(old.chart());
            taken = SmallVec::from_buf([Taken::by(old, id)]);
            // With a single region, the states inside the domain are at the end.
            let stay = old.configuration.partition_point(|s| !chart.inside(*s, trivial.domain));
            let kept = old.configuration.get(..stay).unwrap_or_default();
            // The same as the algorithm spends.
            let exited = old.configuration.len().saturating_sub(stay);
            budget.spend_count(exited.saturating_add(trivial.entered.len()), Work::Transitions);
            let name = chart.transition(id).name.len();
            budget.build(TAKEN_BYTES.saturating_add(name as u64), Work::Record);
            let mut configuration = SmallVec::new();
            configuration.extend_from_slice(kept);
            configuration.extend_from_slice(&trivial.entered);
            let left = |v: &&Vote| !chart.inside(chart.transition(v.transition).source, trivial.domain);
            Arc::new(Actor {
                status: old.status,
                configuration,
                history: old.history.clone(),
                context: old.context.clone(),
                output: old.output.clone(),
                invocations: match old.invocations.is_empty() {
                    true => SmallVec::new(),
                    false => old.invocations.clone(),
                },
                votes: match old.votes.is_empty() {
                    true => ThinVec::default(),
                    false => old.votes.iter().filter(left).cloned().collect(),
                },
                bound: old.bound.clone(),
            })
        };
        let actors = match &before.actors[..] {
            [one] if actor_ix == 0 => SmallVec::from_buf([moved(one)]),
            all => all
                .iter()
                .enumerate()
                .map(|(i, actor)| match i == actor_ix {
                    true => moved(actor),
                    false => actor.clone(),
                })
                .collect(),
        };
        Step {
            verdict: Verdict::Accepted,
            snapshot: Snapshot {
                run: before.run.clone(),
                seq,
                status: before.status,
                paused_at: before.paused_at,
                output: before.output.clone(),
                actors: before.actors.with(actors),
                timers: match before.timers.is_empty() {
                    true => Vec::new(),
                    false => before.timers.clone(),
                },
                ledger: before.ledger.clone(),
                held: before.held.clone(),
                counter: before.counter,
                length: before.length,
            },
            effects: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
            taken,
        }
    }
}
