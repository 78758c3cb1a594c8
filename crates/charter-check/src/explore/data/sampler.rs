//! Generates values for a schema, and the values to try for one field.

use charter_expr::schema::SchemaNode;
use charter_kernel::example_text;
use serde_json::{Map, Number, Value as Json, json};

use super::super::cone::{Probe, Probes};
use super::{get, set};

/// Upper limit of the nesting depth of generated data.
const MAX_DEPTH: usize = 12;
/// Upper limit of values to try for one field.
const MAX_VALUES: usize = 16;

pub(super) struct Sampler<'s> {
    pub(super) root: Option<&'s Json>,
    pub(super) probes: &'s Probes,
}

impl<'s> Sampler<'s> {
    /// Generates one plain value for each alternative of the schema.
    pub(super) fn bases(&self) -> Vec<Json> {
        let Some(root) = self.root else {
            let mut base = if self.probes.keys().any(|p| !p.is_empty()) { json!({}) } else { Json::Null };
            for (path, probe) in self.probes.iter().filter(|(p, _)| !p.is_empty()) {
                if get(&base, path).is_none() {
                    set(&mut base, path, Some(probe.constants.first().cloned().unwrap_or_else(|| json!("a"))));
                }
            }
            return vec![base];
        };
        let mut bases: Vec<Json> = root.get("examples").and_then(Json::as_array).cloned().unwrap_or_default();
        for key in ["oneOf", "anyOf"] {
            for option in root.get(key).and_then(Json::as_array).into_iter().flatten() {
                let mut whole = root.clone();
                if let Some(map) = whole.as_object_mut() {
                    map.remove(key);
                }
                bases.push(self.make(&both(whole, option), &mut Vec::new(), 0));
            }
        }
        bases.push(self.make(root, &mut Vec::new(), 0));
        bases
    }

    fn resolve(&self, schema: &'s Json) -> &'s Json {
        self.root.map_or(schema, |root| SchemaNode::within(root, schema).resolved().json())
    }

    fn make(&self, schema: &Json, path: &mut Vec<String>, depth: usize) -> Json {
        if depth > MAX_DEPTH {
            return Json::Null;
        }
        let deeper = depth.saturating_add(1);
        if schema.get("$ref").is_some_and(Json::is_string) {
            let target = self.root.and_then(|root| SchemaNode::within(root, schema).target());
            return target.map_or(Json::Null, |t| self.make(t.json(), path, deeper));
        }
        if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
            return value.clone();
        }
        if let Some(first) =
            schema.get("enum").or_else(|| schema.get("examples")).and_then(Json::as_array).and_then(|e| e.first())
        {
            return first.clone();
        }
        if let Some(parts) = schema.get("allOf").and_then(Json::as_array) {
            let mut own = schema.clone();
            if let Some(map) = own.as_object_mut() {
                map.remove("allOf");
            }
            let resolved = |part| self.root.map_or(part, |root| SchemaNode::within(root, part).resolved().json());
            return self.make(&parts.iter().fold(own, |whole, part| both(whole, resolved(part))), path, deeper);
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(first) = schema.get(key).and_then(Json::as_array).and_then(|o| o.first()) {
                let mut own = schema.clone();
                if let Some(map) = own.as_object_mut() {
                    map.remove(key);
                }
                return self.make(&both(own, first), path, deeper);
            }
        }
        match kind_of(schema) {
            Some("string") => Json::String(text(schema)),
            Some("integer") => number(schema, true),
            Some("number") => number(schema, false),
            Some("boolean") => Json::Bool(true),
            Some("array") => {
                let least = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0).min(50);
                let item = schema.get("items").map_or(Json::Null, |s| self.make(s, path, deeper));
                let count = least.max(u64::from(
                    schema.get("items").is_some() && schema.get("maxItems").and_then(Json::as_u64) != Some(0),
                ));
                Json::Array((0..count).map(|_| item.clone()).collect())
            }
            Some("object") => self.object(schema, path, deeper),
            Some(_) => Json::Null,
            None if schema.get("format").is_some() || schema.get("pattern").is_some() => Json::String(text(schema)),
            None => self.probes.get(path.as_slice()).and_then(|p| p.constants.first()).cloned().unwrap_or_else(|| {
                let below = self.probes.keys().any(|p| p.len() > path.len() && p.starts_with(path));
                if below { self.object(schema, path, deeper) } else { json!("a") }
            }),
        }
    }

    fn object(&self, schema: &Json, path: &mut Vec<String>, depth: usize) -> Json {
        let mut map = Map::new();
        let properties = schema.get("properties").and_then(Json::as_object);
        let required: Vec<&str> =
            schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        let mut names: Vec<&str> = required.clone();
        // Fields that an expression reads are always present.
        let read = self.probes.keys().filter(|p| p.starts_with(path)).filter_map(|p| p.get(path.len()));
        let closed = schema.get("additionalProperties") == Some(&Json::Bool(false));
        names.extend(read.map(String::as_str).filter(|n| !closed || properties.is_some_and(|p| p.contains_key(*n))));
        for name in names {
            if map.contains_key(name) {
                continue;
            }
            path.push(name.to_string());
            let free = json!({});
            let value = self.make(properties.and_then(|p| p.get(name)).unwrap_or(&free), path, depth);
            path.pop();
            map.insert(name.to_string(), value);
        }
        Json::Object(map)
    }

    /// Finds the schema at a path of fields, and whether the last field is required.
    fn at(&self, path: &[String]) -> (Option<&'s Json>, bool) {
        let Some(root) = self.root else {
            return (None, false);
        };
        let mut schema = self.resolve(root);
        let mut required = true;
        for key in path {
            required = schema
                .get("required")
                .and_then(Json::as_array)
                .is_some_and(|r| r.iter().any(|n| n.as_str() == Some(key)));
            match schema.get("properties").and_then(|p| p.get(key)) {
                Some(next) => schema = self.resolve(next),
                None => return (None, required),
            }
        }
        (Some(schema), required)
    }

    /// Returns the values to try for a field; `None` means that the field is absent.
    pub(super) fn options(&self, path: &[String], probe: &Probe) -> Vec<Option<Json>> {
        let (schema, required) = self.at(path);
        let mut out: Vec<Option<Json>> = Vec::new();
        let mut add = |v: Option<Json>| {
            if out.len() < MAX_VALUES && !out.contains(&v) {
                out.push(v);
            }
        };
        let plain = schema.map(|s| self.make(s, &mut path.to_vec(), 0));
        let kind = schema.and_then(kind_of);
        let whole = self.probes.keys().any(|p| p.len() > path.len() && p.starts_with(path));
        if let Some(values) = schema.and_then(|s| s.get("enum")).and_then(Json::as_array) {
            values.iter().for_each(|v| add(Some(v.clone())));
        } else if let Some(value) = schema.and_then(|s| s.get("const")) {
            add(Some(value.clone()));
        } else {
            match kind {
                Some("boolean") => [true, false].into_iter().for_each(|b| add(Some(b.into()))),
                Some("integer" | "number") => {
                    if probe.names {
                        let next = plain.as_ref().and_then(Json::as_i64).and_then(|n| n.checked_add(1));
                        next.into_iter().for_each(|n| add(Some(n.into())));
                    }
                    plain.into_iter().for_each(|v| add(Some(v)));
                    around(&probe.constants, kind == Some("integer")).into_iter().for_each(|v| add(Some(v)));
                }
                Some("string") => {
                    plain.into_iter().for_each(|v| add(Some(v)));
                    probe.constants.iter().filter(|c| c.is_string()).for_each(|c| add(Some(c.clone())));
                    if probe.names {
                        let other = schema.map_or_else(|| "b".to_string(), |s| text(s).replace('a', "b"));
                        add(Some(Json::String(other)));
                    }
                    probe.sizes.iter().filter(|n| (0..1000).contains(*n)).for_each(|n| {
                        for n in [*n, n.saturating_add(1)] {
                            add(Some(Json::String("a".repeat(usize::try_from(n).unwrap_or(0)))));
                        }
                    });
                }
                Some("array") => {
                    let item = schema
                        .and_then(|s| s.get("items"))
                        .map_or_else(|| json!("a"), |s| self.make(s, &mut Vec::new(), 0));
                    let mut counts: Vec<i64> = vec![0, 1];
                    counts.extend(probe.sizes.iter().flat_map(|n| [n.saturating_sub(1), *n, n.saturating_add(1)]));
                    for n in counts.into_iter().filter(|n| (0..100).contains(n)) {
                        add(Some(Json::Array((0..n).map(|_| item.clone()).collect())));
                    }
                }
                Some("object") => plain.into_iter().for_each(|v| add(Some(v))),
                _ if whole => plain.into_iter().for_each(|v| add(Some(v))),
                _ => {
                    around(&probe.constants, false).into_iter().for_each(|v| add(Some(v)));
                    probe.constants.iter().for_each(|c| add(Some(c.clone())));
                    if probe.constants.is_empty() && !probe.names {
                        [json!(true), json!(false)].into_iter().for_each(|v| add(Some(v)));
                    }
                    add(Some(json!("a")));
                    if probe.names {
                        add(Some(json!("b")));
                    }
                }
            }
            let nullable = schema
                .is_some_and(|s| s.get("type").and_then(Json::as_array).is_some_and(|t| t.iter().any(|t| t == "null")));
            if nullable || (schema.is_none() && probe.constants.contains(&Json::Null)) {
                add(Some(Json::Null));
            }
        }
        // A field that a schema does not name may be one that it does not allow.
        if !required && !path.is_empty() && self.root.is_some() {
            add(None);
        }
        out
    }
}

fn kind_of(schema: &Json) -> Option<&str> {
    match schema.get("type") {
        Some(Json::String(kind)) => Some(kind),
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).find(|k| *k != "null").or(Some("null")),
        _ if schema.get("properties").is_some() || schema.get("required").is_some() => Some("object"),
        _ if schema.get("items").is_some() => Some("array"),
        _ => None,
    }
}

fn text(schema: &Json) -> String {
    example_text(schema, 'a').unwrap_or_else(|| "a".to_owned())
}

fn number(schema: &Json, whole: bool) -> Json {
    let bound = |key: &str| schema.get(key).and_then(Json::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|n| if whole { n + 1.0 } else { n + 0.001 }));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| if whole { n - 1.0 } else { n - 0.001 }));
    let step = bound("multipleOf").filter(|s| *s > 0.0);
    let mut value = match (least, most) {
        (Some(least), _) if least > 1.0 => least,
        (_, Some(most)) if most < 1.0 => most,
        _ => 1.0,
    };
    if let Some(step) = step {
        value = (value / step).ceil() * step;
    }
    from_f64(value)
}

/// Returns the constants and their neighboring values.
fn around(constants: &[Json], whole: bool) -> Vec<Json> {
    let mut out = Vec::new();
    for constant in constants.iter().filter_map(Json::as_f64) {
        let step = if whole || constant.fract() == 0.0 { 1.0 } else { 0.01 };
        for value in [constant, constant - step, constant + step] {
            let value = if whole { value.round() } else { value };
            out.push(from_f64(value));
        }
    }
    out
}

/// Converts to an integer if the value is integral, so that each value has one JSON form.
fn from_f64(value: f64) -> Json {
    #[allow(clippy::cast_possible_truncation)] // whole and within what f64 holds exactly
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Json::from(value as i64);
    }
    // Remove rounding errors: 0.14 + 0.01 is 0.15000000000000002.
    let short = format!("{value:.6}").parse().unwrap_or(value);
    Number::from_f64(short).map_or(Json::Null, Json::Number)
}

/// Merges two schemas into one that requires both; exact only for plain objects.
fn both(whole: Json, part: &Json) -> Json {
    let (Json::Object(mut whole), Json::Object(part)) = (whole, part) else {
        return part.clone();
    };
    for (key, value) in part {
        match (key.as_str(), whole.get_mut(key)) {
            ("properties", Some(Json::Object(known))) => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    let one = known.remove(name).map_or_else(|| schema.clone(), |k| both(k, schema));
                    known.insert(name.clone(), one);
                }
            }
            ("required", Some(Json::Array(known))) => known.extend(value.as_array().into_iter().flatten().cloned()),
            _ => drop(whole.insert(key.clone(), value.clone())),
        }
    }
    Json::Object(whole)
}
