//! The types that describe the grammar of the language; the grammar itself is in [`table`].
//!
//! The reader (unknown keys, suggestions, types of values) and the JSON Schema use the same table,
//! so they cannot diverge.

pub(crate) mod check;
pub(crate) mod scenario;
pub(crate) mod table;

use crate::source::{Node, Value};

/// The form that a value must have.
pub(crate) enum Form {
    /// Anything.
    Any,
    /// Any value; a string that starts with `= ` is an expression.
    Template,
    Bool,
    Text,
    /// A string with a pattern: a regular expression for the JSON Schema and a test for the reader.
    Pattern(&'static Pattern),
    /// One of these words.
    Word(&'static [&'static str]),
    /// An integer within bounds, both included.
    Int {
        min: i64,
        max: i64,
    },
    /// An expression; `true` and `false` may be written as booleans.
    Cel,
    /// An expression that must start with `= `.
    Computed,
    /// A JSON Schema.
    Schema,
    /// A duration.
    Delay,
    /// A name that must be declared in the charter.
    Name(&'static str),
    Object(&'static Object),
    /// An object with arbitrary keys.
    Map {
        key: &'static str,
        of: &'static Form,
    },
    List(&'static Form),
    /// The first form that matches the type of the value. `what` is for messages.
    OneOf {
        what: &'static str,
        forms: &'static [Form],
    },
}

pub(crate) struct Pattern {
    pub(crate) what: &'static str,
    pub(crate) regex: &'static str,
    pub(crate) test: fn(&str) -> bool,
    pub(crate) help: &'static str,
}

/// An object with known keys.
pub(crate) struct Object {
    /// Its name in the JSON Schema.
    pub(crate) name: &'static str,
    /// Its name in messages, with an article.
    pub(crate) what: &'static str,
    pub(crate) doc: &'static str,
    /// Its keys, in groups that objects share.
    pub(crate) fields: &'static [&'static [Field]],
    /// Alternative keys, of which exactly one is required; empty if there are none.
    pub(crate) one_of: &'static [&'static str],
    /// Other keys are allowed and passed to the host.
    pub(crate) open: bool,
    /// Null means an empty object (`name:` in YAML).
    pub(crate) may_be_empty: bool,
}

/// A key of an object.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) form: &'static Form,
    pub(crate) required: bool,
    pub(crate) doc: &'static str,
}

impl Object {
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().flat_map(|group| group.iter())
    }

    pub(crate) fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.key == key)
    }
}

impl Form {
    /// Whether the value has the type of this form; its contents are not checked.
    pub(crate) fn takes(&self, node: &Node) -> bool {
        match (self, &node.value) {
            (Form::Any | Form::Template, _) => true,
            (Form::Bool | Form::Cel | Form::Schema, Value::Bool(_)) => true,
            (
                Form::Text
                | Form::Pattern(_)
                | Form::Word(_)
                | Form::Cel
                | Form::Computed
                | Form::Delay
                | Form::Name(_),
                Value::Text(_),
            ) => true,
            (Form::Int { .. } | Form::Delay, Value::Int(_) | Value::Float(_)) => node.whole().is_some(),
            (Form::Object(_) | Form::Map { .. } | Form::Schema, Value::Map(_)) => true,
            (Form::Object(object), Value::Null) => object.may_be_empty,
            (Form::List(_), Value::List(_)) => true,
            (Form::OneOf { forms, .. }, _) => forms.iter().any(|form| form.takes(node)),
            _ => false,
        }
    }

    /// The name of the form in "expected ..., found a number".
    pub(crate) fn what(&self) -> String {
        match self {
            Form::Any | Form::Template => "a value".to_owned(),
            Form::Bool => "`true` or `false`".to_owned(),
            Form::Text => "a string".to_owned(),
            Form::Pattern(pattern) => pattern.what.to_owned(),
            Form::Word(words) => format!("one of {}", crate::diagnostic::listed(words.iter().copied())),
            Form::Int { .. } => "an integer".to_owned(),
            Form::Cel => "an expression".to_owned(),
            Form::Computed => "an expression that starts with `= `".to_owned(),
            Form::Schema => "a JSON Schema".to_owned(),
            Form::Delay => "a duration such as `24h`".to_owned(),
            Form::Name(what) => format!("the name of {what}"),
            Form::Object(object) => {
                let required: Vec<&str> =
                    object.fields().filter(|field| field.required).map(|field| field.key).collect();
                match required.is_empty() {
                    true => format!("{} (an object)", object.what),
                    false => format!("{} (an object with {})", object.what, crate::diagnostic::listed(required)),
                }
            }
            Form::Map { key, .. } => format!("an object with a key for each {key}"),
            Form::List(of) => match of {
                Form::Text | Form::Name(_) => "a list of names".to_owned(),
                Form::Object(object) => format!("a list of {}", plural(object.what)),
                form => format!("a list, each item {}", form.what()),
            },
            Form::OneOf { what, .. } => (*what).to_owned(),
        }
    }
}

/// Converts `an interlock` to `interlocks`.
fn plural(what: &str) -> String {
    let noun = what.strip_prefix("an ").or_else(|| what.strip_prefix("a ")).unwrap_or(what);
    noun.strip_suffix('y').map_or_else(|| format!("{noun}s"), |stem| format!("{stem}ies"))
}
