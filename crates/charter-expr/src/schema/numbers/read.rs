//! Reads schemas and examples.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::NumberType;
use super::places::{Budget, FREE, FieldPlaces, ItemPlaces, NOTHING, Place, Says, both, either};
use crate::schema::SchemaNode;

/// Maximum nesting of lists and objects in which numbers have the type of their place; below, a
/// number is an int or a double by its value.
const MAX_LEVELS: usize = 32;
/// Reads a schema.
pub(super) fn schema(document: &Value) -> Place {
    Reader { document, known: HashMap::new(), left: Budget::new() }.schema(document, 0)
}

/// Reads an example.
pub(super) fn example(value: &Value) -> Place {
    of_example(value, 0, &mut Budget::new())
}

fn of_example(value: &Value, level: usize, left: &mut Budget) -> Place {
    if level > MAX_LEVELS || !left.take() {
        return NOTHING;
    }
    let deeper = level.saturating_add(1);
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => NOTHING,
        Value::Number(n) => {
            let number = if n.is_f64() { NumberType::Double } else { NumberType::Int };
            Place { number: Says::Is(number), ..NOTHING }
        }
        Value::Array(items) => {
            let mut rest = NOTHING;
            for item in items {
                let item = of_example(item, deeper, left);
                rest = either(&rest, &item, left);
            }
            Place { list: Says::Is(Arc::new(ItemPlaces { first: Vec::new(), rest })), ..NOTHING }
        }
        Value::Object(fields) => {
            let named = fields.iter().map(|(name, value)| (name.clone(), of_example(value, deeper, left))).collect();
            Place { object: Says::Is(Arc::new(FieldPlaces { named, others: NOTHING })), ..NOTHING }
        }
    }
}

struct Reader<'s> {
    document: &'s Value,
    /// The schemas read so far, by address and level; `None` while one is being read. A recursive
    /// schema is read once for each level.
    known: HashMap<(usize, usize), Option<Place>>,
    left: Budget,
}

impl<'s> Reader<'s> {
    fn schema(&mut self, json: &'s Value, level: usize) -> Place {
        let schema = match json {
            Value::Bool(false) => return NOTHING,
            Value::Object(schema) if level <= MAX_LEVELS => schema,
            _ => return FREE,
        };
        let key = (std::ptr::from_ref(json).addr(), level);
        if let Some(known) = self.known.get(&key) {
            // A reference to itself says nothing.
            return known.clone().unwrap_or(NOTHING);
        }
        if !self.left.take() {
            return FREE;
        }
        self.known.insert(key, None);
        let place = self.object(json, schema, level);
        self.known.insert(key, Some(place.clone()));
        place
    }

    fn object(&mut self, json: &'s Value, schema: &'s Map<String, Value>, level: usize) -> Place {
        let mut place = self.own(schema, level);
        if schema.contains_key("$ref")
            && let Some(target) = SchemaNode::within(self.document, json).target()
        {
            let target = self.schema(target.json(), level);
            place = both(&place, &target, &mut self.left);
        }
        for part in list(schema, "allOf") {
            let part = self.schema(part, level);
            place = both(&place, &part, &mut self.left);
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut options = list(schema, keyword).iter();
            if let Some(first) = options.next() {
                let mut any = self.schema(first, level);
                for option in options {
                    let option = self.schema(option, level);
                    any = either(&any, &option, &mut self.left);
                }
                place = both(&place, &any, &mut self.left);
            }
        }
        place
    }

    /// What a schema says without the schemas that it combines.
    fn own(&mut self, schema: &'s Map<String, Value>, level: usize) -> Place {
        let types: Option<Vec<&str>> = match schema.get("type") {
            Some(Value::String(name)) => Some(vec![name.as_str()]),
            Some(Value::Array(names)) => Some(names.iter().filter_map(Value::as_str).collect()),
            _ => None,
        };
        if types.is_none() {
            let values = schema.get("const").into_iter().chain(list(schema, "enum"));
            let places: Vec<Place> = values.map(|v| of_example(v, level, &mut self.left)).collect();
            if let Some(place) = places.into_iter().reduce(|a, b| either(&a, &b, &mut self.left)) {
                return place;
            }
        }
        let may_be = |name: &str| types.as_ref().is_none_or(|types| types.contains(&name));
        let number = match &types {
            None => Says::Free,
            Some(types) => match (types.contains(&"integer"), types.contains(&"number")) {
                (true, true) => Says::Free,
                (true, false) => Says::Is(NumberType::Int),
                (false, true) => Says::Is(NumberType::Double),
                (false, false) => Says::Nothing,
            },
        };
        let typed = types.is_some();
        let lists = schema.contains_key("items") || schema.contains_key("prefixItems");
        let list = match may_be("array") {
            false => Says::Nothing,
            true if typed || lists => Says::Is(Arc::new(self.items(schema, level))),
            true => Says::Free,
        };
        let objects = ["properties", "patternProperties", "additionalProperties", "unevaluatedProperties"];
        let object = match may_be("object") {
            false => Says::Nothing,
            true if typed || objects.iter().any(|keyword| schema.contains_key(*keyword)) => {
                Says::Is(Arc::new(self.fields(schema, level)))
            }
            true => Says::Free,
        };
        Place { number, list, object }
    }

    fn items(&mut self, schema: &'s Map<String, Value>, level: usize) -> ItemPlaces {
        let deeper = level.saturating_add(1);
        let first = list(schema, "prefixItems").iter().map(|item| self.schema(item, deeper)).collect();
        ItemPlaces { first, rest: self.others(schema.get("items"), deeper) }
    }

    fn fields(&mut self, schema: &'s Map<String, Value>, level: usize) -> FieldPlaces {
        let deeper = level.saturating_add(1);
        let mut named = BTreeMap::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            named.insert(name.clone(), self.schema(property, deeper));
        }
        let rest = schema.get("additionalProperties").or_else(|| schema.get("unevaluatedProperties"));
        let mut others = self.others(rest, deeper);
        for (_, property) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            let property = self.schema(property, deeper);
            others = either(&others, &property, &mut self.left);
        }
        FieldPlaces { named, others }
    }

    /// Reads the schema of all other items or fields; `true` is the same as no schema.
    fn others(&mut self, json: Option<&'s Value>, level: usize) -> Place {
        match json {
            None | Some(Value::Bool(_)) => NOTHING,
            Some(Value::Object(schema)) if schema.is_empty() => NOTHING,
            Some(json) => self.schema(json, level),
        }
    }
}

fn list<'s>(schema: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
