//! Selects transitions (SCXML appendix D, `selectTransitions`) and decides whether one is enabled.
//!
//! [`evaluate`] is the only function that decides this. The algorithm, the fast path, `legal` and
//! `explain` call it with an [`Observer`] that collects what they need.

use std::borrow::Cow;
use std::sync::Arc;

use charter_expr::Program;
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::algorithm::remove_conflicting;
use crate::budget::Work;
use crate::candidates::{Furthest, Known, Reached};
use crate::digest::Digest;
use crate::event::{Ev, Origin};
use crate::machine::{Chart, NONE, Quorum, Require, RoleSet, StateNode, Transition, TransitionId};
use crate::observer::{GuardError, Observer, Unmet};
use crate::refusal::{Cause, Code, Detail, Refusal};
use crate::scope::EvalContext;
use crate::step::NoteKind;
use crate::transaction::{Session, StepTransaction};
use crate::unknown::vote_of_anybody;

/// Transitions that will be taken, in the order of selection.
pub(crate) type Enabled = SmallVec<[TransitionId; 4]>;

/// The result of evaluating a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evaluation {
    Enabled,
    /// All checks pass, but more principals have to send the event.
    Vote,
    /// All checks pass, and the transition refuses the event.
    Refused,
    /// A check failed, after the sender had come this far.
    Failed(Code, Reached),
    /// The result depends on the event's data, which the observer does not have.
    Unknown,
}

/// The result of a selection.
pub(crate) struct Selection {
    pub(crate) enabled: Enabled,
    pub(crate) votes: SmallVec<[TransitionId; 1]>,
    /// The transition that refuses the event.
    pub(crate) refused: Option<TransitionId>,
    pub(crate) furthest: Furthest,
}

/// Decides whether a transition is enabled. Checks roles, the sender, guard, approval, requirements
/// and quorum, in this order; the first check that fails decides.
///
/// `sender` is the event to select transitions for; `None` for eventless transitions.
#[inline]
pub(crate) fn evaluate<'a, O: Observer<'a>>(
    ctx: &EvalContext<'a>,
    held: RoleSet,
    sender: Option<&Ev<'_>>,
    id: TransitionId,
    t: &'a Transition,
    observer: &mut O,
) -> Evaluation {
    ctx.budget.spend(1, Work::Transitions);
    if !t.by.admits(roles_for(held, sender)) {
        observer.unmet(ctx, t, Unmet::Roles);
        return Evaluation::Failed(Code::Authority, without_sender::<O>(ctx, t, false));
    }
    // A sender without the roles of a quorum is refused for that reason, by the last check.
    if let Some(rule) = &t.sender
        && t.quorum.as_ref().is_none_or(|quorum| quorum.of.admits(held))
        && let Some(why) = rule.refuses(ctx, O::HAS_DATA)
    {
        observer.unmet(ctx, t, Unmet::Sender(rule, why));
        return Evaluation::Failed(Code::Authority, without_sender::<O>(ctx, t, true));
    }
    let unknown = !O::HAS_DATA && t.reads_event;
    if !unknown {
        if let Some(guard) = &t.guard {
            let (holds, leaf) = ctx.guard::<O>(guard);
            if holds != Ok(true) {
                observer.unmet(ctx, t, Unmet::Guard { leaf, error: holds.err() });
                return Evaluation::Failed(Code::Guard, Reached::Condition);
            }
        }
        if let Some(program) = &t.approves
            && !approves(ctx, program)
        {
            observer.unmet(ctx, t, Unmet::Approval);
            return Evaluation::Failed(Code::Stale, Reached::Approval);
        }
        for require in &t.requires {
            if let Err(code) = require.holds(ctx) {
                observer.unmet(ctx, t, Unmet::Requirement(require, code));
                return Evaluation::Failed(code, Reached::Requirement);
            }
        }
    }
    let result = match &t.quorum {
        Some(quorum) => vote(ctx, held, sender, id, t, quorum, observer),
        None if t.refuse.is_some() => Evaluation::Refused,
        None => Evaluation::Enabled,
    };
    match result {
        Evaluation::Enabled | Evaluation::Vote | Evaluation::Refused if unknown => Evaluation::Unknown,
        result => result,
    }
}

/// Returns how far a candidate came that its sender may not take. A condition that holds shows that
/// the event was meant for it. Without a condition, what `may_not` tells decides: whether the rule
/// forbids it to a sender who has the roles. (People of other roles have ways of their own.)
fn without_sender<'a, O: Observer<'a>>(ctx: &EvalContext<'a>, t: &'a Transition, may_not: bool) -> Reached {
    // An analysis of unknown values does not ask why an event is refused.
    let is_known = (O::HAS_DATA || !t.reads_event) && ctx.budget.unknowns().is_none();
    let holds = |guard| is_known && ctx.guard::<()>(guard).0 == Ok(true);
    match t.guard.as_ref().map_or(may_not, holds) {
        true => Reached::OnlySender,
        false => Reached::Sender,
    }
}

/// Returns the roles that count for an event: the sender's, or the system's for events of the run
/// itself and of its host.
fn roles_for(held: RoleSet, ev: Option<&Ev<'_>>) -> RoleSet {
    if ev.is_some_and(|e| e.origin == Origin::External) { held } else { RoleSet::SYSTEM }
}

/// Whether `event.digest` is the digest of the value that is to be approved.
fn approves<'a>(ctx: &EvalContext<'a>, program: &'a Program) -> bool {
    let Ok(value) = ctx.cel(program).and_then(|v| ctx.budget.json(&v)) else {
        return false;
    };
    if !ctx.budget.hash(&value) {
        return false;
    }
    if let Some(unknowns) = ctx.budget.unknowns() {
        return ctx.event.is_some_and(|e| unknowns.approves(&value, e.data()));
    }
    let named = ctx.event.and_then(|e| e.data().get("digest")).and_then(Json::as_str);
    named.and_then(Digest::parse) == Some(Digest::of_json(&value))
}

impl Transition {
    /// Returns the digest of what an event votes for: of its data, in which the digest of an
    /// approval has one spelling.
    pub(crate) fn ballot(&self, data: &Json) -> Digest {
        let spelled = self.approves.as_ref().and_then(|_| data.get("digest")?.as_str());
        let plain = spelled.and_then(Digest::parse).map(|digest| digest.to_string());
        match (plain.filter(|plain| spelled != Some(plain)), data) {
            (Some(plain), Json::Object(data)) => {
                let mut data = data.clone();
                data.insert("digest".to_owned(), plain.into());
                Digest::of_json(&Json::Object(data))
            }
            _ => Digest::of_json(data),
        }
    }
}

fn vote<'a, O: Observer<'a>>(
    ctx: &EvalContext<'a>,
    held: RoleSet,
    sender: Option<&Ev<'_>>,
    id: TransitionId,
    t: &'a Transition,
    quorum: &Quorum,
    observer: &mut O,
) -> Evaluation {
    let sender = sender.filter(|e| e.origin == Origin::External && quorum.of.admits(held));
    let Some(ev) = sender else {
        observer.unmet(ctx, t, Unmet::QuorumRoles);
        return Evaluation::Failed(Code::Authority, Reached::Quorum);
    };
    if quorum.count <= 1 {
        return Evaluation::Enabled;
    }
    if let Some(unknowns) = ctx.budget.unknowns() {
        return vote_of_anybody(ctx, id, quorum, unknowns);
    }
    if !ctx.budget.hash(ev.data()) {
        return Evaluation::Failed(Code::Authority, Reached::Quorum);
    }
    let digest = t.ballot(ev.data());
    ctx.budget.scan(ctx.actor.votes.len());
    let Some(vote) = ctx.actor.votes.iter().find(|v| v.transition == id && v.digest == digest) else {
        return Evaluation::Vote;
    };
    // A principal counts once toward a quorum.
    if vote.by.iter().any(|id| id.as_ref() == ctx.by.id) {
        observer.unmet(ctx, t, Unmet::Voted);
        return Evaluation::Failed(Code::Authority, Reached::Quorum);
    }
    let count = u32::try_from(vote.by.len()).unwrap_or(u32::MAX).saturating_add(1);
    if count >= quorum.count { Evaluation::Enabled } else { Evaluation::Vote }
}

/// Returns the transitions of a state that match an event, in document order.
pub(crate) fn candidates<'c>(node: &'c StateNode, ev: &Ev<'_>) -> Cow<'c, [TransitionId]> {
    if ev.is_known()
        && let Ok(at) = node.exact.binary_search_by_key(&ev.id, |(id, _)| *id)
    {
        let list = node.exact.get(at).map(|(_, list)| list.as_ref());
        return Cow::Borrowed(list.unwrap_or_default());
    }
    let mut out = Vec::new();
    for (pattern, t) in &node.patterns {
        if pattern.matches(ev.name()) && out.last() != Some(t) {
            out.push(*t);
        }
    }
    out.into()
}

/// Returns the candidates for an event in each active atomic state, innermost state first; for
/// reports.
pub(crate) fn region_candidates<'c>(
    chart: &'c Chart,
    configuration: &[u32],
    ev: &Ev<'_>,
) -> Vec<Vec<(TransitionId, &'c Transition)>> {
    let atomic = configuration.iter().copied().filter(|s| chart.state(*s).is_atomic());
    let in_region = |mut state: u32| {
        let mut out = Vec::new();
        while state != NONE {
            out.extend(candidates(chart.state(state), ev).iter().map(|t| (*t, chart.transition(*t))));
            state = chart.state(state).parent;
        }
        out
    };
    atomic.map(in_region).collect()
}

impl StepTransaction<'_> {
    /// Evaluates one candidate. A guard that cannot be evaluated does not hold; the error is noted,
    /// and in a lenient machine it is raised as `error.execution` (SCXML 5.9.1).
    pub(crate) fn evaluate(
        &mut self,
        actor_ix: usize,
        id: TransitionId,
        ev: Option<&Ev<'_>>,
        sender: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Evaluation {
        let transition = self.chart(actor_ix).transition(id);
        let mut guard = GuardError::default();
        let ctx = self.context(actor_ix, ev, &[]);
        let result = evaluate(&ctx, self.held, sender, id, transition, &mut guard);
        if let Some(e) = guard.0 {
            self.note(actor_ix, Some(transition.at.clone()), NoteKind::Guard((&e).into()));
            if !self.m.definition.strict {
                // Noted above.
                let fault = self.fault_event(e.into());
                session.internal.push_back(fault);
            }
        }
        result
    }

    /// Builds the refusal of a transition with `refuse`, with the values that the rule's message
    /// depends on.
    pub(crate) fn refusal_of(&self, actor_ix: usize, t: TransitionId, ev: Option<&Ev<'_>>) -> Refusal {
        let Some(rule) = self.chart(actor_ix).transition(t).refuse else {
            return Code::Rule.into();
        };
        let ctx = self.context(actor_ix, ev, &[]);
        let detail = Detail {
            rule: Some(self.m.rule_name(rule).into()),
            read: self.m.rule_reads(rule, &ctx),
            ..Detail::default()
        };
        Refusal::with(Code::Rule, detail)
    }

    /// Appendix D, `selectTransitions`: for each active atomic state, in document order, the first
    /// transition that is enabled in it or in its ancestors.
    pub(crate) fn select_transitions(&mut self, actor_ix: usize, ev: &Ev<'_>, session: &mut Session) -> Selection {
        let chart = self.chart(actor_ix);
        let mut out =
            Selection { enabled: Enabled::new(), votes: SmallVec::new(), refused: None, furthest: Furthest::default() };
        // Two regions may share an ancestor: each candidate is evaluated once.
        let mut evaluated = Known::default();
        let count = self.actor(actor_ix).configuration.len();
        self.budget.scan(count);
        let mut climbed = 0usize;
        for place in 0..count {
            let Some(atomic) = self.actor(actor_ix).configuration.get(place).copied() else {
                break;
            };
            if !chart.state(atomic).is_atomic() {
                continue;
            }
            climbed = self.budget.scan_some(climbed);
            if self.budget.is_over() {
                break;
            }
            let mut state = atomic;
            'up: while state != NONE {
                let node = chart.state(state);
                let candidates = candidates(node, ev);
                let patterns = if matches!(candidates, Cow::Owned(_)) { node.patterns.len() } else { 0 };
                // Finding its candidates takes as long as looking at two states.
                climbed = climbed.saturating_add(2).saturating_add(patterns);
                for t in candidates.iter().copied() {
                    if self.budget.is_over() {
                        break 'up;
                    }
                    let known = evaluated.get(t);
                    let evaluation = known.unwrap_or_else(|| self.evaluate(actor_ix, t, Some(ev), Some(ev), session));
                    if known.is_none() {
                        evaluated.insert(t, evaluation);
                    }
                    match evaluation {
                        Evaluation::Enabled => {
                            if known.is_none() {
                                out.enabled.push(t);
                            }
                            break 'up;
                        }
                        Evaluation::Vote => {
                            if known.is_none() {
                                out.votes.push(t);
                            }
                            break 'up;
                        }
                        Evaluation::Refused => {
                            out.refused = Some(t);
                            return out;
                        }
                        // A `refuse` transition that does not apply is not a reason to refuse the
                        // event.
                        Evaluation::Failed(..) if chart.transition(t).refuse.is_some() => {}
                        Evaluation::Failed(code, reached) => out.furthest.note(code, reached),
                        Evaluation::Unknown => {}
                    }
                }
                state = node.parent;
            }
        }
        out.enabled = remove_conflicting(chart, self.actor(actor_ix), out.enabled, self.budget);
        out
    }

    /// Consumes one use of each permit that a transition needs. Another transition of the same step
    /// may have consumed the last use.
    pub(crate) fn count_uses(
        &mut self,
        actor_ix: usize,
        transition: &Transition,
        ev: Option<&Ev<'_>>,
    ) -> Result<(), Refusal> {
        for require in &transition.requires {
            let Require::Use { kind, key, .. } = require else {
                continue;
            };
            if let Some(unknowns) = self.budget.unknowns() {
                // Another transition of the same step may have used the permit up.
                match unknowns.choose(2) {
                    0 => continue,
                    _ => return Err(Code::PermitMissing.into()),
                }
            }
            let key: Arc<str> = match self.context(actor_ix, ev, &[]).text(key) {
                Ok(key) => key,
                Err(_) => return Err(Code::PermitMissing.into()),
            };
            self.ledger_mut().count_use(*kind, &key).map_err(|code| {
                let kind = self.m.ledger_name(*kind).to_string();
                Refusal::because(code, Cause::Permit { kind, key: key.to_string() })
            })?;
        }
        Ok(())
    }
}
