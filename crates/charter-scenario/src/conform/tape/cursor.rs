//! Reads the values on a tape.

use charter_kernel::{ExactNumber, Kind, View};
use serde_json::{Map, Number, Value as Json};

use super::Node;
use crate::conform::field_set::FieldSet;

/// A value on a tape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'t> {
    tape: &'t [Node],
    text: &'t str,
    at: u32,
}

impl<'t> Cursor<'t> {
    /// Creates a cursor at the root of a tape.
    pub(super) fn new(tape: &'t [Node], text: &'t str) -> Cursor<'t> {
        Cursor { tape, text, at: 0 }
    }

    #[inline]
    fn node(self) -> Node {
        // A cursor always points at a node; the fallback avoids a panic.
        self.tape.get(self.at as usize).copied().unwrap_or(Node {
            kind: Kind::Null,
            flag: false,
            start: 0,
            end: 0,
            next: u32::MAX,
            count: 0,
        })
    }

    #[inline]
    fn bytes(self, node: Node) -> &'t str {
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    /// The text of a string with escapes.
    fn unescaped(self, node: Node) -> Option<String> {
        serde_json::from_str(self.text.get(node.start as usize - 1..node.end as usize + 1)?).ok()
    }

    #[inline]
    fn to(self, at: u32) -> Cursor<'t> {
        Cursor { at, ..self }
    }

    /// The value of the field with this name.
    pub(crate) fn field(self, name: &str) -> Option<Cursor<'t>> {
        let mut found = None;
        View::fields(self, |key, value| {
            if key == name {
                found = Some(value);
            }
            found.is_none()
        });
        found
    }

    /// Converts the value to JSON, reduced to the fields in `needed`.
    pub(crate) fn json(self, needed: &FieldSet) -> Option<Json> {
        let node = self.node();
        Some(match node.kind {
            Kind::Null => Json::Null,
            Kind::Bool => Json::Bool(node.flag),
            Kind::Int => Json::Number(self.bytes(node).parse::<i64>().ok()?.into()),
            Kind::Float => Json::Number(Number::from_f64(self.bytes(node).parse().ok()?)?),
            Kind::Text if node.flag => Json::String(self.unescaped(node)?),
            Kind::Text => Json::String(self.bytes(node).to_owned()),
            Kind::List => {
                let mut list = Vec::new();
                // Either the whole list is needed, or only the fact that it is a list.
                if needed.is_all() {
                    list.reserve(node.count as usize);
                    let whole = View::items(self, |item| item.json(needed).map(|json| list.push(json)).is_some());
                    whole.then_some(())?;
                }
                Json::Array(list)
            }
            Kind::Object => {
                let mut map = Map::new();
                let whole = View::fields(self, |key, value| {
                    let part = match needed.is_all() {
                        true => Some(needed),
                        false => needed.part(key),
                    };
                    match part {
                        Some(part) => value.json(part).map(|json| drop(map.insert(key.to_owned(), json))).is_some(),
                        None => true,
                    }
                });
                whole.then_some(())?;
                Json::Object(map)
            }
        })
    }
}

impl View for Cursor<'_> {
    fn kind(self) -> Kind {
        self.node().kind
    }
    fn is_true(self) -> bool {
        let node = self.node();
        node.kind == Kind::Bool && node.flag
    }
    fn text<R>(self, with: impl FnOnce(&str) -> R) -> Option<R> {
        let node = self.node();
        match node.kind {
            // A string with escapes differs from its bytes in the text.
            Kind::Text if node.flag => Some(with(&self.unescaped(node)?)),
            Kind::Text => Some(with(self.bytes(node))),
            _ => None,
        }
    }
    fn number(self) -> Option<ExactNumber> {
        let node = self.node();
        match node.kind {
            Kind::Int => self.bytes(node).parse().ok().map(ExactNumber::Int),
            Kind::Float => self.bytes(node).parse().ok().map(ExactNumber::Double),
            _ => None,
        }
    }
    fn len(self) -> usize {
        self.node().count as usize
    }
    fn items(self, mut each: impl FnMut(Self) -> bool) -> bool {
        let node = self.node();
        let mut at = self.at + 1;
        for _ in 0..node.count {
            let item = self.to(at);
            if !each(item) {
                return false;
            }
            at = item.node().next;
        }
        true
    }
    fn place(self) -> usize {
        self.at as usize
    }
    fn fields(self, mut each: impl FnMut(&str, Self) -> bool) -> bool {
        let node = self.node();
        let mut at = self.at + 1;
        for _ in 0..node.count {
            let key = self.to(at);
            let value = self.to(at + 1);
            if !each(self.bytes(key.node()), value) {
                return false;
            }
            at = value.node().next;
        }
        true
    }
}
