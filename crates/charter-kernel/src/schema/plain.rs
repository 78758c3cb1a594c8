//! A fast validator for the plain schemas that most events have: it walks the data once and does
//! not hash.
//!
//! It answers "matches" or "cannot tell" and never rejects data: what it does not accept goes to
//! the full validator, and a schema with an unsupported keyword has no plain form. Property tests
//! compare the two.

use std::collections::HashMap;

use charter_expr::schema::SchemaNode;
use serde_json::Value as Json;

use super::view::{Kind, View};

/// A schema in plain form.
#[derive(Debug)]
pub(crate) struct Plain {
    nodes: Vec<Node>,
    root: u32,
}

/// One schema or subschema. Absent fields do not restrict the data.
#[derive(Debug, Default)]
struct Node {
    /// The allowed kinds, as bits of [`Kind`]; 0: any.
    kinds: u8,
    words: Option<Vec<Box<str>>>,
    text: Option<TextRule>,
    least: Option<f64>,
    most: Option<f64>,
    fewest: usize,
    largest: Option<usize>,
    items: Option<u32>,
    object: Option<ObjectRule>,
    all: Vec<u32>,
    any: Vec<u32>,
}

#[derive(Debug, Default)]
struct TextRule {
    shortest: usize,
    /// The prefix of a pattern `^prefix[A-Za-z0-9_-]+$`.
    prefix: Option<Box<str>>,
    date_time: bool,
}

#[derive(Debug, Default)]
struct ObjectRule {
    fields: Vec<(Box<str>, u32)>,
    /// A bit for each required field.
    required: u64,
    /// Whether other fields are forbidden, except those with a prefix in `free`.
    closed: bool,
    free: Vec<Box<str>>,
    fewest: usize,
}

const MAX_NODES: usize = 10_000;
const MAX_FIELDS: usize = 64;

static ANYTHING: Json = Json::Bool(true);

impl Plain {
    /// Compiles the plain form of a schema, if it has one.
    pub(crate) fn compile(schema: &Json) -> Option<Plain> {
        let mut compiler = PlainCompiler { nodes: Vec::new(), known: HashMap::new() };
        let root = compiler.node(SchemaNode::new(schema))?;
        Some(Plain { nodes: compiler.nodes, root })
    }

    /// Whether the data certainly matches.
    pub(crate) fn fits(&self, data: impl View) -> bool {
        self.check(self.root, data)
    }

    fn check(&self, at: u32, data: impl View) -> bool {
        let Some(node) = self.nodes.get(at as usize) else {
            return false;
        };
        let kind = data.kind();
        if node.kinds != 0 && node.kinds & kind.bit() == 0 {
            return false;
        }
        if let Some(words) = &node.words
            && !data.text(|text| words.iter().any(|word| word.as_ref() == text))
        {
            return false;
        }
        let own = match kind {
            Kind::Text => match &node.text {
                Some(rule) => data.text(|text| rule.fits(text)),
                None => true,
            },
            Kind::Int | Kind::Float if node.least.is_some() || node.most.is_some() => data
                .number()
                .is_some_and(|n| node.least.is_none_or(|least| n >= least) && node.most.is_none_or(|most| n <= most)),
            Kind::List => {
                (node.fewest == 0 || data.len() >= node.fewest)
                    && node.largest.is_none_or(|largest| data.len() <= largest)
                    && node.items.is_none_or(|items| data.items(|item| self.check(items, item)))
            }
            Kind::Object => match &node.object {
                Some(rule) => self.object(rule, data),
                None => true,
            },
            _ => true,
        };
        own && node.all.iter().all(|part| self.check(*part, data))
            && (node.any.is_empty() || node.any.iter().any(|part| self.check(*part, data)))
    }

    fn object(&self, rule: &ObjectRule, data: impl View) -> bool {
        let mut found = 0u64;
        let fits = data.fields(|key, value| {
            let known = rule.fields.iter().enumerate().find(|(_, (name, _))| name.as_ref() == key);
            match known {
                Some((place, (_, schema))) => {
                    found |= 1u64.checked_shl(u32::try_from(place).unwrap_or(64)).unwrap_or(0);
                    self.check(*schema, value)
                }
                None => !rule.closed || rule.free.iter().any(|free| key.starts_with(&**free)),
            }
        });
        fits && found & rule.required == rule.required && data.len() >= rule.fewest
    }
}

impl TextRule {
    fn fits(&self, text: &str) -> bool {
        let long_enough = match self.shortest {
            0 => true,
            1 => !text.is_empty(),
            n => text.chars().count() >= n,
        };
        let shaped = self.prefix.as_ref().is_none_or(|prefix| {
            text.strip_prefix(&**prefix).is_some_and(|rest| {
                let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                !rest.is_empty() && rest.bytes().all(word)
            })
        });
        long_enough && shaped && (!self.date_time || is_date_time(text.as_bytes()))
    }
}

/// Whether the text is certainly a date and time: RFC 3339 with `T`, excluding leap seconds and 29
/// February.
fn is_date_time(text: &[u8]) -> bool {
    let digit = |at: usize| match text.get(at) {
        Some(b @ b'0'..=b'9') => Some(u32::from(b.wrapping_sub(b'0'))),
        _ => None,
    };
    let two = |at: usize| {
        let tens = digit(at)?;
        Some(tens.wrapping_mul(10).wrapping_add(digit(at.wrapping_add(1))?))
    };
    let is = |at: usize, byte: u8| text.get(at) == Some(&byte);
    let (Some(century), Some(_year), Some(month), Some(day)) = (two(0), two(2), two(5), two(8)) else {
        return false;
    };
    let (Some(hour), Some(minute), Some(second)) = (two(11), two(14), two(17)) else {
        return false;
    };
    let days = if matches!(month, 4 | 6 | 9 | 11) { 30 } else { 31 };
    let date = century > 0 && (1..=12).contains(&month) && day >= 1 && day <= (if month == 2 { 28 } else { days });
    let marks = is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':');
    if !(date && marks && hour < 24 && minute < 60 && second < 60) {
        return false;
    }
    let mut at = 19usize;
    if is(at, b'.') {
        let first = at.wrapping_add(1);
        at = first;
        while digit(at).is_some() {
            at = at.wrapping_add(1);
        }
        if at == first || at > first.wrapping_add(9) {
            return false;
        }
    }
    match text.get(at..) {
        Some(b"Z") => true,
        Some([b'+' | b'-', _, _, b':', _, _]) => {
            let hours = two(at.wrapping_add(1)).is_some_and(|h| h < 24);
            hours && two(at.wrapping_add(4)).is_some_and(|m| m < 60)
        }
        _ => false,
    }
}

/// Compiles the plain form; the methods return `None` if the schema is not plain.
struct PlainCompiler {
    nodes: Vec<Node>,
    /// Nodes by the address of their schema, so that a definition used more than once is compiled
    /// once.
    known: HashMap<*const Json, u32>,
}

impl PlainCompiler {
    fn node(&mut self, schema: SchemaNode<'_>) -> Option<u32> {
        if self.nodes.len() > MAX_NODES {
            return None;
        }
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema.json())) {
            return Some(*known);
        }
        let mut node = Node::default();
        match schema.json() {
            Json::Bool(true) => {}
            Json::Object(map) => {
                for (key, value) in map {
                    self.keyword(&mut node, key, value, schema)?;
                }
                self.object(&mut node, map, schema)?;
            }
            _ => return None,
        }
        let id = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        self.known.insert(std::ptr::from_ref(schema.json()), id);
        Some(id)
    }

    fn nodes<'s>(&mut self, list: &'s Json, within: SchemaNode<'s>) -> Option<Vec<u32>> {
        let list = list.as_array().filter(|list| !list.is_empty())?;
        list.iter().map(|s| self.node(within.below(s)?)).collect()
    }

    fn keyword<'s>(&mut self, node: &mut Node, key: &str, value: &'s Json, schema: SchemaNode<'s>) -> Option<()> {
        let size = || value.as_u64().and_then(|n| usize::try_from(n).ok());
        match key {
            "$ref" => {
                let target = self.node(schema.target()?)?;
                node.all.push(target);
            }
            "type" => {
                let words: Vec<&str> = match value {
                    Json::Array(list) => list.iter().map(Json::as_str).collect::<Option<_>>()?,
                    one => vec![one.as_str()?],
                };
                for word in words {
                    node.kinds |= match word {
                        "null" => Kind::Null.bit(),
                        "boolean" => Kind::Bool.bit(),
                        "integer" => Kind::Int.bit(),
                        "number" => Kind::Int.bit() | Kind::Float.bit(),
                        "string" => Kind::Text.bit(),
                        "array" => Kind::List.bit(),
                        "object" => Kind::Object.bit(),
                        _ => return None,
                    };
                }
            }
            "enum" | "const" if node.words.is_none() => {
                let list = match value {
                    Json::Array(list) if key == "enum" => list.as_slice(),
                    one => std::slice::from_ref(one),
                };
                let word = |j: &Json| j.as_str().map(Box::from);
                node.words = Some(list.iter().map(word).collect::<Option<_>>()?);
            }
            "minLength" => node.text.get_or_insert_default().shortest = size()?,
            "pattern" => {
                let prefix = value.as_str()?.strip_prefix('^')?;
                let prefix = prefix.strip_suffix("[A-Za-z0-9_-]+$")?;
                let plain = prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                node.text.get_or_insert_default().prefix = Some(plain.then(|| prefix.into())?);
            }
            "format" if value == "date-time" => node.text.get_or_insert_default().date_time = true,
            "minimum" => node.least = Some(value.number()?),
            "maximum" => node.most = Some(value.number()?),
            "minItems" => node.fewest = size()?,
            "maxItems" => node.largest = Some(size()?),
            "items" => node.items = Some(self.node(schema.below(value)?)?),
            "allOf" => node.all.extend(self.nodes(value, schema)?),
            "anyOf" => node.any = self.nodes(value, schema)?,
            "properties" | "required" | "additionalProperties" | "patternProperties" | "minProperties" => {}
            // Annotations and definitions.
            "title" | "description" | "default" | "examples" | "$comment" | "rule" | "$defs" => {}
            _ => return None,
        }
        Some(())
    }

    fn object<'s>(
        &mut self,
        node: &mut Node,
        map: &'s serde_json::Map<String, Json>,
        schema: SchemaNode<'s>,
    ) -> Option<()> {
        let mut rule = ObjectRule::default();
        for (name, property) in
            map.get("properties").map_or(Some(None), |p| p.as_object().map(Some))?.into_iter().flatten()
        {
            rule.fields.push((name.as_str().into(), self.node(schema.below(property)?)?));
        }
        for name in map.get("required").map_or(Some(None), |r| r.as_array().map(Some))?.into_iter().flatten() {
            let name = name.as_str()?;
            let known = rule.fields.iter().position(|(n, _)| n.as_ref() == name);
            let place = match known {
                Some(place) => place,
                // A required field without a schema of its own is plain only if other fields are
                // allowed.
                None if map.get("additionalProperties").is_none_or(|a| *a == Json::Bool(true))
                    && !map.contains_key("patternProperties") =>
                {
                    let any = self.node(SchemaNode::new(&ANYTHING))?;
                    rule.fields.push((name.into(), any));
                    rule.fields.len().saturating_sub(1)
                }
                None => return None,
            };
            rule.required |= 1u64.checked_shl(u32::try_from(place).ok()?)?;
        }
        rule.closed = match map.get("additionalProperties") {
            None | Some(Json::Bool(true)) => false,
            Some(Json::Bool(false)) => true,
            Some(_) => return None,
        };
        if let Some(patterns) = map.get("patternProperties") {
            for (pattern, schema) in patterns.as_object()? {
                let prefix = pattern.strip_prefix('^')?;
                let plain = prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                let anything = *schema == Json::Bool(true) || schema.as_object()?.is_empty();
                rule.free.push((plain && anything).then(|| prefix.into())?);
            }
        }
        if let Some(fewest) = map.get("minProperties") {
            rule.fewest = usize::try_from(fewest.as_u64()?).ok()?;
        }
        if rule.fields.len() > MAX_FIELDS {
            return None;
        }
        let says = !rule.fields.is_empty() || rule.closed || rule.fewest > 0;
        node.object = says.then_some(rule);
        Some(())
    }
}
