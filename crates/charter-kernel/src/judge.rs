//! Is a transition enabled? Match, authority, condition, approval, requirements, quorum: in this order, and the first that fails says why.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::remove_conflicting;
use crate::event::{Ev, Origin};
use crate::machine::{Chart, NONE, Require, RoleSet, StateNode, Transition, TransitionId};
use crate::refusal::{Code, Refusal};
use crate::scope::EvalContext;
use crate::transaction::{Session, StepTransaction};

/// Transitions that will be taken, in the order of selection.
pub(crate) type Enabled = SmallVec<[TransitionId; 4]>;

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evaluation {
    Enabled,
    /// All holds, but more principals have to send it.
    Vote,
    /// All holds, and the transition says that the event is to be refused.
    Refused,
    Failed(Code),
}

/// The outcome of a selection.
pub(crate) struct Selection {
    pub(crate) enabled: Enabled,
    pub(crate) votes: SmallVec<[TransitionId; 1]>,
    /// The transition that refuses the event.
    pub(crate) refused: Option<TransitionId>,
    /// The code of the candidate that came furthest.
    pub(crate) furthest: Option<Code>,
}

/// How far a candidate came before it failed with this code.
pub(crate) fn rank(code: Code) -> u8 {
    match code {
        Code::Authority => 1,
        Code::Guard => 2,
        Code::Stale => 3,
        _ => 4,
    }
}

/// Transitions of a state that match an event, in document order.
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

/// Why a requirement of the ledger does not hold.
pub(crate) fn requirement(eyes: &EvalContext<'_>, require: &Require) -> Result<(), Code> {
    let ledger = eyes.snapshot.ledger.as_deref();
    match require {
        Require::Use { kind, key, when, .. } => {
            let key = eyes.text(key).map_err(|_| Code::PermitMissing)?;
            let entry = ledger.ok_or(Code::PermitMissing)?.usable(*kind, &key)?;
            match when {
                Some(when) => match (EvalContext { entry: Some(entry), ..*eyes }).holds(when) {
                    Ok(true) => Ok(()),
                    Ok(false) | Err(_) => Err(Code::PermitScope),
                },
                None => Ok(()),
            }
        }
        Require::Open { kind, key, .. } => {
            let key = eyes.text(key).map_err(|_| Code::ObligationMissing)?;
            let open = ledger.and_then(|l| l.get(*kind, &key)).is_some_and(|e| e.is_open());
            if open { Ok(()) } else { Err(Code::ObligationMissing) }
        }
        Require::None { kind, .. } => {
            let open = ledger.is_some_and(|l| l.open_keys(*kind).next().is_some());
            if open { Err(Code::ObligationOpen) } else { Ok(()) }
        }
    }
}

/// Does `event.digest` name what is to be approved?
pub(crate) fn approves(eyes: &EvalContext<'_>, t: &Transition) -> bool {
    let Some(program) = &t.approves else {
        return true;
    };
    let Ok(value) = eyes.cel(program).and_then(|v| v.to_json()) else {
        return false;
    };
    let named = eyes.event.and_then(|e| e.data().get("digest")).and_then(serde_json::Value::as_str);
    named.and_then(crate::digest::Digest::parse) == Some(crate::digest::Digest::of_json(&value))
}

/// The roles that count for an event: the sender's, or the system's for what the run and its host do themselves.
pub(crate) fn roles_for(held: RoleSet, ev: Option<&Ev<'_>>) -> RoleSet {
    if ev.is_some_and(|e| e.origin == Origin::External) { held } else { RoleSet::SYSTEM }
}

impl StepTransaction<'_> {
    /// Judges one candidate. A condition that fails to evaluate does not hold; the failure is noted, and in a lenient machine it is also
    /// an `error.execution` (SCXML 5.9.1).
    pub(crate) fn judge(
        &mut self,
        actor_ix: usize,
        t: TransitionId,
        ev: Option<&Ev<'_>>,
        sender: Option<&Ev<'_>>,
        session: &mut Session,
    ) -> Evaluation {
        let chart = self.chart(actor_ix);
        let transition = chart.transition(t);
        if !transition.by.admits(roles_for(self.held, sender)) {
            return Evaluation::Failed(Code::Authority);
        }
        let eyes = self.eyes(actor_ix, ev, &[]);
        if let Some(guard) = &transition.guard {
            match eyes.guard(guard) {
                Ok(true) => {}
                Ok(false) => return Evaluation::Failed(Code::Guard),
                Err(e) => {
                    if !self.m.definition.strict {
                        let fault = self.fault_event(e.clone().into());
                        session.internal.push_back(fault);
                    }
                    self.note(
                        actor_ix,
                        Some(transition.at.clone()),
                        format!("the condition could not be evaluated: {e}"),
                    );
                    return Evaluation::Failed(Code::Guard);
                }
            }
        }
        if transition.approves.is_some() && !approves(&eyes, transition) {
            return Evaluation::Failed(Code::Stale);
        }
        for require in &transition.requires {
            if let Err(code) = requirement(&eyes, require) {
                return Evaluation::Failed(code);
            }
        }
        match &transition.quorum {
            Some(quorum) => self.quorum(actor_ix, t, quorum, sender),
            None if transition.refuse.is_some() => Evaluation::Refused,
            None => Evaluation::Enabled,
        }
    }

    /// The refusal that a transition demands, with its sentence as it reads now.
    pub(crate) fn refusal_of(&self, actor_ix: usize, t: TransitionId, ev: Option<&Ev<'_>>) -> Refusal {
        let transition = self.chart(actor_ix).transition(t);
        let Some(rule) = transition.refuse else {
            return Code::Rule.into();
        };
        let eyes = self.eyes(actor_ix, ev, &[]);
        let name = self.m.rule_name(rule).to_string();
        Refusal::with(Code::Rule, Some(name), self.m.sentence(rule, &eyes))
    }

    fn quorum(
        &self,
        actor_ix: usize,
        t: TransitionId,
        quorum: &crate::machine::Quorum,
        sender: Option<&Ev<'_>>,
    ) -> Evaluation {
        let Some(ev) = sender.filter(|e| e.origin == Origin::External) else {
            return Evaluation::Failed(Code::Authority);
        };
        if !quorum.of.admits(self.held) {
            return Evaluation::Failed(Code::Authority);
        }
        if quorum.count <= 1 {
            return Evaluation::Enabled;
        }
        let digest = crate::digest::Digest::of_json(ev.data());
        let vote = self.actor(actor_ix).votes.iter().find(|v| v.transition == t && v.digest == digest);
        let Some(vote) = vote else {
            return Evaluation::Vote;
        };
        if vote.by.iter().any(|id| id.as_ref() == self.by.id) {
            // The same principal again is not a second pair of eyes.
            return Evaluation::Failed(Code::Authority);
        }
        let count = u32::try_from(vote.by.len()).unwrap_or(u32::MAX).saturating_add(1);
        if count >= quorum.count { Evaluation::Enabled } else { Evaluation::Vote }
    }

    /// Appendix D, `selectTransitions`: for each active atomic state, in document order, the first transition that is enabled in it or in
    /// its ancestors.
    pub(crate) fn select_judged(&mut self, actor_ix: usize, ev: &Ev<'_>, session: &mut Session) -> Selection {
        let chart = self.chart(actor_ix);
        let mut out = Selection { enabled: Enabled::new(), votes: SmallVec::new(), refused: None, furthest: None };
        // Two regions may share an ancestor: each candidate is judged once.
        let mut judged: SmallVec<[(TransitionId, Evaluation); 4]> = SmallVec::new();
        let count = self.actor(actor_ix).configuration.len();
        for place in 0..count {
            let Some(atomic) = self.actor(actor_ix).configuration.get(place).copied() else {
                break;
            };
            if !chart.state(atomic).is_atomic() {
                continue;
            }
            let mut state = atomic;
            'up: while state != NONE {
                let node = chart.state(state);
                for t in candidates(node, ev).iter().copied() {
                    let known = judged.iter().find(|(k, _)| *k == t).map(|(_, j)| *j);
                    let verdict = known.unwrap_or_else(|| self.judge(actor_ix, t, Some(ev), Some(ev), session));
                    if known.is_none() {
                        judged.push((t, verdict));
                    }
                    match verdict {
                        Evaluation::Enabled => {
                            if !out.enabled.contains(&t) {
                                out.enabled.push(t);
                            }
                            break 'up;
                        }
                        Evaluation::Vote => {
                            if !out.votes.contains(&t) {
                                out.votes.push(t);
                            }
                            break 'up;
                        }
                        Evaluation::Refused => {
                            out.refused = Some(t);
                            return out;
                        }
                        // That something is not forbidden is no reason to refuse it.
                        Evaluation::Failed(_) if chart.transition(t).refuse.is_some() => {}
                        Evaluation::Failed(code) => {
                            if out.furthest.is_none_or(|f| rank(code) > rank(f)) {
                                out.furthest = Some(code);
                            }
                        }
                    }
                }
                state = node.parent;
            }
        }
        out.enabled = remove_conflicting(chart, self.actor(actor_ix), out.enabled);
        out
    }

    /// A transition is taken: each permit it needs loses one use. Another transition of the same step may have taken the last one.
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
            let key: Arc<str> = match self.eyes(actor_ix, ev, &[]).text(key) {
                Ok(key) => key,
                Err(_) => return Err(Code::PermitMissing.into()),
            };
            self.ledger_mut().count_use(*kind, &key).map_err(|code| {
                Refusal::with(code, Some(transition.name.to_string()), format!("the permit `{key}` has no use left"))
            })?;
        }
        Ok(())
    }
}

/// Paths of the states that a transition is a candidate in: for reports.
pub(crate) fn active_candidates<'c>(
    chart: &'c Chart,
    configuration: &[u32],
    ev: &Ev<'_>,
) -> Vec<(TransitionId, &'c Transition)> {
    let mut out: Vec<(TransitionId, &Transition)> = Vec::new();
    for atomic in configuration.iter().filter(|s| chart.state(**s).is_atomic()) {
        let mut state = *atomic;
        while state != NONE {
            for t in candidates(chart.state(state), ev).iter().copied() {
                if !out.iter().any(|(k, _)| *k == t) {
                    out.push((t, chart.transition(t)));
                }
            }
            state = chart.state(state).parent;
        }
    }
    out
}
