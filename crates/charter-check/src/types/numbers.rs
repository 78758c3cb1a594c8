//! Numbers in places without a declared type, and fractions in the places of ints.

use charter_expr::{Key, NumberType, Numbers, Segment, Type};
use charter_kernel::definition::Template;
use serde_json::Value as Json;

use super::Checker;
use crate::codes;
use crate::finding::{Finding, Severity};

impl Checker<'_, '_> {
    /// Reports a number that is an int or a double by its value, with the declaration to add.
    pub(super) fn untyped_number(&mut self, found: &charter_expr::Finding, cel: &str, at: &str, chart: Option<usize>) {
        // Numbers in JavaScript have one type, so imports declare none.
        if !self.model.def.strict {
            return;
        }
        let ast = charter_expr::parse(found.span.of(cel)).ok();
        let path = ast.as_ref().and_then(|ast| ast.reads().into_iter().find(|path| path.span().start == 0));
        let mut help = found.help.clone();
        if let (Some(path), None) = (&path, &help) {
            let segments = path.segments();
            help = match (path.root(), segments.first()) {
                ("context", Some(Segment::Field(variable))) => {
                    if self.declared_number(chart, variable, segments.get(1..).unwrap_or_default()) {
                        return;
                    }
                    let whole = found.message.contains('%');
                    // After a computed index, the path is longer than what is known of it.
                    let known = path.span().end.saturating_sub(path.span().start) == found.span.of(cel).len();
                    Some(match known {
                        true => format!(
                            "declare it: `types: {{context: {}}}`",
                            declaration(segments, whole, self.starts_as_null(chart, variable))
                        ),
                        false => "declare the type of the items under `types.context`".into(),
                    })
                }
                ("event", _) => {
                    let place = "declare the event's data with a schema under `events`, or an actor's `output`";
                    Some(format!("{place}; convert the output of a machine with `int(x)` or `double(x)`"))
                }
                ("input", _) => Some("declare it with a schema under `input`".into()),
                _ => Some("convert it with `int(x)` or `double(x)`".into()),
            };
        }
        let mut finding = Finding::new(Severity::Warning, codes::UNTYPED_NUMBER, at, found.message.clone())
            .bytes(found.span.start, found.span.end);
        finding.help = help;
        self.findings.push(finding);
    }

    fn starts_as_null(&self, chart: Option<usize>, variable: &str) -> bool {
        let first = chart.and_then(|chart| self.model.charts.get(chart)).and_then(|c| c.def.context.get(variable));
        matches!(first, Some(Template::Literal(Json::Null)))
    }

    /// Whether the numbers in a part of a context variable have a type although its values may be
    /// anything.
    fn declared_number(&self, chart: Option<usize>, variable: &str, rest: &[Segment]) -> bool {
        let mut numbers = chart.and_then(|chart| self.types.numbers(chart, variable));
        for segment in rest {
            numbers = numbers.and_then(|numbers| match segment {
                Segment::Field(name) => numbers.field(name),
                Segment::Index(Key::String(name)) => numbers.field(name.as_str()),
                Segment::Index(_) => numbers.item(0),
            });
        }
        numbers.is_some_and(|numbers| numbers.number().is_some())
    }

    /// Reports an assignment of a double to a place of ints.
    pub(super) fn fits_number(&mut self, chart: usize, path: &str, ty: &Type, at: &str) {
        let mut names = path.split('.');
        let place = names.next().and_then(|variable| self.types.numbers(chart, variable));
        let place = names.fold(place, |numbers, name| numbers?.field(name));
        let is_double = match ty {
            Type::Union(types) => types.contains(&Type::Double),
            other => *other == Type::Double,
        };
        if !is_double || place.and_then(Numbers::number) != Some(NumberType::Int) {
            return;
        }
        let message =
            format!("`context.{path}` holds ints, but this is a double: with a fraction, the assignment fails");
        let help = format!(
            "declare `{path}` as a number under `types.context`, or start with a double (`0.0`); or convert with `int(x)`"
        );
        self.findings.push(Finding::new(Severity::Warning, codes::DATA_MISMATCH, at, message).help(help));
    }
}

/// The schema of the context that declares one number.
fn declaration(path: &[Segment], whole: bool, null: bool) -> String {
    let name = if whole { "integer" } else { "number" };
    let number = match path {
        [_] if null => format!("{{type: [{name}, 'null']}}"),
        _ => format!("{{type: {name}}}"),
    };
    path.iter().rev().fold(number, |inner, segment| match segment {
        Segment::Field(name) => format!("{{properties: {{{name}: {inner}}}}}"),
        Segment::Index(Key::String(name)) => format!("{{properties: {{{name}: {inner}}}}}", name = name.as_str()),
        Segment::Index(_) => format!("{{items: {inner}}}"),
    })
}
