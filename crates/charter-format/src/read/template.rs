//! Reads templates: JSON in which a string that starts with `= ` is an expression.

use charter_kernel::definition::{Delay, Template};
use indexmap::IndexMap;

use super::context::{Context, Space};
use super::delay;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Node, Value};

/// Renders an expression as a string value, which both YAML and JSON read: `"= context.x"`.
pub(crate) fn quoted_expression(text: &str) -> String {
    serde_json::Value::from(format!("= {text}")).to_string()
}

/// Reads a template. A value without expressions becomes a single literal.
pub(crate) fn template(cx: &mut Context, node: &Node) -> Template {
    if !computes(node) {
        if let Some(text) = node.text().filter(|text| looks_computed(text)) {
            let problem = Diagnostic::warning(
                codes::MAYBE_EXPRESSION,
                node.span,
                "this string starts with `=` but is not an expression: the space after `=` is missing",
            );
            let rest = text.trim_start_matches('=');
            cx.report(
                problem.help(format!("write `{}`, or `{{literal: ...}}` to keep it as text", quoted_expression(rest))),
            );
        }
        return Template::Literal(literal(node));
    }
    match &node.value {
        Value::Text(text) => {
            cx.mark_text(node, 2);
            Template::Cel(text.text.strip_prefix("= ").unwrap_or_default().trim_end_matches('\n').to_owned())
        }
        Value::List(_) => Template::List(cx.at("list", |cx| cx.items(node, template))),
        _ => Template::Object(cx.at("object", |cx| templates(cx, node))),
    }
}

/// Reads the entries of an object as templates.
pub(crate) fn templates(cx: &mut Context, node: &Node) -> IndexMap<String, Template> {
    node.entries().iter().map(|entry| (entry.key.text.clone(), cx.field(&entry.key.text, entry, template))).collect()
}

/// Reads a delay as a value. The grammar check reports invalid ones.
pub(crate) fn delay(cx: &mut Context, node: &Node) -> Delay {
    let read = delay::read(node).unwrap_or(Delay::Ms(0));
    match &read {
        Delay::Cel(_) => cx.mark_text(node, 2),
        Delay::Name(_) => {
            cx.name(Space::Delay, node);
        }
        Delay::Ms(_) => {}
    }
    read
}

/// Whether a value contains an expression outside of `{literal: ...}`.
fn computes(node: &Node) -> bool {
    match &node.value {
        Value::Text(text) => text.text.starts_with("= "),
        Value::List(items) => items.iter().any(computes),
        Value::Map(entries) => match node.get("literal").filter(|_| entries.len() == 1) {
            Some(_) => false,
            None => entries.iter().any(|entry| computes(&entry.value)),
        },
        _ => false,
    }
}

/// Converts the value to JSON; `{literal: x}` becomes `x`.
fn literal(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Map(entries) => match node.get("literal").filter(|_| entries.len() == 1) {
            Some(value) => value.as_written(),
            None => entries.iter().map(|entry| (entry.key.text.clone(), literal(&entry.value))).collect(),
        },
        Value::List(items) => items.iter().map(literal).collect(),
        _ => node.as_written(),
    }
}

/// Whether text looks like an expression, such as `=x.y` or `=f(`; `==` and `=` do not.
fn looks_computed(text: &str) -> bool {
    text.strip_prefix('=').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || "_({[\"'!".contains(c)))
}
