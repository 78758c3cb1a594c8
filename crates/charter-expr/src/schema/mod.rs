//! A cursor over a JSON Schema (2020-12). Only this module follows `$ref` and limits the depth.

mod numbers;
mod types;

pub use numbers::{NumberType, Numbers};

use serde_json::Value;

/// Maximum depth to which schemas are followed, including references.
pub const MAX_SCHEMA_DEPTH: usize = 32;

/// A schema inside a document. References refer to that document; nothing is fetched.
#[derive(Clone, Copy, Debug)]
pub struct SchemaNode<'s> {
    document: &'s Value,
    json: &'s Value,
    depth: usize,
}

impl<'s> SchemaNode<'s> {
    /// A whole document.
    #[must_use]
    pub fn new(document: &'s Value) -> SchemaNode<'s> {
        SchemaNode::within(document, document)
    }

    /// A schema whose references refer to `document`.
    #[must_use]
    pub fn within(document: &'s Value, json: &'s Value) -> SchemaNode<'s> {
        SchemaNode { document, json, depth: 0 }
    }

    /// The schema as JSON, with unresolved references.
    #[must_use]
    pub fn json(self) -> &'s Value {
        self.json
    }

    /// The value of a keyword.
    #[must_use]
    pub fn get(self, keyword: &str) -> Option<&'s Value> {
        self.json.get(keyword)
    }

    /// A schema one level deeper; `None` beyond [`MAX_SCHEMA_DEPTH`].
    #[must_use]
    pub fn below(self, json: &'s Value) -> Option<SchemaNode<'s>> {
        let depth = self.depth.saturating_add(1);
        (depth <= MAX_SCHEMA_DEPTH).then_some(SchemaNode { json, depth, ..self })
    }

    /// The schema to which `$ref` refers, if it is in the document.
    #[must_use]
    pub fn target(self) -> Option<SchemaNode<'s>> {
        self.below(self.document.pointer(self.get("$ref")?.as_str()?.strip_prefix('#')?)?)
    }

    /// Follows a chain of references to its last schema; if the chain does not end, to the last one
    /// within the limit.
    #[must_use]
    pub fn resolved(self) -> SchemaNode<'s> {
        let mut node = self;
        while let Some(target) = node.target() {
            node = target;
        }
        node
    }

    /// The schema of a keyword such as `items`.
    #[must_use]
    pub fn part(self, keyword: &str) -> Option<SchemaNode<'s>> {
        self.below(self.get(keyword)?)
    }

    /// The schema of a property.
    #[must_use]
    pub fn property(self, name: &str) -> Option<SchemaNode<'s>> {
        self.below(self.get("properties")?.get(name)?)
    }

    /// The names in `required`.
    pub fn required(self) -> impl Iterator<Item = &'s str> {
        self.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed() {
        let document = json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$ref": "#/$defs/c"}, "c": {"type": "null"}}});
        assert_eq!(SchemaNode::new(&document).resolved().json(), &json!({"type": "null"}));
        let away = json!({"$ref": "https://example.com/#/a"});
        assert_eq!(SchemaNode::new(&away).resolved().json(), &away);
    }

    #[test]
    fn cycles_end() {
        let document = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        assert!(SchemaNode::new(&document).resolved().get("$ref").is_some());
        let list = json!({"items": {"$ref": "#"}});
        let (mut node, mut depth) = (Some(SchemaNode::new(&list)), 0);
        while let Some(inner) = node.and_then(|n| n.resolved().part("items")) {
            (node, depth) = (Some(inner), depth + 1);
        }
        assert!(depth <= MAX_SCHEMA_DEPTH);
    }
}
