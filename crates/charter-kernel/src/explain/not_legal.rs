//! Why an event is not legal for a sender, whatever its data is.

use super::RefusalContext;
use super::candidates::Explainer;
use super::regions::visit_candidates;
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::legal::Obstacle;
use crate::machine::{Machine, RoleSet};
use crate::refusal::{Code, Explanation, RefusalDetails};
use crate::scope::EvalContext;
use crate::selection::Evaluation;
use crate::snapshot::{Actor, Snapshot};

impl Machine {
    /// Explains an obstacle to the event of an envelope.
    pub(crate) fn explain_obstacle(&self, snapshot: &Snapshot, envelope: &Envelope, obstacle: Obstacle) -> Explanation {
        let details = match obstacle {
            Obstacle::Trial(refusal) => return self.explain_briefly(Some(snapshot), envelope, &refusal),
            Obstacle::Roles(required) => {
                RefusalDetails { roles: self.role_names(required), ..RefusalDetails::new(Code::Authority) }
            }
            Obstacle::Candidates(details) => *details,
        };
        details.explain(&RefusalContext::new(self, Some(snapshot), envelope))
    }

    /// Returns why no transition of an actor takes an event; `None` if there is none for it.
    pub(crate) fn obstacle<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        actor: &Actor,
        (kind, held, ev): (&str, RoleSet, &Ev<'_>),
    ) -> Option<RefusalDetails> {
        let (mut failed, mut refused, mut furthest) = (Vec::new(), None, None);
        visit_candidates(self.chart(actor.chart()), &actor.configuration, ev, |id, t| {
            let mut explainer = Explainer::<false>::new(self, t);
            let evaluation = self.without_data(ctx, (kind, held, ev), (id, t), &mut explainer);
            match evaluation {
                Evaluation::Failed(..) if t.refuse.is_some() => return evaluation,
                Evaluation::Failed(code, reached) => {
                    explainer.details.failed = code;
                    furthest = furthest.max(Some((reached, code, self.rank(explainer.details.rule.as_deref()))));
                }
                Evaluation::Refused => {
                    explainer.details.failed = Code::Rule;
                    if let Some(rule) = t.refuse {
                        explainer.details.rule = Some(self.rule_name(rule).to_owned());
                        explainer.details.read = self.rule_reads(rule, ctx);
                    }
                    refused = refused.take().or_else(|| explainer.details.rule.clone());
                }
                Evaluation::Enabled | Evaluation::Vote | Evaluation::Unknown => return evaluation,
            }
            failed.push(explainer.details);
            evaluation
        });
        if failed.is_empty() {
            return None;
        }
        let (code, rule) = match (refused, furthest) {
            (Some(rule), _) => (Code::Rule, Some(rule)),
            (None, Some((_, code, rank))) => {
                let named = failed.iter().find(|c| c.failed == code && self.rank(c.rule.as_deref()) == rank);
                (code, named.and_then(|candidate| candidate.rule.clone()))
            }
            (None, None) => (Code::Unhandled, None),
        };
        Some(RefusalDetails { candidates: failed, rule, ..RefusalDetails::new(code) })
    }
}
