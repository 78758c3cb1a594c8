//! Turns JSON Schema into Rust types, as far as types can express it. The kernel checks the rest
//! (lengths, patterns, bounds).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::names::{camel, snake};

/// The Rust type for any JSON, used where the schema does not restrict the value further.
const ANY: &str = "::serde_json::Value";

/// Upper limit of the nesting of schemas; anything deeper becomes any JSON.
const MAX_DEPTH: usize = 16;

/// Returns the entry of `types` that a schema refers to, as a charter writes it or as the reader
/// inlines it.
fn target(schema: &Json) -> Option<&str> {
    let reference = schema.get("$ref")?.as_str()?;
    reference.strip_prefix("#/types/").or_else(|| reference.strip_prefix("#/$defs/types."))
}

/// The types generated so far, and the names that are in use.
pub(crate) struct Types<'d> {
    named: &'d IndexMap<String, Json>,
    pub(crate) text: String,
    taken: BTreeSet<String>,
    /// Entries of `types` that have been generated, with their Rust names.
    known: IndexMap<String, String>,
}

impl<'d> Types<'d> {
    pub(crate) fn new(named: &'d IndexMap<String, Json>) -> Types<'d> {
        Types { named, text: String::new(), taken: BTreeSet::new(), known: IndexMap::new() }
    }

    /// Returns a unique name, based on `wish`.
    fn fresh(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut count = 1u32;
        while !self.taken.insert(name.clone()) {
            count = count.saturating_add(1);
            name = format!("{wish}{count}");
        }
        name
    }

    /// Generates the struct for the data of an event, even for a single field, so that fields can
    /// be added. Returns `None` if the schema declares no fields.
    pub(crate) fn event(&mut self, name: &str, schema: &Json) -> Option<String> {
        let schema = self.resolve(schema);
        let fields = schema.as_object().filter(|s| s.contains_key("properties"))?.clone();
        let name = self.fresh(&camel(name));
        self.record(&name, &fields, 0);
        Some(name)
    }

    fn resolve(&self, schema: &Json) -> Json {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            let target = target(schema);
            match target.and_then(|t| self.named.get(t)) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema.clone()
    }

    /// Returns the Rust type of a schema, and generates the types that it needs.
    fn of(&mut self, schema: &Json, wish: &str, depth: usize) -> String {
        if depth > MAX_DEPTH {
            return ANY.into();
        }
        let depth = depth.saturating_add(1);
        if let Some(target) = target(schema) {
            if let Some(name) = self.known.get(target) {
                return name.clone();
            }
            let resolved = self.resolve(schema);
            // A reference of a type to itself becomes any JSON.
            self.known.insert(target.to_owned(), ANY.into());
            let name = self.of(&resolved, &camel(target), depth);
            self.known.insert(target.to_owned(), name.clone());
            return name;
        }
        let Some(object) = schema.as_object() else {
            return ANY.into();
        };
        let texts: Option<Vec<&str>> =
            object.get("enum").and_then(Json::as_array).and_then(|list| list.iter().map(Json::as_str).collect());
        if let Some(texts) = texts.filter(|t| !t.is_empty()) {
            return self.choice(wish, &texts);
        }
        let kind = match object.get("type") {
            Some(Json::String(kind)) => kind.as_str(),
            Some(Json::Array(kinds)) => match kinds.iter().filter_map(Json::as_str).collect::<Vec<_>>().as_slice() {
                [one, "null"] | ["null", one] => {
                    let mut plain = object.clone();
                    plain.insert("type".into(), Json::String((*one).to_owned()));
                    return format!("Option<{}>", self.of(&Json::Object(plain), wish, depth));
                }
                _ => return ANY.into(),
            },
            _ => "",
        };
        match kind {
            "string" => "String".into(),
            "integer" => "i64".into(),
            "number" => "f64".into(),
            "boolean" => "bool".into(),
            "array" => {
                let item = match object.get("items") {
                    Some(items) => self.of(items, &format!("{wish}Item"), depth),
                    None => ANY.into(),
                };
                format!("Vec<{item}>")
            }
            "object" if object.contains_key("properties") => {
                let name = self.fresh(wish);
                self.record(&name, object, depth);
                name
            }
            "object" => match object.get("additionalProperties") {
                Some(values @ Json::Object(_)) => {
                    format!("::std::collections::BTreeMap<String, {}>", self.of(values, &format!("{wish}Value"), depth))
                }
                _ => "::serde_json::Map<String, ::serde_json::Value>".into(),
            },
            _ => ANY.into(),
        }
    }

    fn record(&mut self, name: &str, schema: &Map<String, Json>, depth: usize) {
        let required: BTreeSet<&str> =
            schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        let properties = schema.get("properties").and_then(Json::as_object);
        let mut fields = String::new();
        let mut taken = BTreeSet::new();
        for (key, property) in properties.into_iter().flatten() {
            let kind = self.of(property, &format!("{name}{}", camel(key)), depth);
            let mut field = snake(key);
            while !taken.insert(field.clone()) {
                field.push('_');
            }
            let about = property.get("description").and_then(Json::as_str);
            doc(&mut fields, "    ", about.unwrap_or(&format!("`{key}`.")));
            let optional = !required.contains(key.as_str());
            let mut serde = Vec::new();
            if field != *key {
                serde.push(format!("rename = {key:?}"));
            }
            let kind = match (optional, kind.starts_with("Option<")) {
                (true, false) => format!("Option<{kind}>"),
                _ => kind,
            };
            if optional {
                serde.push("default".into());
                serde.push("skip_serializing_if = \"Option::is_none\"".into());
            }
            if !serde.is_empty() {
                let _ = writeln!(fields, "    #[serde({})]", serde.join(", "));
            }
            let _ = writeln!(fields, "    pub {field}: {kind},");
        }
        let about = schema.get("description").and_then(Json::as_str);
        doc(&mut self.text, "", about.unwrap_or(&format!("Data: {name}.")));
        let _ = writeln!(
            self.text,
            "#[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]\npub struct {name} {{\n{fields}}}\n"
        );
    }

    fn choice(&mut self, wish: &str, texts: &[&str]) -> String {
        let name = self.fresh(wish);
        let mut variants = String::new();
        let mut taken = BTreeSet::new();
        for text in texts {
            let mut variant = camel(text);
            while !taken.insert(variant.clone()) {
                variant.push('_');
            }
            let _ = writeln!(variants, "    /// `{text}`.\n    #[serde(rename = {text:?})]\n    {variant},");
        }
        let _ = writeln!(
            self.text,
            "/// One of the listed values.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]\npub enum {name} {{\n{variants}}}\n"
        );
        name
    }
}

/// Writes a doc comment, one `///` per line of text, so that no text can end the comment.
pub(crate) fn doc(out: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "{indent}/// {}", line.trim_end());
    }
}
