//! Checks expressions and templates: their types, and whether these are the expected types.

use charter_expr::{Env, Type};
use charter_kernel::definition::{Delay, Template};

use super::Checker;
use super::env::Place;
use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::escape;

/// The expected result of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    Bool,
    /// A key, an id or an event type.
    Text,
    /// A unique key.
    Key,
    Delay,
    /// A time, or a duration from now.
    Time,
    List,
    /// An id, a list of ids, or null.
    Principals,
}

impl<'d> Checker<'_, 'd> {
    pub(super) fn maybe(&mut self, value: Option<&'d Template>, at: &str, place: &Place) {
        if let Some(value) = value {
            self.template(value, at, place);
        }
    }

    pub(super) fn text(&mut self, value: &'d Template, at: &str, place: &Place) {
        match value {
            Template::Cel(cel) => drop(self.cel(cel, &format!("{at}/cel"), place, Expected::Text)),
            other => drop(self.template(other, at, place)),
        }
    }

    pub(super) fn time(&mut self, value: Option<&'d Template>, at: &str, place: &Place) {
        match value {
            Some(Template::Cel(cel)) => drop(self.cel(cel, &format!("{at}/cel"), place, Expected::Time)),
            other => self.maybe(other, at, place),
        }
    }

    pub(super) fn delay(&mut self, delay: &'d Delay, at: &str, place: &Place) {
        if let Delay::Cel(cel) = delay {
            self.cel(cel, &format!("{at}/cel"), place, Expected::Delay);
        }
    }

    pub(super) fn template(&mut self, value: &'d Template, at: &str, place: &Place) -> Type {
        match value {
            Template::Literal(json) => Type::of_json(json),
            Template::Cel(cel) => self.cel(cel, &format!("{at}/cel"), place, Expected::Anything),
            Template::List(items) => Type::list(Type::union(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.template(t, &format!("{at}/list/{i}"), place))
                    .collect::<Vec<_>>(),
            )),
            Template::Object(fields) => {
                let typed = fields.iter().map(|(k, t)| {
                    (
                        k.clone(),
                        charter_expr::Field::required(self.template(t, &format!("{at}/object/{}", escape(k)), place)),
                    )
                });
                Type::object(typed.collect::<Vec<_>>())
            }
        }
    }

    /// Checks an expression that does not occur literally in the source, so that findings have no
    /// byte range.
    pub(super) fn cel_without_span(&mut self, cel: &'d str, at: &str, place: &Place) {
        let before = self.findings.len();
        self.cel(cel, at, place, Expected::Anything);
        self.findings.iter_mut().skip(before).for_each(|f| f.bytes = None);
    }

    pub(super) fn cel(&mut self, cel: &'d str, at: &str, place: &Place, expected: Expected) -> Type {
        let Some(ast) = self.model.ast(cel) else {
            return Type::Dyn;
        };
        let names_root = ast.reads().iter().any(|p| p.root() == "actors" && first_field(p) == Some("root"));
        let env = self.types.env(self.model, place, names_root);
        self.check_expr(cel, at, &env, Some(place.chart), expected)
    }

    pub(super) fn check_expr(
        &mut self,
        cel: &'d str,
        at: &str,
        env: &Env,
        chart: Option<usize>,
        expected: Expected,
    ) -> Type {
        let Some(ast) = self.model.ast(cel) else {
            return Type::Dyn;
        };
        let (ty, found) = charter_expr::check(&ast, env);
        for f in found {
            let severity = match f.severity {
                charter_expr::Severity::Error => Severity::Error,
                _ => Severity::Warning,
            };
            let code = match f.kind {
                charter_expr::FindingKind::UntypedNumber => {
                    self.untyped_number(&f, cel, at, chart);
                    continue;
                }
                charter_expr::FindingKind::UnknownField => codes::UNKNOWN_FIELD,
                _ => codes::TYPE,
            };
            let mut finding = Finding::new(severity, code, at, f.message).bytes(f.span.start, f.span.end);
            finding.help = f.help;
            self.findings.push(finding);
        }
        if let Some(chart) = chart.and_then(|c| self.model.charts.get(c)) {
            self.states_named(&ast, at, chart);
        }
        if let Some(message) = unexpected(&ty, expected) {
            self.findings.push(Finding::new(Severity::Error, codes::TYPE, at, message).bytes(0, cel.len()));
        }
        ty
    }

    /// Reports a unique key that some data of the event does not give.
    pub(super) fn may_be_no_key(&mut self, ty: &Type, cel: &str, at: &str) {
        let Type::Union(types) = ty else {
            return;
        };
        let is_odd = |t: &&Type| !is_key(t) && **t != Type::Dyn;
        if let Some(odd) = types.iter().find(is_odd).filter(|_| types.iter().any(is_key)) {
            let message = format!("the key may be of type {odd}; then the event is refused");
            let help = "let the schema of the event require a string, an integer or a boolean";
            let finding = Finding::new(Severity::Warning, codes::TYPE, at, message).bytes(0, cel.len());
            self.findings.push(finding.help(help));
        }
    }

    /// Checks the states in `in('x')`: reports those that do not exist.
    fn states_named(&mut self, ast: &charter_expr::Ast, at: &str, chart: &crate::model::Chart<'_>) {
        use charter_expr::ast::{Kind, Literal};
        for call in ast.calls().into_iter().filter(|c| !c.method && matches!(c.name.as_str(), "in" | "In")) {
            let Some(Kind::Literal(Literal::String(path))) = call.args.first().map(|n| &n.kind) else {
                continue;
            };
            if chart.outline.find(path).is_some() {
                continue;
            }
            let near = charter_expr::nearest(path, chart.states.iter().map(|s| s.path));
            let help = near.map_or_else(
                || "name a state by its path, such as `review.waiting`, or by its id".to_string(),
                |n| format!("did you mean `{n}`?"),
            );
            // In SCXML, `In` is false for an unknown state.
            let severity = if call.name == "in" { Severity::Error } else { Severity::Warning };
            let of = if chart.name == "root" { String::new() } else { format!(" in machine `{}`", chart.name) };
            let finding = Finding::new(severity, codes::UNKNOWN_STATE, at, format!("there is no state `{path}`{of}"))
                .bytes(call.span.start, call.span.end);
            self.findings.push(finding.help(help));
        }
    }
}

fn first_field(path: &charter_expr::Path) -> Option<&str> {
    match path.segments().first()? {
        charter_expr::Segment::Field(name) => Some(name),
        charter_expr::Segment::Index(_) => None,
    }
}

/// The types of the items and keys of a collection that `each` iterates over.
pub(super) fn item_of(ty: &Type) -> (Type, Type) {
    match ty {
        Type::List(item) => ((**item).clone(), Type::Int),
        Type::Map(key, value) => ((**value).clone(), (**key).clone()),
        Type::Object { fields, open: false } => (Type::union(fields.values().map(|f| f.ty.clone())), Type::String),
        _ => (Type::Dyn, Type::Dyn),
    }
}

fn is_key(ty: &Type) -> bool {
    matches!(ty, Type::String | Type::Int | Type::Uint | Type::Number | Type::Bool)
}

/// Explains why a value of this type cannot be what is expected; `None` if it can.
fn unexpected(ty: &Type, expected: Expected) -> Option<String> {
    let (what, good): (&str, fn(&Type) -> bool) = match expected {
        Expected::Anything => return None,
        Expected::Bool => ("expected a bool", |t| matches!(t, Type::Bool)),
        Expected::Text => ("expected a string", |t| {
            matches!(t, Type::String | Type::Int | Type::Uint | Type::Double | Type::Number | Type::Bool)
        }),
        Expected::Key => ("expected a string, an integer or a boolean as the key", is_key),
        Expected::Delay => ("expected a delay (a duration, milliseconds, or a string such as `24h`)", |t| {
            matches!(t, Type::Duration | Type::Int | Type::Double | Type::Number | Type::String)
        }),
        Expected::Time => ("expected a time (a timestamp, a duration from now, a string, or milliseconds)", |t| {
            matches!(t, Type::Timestamp | Type::Duration | Type::Int | Type::Double | Type::Number | Type::String)
        }),
        Expected::Principals => ("expected the id of a principal, a list of ids, or null", |t| {
            let id = |t: &Type| matches!(t, Type::String | Type::Null | Type::Dyn);
            match t {
                Type::List(item) => match item.as_ref() {
                    Type::Union(types) => types.iter().any(id),
                    item => id(item),
                },
                t => id(t),
            }
        }),
        Expected::List => {
            ("expected a list or a map", |t| matches!(t, Type::List(_) | Type::Map(..) | Type::Object { .. }))
        }
    };
    let any = match ty {
        Type::Union(types) => types.iter().any(|t| good(t) || *t == Type::Dyn),
        Type::Dyn => true,
        other => good(other),
    };
    (!any).then(|| format!("{what}, found {ty}"))
}
