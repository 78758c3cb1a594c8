//! Derives types from JSON Schema (2020-12) and from example data.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{MAX_SCHEMA_DEPTH, NumberType, Numbers, SchemaNode};
use crate::types::{Field, Type};

/// Maximum number of schemas from which a type is built; the rest is [`Type::Dyn`].
const MAX_SCHEMAS: usize = 20_000;

impl Type {
    /// Returns the type of the values that are valid for a JSON Schema, as far as CEL can express
    /// it.
    ///
    /// Supported: `type` (also a list of types), `properties`, `required`, `additionalProperties`,
    /// `items`, `prefixItems`, `enum`, `const`, `anyOf`, `oneOf`, `allOf`, `nullable`, and `$ref`
    /// within the schema. As in JSON Schema, an object is open unless `additionalProperties` (or
    /// `unevaluatedProperties`) is false, and if other keywords may name more properties
    /// (`patternProperties`; for `unevaluatedProperties` also `if`, `dependentSchemas` and others).
    /// A recursive reference and every unsupported schema is [`Type::Dyn`].
    pub fn from_schema(schema: &Value) -> Type {
        TypeReader { open: Vec::new(), left: MAX_SCHEMAS }.schema(Some(SchemaNode::new(schema)))
    }

    /// Returns the type of example data, such as the initial context of a charter. Null and the
    /// items of an empty list have any type, a number is an int or a double as it is written, and
    /// an object has exactly the fields of the example.
    pub fn of_json(value: &Value) -> Type {
        of_json(value, 0)
    }

    /// Returns the type that a value of this type has after it was stored as JSON in a place whose
    /// numbers have these types. Without a type, a double with a whole value becomes an int.
    #[must_use]
    pub fn stored(self, numbers: Option<&Numbers>) -> Type {
        let number = numbers.and_then(Numbers::number);
        match self {
            Type::Int | Type::Uint => {
                if number == Some(NumberType::Double) {
                    Type::Double
                } else {
                    Type::Int
                }
            }
            Type::Double | Type::Number => match number {
                Some(NumberType::Int) => Type::Int,
                Some(NumberType::Double) => Type::Double,
                None => Type::Number,
            },
            Type::List(item) => {
                // The items at the front of a tuple may have other types than the rest.
                let places = numbers.map_or(0, Numbers::tuple);
                let items = (0..=places).map(|i| Type::clone(&item).stored(numbers.and_then(|n| n.item(i))));
                Type::list(Type::union(items))
            }
            Type::Map(key, value) => {
                let value = Type::clone(&value).stored(numbers.and_then(|n| n.field("")));
                Type::Map(key, Box::new(value))
            }
            Type::Object { fields, open } => {
                let fields = Arc::unwrap_or_clone(fields).into_iter().map(|(name, field)| {
                    let ty = field.ty.stored(numbers.and_then(|n| n.field(&name)));
                    (name, Field { ty, ..field })
                });
                Type::Object { fields: Arc::new(fields.collect()), open }
            }
            Type::Union(types) => Type::union(types.into_iter().map(|ty| ty.stored(numbers))),
            other => other,
        }
    }
}

struct TypeReader<'s> {
    /// References that are being followed.
    open: Vec<&'s str>,
    /// The number of schemas that may still be read.
    left: usize,
}

impl<'s> TypeReader<'s> {
    /// Returns the type of a schema; `None` is a schema that is nested too deeply.
    fn schema(&mut self, node: Option<SchemaNode<'s>>) -> Type {
        let Some((node, schema)) = node.and_then(|n| Some((n, n.json().as_object()?))).filter(|_| self.left > 0) else {
            return Type::Dyn;
        };
        self.left = self.left.saturating_sub(1);
        let ty = self.object_schema(node, schema);
        if schema.get("nullable") == Some(&Value::Bool(true)) { Type::union([ty, Type::Null]) } else { ty }
    }

    fn object_schema(&mut self, node: SchemaNode<'s>, schema: &'s Map<String, Value>) -> Type {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let base = self.reference(node, reference);
            // The properties beside a reference are those of the same object.
            if !schema.contains_key("properties") || !matches!(base, Type::Object { .. }) {
                return base;
            }
            let own = self.typed(node, schema);
            return merged(vec![base, own]);
        }
        // A declared type decides about numbers, however they are written.
        let number = match schema.get("type").and_then(Value::as_str) {
            Some("number") => Some(Type::Double),
            Some("integer") => Some(Type::Int),
            _ => None,
        };
        let literal = |value: &Value| match (literal(value), &number) {
            (Type::Int | Type::Double, Some(number)) => number.clone(),
            (ty, _) => ty,
        };
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return Type::union(values.iter().map(literal));
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) = schema.get(name) {
                let types: Vec<Type> = options.iter().map(|s| self.schema(node.below(s))).collect();
                return Type::union(types);
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return self.all_of(node, schema, parts);
        }
        self.typed(node, schema)
    }

    /// Determines the type from `type`, or from the keywords that only objects and arrays have.
    fn typed(&mut self, node: SchemaNode<'s>, schema: &'s Map<String, Value>) -> Type {
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, node, schema),
            Some(Value::Array(names)) => {
                let types: Vec<Type> =
                    names.iter().filter_map(Value::as_str).map(|n| self.named(n, node, schema)).collect();
                Type::union(types)
            }
            _ if schema.contains_key("properties") => self.named("object", node, schema),
            _ if schema.contains_key("items") => self.named("array", node, schema),
            _ => Type::Dyn,
        }
    }

    fn reference(&mut self, node: SchemaNode<'s>, reference: &'s str) -> Type {
        if self.open.contains(&reference) {
            return Type::Dyn;
        }
        self.open.push(reference);
        let ty = self.schema(node.target());
        self.open.pop();
        ty
    }

    fn named(&mut self, name: &str, node: SchemaNode<'s>, schema: &'s Map<String, Value>) -> Type {
        match name {
            "null" => Type::Null,
            "boolean" => Type::Bool,
            "string" => Type::String,
            "integer" => Type::Int,
            "number" => Type::Double,
            "array" => Type::list(self.items(node, schema)),
            "object" => self.fields(node, schema),
            _ => Type::Dyn,
        }
    }

    /// Returns the type of all items, also of those at the front of a tuple.
    fn items(&mut self, node: SchemaNode<'s>, schema: &'s Map<String, Value>) -> Type {
        let front = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
        let mut types: Vec<Type> = front.map(|item| self.schema(node.below(item))).collect();
        let rest = schema.get("items").or_else(|| schema.get("unevaluatedItems"));
        if rest != Some(&Value::Bool(false)) || types.is_empty() {
            types.push(self.schema(node.part("items")));
        }
        Type::union(types)
    }

    fn fields(&mut self, node: SchemaNode<'s>, schema: &'s Map<String, Value>) -> Type {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = other_properties(schema);
        let is_open = others != Some(&Value::Bool(false));
        let Some(properties) = properties else {
            return match others {
                Some(others @ Value::Object(_)) => Type::map(Type::String, self.schema(node.below(others))),
                _ => self.with_required(BTreeMap::new(), schema, is_open),
            };
        };
        let mut fields = BTreeMap::new();
        for (name, property) in properties {
            let ty = self.schema(node.below(property));
            fields.insert(name.clone(), Field::optional(ty));
        }
        for name in conditional_properties(schema).filter(|_| is_open) {
            fields.entry(name.clone()).or_insert_with(|| Field::optional(Type::Dyn));
        }
        self.with_required(fields, schema, is_open)
    }

    fn with_required(&self, mut fields: BTreeMap<String, Field>, schema: &Map<String, Value>, open: bool) -> Type {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            fields.entry(name.to_owned()).or_insert_with(|| Field::optional(Type::Dyn)).required = true;
        }
        Type::Object { fields: Arc::new(fields), open }
    }

    /// Merges objects; any other combination has no exact type.
    fn all_of(&mut self, node: SchemaNode<'s>, schema: &'s Map<String, Value>, parts: &'s [Value]) -> Type {
        let mut types: Vec<Type> = parts.iter().map(|s| self.schema(node.below(s))).collect();
        if schema.contains_key("type") || schema.contains_key("properties") {
            types.push(self.typed(node, schema));
        }
        merged(types)
    }
}

/// Merges the types of schemas that all apply to a value.
fn merged(types: Vec<Type>) -> Type {
    let mut merged: BTreeMap<String, Field> = BTreeMap::new();
    let mut all_open = true;
    for ty in types {
        let Type::Object { fields, open } = ty else {
            return Type::Dyn;
        };
        all_open &= open;
        for (name, field) in Arc::unwrap_or_clone(fields) {
            match merged.get_mut(&name) {
                Some(known) => {
                    known.required |= field.required;
                    if known.ty == Type::Dyn {
                        known.ty = field.ty;
                    }
                }
                None => {
                    merged.insert(name, field);
                }
            }
        }
    }
    Type::Object { fields: Arc::new(merged), open: all_open }
}

/// The names of properties that only a condition brings.
fn conditional_properties(schema: &Map<String, Value>) -> impl Iterator<Item = &String> {
    let branches = ["then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    let all = branches.chain(dependent.into_iter().flatten().map(|(_, part)| part));
    all.filter_map(|part| part.get("properties")?.as_object()).flatten().map(|(name, _)| name)
}

/// Returns the schema of all properties that `properties` does not name; `None` if other keywords
/// may name some.
fn other_properties(schema: &Map<String, Value>) -> Option<&Value> {
    const BESIDE: [&str; 7] = ["$ref", "$dynamicRef", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"];
    if schema.contains_key("patternProperties") {
        return None;
    }
    let additional = schema.get("additionalProperties");
    // Properties that another keyword has evaluated are not left over. Those of `allOf` are merged.
    let is_alone = |schema: &Map<String, Value>| BESIDE.iter().all(|keyword| !schema.contains_key(*keyword));
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let mut parts = parts.filter_map(Value::as_object);
    let is_known = is_alone(schema) && parts.all(|part| is_alone(part) && !part.contains_key("allOf"));
    additional.or_else(|| schema.get("unevaluatedProperties").filter(|_| is_known))
}

/// The type of a literal in a schema.
fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        other => of_json(other, 0),
    }
}

fn of_json(value: &Value, depth: usize) -> Type {
    if depth > MAX_SCHEMA_DEPTH {
        return Type::Dyn;
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::Null => Type::Dyn,
        Value::Bool(_) => Type::Bool,
        Value::Number(n) if n.is_f64() => Type::Double,
        Value::Number(_) => Type::Int,
        Value::String(_) => Type::String,
        Value::Array(items) => Type::list(Type::union(items.iter().map(|v| of_json(v, deeper)))),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(n, v)| (n.clone(), Field::required(of_json(v, deeper))));
            Type::Object { fields: Arc::new(fields.collect()), open: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(schema: Value) -> Type {
        Type::from_schema(&schema)
    }

    #[test]
    fn objects_are_open_unless_they_say_otherwise() {
        let closed =
            typed(json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {}},
            "additionalProperties": false}));
        let expected = Type::object([("a", Field::required(Type::Int)), ("b", Field::optional(Type::Dyn))]);
        assert_eq!(closed, expected);
        let open = typed(json!({"properties": {}}));
        assert_eq!(open, Type::Object { fields: Arc::default(), open: true });
        assert_eq!(typed(json!({"type": "object"})), Type::Object { fields: Arc::default(), open: true });
        assert_eq!(
            typed(json!({"type": "object", "additionalProperties": {"type": "number"}})),
            Type::map(Type::String, Type::Double)
        );
    }

    #[test]
    fn unions_and_literals() {
        assert_eq!(typed(json!({"type": ["string", "null"]})), Type::Union(vec![Type::String, Type::Null]));
        assert_eq!(typed(json!({"enum": ["a", "b"]})), Type::String);
        assert_eq!(typed(json!({"const": 1})), Type::Int);
        assert_eq!(typed(json!({"type": "number", "enum": [1, 2.5]})), Type::Double);
        assert_eq!(typed(json!({"anyOf": [{"type": "integer"}, {}]})), Type::Dyn);
        assert_eq!(typed(json!({"type": "string", "nullable": true})), Type::Union(vec![Type::String, Type::Null]));
    }

    #[test]
    fn properties_that_other_keywords_name_are_not_missing() {
        let fields = |extra: Value| {
            let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            schema
                .as_object_mut()
                .into_iter()
                .for_each(|map| map.extend(extra.as_object().cloned().unwrap_or_default()));
            match typed(schema) {
                Type::Object { open, .. } => open,
                other => other == Type::Dyn,
            }
        };
        assert!(!fields(json!({"additionalProperties": false})));
        assert!(!fields(json!({"unevaluatedProperties": false})));
        assert!(fields(json!({"patternProperties": {"^x-": {}}, "additionalProperties": false})));
        assert!(fields(json!({"if": {}, "then": {"properties": {"b": {}}}, "unevaluatedProperties": false})));
        assert!(!fields(json!({"if": {}, "then": {"properties": {"b": {}}}, "additionalProperties": false})));
        assert!(!fields(json!({"allOf": [{"properties": {"b": {}}}], "unevaluatedProperties": false})));
        let deep = json!({"allOf": [{"properties": {"b": {}}, "if": {}, "then": {}}], "unevaluatedProperties": false});
        assert!(fields(deep));
        assert!(fields(json!({"dependentSchemas": {"a": {"properties": {"b": {}}}}, "unevaluatedProperties": false})));
        let map = json!({"type": "object", "patternProperties": {"^s": {"type": "string"}}, "additionalProperties": {"type": "number"}});
        assert_eq!(typed(map), Type::Object { fields: Arc::default(), open: true });
    }

    #[test]
    fn the_front_of_a_tuple_has_types_of_its_own() {
        let tuple = json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
        assert_eq!(typed(tuple), Type::list(Type::union([Type::String, Type::Int])));
        let closed = json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false});
        assert_eq!(typed(closed), Type::list(Type::String));
        assert_eq!(typed(json!({"type": "array", "prefixItems": [{"type": "string"}]})), Type::list(Type::Dyn));
    }

    #[test]
    fn references_end() {
        let list = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/list"}}});
        let ty = typed(json!({"$ref": "#/$defs/list", "$defs": {"list": list}}));
        let fields = BTreeMap::from([("next".to_owned(), Field::optional(Type::Dyn))]);
        assert_eq!(ty, Type::Object { fields: fields.into(), open: true });
    }

    #[test]
    fn example_data() {
        let ty = Type::of_json(&json!({"n": 1.5, "x": null, "l": [], "s": ["a"]}));
        let expected = Type::object([
            ("l", Field::required(Type::list(Type::Dyn))),
            ("n", Field::required(Type::Double)),
            ("s", Field::required(Type::list(Type::String))),
            ("x", Field::required(Type::Dyn)),
        ]);
        assert_eq!(ty, expected);
    }

    #[test]
    fn a_schema_that_explodes_is_cut() {
        let mut schema = json!({"type": "string"});
        for _ in 0..25 {
            schema = json!({"anyOf": [schema.clone(), {"type": "array", "items": {"$ref": "#"}}]});
        }
        Type::from_schema(&schema);
    }
}
