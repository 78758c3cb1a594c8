//! The functions of the algorithm without side effects: `computeEntrySet`, `getTransitionDomain`,
//! `removeConflictingTransitions`, `isInFinalState`.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::budget::{Budget, Work};
use crate::definition::StateKind;
use crate::machine::{Chart, Domain, NONE, StateId, TransitionId};
use crate::refusal::Refusal;
use crate::selection::Enabled;
use crate::snapshot::Actor;

/// States in document order.
pub(super) type StateSet = SmallVec<[StateId; 6]>;

/// What it costs to move the states after a place in a list, as many looked at: memory moves 16
/// times as fast as a list is searched.
pub(super) fn moved(len: usize, place: usize) -> usize {
    len.saturating_sub(place) / 16
}

/// The states that a microstep enters (appendix D, `computeEntrySet`).
#[derive(Default)]
pub(crate) struct EntrySet {
    pub(super) states: StateSet,
    /// States entered by default, whose `initial` content runs, in document order.
    pub(super) defaults: SmallVec<[StateId; 4]>,
    /// History states whose default content runs, with their parents.
    pub(super) histories: SmallVec<[(StateId, StateId); 1]>,
    /// Parallel states whose regions were added.
    complete: StateSet,
    /// The states that were looked at and moved, for [`Budget::scan`].
    work: usize,
}

impl EntrySet {
    pub(super) fn insert(&mut self, state: StateId) {
        if let Err(place) = self.states.binary_search(&state) {
            self.work = self.work.saturating_add(moved(self.states.len(), place));
            self.states.insert(place, state);
        }
    }

    /// Charges what it took to build the set so far.
    pub(super) fn charge(&mut self, budget: &Budget) -> Result<(), Refusal> {
        budget.scan(std::mem::take(&mut self.work));
        budget.check()
    }

    /// Whether the state or a descendant is in the set.
    fn touches(&self, chart: &Chart, state: StateId) -> bool {
        let from = self.states.partition_point(|s| *s < state);
        self.states.get(from).is_some_and(|s| *s <= chart.state(state).last)
    }
}

pub(super) fn add_entry_set(
    chart: &Chart,
    actor: &Actor,
    t: TransitionId,
    domain: Option<StateId>,
    entry: &mut EntrySet,
) {
    let transition = chart.transition(t);
    let Some(domain) = domain else { return };
    for target in &transition.targets {
        add_descendants(chart, actor, *target, entry);
    }
    for target in effective_targets(chart, actor, &transition.targets) {
        add_ancestors(chart, actor, target, domain, entry);
    }
}

/// Appendix D, `addDescendantStatesToEnter`. The recursion is bounded because `compile` limits the
/// nesting of states.
pub(super) fn add_descendants(chart: &Chart, actor: &Actor, state: StateId, entry: &mut EntrySet) {
    let node = chart.state(state);
    match node.kind {
        StateKind::Shallow | StateKind::Deep => {
            if let Some(stored) = stored(actor, state) {
                for s in stored {
                    add_descendants(chart, actor, *s, entry);
                }
                for s in stored {
                    add_ancestors(chart, actor, *s, node.parent, entry);
                }
            } else if let Some(initial) = &node.initial {
                entry.histories.push((node.parent, state));
                for t in &initial.targets {
                    add_descendants(chart, actor, *t, entry);
                }
                for t in effective_targets(chart, actor, &initial.targets) {
                    add_ancestors(chart, actor, t, node.parent, entry);
                }
            }
        }
        StateKind::Compound => {
            entry.insert(state);
            if let Some(initial) = &node.initial {
                if let Err(place) = entry.defaults.binary_search(&state) {
                    entry.defaults.insert(place, state);
                }
                for t in &initial.targets {
                    add_descendants(chart, actor, *t, entry);
                }
                for t in effective_targets(chart, actor, &initial.targets) {
                    add_ancestors(chart, actor, t, state, entry);
                }
            }
        }
        StateKind::Parallel => {
            entry.insert(state);
            for child in &node.children {
                if !entry.touches(chart, *child) {
                    add_descendants(chart, actor, *child, entry);
                }
            }
        }
        StateKind::Atomic | StateKind::Final => entry.insert(state),
    }
}

/// Appendix D, `addAncestorStatesToEnter`, except that it also stops at an active state: ancestors
/// that a history state adds may not have been exited (REC 3.10: as if the stored states were the
/// targets), and an active state is not entered again.
fn add_ancestors(chart: &Chart, actor: &Actor, state: StateId, until: StateId, entry: &mut EntrySet) {
    let mut up = chart.state(state).parent;
    while up != NONE {
        let node = chart.state(up);
        entry.work = entry.work.saturating_add(1);
        let stays = up == until || actor.is_active(up);
        if !stays {
            entry.insert(up);
        }
        if node.kind == StateKind::Parallel
            && let Err(place) = entry.complete.binary_search(&up)
        {
            entry.complete.insert(place, up);
            entry.work = entry.work.saturating_add(node.children.len());
            for child in &node.children {
                // If the parallel state stays active, enter only the regions that were exited.
                let left = !stays || !actor.is_active(*child);
                if left && !entry.touches(chart, *child) {
                    add_descendants(chart, actor, *child, entry);
                }
            }
        }
        if stays {
            break;
        }
        up = node.parent;
    }
}

pub(super) fn stored(actor: &Actor, history: StateId) -> Option<&[StateId]> {
    let at = actor.history.binary_search_by_key(&history, |(h, _)| *h).ok()?;
    actor.history.get(at).map(|(_, states)| states.as_slice())
}

/// Appendix D, `getEffectiveTargetStates`: replaces history targets with the stored states or the
/// defaults.
fn effective_targets(chart: &Chart, actor: &Actor, targets: &[StateId]) -> StateSet {
    /// As many states are searched one after the other.
    const FEW: usize = 32;
    let mut out = StateSet::new();
    let mut known: FxHashSet<StateId> = FxHashSet::default();
    let mut seen = 0usize;
    let mut stack: SmallVec<[StateId; 4]> = targets.iter().rev().copied().collect();
    while let Some(t) = stack.pop() {
        let node = chart.state(t);
        if !node.is_history() {
            if out.len() > FEW && known.is_empty() {
                known.extend(out.iter().copied());
            }
            let is_new = if out.len() > FEW { known.insert(t) } else { !out.contains(&t) };
            if is_new {
                out.push(t);
            }
        } else if let Some(stored) = stored(actor, t) {
            out.extend(stored.iter().copied());
            known.clear();
        } else if let Some(initial) = &node.initial {
            // Guards against history states that are each other's defaults.
            seen = seen.saturating_add(1);
            if seen <= chart.states.len() {
                stack.extend(initial.targets.iter().rev().copied());
            }
        }
    }
    out
}

/// Appendix D, `getTransitionDomain`.
pub(super) fn domain(chart: &Chart, actor: &Actor, t: TransitionId) -> Option<StateId> {
    let transition = chart.transition(t);
    match transition.domain {
        Domain::Targetless => None,
        Domain::State(state) => Some(state),
        Domain::Dynamic => {
            let targets = effective_targets(chart, actor, &transition.targets);
            if targets.is_empty() {
                return None;
            }
            let source = transition.source;
            let can = |state: StateId| {
                let kind = chart.state(state).kind;
                kind == StateKind::Compound || (transition.parallel_domain && kind == StateKind::Parallel)
            };
            let compound = source == 0 || can(source);
            if transition.internal && compound && targets.iter().all(|t| chart.inside(*t, source)) {
                return Some(source);
            }
            let mut up = chart.state(source).parent;
            while up != NONE && up != 0 {
                if can(up) && targets.iter().all(|t| chart.inside(*t, up)) {
                    return Some(up);
                }
                up = chart.state(up).parent;
            }
            Some(0)
        }
    }
}

/// Appendix D, `removeConflictingTransitions`: of two transitions whose exit sets intersect, the
/// one with the inner source wins, else the one selected first.
pub(crate) fn remove_conflicting(chart: &Chart, actor: &Actor, enabled: Enabled, budget: &Budget) -> Enabled {
    if enabled.len() < 2 {
        return enabled;
    }
    let mut work = 0usize;
    // Domains are intervals of states, nested or disjoint. Exit sets intersect if one domain is
    // inside the other (or both are the same) and a state inside the inner one is active.
    let is_active_inside = |domain: StateId| {
        let first = actor.configuration.partition_point(|s| *s <= domain);
        actor.configuration.get(first).is_some_and(|s| chart.inside(*s, domain))
    };
    let mut kept: SmallVec<[Option<TransitionId>; 4]> = SmallVec::new();
    // The domains of those kept, in document order, each with its place in `kept`.
    let mut domains: SmallVec<[(StateId, usize); 4]> = SmallVec::new();
    for t in enabled {
        budget.scan(std::mem::take(&mut work));
        if budget.is_over() {
            break;
        }
        let source = chart.transition(t).source;
        let Some(mine) = domain(chart, actor, t) else {
            kept.push(Some(t));
            continue;
        };
        let mut conflicts: SmallVec<[usize; 4]> = SmallVec::new();
        let mut note = |of: StateId, to: StateId, inner: Option<StateId>| {
            let first = domains.partition_point(|(d, _)| *d < of);
            let found = domains.get(first..).unwrap_or_default().iter().take_while(|(d, _)| *d <= to);
            conflicts.extend(found.filter(|(d, _)| is_active_inside(inner.unwrap_or(*d))).map(|(_, place)| *place));
        };
        note(mine, chart.state(mine).last, None);
        let mut up = chart.state(mine).parent;
        while up != NONE {
            note(up, up, Some(mine));
            up = chart.state(up).parent;
            work = work.saturating_add(1);
        }
        work = work.saturating_add(conflicts.len());
        let is_inner = |place: &usize| {
            let other = kept.get(*place).copied().flatten();
            other.is_none_or(|other| chart.inside(source, chart.transition(other).source))
        };
        if !conflicts.iter().all(is_inner) {
            continue;
        }
        for place in conflicts {
            if let Some(evicted) = kept.get_mut(place) {
                *evicted = None;
            }
            work = work.saturating_add(domains.len());
            domains.retain(|(_, p)| *p != place);
        }
        let place = domains.partition_point(|(d, _)| *d <= mine);
        domains.insert(place, (mine, kept.len()));
        kept.push(Some(t));
    }
    kept.into_iter().flatten().collect()
}

/// Appendix D, `isInFinalState`.
pub(super) fn is_in_final_state(chart: &Chart, actor: &Actor, state: StateId, budget: &Budget) -> bool {
    let node = chart.state(state);
    budget.spend(1, Work::Transitions);
    match node.kind {
        StateKind::Compound => {
            budget.scan(node.children.len());
            node.children.iter().any(|c| chart.state(*c).kind == StateKind::Final && actor.is_active(*c))
        }
        // From the last region on: when regions end one after the other, it is the last to end.
        StateKind::Parallel => node.children.iter().rev().all(|c| is_in_final_state(chart, actor, *c, budget)),
        StateKind::Final => actor.is_active(state),
        _ => false,
    }
}
