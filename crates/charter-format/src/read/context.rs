//! Where the reader stands in the core form, and where each part of it was written.

use rustc_hash::FxHashMap;

use super::names::{Reference, Space};
use crate::diagnostic::{Diagnostic, Sink};
use crate::source::{Entry, Node, Place, Span, Value};

/// Carried through the whole reading.
pub(crate) struct Context<'s> {
    pub(crate) source: &'s str,
    pub(crate) sink: Sink,
    pointer: String,
    pub(crate) places: FxHashMap<String, Place>,
    pub(crate) references: Vec<Reference>,
}

impl<'s> Context<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        let places = FxHashMap::from_iter([(String::new(), Place::at(Span::default()))]);
        Context {
            source,
            sink: Sink::default(),
            pointer: String::new(),
            places,
            references: Vec::new(),
        }
    }

    pub(crate) fn report(&mut self, problem: Diagnostic) {
        self.sink.push(problem);
    }

    /// Does something one step further down in the core form.
    pub(crate) fn at<T>(&mut self, key: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        for c in key.chars() {
            match c {
                '~' => self.pointer.push_str("~0"),
                '/' => self.pointer.push_str("~1"),
                c => self.pointer.push(c),
            }
        }
        let answer = f(self);
        self.pointer.truncate(length);
        answer
    }

    pub(crate) fn at_index<T>(&mut self, index: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        self.at(&index.to_string(), f)
    }

    /// The part of the core form where the reader stands was written here.
    pub(crate) fn mark(&mut self, span: Span) {
        self.places.insert(self.pointer.clone(), Place::at(span));
    }

    /// It is the text of this scalar, less its first `skip` bytes.
    pub(crate) fn mark_text(&mut self, node: &Node, skip: usize) {
        let place = Place::of_text(node, skip, self.source);
        self.places.insert(self.pointer.clone(), place);
    }

    /// It is this entry of an object: shown by its key, or by its value where that is a scalar.
    pub(crate) fn mark_entry(&mut self, entry: &Entry) {
        match &entry.value.value {
            Value::List(_) | Value::Map(_) | Value::Null => self.mark(entry.key.span),
            _ => self.mark_text(&entry.value, 0),
        }
    }

    /// Reads an entry one step further down, marked.
    pub(crate) fn field<T>(
        &mut self,
        key: &str,
        entry: &Entry,
        f: impl FnOnce(&mut Self, &Node) -> T,
    ) -> T {
        self.at(key, |cx| {
            cx.mark_entry(entry);
            f(cx, &entry.value)
        })
    }

    /// Reads each item of a list (or the only one) one step further down, marked.
    pub(crate) fn items<T>(
        &mut self,
        items: &[Node],
        mut f: impl FnMut(&mut Self, &Node) -> T,
    ) -> Vec<T> {
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            read.push(self.at_index(index, |cx| {
                match &item.value {
                    Value::Text(_) => cx.mark_text(item, 0),
                    _ => cx.mark(item.span),
                }
                f(cx, item)
            }));
        }
        read
    }

    /// A list of names (or the only one).
    pub(crate) fn names(&mut self, node: &Node) -> Vec<String> {
        self.items(node.one_or_many(), |_, item| text(item))
    }

    /// A list of roles (or the only one).
    pub(crate) fn roles(&mut self, node: &Node) -> Vec<String> {
        self.items(node.one_or_many(), |cx, item| cx.name(Space::Role, item))
    }

    /// A name that has to be declared somewhere.
    pub(crate) fn name(&mut self, space: Space, node: &Node) -> String {
        let name = text(node);
        // What is no text, or empty, the grammar has reported.
        if !name.is_empty() {
            self.references.push(Reference {
                space,
                name: name.clone(),
                span: node.span,
            });
        }
        name
    }

    /// Where a part of the core form was written.
    pub(crate) fn place_of(&self, path: &[&str]) -> Span {
        let pointer: String = path
            .iter()
            .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
            .collect();
        self.places
            .get(&pointer)
            .map(|place| place.span)
            .unwrap_or_default()
    }

    /// An expression in place: its text, marked exactly. A leading `= ` is allowed and dropped.
    pub(crate) fn cel(&mut self, node: &Node) -> String {
        match &node.value {
            Value::Text(text) => {
                let cel = text.text.strip_prefix("= ").unwrap_or(&text.text);
                self.mark_text(node, text.text.len().saturating_sub(cel.len()));
                // The end of a block scalar is a line break, which says nothing.
                cel.trim_end_matches('\n').to_owned()
            }
            Value::Bool(value) => {
                self.mark(node.span);
                value.to_string()
            }
            _ => String::new(),
        }
    }
}

/// The text of a scalar that the grammar has found to be text.
pub(crate) fn text(node: &Node) -> String {
    node.text().unwrap_or_default().to_owned()
}
