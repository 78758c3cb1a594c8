//! The current position of the reader in the definition, and where each part of the definition was
//! written.

use std::rc::Rc;

use super::places::{Part, Places};
use crate::diagnostic::{Diagnostic, Sink};
use crate::source::{Entry, Key, Node, Place, Span, Value};

/// The namespaces of a charter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Role,
    Guard,
    Action,
    Delay,
    Machine,
    /// Everything that can be invoked or spawned.
    ActorOrMachine,
    Ledger,
    Rule,
    /// The context variables of a chart.
    Variable,
}

/// The part of a charter that uses a name. It decides whose context variables are meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) enum Scope {
    /// The chart of the run itself, and everything outside of charts.
    #[default]
    Root,
    /// A machine.
    Machine(Rc<str>),
    /// A named action, which belongs to the charts that use it.
    Action(Rc<str>),
}

/// A reference to a name.
pub(crate) struct Reference {
    pub(crate) space: Space,
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) scope: Scope,
}

/// The state of the reader.
pub(crate) struct Context<'s> {
    pub(crate) source: &'s str,
    pub(crate) sink: Sink,
    pub(crate) references: Vec<Reference>,
    pub(crate) places: Places,
    here: Part,
    scope: Scope,
}

impl<'s> Context<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Context {
            source,
            sink: Sink::default(),
            references: Vec::new(),
            places: Places::default(),
            here: Places::ROOT,
            scope: Scope::Root,
        }
    }

    /// Reads a machine or a named action.
    pub(crate) fn within<T>(&mut self, scope: Scope, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.scope, scope);
        let answer = f(self);
        self.scope = outer;
        answer
    }

    pub(crate) fn report(&mut self, problem: Diagnostic) {
        self.sink.push(problem);
    }

    /// Reads the part at a key of the current part.
    pub(crate) fn at<T>(&mut self, key: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        let above = self.here;
        self.here = self.places.enter(above, key);
        let answer = f(self);
        self.here = above;
        answer
    }

    /// Moves to the part at a key, for readers that cannot use [`Context::at`]. Returns the
    /// position to pass to [`Context::up`].
    pub(crate) fn down(&mut self, key: &str) -> Part {
        let above = self.here;
        self.here = self.places.enter(above, key);
        above
    }

    pub(crate) fn up(&mut self, above: Part) {
        self.here = above;
    }

    pub(crate) fn at_index<T>(&mut self, index: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        self.at(&index.to_string(), f)
    }

    /// Records where the current part was written.
    pub(crate) fn mark(&mut self, span: Span) {
        self.places.mark(self.here, Place::at(span));
    }

    /// Records that the current part is the text of a scalar, except for its first `skip` bytes.
    pub(crate) fn mark_text(&mut self, node: &Node, skip: usize) {
        let place = Place::of_text(node, skip);
        self.places.mark(self.here, place);
    }

    /// Records that the current part is an entry. A diagnostic underlines the value if it is a
    /// scalar, otherwise the key.
    pub(crate) fn mark_entry(&mut self, entry: &Entry) {
        match &entry.value.value {
            Value::List(_) | Value::Map(_) | Value::Null => self.mark(entry.key.span),
            _ => self.mark_text(&entry.value, 0),
        }
    }

    /// Records the key of the current part, for keys that are expressions.
    pub(crate) fn mark_key(&mut self, key: &Key) {
        let place = Place::of_key(key, self.source);
        let part = self.places.enter(self.here, Places::KEY);
        self.places.mark(part, place);
    }

    /// Reads an entry as the part at a key, and records its place.
    pub(crate) fn field<T>(&mut self, key: &str, entry: &Entry, f: impl FnOnce(&mut Self, &Node) -> T) -> T {
        self.at(key, |cx| {
            cx.mark_entry(entry);
            f(cx, &entry.value)
        })
    }

    /// Reads each item of a list and records its place. A single item without a list has the place
    /// of its parent.
    pub(crate) fn items<T>(&mut self, node: &Node, mut read: impl FnMut(&mut Self, &Node) -> T) -> Vec<T> {
        let Value::List(items) = &node.value else {
            return vec![self.at_index(0, |cx| read(cx, node))];
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            list.push(self.at_index(index, |cx| {
                match &item.value {
                    Value::Text(_) => cx.mark_text(item, 0),
                    _ => cx.mark(item.span),
                }
                read(cx, item)
            }));
        }
        list
    }

    /// Reads a name or a list of names.
    pub(crate) fn names(&mut self, node: &Node) -> Vec<String> {
        self.items(node, |_, item| text(item))
    }

    /// Reads a role or a list of roles.
    pub(crate) fn roles(&mut self, node: &Node) -> Vec<String> {
        self.items(node, |cx, item| cx.name(Space::Role, item))
    }

    /// Reads a name that must be declared.
    pub(crate) fn name(&mut self, space: Space, node: &Node) -> String {
        let name = text(node);
        // The grammar check reports empty names and values that are not strings.
        if !name.is_empty() {
            self.refer(space, name.clone(), node.span);
        }
        name
    }

    /// Records a name that must be declared.
    pub(crate) fn refer(&mut self, space: Space, name: String, span: Span) {
        self.references.push(Reference { space, name, span, scope: self.scope.clone() });
    }

    /// Reads an inline expression. A leading `= ` is allowed and dropped.
    pub(crate) fn cel(&mut self, node: &Node) -> String {
        match &node.value {
            Value::Text(text) => {
                let cel = text.text.strip_prefix("= ").unwrap_or(&text.text);
                self.mark_text(node, text.text.len().saturating_sub(cel.len()));
                // A block scalar ends with a line break.
                cel.trim_end_matches('\n').to_owned()
            }
            Value::Bool(value) => {
                self.mark_text(node, 0);
                value.to_string()
            }
            _ => String::new(),
        }
    }
}

/// Returns the text of a scalar; empty if it is not a string, which the grammar check reports.
pub(crate) fn text(node: &Node) -> String {
    node.text().unwrap_or_default().to_owned()
}
