//! Checks a node tree against the grammar: unknown keys, missing keys, values of the wrong type.
//! Collects all errors.

use charter_expr::{nearest, nearest_within};

use super::{Form, Object};
use crate::diagnostic::{Diagnostic, Note, Sink, codes, listed};
use crate::read::{delay, template::quoted_expression};
use crate::source::{Entry, Node, Span, Value};

/// Checks a value against its form in the grammar.
pub(crate) fn check(node: &Node, form: &Form, sink: &mut Sink) {
    if !form.takes(node) {
        return sink.push(wrong_kind(node, form));
    }
    match (form, &node.value) {
        (Form::OneOf { forms, .. }, _) => {
            if let Some(form) = forms.iter().find(|form| form.takes(node)) {
                check(node, form, sink);
            }
        }
        (Form::Object(object), Value::Map(entries)) => check_object(node, entries, object, sink),
        (Form::Map { of, .. }, Value::Map(entries)) => {
            for entry in entries {
                check_entry(entry, of, sink);
            }
        }
        (Form::List(of), Value::List(items)) => {
            for item in items {
                check(item, of, sink);
            }
        }
        (Form::Pattern(pattern), Value::Text(text)) if !(pattern.test)(&text.text) => {
            let message = format!("expected {}, found `{}`", pattern.what, text.text);
            sink.push(Diagnostic::error(codes::VALUE, node.span, message).help(pattern.help));
        }
        (Form::Word(words), Value::Text(text)) if !words.contains(&text.text.as_str()) => {
            let message = format!("expected one of {}, found `{}`", listed(words.iter().copied()), text.text);
            let near = nearest(&text.text, words.iter().copied());
            sink.push(suggest(Diagnostic::error(codes::VALUE, node.span, message), near));
        }
        (Form::Int { min, max }, _) => {
            let message = match node.whole() {
                Some(value) if value < *min => format!("expected a number of at least {min}, found {value}"),
                Some(value) if value > *max => format!("expected a number of at most {max}, found {value}"),
                _ => return,
            };
            sink.push(Diagnostic::error(codes::VALUE, node.span, message));
        }
        (Form::Computed, Value::Text(text)) if !text.text.starts_with("= ") => {
            let help = format!("write `{}`", quoted_expression(&text.text));
            sink.push(
                Diagnostic::error(codes::VALUE, node.span, "expected an expression that starts with `= `").help(help),
            );
        }
        (Form::Delay, _) => {
            if let Err(problem) = delay::read(node) {
                sink.push(problem);
            }
        }
        (Form::Name(what), Value::Text(text)) if text.text.is_empty() => {
            sink.push(Diagnostic::error(
                codes::VALUE,
                node.span,
                format!("expected the name of {what}, found an empty string"),
            ));
        }
        _ => {}
    }
}

fn check_entry(entry: &Entry, form: &Form, sink: &mut Sink) {
    // An absent value has no span of its own: underline the key.
    if entry.value.is_null() && !form.takes(&entry.value) {
        let mut problem = wrong_kind(&entry.value, form);
        problem.span = entry.key.span;
        return sink.push(problem);
    }
    check(&entry.value, form, sink);
}

fn check_object(node: &Node, entries: &[Entry], object: &Object, sink: &mut Sink) {
    for entry in entries {
        match object.field(&entry.key.text) {
            Some(field) => check_entry(entry, field.form, sink),
            // Searching for a similar key is expensive: skip it once the list is full.
            None if sink.is_full() && !object.open => sink.omit(),
            None if sink.is_full() => {}
            None if object.open => warn_if_misspelled(entry, object, sink),
            None => sink.push(unknown_key(entry, object)),
        }
    }
    for field in object.fields().filter(|field| field.required && node.entry(field.key).is_none()) {
        let message = format!("{} needs the key `{}`", object.what, field.key);
        sink.push(Diagnostic::error(codes::MISSING_KEY, head(node), message).help(field.doc));
    }
    exclusive(node, object, sink);
}

/// Checks that exactly one of the keys in `one_of` is present.
fn exclusive(node: &Node, object: &Object, sink: &mut Sink) {
    let mut found = node.entries().iter().filter(|entry| object.one_of.contains(&entry.key.text.as_str()));
    match (found.next(), found.next()) {
        // An unknown key was probably meant to be one of them, and has already been reported.
        (None, _)
            if !object.one_of.is_empty()
                && node.entries().iter().all(|entry| object.field(&entry.key.text).is_some()) =>
        {
            let message = format!("{} needs one of {}", object.what, listed(object.one_of.iter().copied()));
            sink.push(Diagnostic::error(codes::CONFLICT, head(node), message));
        }
        (Some(first), Some(second)) => {
            let message =
                format!("`{}` and `{}` cannot both be set in {}", first.key.text, second.key.text, object.what);
            let mut problem = Diagnostic::error(codes::CONFLICT, second.key.span, message)
                .note(Note::new(first.key.span, "conflicts with this"));
            if object.name == "action" {
                problem = problem.help("an action has a single key; write a list to run several in order");
            }
            sink.push(problem);
        }
        _ => {}
    }
}

fn unknown_key(entry: &Entry, object: &Object) -> Diagnostic {
    let key = &entry.key.text;
    let message = format!("{} has no key `{key}`", object.what);
    let problem = Diagnostic::error(codes::UNKNOWN_KEY, entry.key.span, message);
    let name_like = key.chars().all(|c| c.is_alphanumeric() || "_-$. ".contains(c));
    // `{when: f(a, b)}`: the comma ends the value, and the rest becomes a key without a value.
    if entry.value.is_null() && !name_like {
        return problem.help("quote text with a comma or a brace inside `{...}`");
    }
    match nearest(key, object.fields().map(|field| field.key)) {
        Some(near) => suggest(problem, Some(near)),
        None => problem.help(format!("known keys: {}", listed(object.fields().map(|field| field.key)))),
    }
}

fn warn_if_misspelled(entry: &Entry, object: &Object, sink: &mut Sink) {
    let key = &entry.key.text;
    if let Some(near) = nearest_within(2, key, object.fields().map(|field| field.key))
        && key.len() > 4
    {
        let message = format!("`{key}` is passed to the host, but looks like `{near}`");
        sink.push(suggest(Diagnostic::warning(codes::UNKNOWN_KEY, entry.key.span, message), Some(near)));
    }
}

fn suggest(problem: Diagnostic, near: Option<&str>) -> Diagnostic {
    match near {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    }
}

fn wrong_kind(node: &Node, form: &Form) -> Diagnostic {
    let problem =
        Diagnostic::error(codes::TYPE, head(node), format!("expected {}, found {}", form.what(), node.kind()));
    match (form, &node.value) {
        (Form::Pattern(pattern), _) => problem.help(pattern.help),
        (Form::Text | Form::Name(_), Value::Bool(_) | Value::Int(_) | Value::Float(_)) => problem.help("quote it"),
        (Form::Cel | Form::Computed, Value::Map(_) | Value::List(_)) => {
            problem.help("an expression is a string; quote it if it starts with `{` or `[`")
        }
        (Form::OneOf { forms, .. }, Value::Null) if forms.iter().any(|form| matches!(form, Form::Object(_))) => {
            problem.help("write `{}` for an empty object")
        }
        _ => problem,
    }
}

/// The span to underline: the start of the value.
fn head(node: &Node) -> Span {
    match node.entries().first() {
        Some(first) if first.key.span.start >= node.span.start => Span::new(node.span.start, first.key.span.end),
        _ => node.span,
    }
}
