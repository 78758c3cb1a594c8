//! Lints: checks that do not execute the charter. Each is a function and reports at least one code.

mod approvals;
mod authority;
mod conditions;
mod context;
mod fall_through;
mod interlocks;
mod invocations;
mod ledger;
mod loops;
mod order;
mod overwritten;
mod reach;
mod tools;
mod unused;

pub(crate) use unused::used_names;

use crate::finding::Finding;
use crate::model::Model;

/// A lint.
type Lint = fn(&Model<'_>, &mut Vec<Finding>);

/// All lints.
const ALL: &[Lint] = &[
    reach::unreachable_states,
    reach::dead_ends,
    order::shadowed,
    conditions::constant,
    conditions::reads_before_assign,
    loops::always,
    loops::unbounded,
    unused::events,
    unused::raised,
    unused::names,
    unused::types,
    context::never_assigned,
    context::without_schema,
    authority::unknown,
    authority::owners,
    authority::platform,
    authority::nobody,
    authority::quorums,
    approvals::expiry,
    approvals::excludes_nobody,
    overwritten::overwritten,
    fall_through::turned_away,
    invocations::timeouts,
    invocations::errors,
    invocations::dropped,
    tools::not_allowed,
    ledger::kinds,
    interlocks::rows,
];

pub(crate) fn lint(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for lint in ALL {
        lint(model, findings);
    }
}
