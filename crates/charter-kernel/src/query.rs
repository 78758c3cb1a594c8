//! Expressions over a snapshot outside of a step, for properties, reports and pages.

use charter_expr::{CompileError, EvalError, Fuel, Program};
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::machine::Machine;
use crate::principal::Principal;
use crate::scope::EvalContext;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

/// A compiled expression over a snapshot. It can read what a guard can, except `event` and `entry`.
#[derive(Debug, Clone)]
pub struct Query {
    program: Program,
}

impl Query {
    /// The source text of the expression.
    #[must_use]
    pub fn source(&self) -> &str {
        self.program.source()
    }
}

impl Machine {
    /// Compiles an expression over snapshots.
    ///
    /// # Errors
    /// The expression does not parse, or a name in it is unknown.
    pub fn query(&self, cel: &str) -> Result<Query, CompileError> {
        let (env, _) = crate::scope::env(self.definition.strict);
        Ok(Query { program: Program::compile(cel, &env)? })
    }

    /// Evaluates an expression in the scope of the actor `actor` at the time `at` (milliseconds
    /// since 1970).
    ///
    /// # Errors
    /// The evaluation failed, for example because a field is missing or there is no such actor.
    pub fn ask(
        &self,
        snapshot: &Snapshot,
        actor: &str,
        query: &Query,
        at: impl Into<Timestamp>,
    ) -> Result<Json, EvalError> {
        self.ask_metered(snapshot, actor, query, at).0
    }

    /// Like [`Machine::ask`]; also returns the fuel that the evaluation has used, for callers that
    /// limit the work of many questions.
    pub fn ask_metered(
        &self,
        snapshot: &Snapshot,
        actor: &str,
        query: &Query,
        at: impl Into<Timestamp>,
    ) -> (Result<Json, EvalError>, u64) {
        let limit = self.definition.limits.expression;
        let mut fuel = Fuel::new(limit);
        let budget = Budget::new(&self.definition.limits);
        let ask = |ctx: &EvalContext<'_>| {
            let value = query.program.eval(ctx, &mut fuel)?;
            ctx.budget.json(&value)
        };
        let result = self.scope_of(snapshot, actor, at.into(), &budget, ask);
        (result, limit.saturating_sub(fuel.left()).saturating_add(budget.fuel_used()))
    }

    /// Decides a condition in the scope of the root.
    pub(crate) fn holds_in(
        &self,
        snapshot: &Snapshot,
        query: &Query,
        at: Timestamp,
        budget: &Budget,
    ) -> Result<bool, EvalError> {
        self.scope_of(snapshot, "root", at, budget, |ctx| ctx.holds(&query.program))
    }

    fn scope_of<T>(
        &self,
        snapshot: &Snapshot,
        actor: &str,
        now: Timestamp,
        budget: &Budget,
        ask: impl FnOnce(&EvalContext<'_>) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let none = || EvalError::new(charter_expr::ErrorKind::Unbound, format!("there is no actor `{actor}`"));
        let by = Principal::system();
        let actor = snapshot.actor(actor).ok_or_else(none)?;
        ask(&EvalContext {
            machine: self,
            snapshot,
            actor,
            event: None,
            by: &by,
            now,
            locals: &[],
            entry: None,
            budget,
        })
    }
}
