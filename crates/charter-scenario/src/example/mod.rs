//! Example data for suggested commands: what a schema requires, with placeholders where the schema
//! leaves the value open. Every example is checked against its schema.

mod merge;
mod number;
mod unique;

use std::cell::Cell;

use charter_kernel::{Approval, Schema, example_text};
use serde_json::{Map, Value as Json, json};

use merge::both;
pub use unique::with_free_key;

/// Maximum nesting of example data.
const MAX_DEPTH: u8 = 8;
/// Maximum length of an example list, and number of fields that are made up.
const MAX_LENGTH: usize = 200;
/// Maximum number of schemas that are looked at for one example.
const MAX_SCHEMAS: usize = 5_000;
/// How many choices of alternatives are tried.
const MAX_VARIANTS: usize = 8;
/// How many alternatives are given up in one example.
const MAX_RETRIES: usize = 64;
/// How often a schema is extended by what depends on the data.
const MAX_ROUNDS: usize = 8;

/// Example data.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The data.
    pub data: Json,
    /// Whether the schema accepts it. Otherwise no data was found that it accepts.
    pub fits: bool,
}

/// Builds data for a suggested command, as [`find`] does; `None` if none was found that the schema
/// accepts.
#[must_use]
pub fn data(schema: Option<&Json>, approves: Option<&Approval>) -> Option<Json> {
    let example = find(schema, approves);
    example.fits.then_some(example.data)
}

/// Builds data that matches a schema, with the digest that an approval needs. An example of the
/// schema has precedence.
#[must_use]
pub fn find(schema: Option<&Json>, approves: Option<&Approval>) -> Example {
    let compiled = schema.and_then(|schema| Schema::compile(schema).ok());
    let with_digest = |mut data: Json| {
        if let (Json::Object(map), Some(approval)) = (&mut data, approves) {
            map.insert("digest".into(), approval.digest.to_string().into());
        }
        data
    };
    let mut first = None;
    let nothing = std::iter::once_with(|| json!({}));
    for data in nothing.chain(schema.into_iter().flat_map(candidates)).map(with_digest) {
        if compiled.as_ref().is_none_or(|schema| schema.accepts(&data)) {
            return Example { data, fits: true };
        }
        first.get_or_insert(data);
    }
    Example { data: first.unwrap_or_default(), fits: false }
}

/// What is tried, best first: the examples of the schema, then data that is made from it.
fn candidates(schema: &Json) -> impl Iterator<Item = Json> {
    let of = |known, variant| Maker {
        root: schema,
        known,
        variant,
        left: Cell::new(MAX_SCHEMAS),
        retries: Cell::new(MAX_RETRIES),
    };
    let written = std::iter::once_with(move || {
        let whole = of(true, 0).merged(schema, MAX_DEPTH);
        examples(&whole).cloned().collect::<Vec<_>>()
    });
    // An example or a default may break its own schema.
    let made = std::iter::once((true, 0)).chain((0..MAX_VARIANTS).map(|variant| (false, variant)));
    written.flatten().chain(made.map(move |(known, variant)| of(known, variant).value(schema, MAX_DEPTH)))
}

fn examples(schema: &Json) -> impl Iterator<Item = &Json> {
    let list = schema.get("examples").and_then(Json::as_array);
    list.into_iter().flatten().chain(schema.get("default")).chain(schema.get("const"))
}

/// Makes data.
struct Maker<'s> {
    root: &'s Json,
    /// Whether the first example or default of each part is taken.
    known: bool,
    /// Which alternatives are chosen.
    variant: usize,
    /// How many more schemas may be looked at.
    left: Cell<usize>,
    /// How many more alternatives may be tried that turn out not to fit.
    retries: Cell<usize>,
}

impl Maker<'_> {
    fn value(&self, schema: &Json, depth: u8) -> Json {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Json::Null;
        };
        self.left.set(left);
        let whole = self.merged(schema, MAX_DEPTH);
        if let Some(constant) = whole.get("const") {
            return constant.clone();
        }
        if let Some(example) = examples(&whole).next().filter(|_| self.known) {
            return example.clone();
        }
        if let Some(values) = whole.get("enum").and_then(Json::as_array) {
            let first = self.variant.checked_rem(values.len()).unwrap_or(0);
            let mut turned = values.iter().cycle().skip(first).take(values.len());
            return turned.find(|value| fits(&whole, value)).or(values.first()).cloned().unwrap_or_default();
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Json::Null;
        };
        for key in ["anyOf", "oneOf"] {
            if let Some(all) = whole.get(key).and_then(Json::as_array).filter(|all| !all.is_empty()) {
                return self.alternative(&whole, key, all, depth);
            }
        }
        let kind = match whole.get("type") {
            Some(Json::Array(all)) => self.chosen(all).and_then(Json::as_str),
            other => other.and_then(Json::as_str),
        };
        match kind.or_else(|| implied(&whole)) {
            Some("null") => Json::Null,
            Some("boolean") => fits(&whole, &true.into()).into(),
            Some("integer" | "number") => number::find(&whole, |n| fits(&whole, n)),
            Some("array") => self.list(&whole, depth),
            Some("string") => {
                let others = ["a", "b", "c"].map(str::to_owned);
                let mut all = example_text(&whole, '.').into_iter().chain(others).map(Json::from);
                all.find(|text| fits(&whole, text)).unwrap_or_else(|| "...".into())
            }
            Some(_) => self.object(whole, depth),
            None => {
                let all = [json!("..."), json!(1), json!(true), json!([]), json!({}), Json::Null];
                all.into_iter().find(|value| fits(&whole, value)).unwrap_or_else(|| "...".into())
            }
        }
    }

    /// A value for one of several schemas: the first that fits, beginning with that of the variant.
    fn alternative(&self, whole: &Json, key: &str, all: &[Json], depth: u8) -> Json {
        let mut first = None;
        let start = self.variant.checked_rem(all.len()).unwrap_or(0);
        for choice in all.iter().cycle().skip(start).take(all.len()) {
            let choice = self.merged(choice, MAX_DEPTH);
            let made = match choice {
                Json::Object(_) => self.value(&both(without(whole, &[key]), &choice), depth),
                other => self.value(&without(whole, &[key]), if other == true { depth } else { 0 }),
            };
            let left = self.retries.get().checked_sub(1);
            let Some(left) = left.filter(|_| !fits(whole, &made)) else {
                return if left.is_some() { made } else { first.unwrap_or(made) };
            };
            self.retries.set(left);
            first.get_or_insert(made);
        }
        first.unwrap_or_default()
    }

    fn chosen<'j>(&self, all: &'j [Json]) -> Option<&'j Json> {
        all.get(self.variant.checked_rem(all.len())?)
    }

    /// A schema as one object, without `$ref` and `allOf`.
    fn merged(&self, schema: &Json, depth: u8) -> Json {
        let (Some(left), Some(depth)) = (self.left.get().checked_sub(1), depth.checked_sub(1)) else {
            return json!({});
        };
        self.left.set(left);
        let target = schema.get("$ref").and_then(Json::as_str).and_then(|to| self.root.pointer(to.strip_prefix('#')?));
        let parts = schema.get("allOf").and_then(Json::as_array).into_iter().flatten();
        let mut whole = without(schema, &["$ref", "allOf", "$defs"]);
        for part in target.into_iter().chain(parts) {
            whole = both(whole, &self.merged(part, depth));
        }
        whole
    }

    fn list(&self, whole: &Json, depth: u8) -> Json {
        let first = whole.get("prefixItems").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        let contains = whole.get("contains");
        let wanted = contains.map_or(0, |_| count(whole, "minContains").unwrap_or(1));
        let least = count(whole, "minItems").unwrap_or(0);
        let start = if first.len() < least { first.len() } else { 0 };
        let length = least.max(start.saturating_add(wanted)).min(MAX_LENGTH);
        let is_set = whole.get("uniqueItems") == Some(&Json::Bool(true));
        let mut made: Vec<Json> = Vec::new();
        for at in 0..length {
            let own = first.get(at).or_else(|| whole.get("items"));
            let contained = contains.filter(|_| (start..start.saturating_add(wanted)).contains(&at));
            let schema = match (own, contained) {
                (Some(own), Some(contained)) => json!({"allOf": [own, contained]}),
                (Some(schema), None) | (None, Some(schema)) => schema.clone(),
                (None, None) => json!({}),
            };
            let item = if schema == json!({}) { Json::Null } else { self.value(&schema, depth) };
            match is_set && made.contains(&item) {
                true => made.push(self.other(&schema, &item, &made, depth).unwrap_or(item)),
                false => made.push(item),
            }
        }
        made.into()
    }

    /// Another value for a schema than those that were made.
    fn other(&self, schema: &Json, item: &Json, made: &[Json], depth: u8) -> Option<Json> {
        let whole = self.merged(schema, MAX_DEPTH);
        let is_new = |value: &Json| !made.contains(value) && fits(&whole, value);
        let given = ["enum", "examples"].iter().filter_map(|key| whole.get(*key)?.as_array()).flatten().cloned();
        let of_variant = |more: usize| {
            let variant = self.variant.saturating_add(more);
            let (left, retries) = (self.left.clone(), self.retries.clone());
            let maker = Maker { root: self.root, known: false, variant, left, retries };
            let value = maker.value(schema, depth);
            self.left.set(maker.left.get());
            self.retries.set(maker.retries.get());
            value
        };
        let changed = (1..=made.len().saturating_add(MAX_VARIANTS)).map(|number| another(item, number));
        given.chain(changed).chain((1..MAX_VARIANTS).map(of_variant)).find(is_new)
    }

    fn object(&self, mut whole: Json, depth: u8) -> Json {
        let mut data = self.fields(&whole, depth);
        for _ in 0..MAX_ROUNDS {
            match self.extended(&whole, &data) {
                Some(more) => whole = more,
                None => break,
            }
            data = self.fields(&whole, depth);
        }
        data.into()
    }

    fn fields(&self, whole: &Json, depth: u8) -> Map<String, Json> {
        let mut data = Map::new();
        for name in whole.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str) {
            data.entry(name).or_insert_with(|| self.field(whole, name, depth));
        }
        let least = count(whole, "minProperties").unwrap_or(0).min(MAX_LENGTH);
        if data.len() < least {
            let declared = whole.get("properties").and_then(Json::as_object).into_iter().flatten();
            let names = whole.get("propertyNames").map(|names| self.merged(names, MAX_DEPTH));
            let text = names.as_ref().and_then(|names| example_text(names, 'a')).unwrap_or_else(|| "field".to_owned());
            let made = (1..=MAX_LENGTH.saturating_mul(2)).map(|number| format!("{text}{number}"));
            let all = declared.map(|(name, _)| name.clone()).chain(names.is_some().then(|| text.clone())).chain(made);
            for name in all.filter(|name| names.as_ref().is_none_or(|names| fits(names, &name.as_str().into()))) {
                if data.len() >= least {
                    break;
                }
                data.entry(name.as_str()).or_insert_with(|| self.field(whole, &name, depth));
            }
        }
        data
    }

    fn field(&self, whole: &Json, name: &str, depth: u8) -> Json {
        let matches = |pattern: &str| fits(&json!({"pattern": pattern}), &name.into());
        let by_pattern = || {
            let all = whole.get("patternProperties").and_then(Json::as_object).into_iter().flatten();
            all.filter(|(pattern, _)| matches(pattern)).map(|(_, schema)| schema).next()
        };
        let other = || ["additionalProperties", "unevaluatedProperties"].iter().find_map(|key| whole.get(*key));
        let own = whole.get("properties").and_then(|all| all.get(name));
        own.or_else(by_pattern).or_else(other).map_or_else(|| "...".into(), |schema| self.value(schema, depth))
    }

    /// Adds to a schema what it demands of this data: `if`, and what depends on a field.
    fn extended(&self, whole: &Json, data: &Map<String, Json>) -> Option<Json> {
        if let Some(condition) = whole.get("if") {
            let holds = fits(&self.merged(condition, MAX_DEPTH), &data.clone().into());
            let branch = whole.get(if holds { "then" } else { "else" });
            let rest = without(whole, &["if", "then", "else"]);
            return Some(branch.map_or(rest.clone(), |branch| both(rest, &self.merged(branch, MAX_DEPTH))));
        }
        for key in ["dependentRequired", "dependentSchemas"] {
            let all = whole.get(key).and_then(Json::as_object).into_iter().flatten();
            let Some((name, more)) = all.into_iter().find(|(name, _)| data.contains_key(*name)) else {
                continue;
            };
            let more =
                if key == "dependentRequired" { json!({"required": more}) } else { self.merged(more, MAX_DEPTH) };
            let mut rest = whole.clone();
            if let Some(all) = rest.get_mut(key).and_then(Json::as_object_mut) {
                all.remove(name);
            }
            return Some(both(rest, &more));
        }
        None
    }
}

/// Whether a schema on its own accepts a value; it does if it cannot be compiled, because its
/// references lead outside. The result is checked as a whole.
fn fits(schema: &Json, value: &Json) -> bool {
    Schema::compile(schema).map_or(true, |schema| schema.accepts(value))
}

/// The type that the keywords of a schema are about, if it has none.
fn implied(schema: &Json) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| schema.get(*key).is_some());
    let object = ["properties", "required", "minProperties", "dependentRequired", "dependentSchemas", "propertyNames"];
    if has(&object) || has(&["patternProperties", "additionalProperties", "if"]) {
        return Some("object");
    }
    if has(&["format", "pattern", "minLength", "maxLength"]) {
        return Some("string");
    }
    if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        return Some("number");
    }
    has(&["items", "prefixItems", "contains", "minItems"]).then_some("array")
}

/// A copy of a schema without some keywords.
fn without(schema: &Json, keys: &[&str]) -> Json {
    match schema {
        Json::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
            Json::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        other => other.clone(),
    }
}

fn count(schema: &Json, keyword: &str) -> Option<usize> {
    schema.get(keyword).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok())
}

/// Makes the items of a list without equal items.
fn another(item: &Json, number: usize) -> Json {
    match item {
        _ if number == 0 => item.clone(),
        Json::Number(n) => {
            n.as_i64().map_or_else(|| item.clone(), |n| (n.saturating_add_unsigned(number as u64)).into())
        }
        Json::Bool(value) if number == 1 => (!value).into(),
        Json::String(text) => format!("{text}{number}").into(),
        Json::Null => number.into(),
        Json::Object(fields) => {
            let (round, at) = (number.div_ceil(fields.len().max(1)), number.checked_rem(fields.len()).unwrap_or(0));
            let change = |(i, (name, value)): (usize, (&String, &Json))| {
                (name.clone(), if i == at { another(value, round) } else { value.clone() })
            };
            Json::Object(fields.iter().enumerate().map(change).collect())
        }
        _ => item.clone(),
    }
}

#[cfg(test)]
mod tests;
