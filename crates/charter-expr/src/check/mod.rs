//! The checker: finds expressions that always fail or that fail for some values, before they are
//! evaluated.
//!
//! Typing is gradual: an unknown type is [`Type::Dyn`] and is checked at run time. An error is
//! reported only for an expression that fails whenever it is evaluated (and for a condition that is
//! not a bool), a warning for an expression that fails for some values.

mod facts;
mod fields;
mod macros;
mod overloads;
mod tables;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::Arc;

use crate::{Ast, Env, Span, Type};
pub use facts::Facts;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// The expression fails for some values, or it is probably a mistake.
    Warning,
    /// The expression fails whenever it is evaluated.
    Error,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// The expression reads a field that does not exist or is not declared.
    UnknownField,
    /// Arithmetic reads a number in a place without a declared type, so the number is an int or a
    /// double by its value.
    UntypedNumber,
    /// Any other finding: a value of the wrong type, an unknown name or function.
    Type,
}

/// A finding of the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// The severity.
    pub severity: Severity,
    /// The position in the source.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// How to fix it, if known.
    pub help: Option<String>,
}

/// Checks an expression against the types in its environment. Returns its type and the findings in
/// source order.
///
/// ```
/// use charter_expr::{Env, Field, Severity, Type, check, parse};
///
/// let mut env = Env::new();
/// env.root("event", Type::object([("confidence", Field::required(Type::Number))]));
/// let (ty, findings) = check(&parse("event.confidnce >= 0.85").unwrap(), &env);
/// assert_eq!(ty, Type::Bool);
/// assert_eq!(findings[0].severity, Severity::Error);
/// assert_eq!(findings[0].message, "there is no field `confidnce` in `event`");
/// assert_eq!(findings[0].help.as_deref(), Some("did you mean `confidence`?"));
/// ```
pub fn check(ast: &Ast, env: &Env) -> (Type, Vec<Finding>) {
    let mut checker = Checker::new(ast, env);
    let ty = checker.node(ast.root());
    let mut findings = checker.findings;
    findings.sort_by_key(|f| (f.span, std::cmp::Reverse(f.severity)));
    findings.dedup();
    (ty, findings)
}

struct Checker<'e> {
    env: &'e Env,
    source: &'e str,
    locals: Vec<(Arc<str>, Type)>,
    facts: Facts,
    findings: Vec<Finding>,
}

impl<'e> Checker<'e> {
    fn new(ast: &'e Ast, env: &'e Env) -> Checker<'e> {
        Checker { env, source: ast.source(), locals: Vec::new(), facts: env.facts.clone(), findings: Vec::new() }
    }

    fn report(&mut self, severity: Severity, span: Span, message: String, help: Option<String>) {
        self.findings.push(Finding { kind: FindingKind::Type, severity, span, message, help });
    }

    fn error(&mut self, span: Span, message: String, help: Option<String>) {
        self.report(Severity::Error, span, message, help);
    }

    fn warning(&mut self, span: Span, message: String, help: Option<String>) {
        self.report(Severity::Warning, span, message, help);
    }

    fn unknown_field(&mut self, severity: Severity, span: Span, message: String, help: Option<String>) {
        self.findings.push(Finding { kind: FindingKind::UnknownField, severity, span, message, help });
    }

    /// Returns a part of the source for a message.
    fn text(&self, span: Span) -> String {
        crate::detail::shorten(span.of(self.source))
    }
}

/// Maximum number of alternatives of a type; a type with more is [`Type::Dyn`].
const MAX_ALTERNATIVES: usize = 12;

/// Returns the simple types that a value of a type can have.
fn alternatives(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Number => vec![Type::Int, Type::Double],
        Type::Union(types) if types.len() > MAX_ALTERNATIVES => vec![Type::Dyn],
        Type::Union(types) => types.iter().flat_map(alternatives).collect(),
        other => vec![other.clone()],
    }
}

/// Removes null from a type.
fn without_null(ty: Type) -> Type {
    match ty {
        Type::Union(types) => Type::union(types.into_iter().filter(|t| *t != Type::Null)),
        other => other,
    }
}

/// Returns the union of types; restores [`Type::Number`] if it was split.
fn join(types: Vec<Type>) -> Type {
    let number = types.contains(&Type::Int) && types.contains(&Type::Double);
    Type::union(types.into_iter().chain(number.then_some(Type::Number)))
}

/// Maximum size of a type; a larger one is [`Type::Dyn`].
const MAX_TYPE_SIZE: usize = 2000;

/// Returns the type, or [`Type::Dyn`] if it is too large: `[a, [a]]` doubles with every level.
fn bounded(ty: Type) -> Type {
    fn measure(ty: &Type, left: &mut usize) {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        match ty {
            Type::List(item) => measure(item, left),
            Type::Map(key, value) => {
                measure(key, left);
                measure(value, left);
            }
            Type::Union(types) => types.iter().for_each(|t| measure(t, left)),
            Type::Object { fields, .. } => fields.values().for_each(|f| measure(&f.ty, left)),
            _ => {}
        }
    }
    let mut left = MAX_TYPE_SIZE;
    measure(&ty, &mut left);
    if left == 0 { Type::Dyn } else { ty }
}
