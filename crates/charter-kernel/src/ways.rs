//! Which transitions an event may take, as far as its data does not decide: for `legal`, `demands`
//! and the reasons why an event is not legal.

use charter_expr::Program;

use crate::candidates::Reached;
use crate::demands::{Demands, OtherQuorum, Withheld, WithheldBy};
use crate::event::Ev;
use crate::machine::{Guard, Machine, Require, RoleSet, Template, Transition, TransitionId, reads_event};
use crate::observer::{Observer, Unmet};
use crate::refusal::Code;
use crate::scope::EvalContext;
use crate::selection::{Evaluation, evaluate, region_candidates};
use crate::sender::Ineligible;
use crate::snapshot::Actor;

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

/// What the candidates of an event demand that were looked at so far.
#[derive(Default)]
pub(crate) struct Ways {
    /// The demands of the first transition that can be taken.
    pub(crate) found: Option<Demands>,
    /// Whether one can be taken without a condition on the data.
    pub(crate) is_open: bool,
    pub(crate) conditions: Vec<String>,
    /// The conditions under which the event is refused, whatever takes it.
    pub(crate) refusals: Vec<String>,
    /// Those that come after a transition that the data may choose in the same region.
    refusals_after: Vec<String>,
    pub(crate) withheld: Vec<Withheld>,
    pub(crate) also: Vec<OtherQuorum>,
    /// Whether the data decides about one of the transitions: also one that refuses the event, and
    /// one that approves a value by its digest.
    pub(crate) depends_on_data: bool,
    seen: Vec<(TransitionId, Way)>,
}

/// Whether a sender may take a transition.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Open,
    /// The data decides.
    Conditional,
    None,
}

/// An event whose data is not known: its type, its sender's roles, and itself with no data.
type Sent<'s, 'e> = (&'s str, RoleSet, &'s Ev<'e>);

impl Machine {
    /// Returns the ways of an event. None is found if no transition can take it, or one refuses it,
    /// whatever its data is.
    pub(crate) fn ways<'a>(&'a self, ctx: &EvalContext<'a>, actor: &Actor, sent: Sent<'_, '_>) -> Ways {
        let mut ways = Ways::default();
        for region in region_candidates(self.chart(actor.chart()), &actor.configuration, sent.2) {
            if self.ways_in(ctx, sent, &region, &mut ways).is_none() {
                return Ways::default();
            }
        }
        ways
    }

    /// Adds the ways in one region; `None` if a candidate refuses the event.
    fn ways_in<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        sent: Sent<'_, '_>,
        candidates: &[(TransitionId, &'a Transition)],
        ways: &mut Ways,
    ) -> Option<()> {
        let mut has_way = false;
        ways.refusals_after.clear();
        for (id, t) in candidates.iter().copied() {
            // Regions share the candidates of their common ancestors.
            let seen = ways.seen.iter().find(|(seen, _)| *seen == id).map(|(_, way)| *way);
            let way = match seen {
                Some(way) => way,
                None => match self.way(ctx, sent, (id, t), has_way, ways) {
                    Some(way) => {
                        ways.seen.push((id, way));
                        way
                    }
                    // Another region may come here without a way of its own.
                    None if has_way => break,
                    None => return None,
                },
            };
            match way {
                Way::Open => break,
                Way::Conditional => has_way = true,
                Way::None => {}
            }
        }
        Some(())
    }

    /// Adds the way through a candidate; `None` if it refuses the event. What comes after a
    /// transition that may be taken (`has_way`) is not withheld from the sender.
    fn way<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        sent: Sent<'_, '_>,
        (id, t): (TransitionId, &'a Transition),
        has_way: bool,
        ways: &mut Ways,
    ) -> Option<Way> {
        let mut observer = WithheldObserver::default();
        let is_open = match self.without_data(ctx, sent, (id, t), &mut observer) {
            Evaluation::Failed(..) => {
                let may_hold = |g: &Guard| g.reads_event() || ctx.guard::<()>(g).0 == Ok(true);
                let why = observer.0.filter(|_| !has_way && t.guard.as_ref().is_none_or(may_hold));
                ways.withheld.extend(why.map(|why| Withheld { transition: t.name.to_string(), why }));
                return Some(Way::None);
            }
            Evaluation::Refused => return None,
            Evaluation::Unknown if t.refuse.is_some() => {
                ways.depends_on_data = true;
                let refusals = if has_way { &mut ways.refusals_after } else { &mut ways.refusals };
                refusals.extend(t.guard.as_ref().filter(|guard| guard.reads_event()).map(|g| negated(g.text())));
                return Some(Way::None);
            }
            Evaluation::Enabled | Evaluation::Vote => true,
            Evaluation::Unknown => false,
        };
        // Who has voted may vote with other data only.
        let votes = ctx.actor.votes.iter().filter(|_| t.quorum.is_some());
        let has_vote = votes.into_iter().any(|v| v.transition == id && v.by.iter().any(|by| by.as_ref() == ctx.by.id));
        ways.depends_on_data |= !is_open || has_vote;
        let demands = self.demands_of(ctx, id, t);
        let guard = t.guard.as_ref().filter(|guard| !is_open && guard.reads_event());
        let of_data = t.approves.as_ref().filter(|program| reads_event(program));
        let approved = of_data.map(|program| format!("event.digest is the digest of {}", program.source()));
        let required = t.requires.iter().filter(|_| !is_open).filter_map(|require| self.condition_of(require));
        let all: Vec<String> = guard.map(Guard::text).into_iter().chain(approved).chain(required).collect();
        let way = if all.is_empty() { Way::Open } else { Way::Conditional };
        let condition = all_of(all.into_iter().chain(ways.refusals_after.iter().cloned()));
        ways.is_open |= condition.is_none();
        match (&ways.found, demands.quorum) {
            (Some(_), Some(quorum)) => {
                let (transition, condition) = (demands.transition, condition.clone());
                ways.also.push(OtherQuorum { transition, condition, quorum });
            }
            (Some(_), None) => {}
            (None, quorum) => ways.found = Some(Demands { quorum, ..demands }),
        }
        ways.conditions.extend(condition);
        Some(way)
    }

    /// Renders what a requirement of the ledger asks of the event's data; `None` if it reads none.
    fn condition_of(&self, require: &Require) -> Option<String> {
        let entry = |kind: &u32, key: &Template| match key {
            Template::Cel(key) if reads_event(key) => {
                Some(format!("ledger.{}[{}]", self.ledger_name(*kind), key.source()))
            }
            _ => None,
        };
        let (mut all, when) = match require {
            Require::Use { kind, key, when, .. } => {
                let entry = entry(kind, key).map(|entry| format!("{entry}.status == 'granted'"));
                (Vec::from_iter(entry), when.as_ref().filter(|when| reads_event(when)))
            }
            Require::Open { kind, key, .. } => {
                let entry = entry(kind, key).map(|entry| format!("{entry}.status in ['open', 'overdue']"));
                (Vec::from_iter(entry), None)
            }
            Require::None { .. } => return None,
        };
        all.extend(when.map(|when| when.source().to_string()));
        Some(all.join(" && ")).filter(|all| !all.is_empty())
    }

    /// Evaluates a candidate as far as the event's data does not decide.
    pub(crate) fn without_data<'a, O: Observer<'a>>(
        &self,
        ctx: &EvalContext<'a>,
        (kind, held, ev): Sent<'_, '_>,
        (id, t): (TransitionId, &'a Transition),
        observer: &mut O,
    ) -> Evaluation {
        let result = evaluate(ctx, held, Some(ev), id, t, observer);
        if !matches!(result, Evaluation::Enabled | Evaluation::Vote | Evaluation::Unknown) {
            return result;
        }
        if result == Evaluation::Unknown {
            // Only a part of what is checked may read the data.
            if let Some((error, leaf)) = t.guard.as_ref().and_then(|guard| fails_without_data::<O>(ctx, guard)) {
                observer.unmet(ctx, t, Unmet::Guard { leaf, error });
                return Evaluation::Failed(Code::Guard, Reached::Condition);
            }
            // What has no value cannot be approved with any digest.
            if let Some(program) = t.approves.as_ref().filter(|program| !reads_event(program))
                && ctx.cel(program).and_then(|value| ctx.budget.json(&value)).is_err()
            {
                observer.unmet(ctx, t, Unmet::Approval);
                return Evaluation::Failed(Code::Stale, Reached::Approval);
            }
            for require in &t.requires {
                if let Err(code) = require.may_hold(ctx) {
                    observer.unmet(ctx, t, Unmet::Requirement(require, code));
                    return Evaluation::Failed(code, Reached::Requirement);
                }
            }
        }
        if t.refuse.is_none() && self.has_voted(ctx, kind, id, t) {
            observer.unmet(ctx, t, Unmet::Voted);
            return Evaluation::Failed(Code::Authority, Reached::Quorum);
        }
        result
    }
}

/// The condition that all of these hold; `None` if there are none.
pub(crate) fn all_of(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    let part = |text: &String| match text.contains("||") || text.contains('?') {
        true if all.len() > 1 => format!("({text})"),
        _ => text.clone(),
    };
    let parts: Vec<String> = all.iter().map(part).collect();
    Some(parts.join(" && ")).filter(|all| !all.is_empty())
}

fn negated(condition: impl std::fmt::Display) -> String {
    format!("!({condition})")
}

/// Returns why a guard cannot hold, whatever the event's data is: an expression that does not read
/// it, and that has to hold.
fn fails_without_data<'a, O: Observer<'a>>(
    ctx: &EvalContext<'a>,
    guard: &'a Guard,
) -> Option<(Option<charter_expr::EvalError>, O::Leaf)> {
    match guard {
        guard if !guard.reads_event() => match ctx.guard::<O>(guard) {
            (Ok(true), _) => None,
            (holds, leaf) => Some((holds.err(), leaf)),
        },
        Guard::Named(named) => {
            fails_without_data::<O>(ctx, &named.1).map(|(error, leaf)| (error, O::named(&named.0, leaf)))
        }
        Guard::And(all) => all.iter().find_map(|guard| fails_without_data::<O>(ctx, guard)),
        Guard::Cel(_) | Guard::Or(_) | Guard::Not(_) => None,
    }
}
