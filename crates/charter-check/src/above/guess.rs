//! Guesses the values of expressions that are not computed: what they may be is found by evaluating
//! them in every way, and forgetting it again.

use charter_expr::ast::Kind;
use charter_expr::{EvalError, Fuel, Program, Scope, Value};
use charter_kernel::Unknowns;

use super::domain::{self, LIST, MAP, Values};
use super::oracle::{Oracle, fails};
use super::slice::{Decided, Unread};

/// What may come of an expression whose value is not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Guess {
    /// It is true, or has a value.
    Holds,
    /// It is false.
    DoesNot,
    Fails,
}

impl Oracle {
    /// Decides an expression whose value is not computed.
    pub(super) fn guess<'a>(
        &self,
        scope: &dyn Scope<'a>,
        program: &'a Program,
        how: Unread,
        limit: u64,
    ) -> Result<Value<'a>, EvalError> {
        let possible = self.outcomes(scope, program, how, limit);
        let before = self.evaluating.take();
        let way = match possible.as_slice() {
            [] => return Err(fails()),
            [one] => *one,
            all => {
                let way = self.choose(u32::try_from(all.len()).unwrap_or(1)) as usize;
                all.get(way).copied().unwrap_or(Guess::Fails)
            }
        };
        self.evaluating.replace(before);
        if possible.len() > 1 && (how == Unread::Condition || way == Guess::Fails) {
            self.decided.borrow_mut().push(Decided { expression: program.source().into(), unread: true });
        }
        match (way, how) {
            (Guess::Fails, _) => Err(fails()),
            (_, Unread::Value) => {
                let ast = self.ast(program.source());
                let types = match ast.as_ref().map(|ast| &ast.root().kind) {
                    Some(Kind::Map(_)) => MAP,
                    Some(Kind::List(_)) => LIST,
                    _ => domain::ANY,
                };
                Ok(Value::from_json(&self.fresh(Values::of(types))).into_owned())
            }
            (_, Unread::Condition) => Ok(Value::Bool(way == Guess::Holds)),
        }
    }

    /// What may come of an expression whose value is not computed: evaluates it in every way, and
    /// forgets it again.
    fn outcomes<'a>(&self, scope: &dyn Scope<'a>, program: &'a Program, how: Unread, limit: u64) -> Vec<Guess> {
        /// Upper limit of the evaluations; with more, everything is possible.
        const MAX_WAYS: usize = 24;
        let all = match how {
            Unread::Condition => vec![Guess::Holds, Guess::DoesNot, Guess::Fails],
            Unread::Value => vec![Guess::Holds, Guess::Fails],
        };
        let Some(ast) = self.ast(program.source()) else { return all };
        let (tape, store) = (self.tape.take(), self.store.borrow().clone());
        let (decided, gave_up) = (self.decided.take(), self.gave_up.take());
        let evaluating = self.evaluating.take();
        let mut found = Vec::new();
        let mut ways = 0usize;
        loop {
            self.store.replace(store.clone());
            let mut fuel = Fuel::new(limit);
            let value = self.value(scope, program, &ast, &mut fuel);
            self.spend(limit.saturating_sub(fuel.left()).saturating_add(store.size()));
            let guess = match (value.map(|value| self.normal(value)), how) {
                (Err(_), _) => Guess::Fails,
                (Ok(_), Unread::Value) => Guess::Holds,
                (Ok(value), Unread::Condition) => match self.truth(&value) {
                    Some(true) => Guess::Holds,
                    Some(false) => Guess::DoesNot,
                    None => Guess::Fails,
                },
            };
            if !found.contains(&guess) {
                found.push(guess);
            }
            ways = ways.saturating_add(1);
            if ways > MAX_WAYS || found.len() == all.len() || self.gave_up.borrow().is_some() {
                found = all;
                break;
            }
            if !self.tape.borrow_mut().next() {
                break;
            }
        }
        self.tape.replace(tape);
        self.store.replace(store);
        self.decided.replace(decided);
        self.gave_up.replace(gave_up);
        self.evaluating.replace(evaluating);
        found.sort();
        found
    }
}
