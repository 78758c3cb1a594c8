//! The checker's walk over the tree: names, fields, indexes, macros.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Checker, alternatives, facts, join, without_null};
use crate::ast::{BinaryOp, Kind, Link, LinkKind, Literal, MacroName, Node, UnaryOp};
use crate::functions;
use crate::names::{self, Meaning};
use crate::types::a;
use crate::{Field, Span, Type, compile, suggest};

/// What a field of a type is, for one simple type.
enum Found {
    /// There it is.
    Is(Type),
    /// It may be missing.
    Maybe(Type),
    /// Nothing is known of it, although other fields are.
    Undeclared,
    /// It is never there.
    Never,
    /// Such values have no fields.
    NoFields,
}

impl Checker<'_> {
    pub(super) fn node(&mut self, node: &Node) -> Type {
        match &node.kind {
            Kind::Literal(l) => literal(l),
            Kind::Ident { .. } => self.links(node, &[]),
            Kind::Postfix { base, links } => self.links(base, links),
            Kind::List(items) => {
                let types: Vec<Type> = items.iter().map(|n| self.node(n)).collect();
                Type::list(Type::union(types))
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
                Type::map(Type::union(keys), Type::union(values))
            }
            Kind::Call { function, args } => self.call(function, args, node.span),
            Kind::Has(of) => self.has(of),
            Kind::Bind { name, value, body } => {
                let ty = self.node(value);
                self.within(&[(name.clone(), ty)], |c| c.node(body))
            }
            Kind::Unary {
                op: UnaryOp::Not,
                operand,
                ..
            } => {
                let ty = self.node(operand);
                self.condition(&ty, operand.span, "`!`");
                Type::Bool
            }
            Kind::Unary {
                op: UnaryOp::Negate,
                operand,
                ..
            } => {
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
        let good = |t: &Type| {
            matches!(
                t,
                Type::Dyn | Type::Int | Type::Uint | Type::Bool | Type::String
            )
        };
        let types = alternatives(ty);
        let help = || Some("keys are strings, ints, uints and bools".to_owned());
        if !types.iter().any(good) {
            self.error(
                span,
                format!("{} cannot be the key of a map", a(ty)),
                help(),
            );
        } else if !types.iter().all(good) {
            self.warning(
                span,
                format!("for some values: {} cannot be the key of a map", a(ty)),
                help(),
            );
        }
    }

    /// A condition must be a bool.
    fn condition(&mut self, ty: &Type, span: Span, of: &str) {
        let good = |t: &Type| matches!(t, Type::Dyn | Type::Bool);
        let types = alternatives(ty);
        let message = format!("{of} needs a bool, and this is {}", a(ty));
        if !types.iter().any(good) {
            self.error(span, message, None);
        } else if !types.iter().all(good) {
            let null = types.contains(&Type::Null);
            let help = null.then(|| format!("write `{} == true`", self.text(span)));
            self.warning(span, format!("for some values: {message}"), help);
        }
    }

    /// `&&` (`all`) and `||`: each operand may rely on what the others make sure of.
    fn logic(&mut self, operands: &[Node], all: bool) -> Type {
        let facts: Vec<facts::Facts> = operands.iter().map(|n| self.facts_if(n, all)).collect();
        let outer = self.facts.clone();
        // Sums of the facts before and after each operand would be exact; all of them are, for one operand among
        // many, the same but for its own, which it has made sure of itself.
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
        join(types)
    }

    fn chain(&mut self, first: &Node, rest: &[(BinaryOp, Node)]) -> Type {
        let mut ty = self.node(first);
        for (op, right) in rest {
            let right_ty = self.node(right);
            let span = first.span.to(right.span);
            let zero = matches!(
                right.kind,
                Kind::Literal(Literal::Int(0) | Literal::Uint(0))
            );
            if zero && matches!(op, BinaryOp::Div | BinaryOp::Rem) {
                self.warning(span, "division by zero".to_owned(), None);
            }
            ty = self.binary(*op, &ty, &right_ty, span);
        }
        ty
    }

    fn within<T>(&mut self, vars: &[(Arc<str>, Type)], f: impl FnOnce(&mut Self) -> T) -> T {
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
            None => self.unknown(compile::unknown_function(self.env, name, false, span)),
        }
    }

    fn unknown(&mut self, e: crate::CompileError) -> Type {
        self.error(e.span, e.message, e.help);
        Type::Dyn
    }

    /// `has(x.y)`: the field may be missing, what holds it may not.
    fn has(&mut self, of: &Node) -> Type {
        let Kind::Postfix { base, links } = &of.kind else {
            return Type::Bool;
        };
        let Some((last, before)) = links.split_last() else {
            return Type::Bool;
        };
        let holder = self.links(base, before);
        let LinkKind::Field(name) = &last.kind else {
            return Type::Bool;
        };
        let span = base.span.to(last.span);
        let found: Vec<Found> = alternatives(&holder)
            .iter()
            .map(|t| field_of(t, name))
            .collect();
        let holder_text = self.text(before.last().map_or(base.span, |l| base.span.to(l.span)));
        if found.iter().all(|f| matches!(f, Found::NoFields)) {
            self.error(span, format!("{} has no fields", a(&holder)), None);
        } else if found.iter().any(|f| matches!(f, Found::NoFields)) {
            self.warning(
                span,
                format!("for some values: {}", no_fields(&holder, &holder_text)),
                null_help(&holder, &holder_text),
            );
        } else if found.iter().all(|f| matches!(f, Found::Never)) {
            let help = suggest_field(&holder, name);
            self.warning(
                span,
                format!("`has` is always false: there is no field `{name}` in `{holder_text}`"),
                help,
            );
        }
        Type::Bool
    }

    /// A base with its links.
    fn links(&mut self, base: &Node, links: &[Link]) -> Type {
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
                        env.root_type(id)
                            .map_or(Cow::Owned(Type::Dyn), Cow::Borrowed)
                    }
                    Meaning::Type { used: n, .. } => {
                        used = n;
                        Cow::Owned(Type::Type)
                    }
                    Meaning::Library { entry, used: n } => {
                        used = n;
                        let (args, span) = call_of(base, links, n);
                        let types: Vec<Type> = args.iter().map(|a| self.node(a)).collect();
                        Cow::Owned(self.library(
                            entry,
                            &args.iter().collect::<Vec<_>>(),
                            &types,
                            span,
                        ))
                    }
                    Meaning::Host { id, used: n } => {
                        used = n;
                        let (args, span) = call_of(base, links, n);
                        let types: Vec<Type> = args.iter().map(|a| self.node(a)).collect();
                        Cow::Owned(self.host(id, &types, span))
                    }
                    Meaning::Unknown => {
                        let known: Vec<&str> = self
                            .locals
                            .iter()
                            .map(|(n, _)| &**n)
                            .chain(env.root_names())
                            .collect();
                        let help = suggest::did_you_mean(name, known.iter().copied())
                            .or_else(|| compile::listed(&known));
                        self.error(base.span, format!("`{name}` is not known here"), help);
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
            if path.as_deref().is_some_and(|p| self.facts.is_not_null(p))
                && matches!(*ty, Type::Union(_))
            {
                ty = Cow::Owned(without_null(ty.into_owned()));
            }
            path = path.and_then(|p| facts::extend(&p, link));
            ty = match (&link.kind, ty) {
                // The usual case, without copying the type of a whole context.
                (LinkKind::Field(name), Cow::Borrowed(Type::Object { fields, .. }))
                    if fields.get(&**name).is_some_and(|f| f.required) =>
                {
                    fields
                        .get(&**name)
                        .map_or(Cow::Owned(Type::Dyn), |f| Cow::Borrowed(&f.ty))
                }
                (_, ty) => Cow::Owned(self.link(base, span, &ty, link, path.as_deref())),
            };
            span = span.to(link.span);
        }
        let ty = ty.into_owned();
        if path.as_deref().is_some_and(|p| self.facts.is_not_null(p)) {
            without_null(ty)
        } else {
            ty
        }
    }

    fn link(
        &mut self,
        base: &Node,
        before: Span,
        ty: &Type,
        link: &Link,
        path: Option<&str>,
    ) -> Type {
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
                    None => {
                        self.unknown(compile::unknown_function(self.env, name, true, link.span))
                    }
                }
            }
            LinkKind::Macro {
                name,
                vars,
                condition,
                body,
            } => self.macro_call(*name, ty, vars, condition.as_deref(), body, whole),
        }
    }

    fn field(
        &mut self,
        ty: &Type,
        name: &str,
        before: Span,
        link: Span,
        path: Option<&str>,
    ) -> Type {
        let holder = self.text(before);
        let mut good = Vec::new();
        let (mut missing, mut undeclared, mut never, mut unfit) = (false, false, false, false);
        for alternative in alternatives(ty) {
            match field_of(&alternative, name) {
                Found::Is(ty) => good.push(ty),
                Found::Maybe(ty) => {
                    missing = true;
                    good.push(ty);
                }
                Found::Undeclared => {
                    undeclared = true;
                    good.push(Type::Dyn);
                }
                Found::Never => never = true,
                Found::NoFields => unfit = true,
            }
        }
        let present = path.is_some_and(|p| self.facts.is_present(p));
        if good.is_empty() {
            let (message, help) = if never {
                let help = suggest_field(ty, name).or_else(|| fields_of(ty));
                (format!("there is no field `{name}` in `{holder}`"), help)
            } else {
                (
                    format!(
                        "the field `{name}` of {}: such values have no fields",
                        a(ty)
                    ),
                    null_help(ty, &holder),
                )
            };
            self.error(link, message, help);
            return Type::Dyn;
        }
        if unfit {
            self.warning(
                link,
                format!("for some values: {}", no_fields(ty, &holder)),
                null_help(ty, &holder),
            );
        }
        if never && !present {
            self.warning(
                link,
                format!("for some values: there is no field `{name}` in `{holder}`"),
                suggest_field(ty, name),
            );
        }
        if undeclared
            && !present
            && let Some(help) = suggest_field(ty, name)
        {
            self.warning(
                link,
                format!("`{name}` is not a declared field of `{holder}`"),
                Some(help),
            );
        }
        if missing && !present {
            let help = format!("ask first: `has({holder}.{name}) && ...`");
            self.warning(
                link,
                format!("the field `{name}` of `{holder}` may be missing"),
                Some(help),
            );
        }
        join(good)
    }

    fn index(&mut self, ty: &Type, index: &Type, span: Span) -> Type {
        let numeric = |t: &Type| matches!(t, Type::Int | Type::Uint | Type::Double | Type::Dyn);
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for t in alternatives(ty) {
            for i in alternatives(index) {
                match &t {
                    Type::Dyn => good.push(Type::Dyn),
                    Type::List(item) if numeric(&i) => good.push((**item).clone()),
                    Type::Map(_, value)
                        if !matches!(
                            i,
                            Type::Null | Type::List(_) | Type::Map(..) | Type::Bytes
                        ) =>
                    {
                        good.push((**value).clone());
                    }
                    Type::Object { .. } if matches!(i, Type::String | Type::Dyn) => {
                        good.push(Type::Dyn)
                    }
                    _ => bad.push((t.clone(), i)),
                }
            }
        }
        if let Some((t, i)) = bad.first() {
            let message = format!("{} cannot be indexed with {}", a(t), a(i));
            if good.is_empty() {
                self.error(span, message, None);
            } else {
                let holder = self.text(span);
                self.warning(
                    span,
                    format!("for some values: {message}"),
                    null_help(ty, &holder),
                );
            }
        }
        if good.is_empty() {
            Type::Dyn
        } else {
            join(good)
        }
    }

    fn macro_call(
        &mut self,
        name: MacroName,
        over: &Type,
        vars: &[Arc<str>],
        condition: Option<&Node>,
        body: &Node,
        span: Span,
    ) -> Type {
        let mut firsts = Vec::new();
        let mut seconds = Vec::new();
        let mut bad = false;
        for t in alternatives(over) {
            let (first, second) = match t {
                Type::Dyn => (Type::Dyn, Type::Dyn),
                Type::List(item) if vars.len() > 1 => (Type::Int, *item),
                Type::List(item) => (*item, Type::Dyn),
                Type::Map(key, value) => (*key, *value),
                Type::Object { fields, open } => {
                    let values = if open {
                        Type::Dyn
                    } else {
                        Type::union(fields.into_values().map(|f: Field| f.ty))
                    };
                    (Type::String, values)
                }
                _ => {
                    bad = true;
                    continue;
                }
            };
            firsts.push(first);
            seconds.push(second);
        }
        let shown = name.name(vars.len());
        if bad {
            let message = format!("`{shown}` needs a list or a map, and this is {}", a(over));
            if firsts.is_empty() {
                self.error(span, message, None);
            } else {
                let text = self.text(span);
                self.warning(
                    span,
                    format!("for some values: {message}"),
                    null_help(over, &text),
                );
            }
        }
        let item = join(firsts);
        let types = [item.clone(), join(seconds)];
        let bound: Vec<(Arc<str>, Type)> = vars.iter().cloned().zip(types).collect();
        let key = bound.first().map_or(Type::Dyn, |(_, t)| t.clone());
        let result = self.within(&bound, |c| {
            if let Some(condition) = condition {
                let ty = c.node(condition);
                c.condition(&ty, condition.span, &format!("the condition of `{shown}`"));
                c.facts.add(c.facts_if(condition, true));
            }
            c.node(body)
        });
        match name {
            MacroName::All | MacroName::Exists | MacroName::ExistsOne => {
                self.condition(&result, body.span, &format!("the condition of `{shown}`"));
                Type::Bool
            }
            MacroName::Filter => {
                self.condition(&result, body.span, "the condition of `filter`");
                Type::list(item)
            }
            MacroName::Map | MacroName::TransformList => Type::list(result),
            MacroName::TransformMap => Type::map(key, result),
            MacroName::TransformMapEntry => {
                let maps = |t: &Type| matches!(t, Type::Dyn | Type::Map(..) | Type::Object { .. });
                if !alternatives(&result).iter().any(maps) {
                    self.error(
                        body.span,
                        format!(
                            "`{shown}` needs a map with the new entry, and this is {}",
                            a(&result)
                        ),
                        None,
                    );
                }
                match result {
                    Type::Map(k, v) => Type::Map(k, v),
                    _ => Type::map(Type::Dyn, Type::Dyn),
                }
            }
        }
    }
}

/// The arguments and the place of a call of a namespace.
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

fn field_of(ty: &Type, name: &str) -> Found {
    match ty {
        Type::Dyn => Found::Is(Type::Dyn),
        Type::Object { fields, open } => match fields.get(name) {
            Some(field) if field.required => Found::Is(field.ty.clone()),
            Some(field) => Found::Maybe(field.ty.clone()),
            None if *open => Found::Undeclared,
            None => Found::Never,
        },
        Type::Map(key, value) => {
            let by_text = alternatives(key)
                .iter()
                .any(|k| matches!(k, Type::String | Type::Dyn));
            if by_text {
                Found::Is((**value).clone())
            } else {
                Found::Never
            }
        }
        _ => Found::NoFields,
    }
}

/// Whether an index by a literal string is the same as a field.
fn has_names(ty: &Type) -> bool {
    alternatives(ty)
        .iter()
        .any(|t| matches!(t, Type::Object { .. }))
}

fn suggest_field(ty: &Type, name: &str) -> Option<String> {
    let types = alternatives(ty);
    let names = types.iter().filter_map(|t| match t {
        Type::Object { fields, .. } => Some(fields.keys().map(String::as_str)),
        _ => None,
    });
    suggest::did_you_mean(name, names.flatten())
}

fn fields_of(ty: &Type) -> Option<String> {
    let types = alternatives(ty);
    let names: Vec<&str> = types
        .iter()
        .filter_map(|t| match t {
            Type::Object { fields, .. } => Some(fields.keys().map(String::as_str)),
            _ => None,
        })
        .flatten()
        .collect();
    compile::listed(&names)
}

fn no_fields(ty: &Type, holder: &str) -> String {
    let bad: Vec<Type> = alternatives(ty)
        .into_iter()
        .filter(|t| matches!(field_of(t, ""), Found::NoFields))
        .collect();
    format!("`{holder}` is {}, which has no fields", a(Type::union(bad)))
}

fn null_help(ty: &Type, holder: &str) -> Option<String> {
    alternatives(ty)
        .contains(&Type::Null)
        .then(|| format!("check `{holder} != null` first"))
}
