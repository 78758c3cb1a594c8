//! What a transition demands of its senders now, besides a role: the digest that an approval must
//! name, the votes that were given, who is excluded, and the conditions that depend on the data.

use serde::Serialize;
use serde_json::json;

use crate::budget::Budget;
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::machine::{Machine, Transition, TransitionId, reads_event};
use crate::principal::Principal;
use crate::scope::EvalContext;
use crate::snapshot::{Snapshot, Vote};
use crate::time::Timestamp;
use crate::ways::{Ways, all_of};

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
    /// to hold. Each names also what `refuse` refuses. Empty if any data is taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// The transitions that the event takes from others, but not from this sender: those before it,
    /// and those of other regions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
    /// The other transitions with a quorum for which the same event is a vote: in other regions, or
    /// if the data decides for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<OtherQuorum>,
}

/// The quorum of another transition that the same event may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherQuorum {
    /// The name of the transition, e.g. `review/on/APPROVE/1`.
    pub transition: String,
    /// The condition on the data, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The votes for it.
    pub quorum: QuorumState,
}

/// A transition that a sender may not take, although a condition on the data may choose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// The name of the transition, e.g. `review/on/APPROVE/0`.
    pub transition: String,
    /// Why not.
    pub why: WithheldBy,
}

/// Why a sender may not take a transition, although it has the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WithheldBy {
    /// `not_by` excludes it.
    NotBy,
    /// It is not a person.
    PersonsOnly,
    /// It was not authenticated.
    AuthenticatedOnly,
    /// It has voted already.
    Voted,
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
    /// The digest of the data of each of these lists.
    pub data: Vec<Digest>,
}

impl QuorumState {
    /// Leaves out the votes for some data, of which the digest is known.
    pub fn leave_out(&mut self, unwanted: impl Fn(Digest) -> bool) {
        let votes = std::mem::take(&mut self.votes).into_iter().zip(std::mem::take(&mut self.data));
        (self.votes, self.data) = votes.filter(|(_, data)| !unwanted(*data)).unzip();
    }
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
        let envelope = Envelope::event(snapshot.seq.saturating_add(1), kind, data.clone(), by.clone(), at);
        let ev = Ev::external(&self.events, self.events.id(kind), kind, &data);
        let budget = Budget::new(&self.definition.limits);
        let ctx = self.context_of(&snapshot, actor, &ev, &envelope, &budget);
        let Ways { found, is_open, mut conditions, refusals, withheld, also, .. } =
            self.ways(&ctx, actor, (kind, self.held(&envelope), &ev));
        if is_open {
            conditions.clear();
        }
        let conditions = match all_of(refusals.into_iter()) {
            None => conditions,
            Some(unless) if conditions.is_empty() => vec![unless],
            Some(unless) => {
                let both = |condition| all_of([condition, unless.clone()].into_iter());
                conditions.into_iter().filter_map(both).collect()
            }
        };
        found.map(|demands| Demands { conditions, withheld, also, ..demands })
    }

    pub(crate) fn demands_of<'a>(&self, ctx: &EvalContext<'a>, id: TransitionId, t: &'a Transition) -> Demands {
        let votes: Vec<&Vote> = ctx.actor.votes.iter().filter(|v| v.transition == id).collect();
        let quorum = t.quorum.as_ref().filter(|q| q.count > 1);
        Demands {
            transition: t.name.to_string(),
            approves: t.approves.as_ref().filter(|program| !reads_event(program)).and_then(|program| {
                let value =
                    ctx.cel(program).and_then(|v| ctx.budget.json(&v)).ok().filter(|value| ctx.budget.hash(value))?;
                Some(Approval { value: program.source().to_string(), digest: Digest::of_json(&value) })
            }),
            quorum: quorum.map(|q| QuorumState {
                count: q.count,
                of: self.role_names(q.of),
                votes: votes.iter().map(|v| v.by.iter().map(ToString::to_string).collect()).collect(),
                data: votes.iter().map(|v| v.digest).collect(),
            }),
            not_by: t.sender.as_ref().map(|rule| rule.excluded(ctx)).unwrap_or_default(),
            persons_only: t.sender.as_ref().is_some_and(|rule| rule.is_for_persons()),
            conditions: Vec::new(),
            withheld: Vec::new(),
            also: Vec::new(),
        }
    }
}
