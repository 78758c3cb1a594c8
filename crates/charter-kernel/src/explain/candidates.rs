//! Collects why each candidate transition was not taken, as an observer of [`evaluate`].

use std::cmp::Reverse;

use charter_expr::Program;
use serde_json::{Map, Value as Json};

use super::regions::visit_candidates;
use crate::budget::Budget;
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::event::Ev;
use crate::machine::{Machine, Require, Template, Transition};
use crate::observer::{Observer, Unmet};
use crate::refusal::{ApprovalDetails, CandidateDetails, Code, LedgerDetails};
use crate::scope::EvalContext;
use crate::selection::{Evaluation, evaluate};
use crate::sender::{AUTHENTICATED_ONLY, Ineligible, NOT_BY, PERSONS_ONLY, SENDER_RULES, SenderRule};
use crate::snapshot::{Actor, Snapshot};

/// Upper limit of the transitions that a refusal lists.
const MAX_CANDIDATES: usize = 100;

/// What a selection has considered.
#[derive(Default)]
pub(super) struct Considered {
    pub(super) candidates: Vec<CandidateDetails>,
    /// The rule of the candidate that came furthest with the code of the refusal.
    pub(super) rule: Option<String>,
}

impl Machine {
    /// Evaluates the candidates of an event that was refused with a code.
    pub(super) fn candidates(
        &self,
        snapshot: &Snapshot,
        actor: &Actor,
        ev: &Ev<'_>,
        envelope: &Envelope,
        (code, budget): (Code, &Budget),
    ) -> Considered {
        let held = self.held(envelope);
        let snapshot = snapshot.with_expired_permits(envelope.at);
        let ctx = self.context_of(&snapshot, actor, ev, envelope, budget);
        let mut out = Vec::new();
        let (mut furthest, mut refusing, mut full) = (None, None, false);
        visit_candidates(self.chart(actor.chart()), &actor.configuration, ev, |id, t| {
            let mut explainer = Explainer::<true>::new(self, t);
            let evaluation = evaluate(&ctx, held, Some(ev), id, t, &mut explainer);
            let mut details = explainer.details;
            match evaluation {
                // A `refuse` transition that does not apply is not a reason for the refusal.
                Evaluation::Failed(failed, _) if t.refuse.is_some() && failed != Code::Stale => return evaluation,
                Evaluation::Failed(failed, reached) => {
                    details.failed = failed;
                    if failed == code {
                        furthest = furthest.max(Some((reached, self.rank(details.rule.as_deref()))));
                    }
                }
                Evaluation::Refused => {
                    details.failed = Code::Rule;
                    if let Some(rule) = t.refuse {
                        details.rule = Some(self.rule_name(rule).to_string());
                        details.read = self.rule_reads(rule, &ctx);
                        // The first one that applies decides, as of other transitions.
                        refusing = refusing.take().or_else(|| details.rule.clone()).filter(|_| code == Code::Rule);
                    }
                }
                Evaluation::Enabled | Evaluation::Vote | Evaluation::Unknown => return evaluation,
            }
            full |= out.len() >= MAX_CANDIDATES || budget.is_over();
            if !full {
                out.push(details);
            }
            evaluation
        });
        let named = furthest
            .and_then(|(_, rank)| out.iter().find(|c| c.failed == code && self.rank(c.rule.as_deref()) == rank));
        let rule = refusing.or_else(|| named.and_then(|candidate| candidate.rule.clone()));
        Considered { candidates: out, rule }
    }

    /// Which rule names the reason of a refusal, if several candidates came equally far: of those
    /// of the language the one that is checked last, of those of the charter the first entry of
    /// `rules`. No rule comes last.
    pub(super) fn rank(&self, rule: Option<&str>) -> Option<(usize, Reverse<Option<u32>>)> {
        let rule = rule?;
        let own = SENDER_RULES.iter().position(|own| *own == rule).map_or(0, |place| place.saturating_add(1));
        Some((own, Reverse(self.rule(rule))))
    }
}

fn details_of(t: &Transition) -> CandidateDetails {
    CandidateDetails {
        transition: t.name.to_string(),
        at: t.at.to_string(),
        failed: Code::Unhandled,
        rule: None,
        guard: None,
        expression: None,
        error: None,
        read: Map::new(),
        roles: Vec::new(),
        quorum: None,
        approval: None,
        ledger: None,
    }
}

/// Records, with or without the event's `DATA`, which check failed, the expression involved, and
/// the values that it read.
pub(super) struct Explainer<'m, const DATA: bool> {
    machine: &'m Machine,
    pub(super) details: CandidateDetails,
}

impl<'m, const DATA: bool> Explainer<'m, DATA> {
    pub(super) fn new(machine: &'m Machine, t: &Transition) -> Self {
        Explainer { machine, details: details_of(t) }
    }

    fn expression<'a>(&mut self, ctx: &EvalContext<'a>, program: &'a Program) {
        self.details.expression = Some(program.source().to_string());
        self.details.read.extend(reads(ctx, program));
    }

    fn sender<'a>(&mut self, ctx: &EvalContext<'a>, rule: &'a SenderRule, why: &Ineligible) {
        let (name, field, value) = match why {
            Ineligible::NotAPerson => (PERSONS_ONLY, "by.kind", ctx.by.kind().word()),
            Ineligible::NotAuthenticated => (AUTHENTICATED_ONLY, "by.auth", ctx.by.auth().word()),
            Ineligible::Excluded(error) => {
                self.details.error = error.as_ref().map(Into::into);
                if let Some(program) = &rule.not_by {
                    self.expression(ctx, program);
                }
                (NOT_BY, "by.id", ctx.by.id.as_str())
            }
        };
        self.details.rule = Some(name.to_owned());
        self.details.read.insert(field.to_owned(), short(value.into()));
    }

    fn requirement<'a>(&mut self, ctx: &EvalContext<'a>, require: &'a Require, code: Code) {
        let (kind, key, when) = match require {
            Require::Use { kind, key, when, .. } => (*kind, Some(key), when.as_ref()),
            Require::Open { kind, key, .. } => (*kind, Some(key), None),
            Require::None { kind, .. } => (*kind, None, None),
        };
        let mut ledger =
            LedgerDetails { kind: self.machine.ledger_name(kind).to_string(), key: None, open: Vec::new() };
        // Without the data, any key would do, and there is none.
        let key = key.filter(|key| DATA || !key.reads_event());
        match key.map(|t| ctx.text(t)) {
            Some(Ok(key)) => ledger.key = Some(key.to_string()),
            Some(Err(e)) => self.details.error = Some((&e).into()),
            None if code == Code::ObligationOpen => {
                let open = ctx.snapshot.ledger.iter().flat_map(|l| l.open_keys(kind));
                ledger.open = open.map(|key| key.to_string()).collect();
            }
            None => {}
        }
        let scope = when.filter(|_| code == Code::PermitScope);
        if let Some(program) = scope.or_else(|| key.and_then(program_of)) {
            self.expression(ctx, program);
        }
        if let Some(rule) = require.rule(code) {
            self.details.rule = Some(self.machine.rule_name(rule).to_string());
            self.details.read.extend(self.machine.rule_reads(rule, ctx));
        }
        self.details.ledger = Some(ledger);
    }
}

impl<'a, const DATA: bool> Observer<'a> for Explainer<'_, DATA> {
    type Leaf = Option<(&'a Program, Option<&'a str>)>;
    const HAS_DATA: bool = DATA;

    fn leaf(program: &'a Program) -> Self::Leaf {
        Some((program, None))
    }

    fn named(name: &'a str, leaf: Self::Leaf) -> Self::Leaf {
        // Keep the innermost name: it is the guard that contains the expression.
        leaf.map(|(program, inner)| (program, inner.or(Some(name))))
    }

    fn unmet(&mut self, ctx: &EvalContext<'a>, t: &'a Transition, unmet: Unmet<'a, Self::Leaf>) {
        match unmet {
            Unmet::Roles => self.details.roles = self.machine.role_names(t.by),
            Unmet::Sender(rule, why) => self.sender(ctx, rule, &why),
            Unmet::Guard { leaf, error } => {
                self.details.error = error.as_ref().map(Into::into);
                if let Some((program, name)) = leaf {
                    self.details.guard = name.map(str::to_string);
                    self.expression(ctx, program);
                }
            }
            Unmet::Approval => {
                let Some(program) = &t.approves else { return };
                let sent = ctx.event.and_then(|e| e.data().get("digest")).and_then(Json::as_str);
                let current = ctx.cel(program).and_then(|v| ctx.budget.json(&v));
                self.details.error = current.as_ref().err().map(Into::into);
                self.details.approval = Some(ApprovalDetails {
                    sent: sent.map(str::to_string),
                    current: current.ok().map(|value| Digest::of_json(&value).to_string()),
                });
                self.expression(ctx, program);
            }
            Unmet::Requirement(require, code) => self.requirement(ctx, require, code),
            Unmet::QuorumRoles => {
                let quorum = t.quorum.as_ref();
                self.details.quorum = quorum.map(|q| q.count);
                self.details.roles = quorum.map(|q| self.machine.role_names(q.of)).unwrap_or_default();
            }
            Unmet::Voted => self.details.quorum = t.quorum.as_ref().map(|q| q.count),
        }
    }
}

fn program_of(template: &Template) -> Option<&Program> {
    if let Template::Cel(program) = template { Some(program) } else { None }
}

/// Returns the values that a program reads, by path; long values are truncated.
pub(crate) fn reads(ctx: &EvalContext<'_>, program: &Program) -> Map<String, Json> {
    let mut map = Map::new();
    for path in program.reads() {
        let value = path.eval(ctx).and_then(|v| ctx.budget.json(&v)).unwrap_or(Json::Null);
        map.insert(path.text().to_string(), short(value));
    }
    map
}

/// Truncates a long value, because a refusal is shown to people.
pub(crate) fn short(value: Json) -> Json {
    const MAX: usize = 500;
    let cut = |text: &str| Json::String(format!("{}…", text.chars().take(MAX).collect::<String>()));
    match &value {
        Json::String(s) if s.chars().count() > MAX => cut(s),
        Json::Array(_) | Json::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX { cut(&text) } else { value }
        }
        _ => value,
    }
}
