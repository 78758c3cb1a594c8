//! Facts about which values are present where an expression is evaluated, for example after
//! `has(x.y)`, `x != null` or `"k" in x`.
//!
//! `a && b` is false if one operand is false, even if the other fails. So the facts that `a`
//! establishes hold in `b`, and the facts that `b` establishes hold in `a`.

use std::collections::BTreeSet;

use super::Checker;
use crate::ast::{BinaryOp, Kind, Link, LinkKind, Literal, Node, UnaryOp};
use crate::names;
use crate::value::Key;
use crate::{Ast, Env};

/// Facts about data: fields that are present and values that are not null.
///
/// ```
/// use charter_expr::{Env, Facts, Field, Type, check, parse};
///
/// let mut env = Env::new();
/// env.root("event", Type::object([("note", Field::optional(Type::String))]));
/// let note = parse("event.note").unwrap();
/// assert_eq!(check(&note, &env).1[0].message, "the field `note` of `event` may be missing");
///
/// // After a condition it is known.
/// env.assume(Facts::of(&parse("has(event.note)").unwrap(), true));
/// assert_eq!(check(&note, &env).1, []);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    // Paths as text; a variable of a macro is written `#slot`.
    present: BTreeSet<String>,
    not_null: BTreeSet<String>,
}

impl Facts {
    pub(super) fn is_present(&self, path: &str) -> bool {
        self.present.contains(path)
    }

    pub(super) fn is_not_null(&self, path: &str) -> bool {
        self.not_null.contains(path)
    }

    /// The facts that hold after a condition was true or false (`outcome`).
    pub fn of(condition: &Ast, outcome: bool) -> Facts {
        let env = Env::new();
        Checker::new(condition, &env).facts_if(condition.root(), outcome)
    }

    /// Adds other facts.
    pub fn add(&mut self, other: Facts) {
        self.present.extend(other.present);
        self.not_null.extend(other.not_null);
    }

    /// Removes all facts about a root (`context`) or a field (`context.note`), because it may have
    /// changed.
    pub fn forget(&mut self, path: &str) {
        let other = |known: &String| match known.strip_prefix(path) {
            Some(rest) => !rest.is_empty() && !rest.starts_with(['.', '[']),
            None => true,
        };
        self.present.retain(other);
        self.not_null.retain(other);
    }
}

/// Appends a link to a path.
pub(super) fn extend(path: &str, link: &Link) -> Option<String> {
    match &link.kind {
        LinkKind::Field(name) => Some(format!("{path}.{name}")),
        LinkKind::Index(index) => match names::constant_key(index)? {
            // `x["a"]` is `x.a`.
            Key::String(name) => Some(format!("{path}.{}", name.as_str())),
            key => Some(format!("{path}[{:?}]", key.into_value())),
        },
        _ => None,
    }
}

impl Checker<'_> {
    /// Returns the path of a name.
    pub(super) fn base_path(&self, name: &str, absolute: bool) -> String {
        match self.locals.iter().rposition(|(local, _)| &**local == name) {
            Some(slot) if !absolute => format!("#{slot}"),
            _ => name.to_owned(),
        }
    }

    fn path(&self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::Ident { name, absolute } => Some(self.base_path(name, *absolute)),
            Kind::Postfix { base, links } => {
                let base = self.path(base)?;
                links.iter().try_fold(base, |path, link| extend(&path, link))
            }
            _ => None,
        }
    }

    /// Returns the facts that hold if the node evaluates to `outcome`.
    pub(super) fn facts_if(&self, node: &Node, outcome: bool) -> Facts {
        let mut facts = Facts::default();
        match &node.kind {
            Kind::Has(of) if outcome => facts.present.extend(self.path(of)),
            Kind::And(operands) if outcome => operands.iter().for_each(|n| facts.add(self.facts_if(n, true))),
            Kind::Or(operands) if !outcome => operands.iter().for_each(|n| facts.add(self.facts_if(n, false))),
            Kind::Unary { op: UnaryOp::Not, count, operand } => {
                facts = self.facts_if(operand, outcome ^ (count % 2 == 1));
            }
            Kind::Chain { first, rest } => {
                if let [(op, right)] = rest.as_slice() {
                    self.comparison(first, *op, right, outcome, &mut facts);
                }
            }
            _ => {}
        }
        facts
    }

    fn comparison(&self, left: &Node, op: BinaryOp, right: &Node, outcome: bool, facts: &mut Facts) {
        let is_null = |n: &Node| matches!(n.kind, Kind::Literal(Literal::Null));
        let is_literal = |n: &Node| matches!(n.kind, Kind::Literal(_));
        match (op, outcome) {
            (BinaryOp::Ne, true) | (BinaryOp::Eq, false) => {
                let other = if is_null(right) { Some(left) } else { is_null(left).then_some(right) };
                facts.not_null.extend(other.and_then(|n| self.path(n)));
            }
            // Equality with a value that is not null.
            (BinaryOp::Eq, true) => {
                for (a, b) in [(left, right), (right, left)] {
                    if is_literal(a) && !is_null(a) {
                        facts.not_null.extend(self.path(b));
                    }
                }
            }
            (BinaryOp::In, true) => {
                if let (Some(Key::String(name)), Some(path)) = (names::constant_key(left), self.path(right)) {
                    facts.present.insert(format!("{path}.{}", name.as_str()));
                }
            }
            _ => {}
        }
    }
}
