//! What callers of [`evaluate`](crate::selection::evaluate) learn about the check that a candidate
//! failed.

use charter_expr::{EvalError, Program};

use crate::machine::{Require, Transition};
use crate::refusal::Code;
use crate::scope::EvalContext;
use crate::sender::{Ineligible, SenderRule};

/// The check that a candidate failed.
pub(crate) enum Unmet<'a, L> {
    /// `by`: the sender has none of the roles.
    Roles,
    /// The sender has the roles, but may not take this transition.
    Sender(&'a SenderRule, Ineligible),
    /// `guard` or `when`: the expression that decided, and the error if it could not be evaluated.
    Guard { leaf: L, error: Option<EvalError> },
    /// `approves`: the event does not name the digest of the current value.
    Approval,
    /// An entry of `requires`.
    Requirement(&'a Require, Code),
    /// `quorum`: the sender has none of the roles.
    QuorumRoles,
    /// `quorum`: the sender has voted already.
    Voted,
}

/// Receives what a caller of [`evaluate`] needs besides the result. Monomorphized: `()` costs
/// nothing.
pub(crate) trait Observer<'a> {
    /// What the observer keeps about an expression of a guard.
    type Leaf: Copy + Default;
    /// Whether the event's data is known. If not, checks that read it are skipped and the result
    /// is [`Evaluation::Unknown`].
    const HAS_DATA: bool = true;

    fn leaf(program: &'a Program) -> Self::Leaf;
    fn named(name: &'a str, leaf: Self::Leaf) -> Self::Leaf;
    fn unmet(&mut self, ctx: &EvalContext<'a>, t: &'a Transition, unmet: Unmet<'a, Self::Leaf>);
}

/// Observes nothing.
impl<'a> Observer<'a> for () {
    type Leaf = ();
    #[inline(always)]
    fn leaf(_: &'a Program) {}
    #[inline(always)]
    fn named(_: &'a str, (): ()) {}
    #[inline(always)]
    fn unmet(&mut self, _: &EvalContext<'a>, _: &'a Transition, _: Unmet<'a, ()>) {}
}

/// Keeps the error of a guard, or of `not_by`, that could not be evaluated.
#[derive(Default)]
pub(crate) struct GuardError(pub(crate) Option<EvalError>);

impl<'a> Observer<'a> for GuardError {
    type Leaf = ();
    #[inline(always)]
    fn leaf(_: &'a Program) {}
    #[inline(always)]
    fn named(_: &'a str, (): ()) {}
    #[inline(always)]
    fn unmet(&mut self, _: &EvalContext<'a>, _: &'a Transition, unmet: Unmet<'a, ()>) {
        if let Unmet::Guard { error, .. } | Unmet::Sender(_, Ineligible::Excluded(error)) = unmet {
            self.0 = error;
        }
    }
}
