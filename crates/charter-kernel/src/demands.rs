//! What a transition demands of its senders now, besides a role: the digest that an approval must
//! name, the votes that were given, who is excluded, and the conditions that depend on the data.

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::budget::Budget;
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::legal::WithoutData;
use crate::machine::{Guard, Machine, Transition, TransitionId};
use crate::principal::Principal;
use crate::scope::EvalContext;
use crate::selection::{Evaluation, active_candidates, evaluate};
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

/// What the transition that an event could take demands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Demands {
    /// The name of the transition, e.g. `review/on/APPROVE/0`.
    pub transition: String,
    /// What is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approves: Option<Approval>,
    /// The quorum, if more than one principal has to send the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<QuorumState>,
    /// The ids of principals that `not_by` excludes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_by: Vec<String>,
    /// Whether only persons may send the event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub persons_only: bool,
    /// The conditions that the data decides, one for each transition in question: one of them has
    /// to hold. Empty if there is a transition without such a condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
}

/// What an event approves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// The expression of the charter.
    pub value: String,
    /// The digest of its value, which the event has to name.
    pub digest: Digest,
}

/// The votes for a quorum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuorumState {
    /// How many different principals have to send the event, with the same data.
    pub count: u32,
    /// The roles that may vote.
    pub of: Vec<String>,
    /// The principals that have voted; one list for each data that was sent.
    pub votes: Vec<Vec<String>>,
}

impl Machine {
    /// Returns what the event `kind` to the actor `to` needs now, if `by` sends it; `None` if no
    /// transition can take it from `by`, because they have voted already, because the value to
    /// approve cannot be evaluated, or because a condition that does not depend on the data does
    /// not hold.
    ///
    /// Complements [`Machine::legal`], which lists the events.
    #[must_use]
    pub fn demands(
        &self,
        snapshot: &Snapshot,
        to: &str,
        kind: &str,
        by: &Principal,
        at: impl Into<Timestamp>,
    ) -> Option<Demands> {
        let at = at.into();
        let snapshot = snapshot.with_expired_permits(at);
        let actor = snapshot.actor(to)?;
        let data = json!({});
        let envelope = Envelope::event(snapshot.seq.saturating_add(1), kind, Json::Null, by.clone(), at);
        let ev = Ev::external(&self.events, self.events.id(kind), kind, &data);
        let budget = Budget::new(&self.definition.limits);
        let ctx = self.context_of(&snapshot, actor, &ev, &envelope, &budget);
        let held = self.held(&envelope);
        let mut found: Option<Demands> = None;
        let mut conditions = Vec::new();
        for (id, t) in active_candidates(self.chart(actor.chart()), &actor.configuration, &ev) {
            let evaluation = evaluate(&ctx, held, Some(&ev), id, t, &mut WithoutData);
            let is_open = match evaluation {
                Evaluation::Failed(_) => continue,
                Evaluation::Refused => break,
                Evaluation::Enabled | Evaluation::Vote => true,
                Evaluation::Unknown => false,
            };
            // The guard of an approval may not read the event, although the approval does.
            let guard = t.guard.as_ref().filter(|_| !is_open);
            let depends = guard.is_some_and(Guard::reads_event);
            if t.refuse.is_some() || (!depends && guard.is_some_and(|g| ctx.guard::<()>(g).0 != Ok(true))) {
                continue;
            }
            let demands = self.demands_of(&ctx, id, t);
            // What has no value cannot be approved with any digest.
            if t.approves.is_some() && demands.approves.is_none() {
                continue;
            }
            if self.has_voted(&ctx, kind, id, t, demands.approves.as_ref()) {
                continue;
            }
            let demands = found.get_or_insert(demands);
            match guard.filter(|_| depends) {
                Some(guard) => conditions.push(guard.text()),
                None => {
                    demands.conditions.clear();
                    return found;
                }
            }
        }
        found.map(|demands| Demands { conditions, ..demands })
    }

    fn demands_of<'a>(&self, ctx: &EvalContext<'a>, id: TransitionId, t: &'a Transition) -> Demands {
        let votes = ctx.actor.votes.iter().filter(|v| v.transition == id);
        let quorum = t.quorum.as_ref().filter(|q| q.count > 1);
        Demands {
            transition: t.name.to_string(),
            approves: t.approves.as_ref().and_then(|program| {
                let value = ctx.cel(program).and_then(|v| v.to_json()).ok()?;
                Some(Approval { value: program.source().to_string(), digest: Digest::of_json(&value) })
            }),
            quorum: quorum.map(|q| QuorumState {
                count: q.count,
                of: self.role_names(q.of),
                votes: votes.map(|v| v.by.iter().map(ToString::to_string).collect()).collect(),
            }),
            not_by: t.sender.as_ref().map(|rule| rule.excluded(ctx)).unwrap_or_default(),
            persons_only: t.sender.as_ref().is_some_and(|rule| rule.is_for_persons()),
            conditions: Vec::new(),
        }
    }

    /// Whether the sender has voted with the data that the event needs at least, or, if more data
    /// is needed, with any data.
    fn has_voted(
        &self,
        ctx: &EvalContext<'_>,
        kind: &str,
        id: TransitionId,
        t: &Transition,
        approves: Option<&Approval>,
    ) -> bool {
        if t.quorum.as_ref().is_none_or(|q| q.count < 2) {
            return false;
        }
        let least = match approves {
            Some(approval) => json!({"digest": approval.digest.to_string()}),
            None => json!({}),
        };
        let schema = self.events.info(self.events.id(kind)).and_then(|i| i.schema.as_ref());
        let is_enough = schema.is_none_or(|s| s.accepts(&least));
        let digest = Digest::of_json(&least);
        let same = ctx.actor.votes.iter().filter(|v| v.transition == id && (!is_enough || v.digest == digest));
        same.into_iter().any(|v| v.by.iter().any(|by| by.as_ref() == ctx.by.id))
    }
}
