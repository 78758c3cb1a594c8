//! Example data for suggested commands: what a schema requires, with placeholders where the schema
//! leaves the value open.

use charter_expr::schema::SchemaNode;
use charter_kernel::{Approval, Schema, example_text};
use serde_json::{Map, Value as Json, json};

/// Maximum nesting of example data.
const MAX_DEPTH: u8 = 8;
/// Maximum length of a placeholder, and of an example list.
const MAX_LENGTH: usize = 200;

/// Builds data that matches a schema as far as possible, with the digest that an approval needs.
/// An example of the schema has precedence.
#[must_use]
pub fn data(schema: Option<&Json>, approves: Option<&Approval>) -> Json {
    let mut data = match schema {
        Some(schema) => of_schema(schema),
        None => json!({}),
    };
    if let (Json::Object(map), Some(approval)) = (&mut data, approves) {
        map.insert("digest".into(), approval.digest.to_string().into());
    }
    data
}

fn of_schema(schema: &Json) -> Json {
    let compiled = Schema::compile(schema).ok();
    let fits = |data: &Json| compiled.as_ref().is_none_or(|schema| schema.accepts(data));
    // The least data is easier to read than an example, if nothing has to be filled in.
    let nothing = json!({});
    if compiled.is_some() && fits(&nothing) {
        return nothing;
    }
    let node = SchemaNode::within(schema, schema);
    if let Some(found) = examples(node).find(|data| fits(data)) {
        return found.clone();
    }
    let known = value(node, MAX_DEPTH, true);
    if fits(&known) {
        return known;
    }
    // An example or a default may break its own schema.
    let made = value(node, MAX_DEPTH, false);
    if fits(&made) { made } else { known }
}

fn examples(node: SchemaNode<'_>) -> impl Iterator<Item = &Json> {
    let node = node.resolved();
    let list = node.get("examples").and_then(Json::as_array);
    list.into_iter().flatten().chain(node.get("default")).chain(node.get("const"))
}

/// Builds a value; `known` takes the first example or default of each part.
fn value(node: SchemaNode<'_>, depth: u8, known: bool) -> Json {
    let node = node.resolved();
    if let Some(constant) = node.get("const") {
        return constant.clone();
    }
    if let Some(example) = examples(node).next().filter(|_| known) {
        return example.clone();
    }
    if let Some(first) = node.get("enum").and_then(|e| e.get(0)) {
        return first.clone();
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Json::Null;
    };
    let parts = |keyword: &str| node.get(keyword).and_then(Json::as_array).into_iter().flatten();
    let kind = node.get("type").map(|t| t.as_array().and_then(|a| a.first()).unwrap_or(t)).and_then(Json::as_str);
    let number = |keyword: &str| node.get(keyword).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
    match kind {
        Some("null") => Json::Null,
        Some("boolean") => true.into(),
        Some("integer" | "number") => least(node),
        Some("array") => {
            let length = number("minItems").unwrap_or(0).min(MAX_LENGTH);
            let item = node.part("items").map_or(Json::Null, |items| value(items, depth, known));
            let is_set = node.get("uniqueItems") == Some(&Json::Bool(true));
            (0..length).map(|n| if is_set { another(&item, n) } else { item.clone() }).collect()
        }
        Some("string") => text(node).into(),
        None if node.get("format").is_some() || node.get("pattern").is_some() => text(node).into(),
        _ => {
            let choice = parts("anyOf").chain(parts("oneOf")).next();
            let other = choice.and_then(|choice| node.below(choice)).map(|choice| value(choice, depth, known));
            let whole = parts("allOf").filter_map(|part| node.below(part)).map(|part| value(part, depth, known));
            let mut data = Map::new();
            for part in whole.chain(other) {
                match part {
                    Json::Object(part) => data.extend(part),
                    scalar if kind.is_none() && node.get("properties").is_none() => return scalar,
                    _ => {}
                }
            }
            if kind.is_none() && data.is_empty() && node.get("properties").is_none() && node.required().next().is_none()
            {
                return "...".into();
            }
            for name in node.required() {
                data.entry(name).or_insert_with(|| field(node, name, depth, known));
            }
            require_more(node, &mut data, depth, known);
            data.into()
        }
    }
}

/// An example of a text; a placeholder if none was found that fits.
fn text(node: SchemaNode<'_>) -> String {
    example_text(node.json(), '.').unwrap_or_else(|| "...".to_owned())
}

fn field(node: SchemaNode<'_>, name: &str, depth: u8, known: bool) -> Json {
    node.property(name).map_or_else(|| "...".into(), |property| value(property, depth, known))
}

/// Adds what the fields that are there require, what a condition requires, and as many fields as
/// the schema wants at least.
fn require_more(node: SchemaNode<'_>, data: &mut Map<String, Json>, depth: u8, known: bool) {
    let needed = |name: &String| node.get("dependentRequired").and_then(|all| all.get(name)).and_then(Json::as_array);
    let names: Vec<String> =
        data.keys().filter_map(needed).flatten().filter_map(Json::as_str).map(Into::into).collect();
    for name in names {
        data.entry(name.as_str()).or_insert_with(|| field(node, &name, depth, known));
    }
    if let Some(condition) = node.get("if") {
        let holds = Schema::compile(condition).is_ok_and(|condition| condition.accepts(&Json::Object(data.clone())));
        if let Some(Json::Object(more)) = node.part(if holds { "then" } else { "else" }).map(|n| value(n, depth, known))
        {
            for (name, value) in more {
                data.entry(name).or_insert(value);
            }
        }
    }
    let least = node.get("minProperties").and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let declared = node.get("properties").and_then(Json::as_object).into_iter().flatten().map(|(name, _)| name.clone());
    for name in declared.chain((1..=MAX_LENGTH).map(|n| format!("field{n}"))) {
        if data.len() >= least.min(MAX_LENGTH) {
            break;
        }
        data.entry(name.as_str()).or_insert_with(|| field(node, &name, depth, known));
    }
}

/// Makes the items of a list without equal items.
fn another(item: &Json, number: usize) -> Json {
    match item {
        _ if number == 0 => item.clone(),
        Json::Number(n) => {
            n.as_i64().map_or_else(|| item.clone(), |n| (n.saturating_add_unsigned(number as u64)).into())
        }
        Json::String(text) => format!("{text}{number}").into(),
        Json::Null => number.into(),
        _ => item.clone(),
    }
}

/// The number nearest to zero that the limits of a schema allow, if it is whole.
fn least(node: SchemaNode<'_>) -> Json {
    let limit = |keyword: &str| node.get(keyword).and_then(Json::as_f64);
    let above = |n: f64| if n.fract() == 0.0 { n + 1.0 } else { n.ceil() };
    let below = |n: f64| if n.fract() == 0.0 { n - 1.0 } else { n.floor() };
    let from = [limit("minimum").map(f64::ceil), limit("exclusiveMinimum").map(above)];
    let to = [limit("maximum").map(f64::floor), limit("exclusiveMaximum").map(below)];
    let from = from.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
    let to = to.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let nearest = 0.0_f64.max(from).min(to);
    let nearest = match limit("multipleOf").filter(|step| *step > 0.0) {
        Some(step) if nearest > 0.0 => (nearest / step).ceil() * step,
        Some(step) => (nearest / step).floor() * step,
        None => nearest,
    };
    match format!("{nearest:.0}").parse::<i64>() {
        Ok(whole) => whole.into(),
        Err(_) => 0.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_data_matches_its_schema() {
        let defs = json!({"reason": {"type": "object", "required": ["why"],
            "properties": {"why": {"$ref": "#/$defs/text"}}}, "text": {"type": "string", "minLength": 5}});
        let object = |properties: Json| {
            let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
            json!({"type": "object", "required": required, "properties": properties})
        };
        for schema in [
            json!({"$defs": defs, "$ref": "#/$defs/reason"}),
            json!({"$defs": defs, "type": "object", "required": ["r"], "properties": {"r": {"$ref": "#/$defs/reason"}}}),
            object(json!({"n": {"type": "integer", "minimum": 7}, "m": {"type": "number", "exclusiveMaximum": -2}})),
            object(
                json!({"list": {"type": "array", "minItems": 2, "items": {"type": "integer", "exclusiveMinimum": 0}}}),
            ),
            object(
                json!({"one": {"enum": ["a", "b"]}, "two": {"const": 3}, "text": {"type": "string", "maxLength": 1}}),
            ),
            object(json!({"any": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "free": {}})),
            json!({"allOf": [object(json!({"a": {"type": "boolean"}})), object(json!({"b": {"type": ["string", "null"]}}))]}),
            json!({"type": "string", "minLength": 2}),
            object(
                json!({"at": {"type": "string", "format": "date-time"}, "to": {"format": "email", "minLength": 20}}),
            ),
            object(json!({"order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}, "code": {"pattern": "x$"}})),
            json!({"$ref": "#/$defs/iban", "$defs": {"iban": {"type": "string", "pattern": "^[A-Z]{2}\\d{2}[A-Z0-9]{11,30}$"}}}),
            json!({"required": ["x"]}),
            object(json!({"text": {"type": "string", "default": "", "minLength": 3}, "n": {"const": 2, "default": 1}})),
            json!({"type": "object", "minProperties": 2, "properties": {"a": {"type": "integer"}}}),
            object(json!({"n": {"type": "integer", "minimum": 7, "multipleOf": 5}})),
            object(json!({"n": {"type": "integer", "maximum": -7, "multipleOf": 5}})),
            object(json!({"list": {"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "string"}}})),
            json!({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]},
                "properties": {"b": {"type": "integer"}}}),
            json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["x", "y"]}},
                "if": {"properties": {"kind": {"const": "x"}}}, "then": {"required": ["why"]}}),
        ] {
            let data = data(Some(&schema), None);
            assert!(Schema::compile(&schema).unwrap().accepts(&data), "{schema}: {data}");
        }
    }

    #[test]
    fn what_needs_no_data_gets_none_and_an_example_is_taken() {
        for schema in [json!({"type": "object"}), json!({"maxProperties": 0}), json!({"examples": [{"a": 1}]})] {
            assert_eq!(data(Some(&schema), None), json!({}));
        }
        let schema = json!({"required": ["a"], "examples": [{"b": 1}, {"a": 1}]});
        assert_eq!(data(Some(&schema), None), json!({"a": 1}));
    }
}
