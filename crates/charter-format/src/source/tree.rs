//! The node tree: null, bool, int, float, text, list and ordered map, each with its byte range in
//! the source.

use serde::Serialize;
use serde_json::Value as Json;

/// A range of bytes of the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// Creates the span from `start` up to, but not including, `end`; empty if `end` is before
    /// `start`.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end: end.max(start) }
    }

    /// The span of its first byte, where underlining the whole span would be too much.
    #[must_use]
    pub fn first(self) -> Span {
        Span::new(self.start, self.start.saturating_add(1).min(self.end))
    }

    fn holds(self, offset: usize) -> bool {
        self.start <= offset && offset < self.end
    }

    /// The part of the span on its first line, so that underlining does not fill the screen.
    pub(crate) fn first_line(self, source: &str) -> Span {
        let text = source.get(self.start..self.end).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default().trim_end();
        Span::new(self.start, self.start.saturating_add(line.len()))
    }
}

/// How a string is written, which determines where each of its bytes is in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes: YAML and JSON.
    Double,
    /// A YAML block scalar (`|` or `>`).
    Block,
}

/// A string and how it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The text, unescaped.
    pub text: String,
    /// How it is written.
    pub style: Style,
}

/// A key of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The key, unescaped.
    pub text: String,
    /// Its place in the source.
    pub span: Span,
}

/// An entry of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Node,
}

/// A value; an object keeps the order of its entries.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The null value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number written as an integer, between -2^53 and 2^53, exclusive.
    Int(i64),
    /// A number written with a point or an exponent.
    Float(f64),
    /// A string.
    Text(Text),
    /// A list.
    List(Vec<Node>),
    /// An object.
    Map(Vec<Entry>),
}

/// A value and its place in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its place in the source.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// The integer of the same value, if the number is whole and below 2^53.
fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation)] // The value is integral and below 2^53.
    (value.fract() == 0.0 && value.abs() < LIMIT).then_some(value as i64)
}

impl Node {
    /// The text, if the value is a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The number, if the value is a whole number, however it is written.
    pub(crate) fn whole(&self) -> Option<i64> {
        match &self.value {
            Value::Int(value) => Some(*value),
            Value::Float(value) => whole(*value),
            _ => None,
        }
    }

    /// Whether the value is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The entries of an object; empty for any other value.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; empty for any other value.
    #[must_use]
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a list, or the node itself: most lists of a charter may be written as a single
    /// item.
    #[must_use]
    pub fn one_or_many(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The entry with a key, if the node is an object.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key.text == key)
    }

    /// The value at a key, if the node is an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Converts the value to plain JSON in which a whole number is an integer.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut json = self.as_written();
        charter_expr::json::normalize(&mut json);
        json
    }

    /// Converts the value to plain JSON that keeps `0.0` apart from `0`, for the parts of a charter
    /// that declare types of numbers.
    #[must_use]
    pub fn as_written(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::Text(text) => Json::String(text.text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::as_written).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.text.clone(), entry.value.as_written())).collect())
            }
        }
    }

    /// The name of the type in messages, for example `a list`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }

    /// The document path of the value at a byte offset, such as
    /// `states.review.on.APPROVE[0].guard`; empty for the document itself.
    #[must_use]
    pub fn path_at(&self, offset: usize) -> String {
        let mut path = String::new();
        let mut node = self;
        'down: loop {
            for entry in node.entries() {
                let on_key = entry.key.span.holds(offset);
                // The last condition matches empty values, such as a missing one.
                if on_key
                    || entry.value.span.holds(offset)
                    || (entry.value.span.start == offset && entry.value.span.end == offset)
                {
                    push_key(&mut path, &entry.key.text);
                    if on_key {
                        return path;
                    }
                    node = &entry.value;
                    continue 'down;
                }
            }
            for (index, item) in node.items().iter().enumerate() {
                if item.span.holds(offset) {
                    path.push_str(&format!("[{index}]"));
                    node = item;
                    continue 'down;
                }
            }
            return path;
        }
    }
}

fn push_key(path: &mut String, key: &str) {
    let key = &crate::diagnostic::shown(key);
    if !path.is_empty() {
        path.push('.');
    }
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-*$".contains(c));
    if plain { path.push_str(key) } else { path.push_str(&Json::from(key.as_str()).to_string()) }
}
