//! Checks fields and indexes: whether they exist, may be missing, or never exist.

use super::{Checker, Severity, alternatives, join};
use crate::ast::{Kind, LinkKind, Node};
use crate::types::a;
use crate::{Span, Type, names, suggest};

/// The result of looking up a field in one simple type.
enum Found {
    /// Declared and always present.
    Is(Type),
    /// Declared, but may be missing.
    Maybe(Type),
    /// Not declared, but the type is open, so the field may exist.
    Undeclared,
    /// Cannot exist: the type is closed.
    Never,
    /// Values of this type have no fields.
    NoFields,
}

impl Checker<'_> {
    /// Checks `has(x.y)`: the field `y` may be missing, but `x` must exist.
    pub(super) fn has(&mut self, of: &Node) -> Type {
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
        let found: Vec<Found> = alternatives(&holder).iter().map(|t| field_of(t, name)).collect();
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
            let message = format!("`has` is always false: there is no field `{name}` in `{holder_text}`");
            self.unknown_field(Severity::Warning, span, message, help);
        }
        Type::Bool
    }

    pub(super) fn field(&mut self, ty: &Type, name: &str, before: Span, link: Span, path: Option<&str>) -> Type {
        let holder = self.text(before);
        let mut good = Vec::new();
        let (mut missing, mut declared, mut undeclared, mut never, mut unfit) = (false, false, false, false, false);
        for alternative in alternatives(ty) {
            match field_of(&alternative, name) {
                Found::Is(ty) => {
                    declared = true;
                    good.push(ty);
                }
                Found::Maybe(ty) => {
                    (missing, declared) = (true, true);
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
            if never {
                let help = suggest_field(ty, name).or_else(|| fields_of(ty));
                let message = format!("there is no field `{name}` in `{holder}`");
                self.unknown_field(Severity::Error, link, message, help);
            } else {
                let message = format!("the field `{name}` of {}: such values have no fields", a(ty));
                self.error(link, message, null_help(ty, &holder));
            }
            return Type::Dyn;
        }
        if unfit {
            self.warning(link, format!("for some values: {}", no_fields(ty, &holder)), null_help(ty, &holder));
        }
        if never && !present {
            let message = format!("for some values: there is no field `{name}` in `{holder}`");
            self.unknown_field(Severity::Warning, link, message, suggest_field(ty, name));
        }
        if undeclared
            && !declared
            && !present
            && let Some(help) = suggest_field(ty, name)
        {
            let message = format!("`{name}` is not a declared field of `{holder}`");
            self.unknown_field(Severity::Warning, link, message, Some(help));
        }
        if missing && !present {
            let help = format!("check first: `has({holder}.{name}) && ...`");
            self.warning(link, format!("the field `{name}` of `{holder}` may be missing"), Some(help));
        }
        join(good)
    }

    pub(super) fn index(&mut self, ty: &Type, index: &Type, span: Span) -> Type {
        let numeric = |t: &Type| matches!(t, Type::Int | Type::Uint | Type::Double | Type::Dyn);
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for t in alternatives(ty) {
            for i in alternatives(index) {
                match &t {
                    Type::Dyn => good.push(Type::Dyn),
                    Type::List(item) if numeric(&i) => good.push((**item).clone()),
                    Type::Map(_, value) if !matches!(i, Type::Null | Type::List(_) | Type::Map(..) | Type::Bytes) => {
                        good.push((**value).clone());
                    }
                    Type::Object { .. } if matches!(i, Type::String | Type::Dyn) => good.push(Type::Dyn),
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
                self.warning(span, format!("for some values: {message}"), null_help(ty, &holder));
            }
        }
        if good.is_empty() { Type::Dyn } else { join(good) }
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
            let by_text = alternatives(key).iter().any(|k| matches!(k, Type::String | Type::Dyn));
            if by_text { Found::Is((**value).clone()) } else { Found::Never }
        }
        _ => Found::NoFields,
    }
}

/// Whether an index with a literal string means the same as a field.
pub(super) fn has_names(ty: &Type) -> bool {
    alternatives(ty).iter().any(|t| matches!(t, Type::Object { .. }))
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
    names::listed(&names)
}

fn no_fields(ty: &Type, holder: &str) -> String {
    let bad: Vec<Type> = alternatives(ty).into_iter().filter(|t| matches!(field_of(t, ""), Found::NoFields)).collect();
    format!("`{holder}` is {}, which has no fields", a(Type::union(bad)))
}

pub(super) fn null_help(ty: &Type, holder: &str) -> Option<String> {
    alternatives(ty).contains(&Type::Null).then(|| format!("check `{holder} != null` first"))
}
