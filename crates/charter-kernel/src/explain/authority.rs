//! The messages of refusals because of who sent an event.

use super::expression::expression_error;
use super::text::{or, quoted};
use crate::principal::Principal;
use crate::refusal::{CandidateDetails, Code};
use crate::sender::{AUTHENTICATED_ONLY, NOT_BY, PERSONS_ONLY};

/// Finds the transition that its sender came nearest to, of those that the rule of a refusal names:
/// the checks of a quorum come last.
pub(super) fn nearest(candidates: &[CandidateDetails], rule: Option<&str>) -> Option<usize> {
    let named = |c: &CandidateDetails| c.failed == Code::Authority && c.rule.as_deref() == rule;
    let all = candidates.iter().enumerate().filter(|(_, c)| named(c));
    // Of several, the first one.
    all.rev().max_by_key(|(_, c)| (c.quorum.is_some(), c.quorum.is_some() && c.roles.is_empty())).map(|(i, _)| i)
}

/// Renders why a principal may not take a transition.
pub(super) fn authority(c: &CandidateDetails, by: &Principal) -> String {
    match (c.rule.as_deref(), c.quorum) {
        (Some(PERSONS_ONLY), _) => {
            format!("only a person may take this transition; {} is {}", sender(by), kind(by))
        }
        (Some(AUTHENTICATED_ONLY), _) => {
            format!("only an authenticated principal may take this transition; {} is not authenticated", sender(by))
        }
        (Some(NOT_BY), _) => not_by(c, by),
        (_, Some(count)) if c.roles.is_empty() => {
            format!("{} has voted already; the quorum needs {count} different principals", sender(by))
        }
        (_, Some(_)) => format!("only {} may vote; {}", or(&c.roles), sender_has(by)),
        (_, None) => format!("only {} may take this transition; {}", or(&c.roles), sender_has(by)),
    }
}

fn not_by(c: &CandidateDetails, by: &Principal) -> String {
    let expression = c.expression.as_deref().unwrap_or_default();
    match &c.error {
        Some(error) => {
            let error = crate::refusal::ExpressionError { expression: None, ..error.clone() };
            format!(
                "nobody may take this transition, because `not_by` (`{expression}`) could not be evaluated: {}",
                expression_error(&error)
            )
        }
        None => format!(
            "{} may not take this transition, because `not_by` (`{expression}`) names them; somebody else has to",
            sender(by)
        ),
    }
}

fn kind(by: &Principal) -> String {
    let word = by.kind().word();
    let article = if word.starts_with('a') { "an" } else { "a" };
    format!("{article} {word}")
}

fn sender(by: &Principal) -> String {
    if by.id.is_empty() { "the sender".to_string() } else { format!("`{}`", by.id) }
}

/// Renders the roles of a sender, for example `` `ana` has the role `clerk` ``.
pub(super) fn sender_has(by: &Principal) -> String {
    match by.roles.as_slice() {
        [] => format!("{} has no role", sender(by)),
        [role] => format!("{} has the role `{role}`", sender(by)),
        roles => format!("{} has the roles {}", sender(by), quoted(roles)),
    }
}
