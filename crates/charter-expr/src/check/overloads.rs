//! Checks operations and calls with every combination of the simple types of their operands.

use super::tables::{argument_help, conversion, function, operator};
use super::{Checker, alternatives, bounded, join};
use crate::ast::{BinaryOp, Kind, Literal, Node};
use crate::functions::{Entry, Function};
use crate::pattern::Pattern;
use crate::types::a;
use crate::{Duration, ExprTimestamp, Span, Type};

/// Maximum number of combinations of argument types that are checked one by one.
const MAX_COMBINATIONS: usize = 64;

impl Checker<'_> {
    /// Returns the type of an operation, after trying every combination of the simple types of its
    /// operands.
    ///
    /// `what` names the operation in messages.
    fn combine(
        &mut self,
        args: &[Type],
        span: Span,
        what: &str,
        help: impl Fn(&[Type]) -> Option<String>,
        result: impl Fn(&[Type]) -> Option<Type>,
    ) -> Type {
        let mut combinations: Vec<Vec<Type>> = vec![Vec::new()];
        for arg in args {
            let options = alternatives(arg);
            let mut next = Vec::new();
            for combination in &combinations {
                for option in &options {
                    let mut longer = combination.clone();
                    longer.push(option.clone());
                    next.push(longer);
                }
            }
            combinations = next;
            if combinations.len() > MAX_COMBINATIONS {
                return Type::Dyn;
            }
        }
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for combination in combinations {
            match result(&combination) {
                Some(ty) => good.push(ty),
                None => bad.push(combination),
            }
        }
        let Some(first_bad) = bad.first() else {
            return bounded(join(good));
        };
        let shown: Vec<String> = first_bad.iter().map(Type::to_string).collect();
        let message = format!("no such overload: {what} with ({})", shown.join(", "));
        if good.is_empty() {
            self.error(span, message, help(first_bad));
            return Type::Dyn;
        }
        self.warning(span, format!("for some values: {message}"), help(first_bad));
        bounded(join(good))
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: &Type, right: &Type, span: Span) -> Type {
        let args = [left.clone(), right.clone()];
        let help = |types: &[Type]| conversion(op, types);
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            self.equality(left, right, op, span);
            return Type::Bool;
        }
        self.combine(&args, span, &format!("`{}`", op.symbol()), help, |types| match types {
            [left, right] => operator(op, left, right),
            _ => None,
        })
    }

    /// Checks an equality, which never fails but may always have the same result.
    fn equality(&mut self, left: &Type, right: &Type, op: BinaryOp, span: Span) {
        let (left, right) = (alternatives(left), alternatives(right));
        let possible = left.iter().any(|l| right.iter().any(|r| comparable(l, r)));
        if !possible {
            let show = |types: Vec<Type>| Type::union(types).to_string();
            let always = if op == BinaryOp::Eq { "false" } else { "true" };
            let message =
                format!("`{}` is always {always}: {} and {} are never equal", op.symbol(), show(left), show(right));
            self.warning(span, message, None);
        }
    }

    pub(super) fn negation(&mut self, operand: &Type, span: Span) -> Type {
        self.combine(
            std::slice::from_ref(operand),
            span,
            "`-`",
            |_| None,
            |types| match types {
                [Type::Int | Type::Double | Type::Duration | Type::Dyn] => types.first().cloned(),
                _ => None,
            },
        )
    }

    /// Checks a call of a library function. `nodes` are its arguments; the receiver of a method is
    /// the first one.
    pub(super) fn library(&mut self, entry: &Entry, nodes: &[&Node], types: &[Type], span: Span) -> Type {
        let what = format!("`{}`", entry.name);
        if types.len() < entry.least || types.len() > entry.most {
            let method = entry.style == crate::functions::Style::Method;
            let less = usize::from(method);
            let wanted = if entry.least == entry.most {
                entry.least.saturating_sub(less).to_string()
            } else if entry.most == usize::MAX {
                format!("at least {}", entry.least.saturating_sub(less))
            } else {
                format!("{} to {}", entry.least.saturating_sub(less), entry.most.saturating_sub(less))
            };
            let got = types.len().saturating_sub(less);
            self.error(
                span,
                format!("{what} takes {wanted} {}, not {got}", if wanted == "1" { "argument" } else { "arguments" }),
                None,
            );
            return Type::Dyn;
        }
        self.literals(entry.function, nodes);
        let help = |types: &[Type]| argument_help(entry.function, types);
        self.combine(types, span, &what, help, |types| function(entry.function, types))
    }

    /// Reports an invalid string literal as the last argument of `timestamp`, `duration` or
    /// `matches`.
    fn literals(&mut self, f: Function, nodes: &[&Node]) {
        let Some(Node { kind: Kind::Literal(Literal::String(text)), span: at }) = nodes.last() else {
            return;
        };
        let error = match f {
            Function::Timestamp => ExprTimestamp::parse(text).err(),
            Function::Duration => Duration::parse(text).err(),
            Function::Matches => Pattern::checked(text).err(),
            _ => None,
        };
        if let Some(e) = error {
            self.error(*at, e.message().into_owned(), e.help().map(str::to_owned));
        }
    }

    /// Checks a call of a function of the host.
    pub(super) fn host(&mut self, id: crate::FunctionId, types: &[Type], span: Span) -> Type {
        let Some(f) = self.env.host_function(id) else {
            return Type::Dyn;
        };
        let (name, result) = (f.name.clone(), f.result.clone());
        if types.len() != f.params.len() {
            let wanted = f.params.len();
            let noun = if wanted == 1 { "argument" } else { "arguments" };
            let message = format!("`{name}` takes {wanted} {noun}, not {}", types.len());
            self.error(span, message, None);
            return result;
        }
        for (param, ty) in f.params.clone().iter().zip(types) {
            let wanted = alternatives(param);
            let got = alternatives(ty);
            let fits = |t: &Type| wanted.iter().any(|w| comparable_exactly(w, t));
            let message = format!("`{name}` takes {} here, not {}", a(param), a(ty));
            if !got.iter().any(fits) {
                self.error(span, message, None);
            } else if !got.iter().all(fits) {
                self.warning(span, format!("for some values: {message}"), None);
            }
        }
        result
    }
}

/// Whether values of two simple types can be equal.
fn comparable(a: &Type, b: &Type) -> bool {
    let number = |t: &Type| matches!(t, Type::Int | Type::Uint | Type::Double | Type::Number);
    let map = |t: &Type| matches!(t, Type::Map(..) | Type::Object { .. });
    match (a, b) {
        (Type::Dyn, _) | (_, Type::Dyn) | (Type::Null, _) | (_, Type::Null) => true,
        (Type::List(_), Type::List(_)) => true,
        _ => (number(a) && number(b)) || (map(a) && map(b)) || a == b,
    }
}

/// Whether a value of type `arg` can be the argument for a parameter of type `param`.
fn comparable_exactly(param: &Type, arg: &Type) -> bool {
    match (param, arg) {
        (Type::Dyn, _) | (_, Type::Dyn) => true,
        (Type::List(_), Type::List(_)) => true,
        (Type::Map(..) | Type::Object { .. }, Type::Map(..) | Type::Object { .. }) => true,
        _ => param == arg,
    }
}
