//! What a transition demands of its senders now, besides a role: the digest that an approval must
//! name, the votes that were given, who is excluded, and the conditions that depend on the data.

use charter_expr::Program;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::budget::Budget;
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::machine::{Guard, Machine, Transition, TransitionId, reads_event};
use crate::observer::{Observer, Unmet};
use crate::principal::Principal;
use crate::scope::EvalContext;
use crate::selection::{Evaluation, active_candidates, evaluate};
use crate::sender::Ineligible;
use crate::snapshot::{Snapshot, Vote};
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
    /// The transitions before it that the event takes from others, but not from this sender.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Withheld>,
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

/// Observes, without the event's data, why the sender may not take a candidate.
#[derive(Default)]
struct WithheldObserver(Option<WithheldBy>);

impl<'a> Observer<'a> for WithheldObserver {
    type Leaf = ();
    const HAS_DATA: bool = false;
    fn leaf(_: &'a Program) {}
    fn named(_: &'a str, (): ()) {}
    fn unmet(&mut self, _: &EvalContext<'a>, _: &'a Transition, unmet: Unmet<'a, ()>) {
        self.0 = match unmet {
            Unmet::Sender(_, Ineligible::NotAPerson) => Some(WithheldBy::PersonsOnly),
            Unmet::Sender(_, Ineligible::NotAuthenticated) => Some(WithheldBy::AuthenticatedOnly),
            Unmet::Sender(_, Ineligible::Excluded(_)) => Some(WithheldBy::NotBy),
            Unmet::Voted => Some(WithheldBy::Voted),
            _ => None,
        };
    }
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
        let mut withheld = Vec::new();
        for (id, t) in active_candidates(self.chart(actor.chart()), &actor.configuration, &ev) {
            let mut withholds = |why| withheld.push(Withheld { transition: t.name.to_string(), why });
            let mut observer = WithheldObserver::default();
            let is_open = match evaluate(&ctx, held, Some(&ev), id, t, &mut observer) {
                Evaluation::Failed(..) => {
                    let may_hold = |g: &Guard| g.reads_event() || ctx.guard::<()>(g).0 == Ok(true);
                    observer.0.filter(|_| t.guard.as_ref().is_none_or(may_hold)).map(&mut withholds);
                    continue;
                }
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
            // What has no value cannot be approved with any digest; unless the data decides it.
            let of_data = t.approves.as_ref().filter(|program| reads_event(program));
            if t.approves.is_some() && demands.approves.is_none() && of_data.is_none() {
                continue;
            }
            if self.has_voted(&ctx, kind, id, t, demands.approves.as_ref()) {
                withholds(WithheldBy::Voted);
                continue;
            }
            let demands = found.get_or_insert_with(|| Demands { withheld: std::mem::take(&mut withheld), ..demands });
            let approved = of_data.map(|program| format!("event.digest is the digest of {}", program.source()));
            let all: Vec<String> = guard.filter(|_| depends).map(Guard::text).into_iter().chain(approved).collect();
            match all.is_empty() {
                false => conditions.push(all.join(" && ")),
                true => {
                    demands.conditions.clear();
                    return found;
                }
            }
        }
        found.map(|demands| Demands { conditions, ..demands })
    }

    fn demands_of<'a>(&self, ctx: &EvalContext<'a>, id: TransitionId, t: &'a Transition) -> Demands {
        let votes: Vec<&Vote> = ctx.actor.votes.iter().filter(|v| v.transition == id).collect();
        let quorum = t.quorum.as_ref().filter(|q| q.count > 1);
        Demands {
            transition: t.name.to_string(),
            approves: t.approves.as_ref().filter(|program| !reads_event(program)).and_then(|program| {
                let value = ctx.cel(program).and_then(|v| v.to_json()).ok()?;
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
