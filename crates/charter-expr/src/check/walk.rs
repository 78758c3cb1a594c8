//! Walks the tree for the checker: operators, conditions, names and the links after them.

use std::borrow::Cow;
use std::sync::Arc;

use super::fields::has_names;
use super::{Checker, Finding, FindingKind, Severity, alternatives, bounded, facts, join, without_null};
use crate::ast::{BinaryOp, Kind, Link, LinkKind, Literal, Node, UnaryOp};
use crate::functions;
use crate::names::{self, Meaning};
use crate::types::a;
use crate::{Span, Type, suggest};

impl Checker<'_> {
    pub(super) fn node(&mut self, node: &Node) -> Type {
        match &node.kind {
            Kind::Literal(l) => literal(l),
            Kind::Ident { .. } => self.links(node, &[]),
            Kind::Postfix { base, links } => self.links(base, links),
            Kind::List(items) => {
                let types: Vec<Type> = items.iter().map(|n| self.node(n)).collect();
                bounded(Type::list(Type::union(types)))
            }
            Kind::Map(entries) => {
                let mut keys = Vec::new();
                let mut values = Vec::new();
                for (key, value) in entries {
                    let ty = self.node(key);
                    self.key(&ty, key.span);
                    keys.push(ty);
                    values.push(self.node(value));
                }
                bounded(Type::map(Type::union(keys), Type::union(values)))
            }
            Kind::Call { function, args } => self.call(function, args, node.span),
            Kind::Has(of) => self.has(of),
            Kind::Bind { name, value, body } => {
                let ty = self.node(value);
                self.within(&[(name.clone(), ty)], |c| c.node(body))
            }
            Kind::Unary { op: UnaryOp::Not, operand, .. } => {
                let ty = self.node(operand);
                self.condition(&ty, operand.span, "`!`");
                Type::Bool
            }
            Kind::Unary { op: UnaryOp::Negate, operand, .. } => {
                let ty = self.node(operand);
                self.negation(&ty, node.span)
            }
            Kind::Chain { first, rest } => self.chain(first, rest),
            Kind::And(operands) => self.logic(operands, true),
            Kind::Or(operands) => self.logic(operands, false),
            Kind::Conditional { arms, otherwise } => self.conditional(arms, otherwise),
        }
    }

    fn key(&mut self, ty: &Type, span: Span) {
        let good = |t: &Type| matches!(t, Type::Dyn | Type::Int | Type::Uint | Type::Bool | Type::String);
        let types = alternatives(ty);
        let help = || Some("keys are strings, ints, uints and bools".to_owned());
        if !types.iter().any(good) {
            self.error(span, format!("{} cannot be the key of a map", a(ty)), help());
        } else if !types.iter().all(good) {
            self.warning(span, format!("for some values: {} cannot be the key of a map", a(ty)), help());
        }
    }

    /// Checks that a condition is a bool.
    pub(super) fn condition(&mut self, ty: &Type, span: Span, of: &str) {
        let good = |t: &Type| matches!(t, Type::Dyn | Type::Bool);
        let types = alternatives(ty);
        let message = format!("{of} needs a bool, but this is {}", a(ty));
        if !types.iter().any(good) {
            self.error(span, message, None);
        } else if !types.iter().all(good) {
            let null = types.contains(&Type::Null);
            let help = null.then(|| format!("write `{} == true`", self.text(span)));
            self.warning(span, format!("for some values: {message}"), help);
        }
    }

    /// Checks `&&` (`all`) and `||`. Each operand can rely on the facts that the others establish.
    fn logic(&mut self, operands: &[Node], all: bool) -> Type {
        let facts: Vec<facts::Facts> = operands.iter().map(|n| self.facts_if(n, all)).collect();
        let outer = self.facts.clone();
        // Each operand is checked with the facts of all others. With more than 64 operands this
        // would take too long, so the facts of the others are ignored.
        for (i, operand) in operands.iter().enumerate() {
            self.facts = outer.clone();
            if operands.len() <= 64 {
                for (j, f) in facts.iter().enumerate() {
                    if i != j {
                        self.facts.add(f.clone());
                    }
                }
            }
            let ty = self.node(operand);
            self.condition(&ty, operand.span, if all { "`&&`" } else { "`||`" });
        }
        self.facts = outer;
        Type::Bool
    }

    fn conditional(&mut self, arms: &[(Node, Node)], otherwise: &Node) -> Type {
        let outer = self.facts.clone();
        let mut types = Vec::new();
        for (condition, result) in arms {
            let ty = self.node(condition);
            self.condition(&ty, condition.span, "a condition");
            let before = self.facts.clone();
            self.facts.add(self.facts_if(condition, true));
            types.push(self.node(result));
            self.facts = before;
            self.facts.add(self.facts_if(condition, false));
        }
        types.push(self.node(otherwise));
        self.facts = outer;
        bounded(join(types))
    }

    fn chain(&mut self, first: &Node, rest: &[(BinaryOp, Node)]) -> Type {
        let mut ty = self.node(first);
        let mut left = Some(first);
        for (op, right) in rest {
            let right_ty = self.node(right);
            let span = first.span.to(right.span);
            if let Some(left) = left.take() {
                self.untyped(*op, left, &ty, &right_ty);
            }
            self.untyped(*op, right, &right_ty, &ty);
            let zero = matches!(right.kind, Kind::Literal(Literal::Int(0) | Literal::Uint(0)));
            if zero && matches!(op, BinaryOp::Div | BinaryOp::Rem) {
                self.warning(span, "division by zero".to_owned(), None);
            }
            ty = self.binary(*op, &ty, &right_ty, span);
        }
        ty
    }

    /// Reports an operand that is a number in a place without a declared type.
    fn untyped(&mut self, op: BinaryOp, node: &Node, ty: &Type, other: &Type) {
        let numeric = |t: &Type| matches!(t, Type::Int | Type::Double | Type::Dyn);
        let by_value = |t: &Type| match alternatives(t).as_slice() {
            [Type::Dyn] => true,
            types => types.contains(&Type::Int) && types.contains(&Type::Double),
        };
        // `/` and `%` on two ints are whole-number operations.
        let whole = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        let arithmetic = whole || matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        // `+` also joins strings and lists.
        let other_is_number = match op {
            BinaryOp::Add => alternatives(other).iter().all(|t| numeric(t) && *t != Type::Dyn),
            _ => alternatives(other).iter().all(numeric),
        };
        let context = path_root(node).filter(|_| arithmetic && other_is_number && by_value(ty));
        let Some(root) = context.filter(|root| whole || *root == "context") else {
            return;
        };
        let text = self.text(node.span);
        let result = match op {
            BinaryOp::Div => ", and the quotient of two ints is a whole number",
            BinaryOp::Rem => ", and `%` needs ints",
            _ => "",
        };
        let message = format!("`{text}` has no declared type: it is an int or a double by its value{result}");
        let local = self.locals.iter().any(|(name, _)| **name == *root);
        let help = local.then(|| "declare the type of the items".to_owned());
        let kind = FindingKind::UntypedNumber;
        self.findings.push(Finding { kind, severity: Severity::Warning, span: node.span, message, help });
    }

    pub(super) fn within<T>(&mut self, vars: &[(Arc<str>, Type)], f: impl FnOnce(&mut Self) -> T) -> T {
        let (before, facts) = (self.locals.len(), self.facts.clone());
        self.locals.extend_from_slice(vars);
        let result = f(self);
        self.locals.truncate(before);
        self.facts = facts;
        result
    }

    fn call(&mut self, name: &str, args: &[Node], span: Span) -> Type {
        let types: Vec<Type> = args.iter().map(|n| self.node(n)).collect();
        if let Some(id) = self.env.resolve(name, false, |n| self.env.function_id(n)) {
            return self.host(id, &types, span);
        }
        match functions::find(name, false) {
            Some(entry) => self.library(entry, &args.iter().collect::<Vec<_>>(), &types, span),
            None => self.unknown(names::unknown_function(self.env, name, false, span)),
        }
    }

    fn unknown(&mut self, e: crate::CompileError) -> Type {
        self.error(e.span, e.message, e.help);
        Type::Dyn
    }

    /// Checks a base and its links.
    pub(super) fn links(&mut self, base: &Node, links: &[Link]) -> Type {
        let env = self.env;
        let mut path = None;
        let mut used: usize = 0;
        let mut ty: Cow<'_, Type> = match &base.kind {
            Kind::Ident { name, absolute } => {
                let locals: Vec<Arc<str>> = self.locals.iter().map(|(n, _)| n.clone()).collect();
                match names::resolve(env, &locals, name, *absolute, links) {
                    Meaning::Local(slot) => {
                        path = Some(format!("#{slot}"));
                        Cow::Owned(self.locals.get(slot).map_or(Type::Dyn, |(_, t)| t.clone()))
                    }
                    Meaning::Root { id, used: n } => {
                        used = n;
                        path = Some(self.base_path(name, *absolute)).filter(|_| n == 0);
                        env.root_type(id).map_or(Cow::Owned(Type::Dyn), Cow::Borrowed)
                    }
                    Meaning::Type { used: n, .. } => {
                        used = n;
                        Cow::Owned(Type::Type)
                    }
                    Meaning::Library { entry, used: n } => {
                        used = n;
                        let (args, span) = call_of(base, links, n);
                        let types: Vec<Type> = args.iter().map(|a| self.node(a)).collect();
                        Cow::Owned(self.library(entry, &args.iter().collect::<Vec<_>>(), &types, span))
                    }
                    Meaning::Host { id, used: n } => {
                        used = n;
                        let (args, span) = call_of(base, links, n);
                        let types: Vec<Type> = args.iter().map(|a| self.node(a)).collect();
                        Cow::Owned(self.host(id, &types, span))
                    }
                    Meaning::Unknown => {
                        let known: Vec<&str> = self.locals.iter().map(|(n, _)| &**n).chain(env.root_names()).collect();
                        let help = suggest::did_you_mean(name, known.iter().copied()).or_else(|| names::listed(&known));
                        self.error(base.span, format!("unknown name `{name}`"), help);
                        Cow::Owned(Type::Dyn)
                    }
                }
            }
            _ => Cow::Owned(self.node(base)),
        };
        let mut span = base.span;
        for (i, link) in links.iter().enumerate() {
            if i < used {
                span = span.to(link.span);
                continue;
            }
            if path.as_deref().is_some_and(|p| self.facts.is_not_null(p)) && matches!(*ty, Type::Union(_)) {
                ty = Cow::Owned(without_null(ty.into_owned()));
            }
            path = path.and_then(|p| facts::extend(&p, link));
            ty = match (&link.kind, ty) {
                // The usual case, which does not copy the type of a whole context.
                (LinkKind::Field(name), Cow::Borrowed(Type::Object { fields, .. }))
                    if fields.get(&**name).is_some_and(|f| f.required) =>
                {
                    fields.get(&**name).map_or(Cow::Owned(Type::Dyn), |f| Cow::Borrowed(&f.ty))
                }
                (_, ty) => Cow::Owned(self.link(base, span, &ty, link, path.as_deref())),
            };
            span = span.to(link.span);
        }
        let ty = ty.into_owned();
        if path.as_deref().is_some_and(|p| self.facts.is_not_null(p)) { without_null(ty) } else { ty }
    }

    fn link(&mut self, base: &Node, before: Span, ty: &Type, link: &Link, path: Option<&str>) -> Type {
        let whole = before.to(link.span);
        match &link.kind {
            LinkKind::Field(name) => self.field(ty, name, before, link.span, path),
            LinkKind::Index(index) => {
                let index_ty = self.node(index);
                if let (Kind::Literal(Literal::String(name)), true) = (&index.kind, has_names(ty)) {
                    return self.field(ty, name, before, link.span, path);
                }
                self.index(ty, &index_ty, whole)
            }
            LinkKind::Method { name, args } => {
                let mut types = vec![ty.clone()];
                types.extend(args.iter().map(|a| self.node(a)));
                match functions::find(name, true) {
                    Some(entry) => {
                        let nodes: Vec<&Node> = std::iter::once(base).chain(args).collect();
                        self.library(entry, &nodes, &types, whole)
                    }
                    None => self.unknown(names::unknown_function(self.env, name, true, link.span)),
                }
            }
            LinkKind::Macro { name, vars, condition, body } => {
                self.macro_call(*name, ty, vars, condition.as_deref(), body, whole)
            }
        }
    }
}

/// The name that a path of fields and indices begins with.
fn path_root(node: &Node) -> Option<&str> {
    let (base, links) = match &node.kind {
        Kind::Postfix { base, links } => (&**base, links.as_slice()),
        _ => (node, [].as_slice()),
    };
    let plain = links.iter().all(|link| matches!(link.kind, LinkKind::Field(_) | LinkKind::Index(_)));
    match &base.kind {
        Kind::Ident { name, .. } if plain => Some(name),
        _ => None,
    }
}

/// Returns the arguments and the position of a call in a namespace.
fn call_of<'n>(base: &Node, links: &'n [Link], used: usize) -> (&'n [Node], Span) {
    match links.get(used.saturating_sub(1)) {
        Some(link) => match &link.kind {
            LinkKind::Method { args, .. } => (args, base.span.to(link.span)),
            _ => (&[], base.span.to(link.span)),
        },
        None => (&[], base.span),
    }
}

fn literal(l: &Literal) -> Type {
    match l {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
