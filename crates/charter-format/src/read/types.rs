//! Reads JSON Schemas. The types that a schema refers to (`#/types/NAME`) are copied into its
//! `$defs`, so that each schema is self-contained.

use std::collections::BTreeMap;

use charter_expr::nearest;
use serde_json::{Map, Value as Json};

use super::context::Context;
use crate::diagnostic::{Diagnostic, codes, listed};
use crate::source::{Node, Value};

const PREFIX: &str = "#/types/";
/// Upper limit of the schema text copied in one charter: types that refer to each other can
/// multiply.
const MAX_COPIED: usize = 16 << 20;

/// The named types of a charter.
pub(crate) struct Types {
    named: BTreeMap<String, Named>,
    copied: std::cell::Cell<usize>,
}

/// A type with its references rewritten, its size, and the names it refers to.
struct Named {
    schema: Json,
    size: usize,
    refers: Vec<String>,
}

impl Types {
    pub(crate) fn new(node: Option<&Node>) -> Types {
        let mut named = BTreeMap::new();
        for entry in node.map(Node::entries).unwrap_or_default() {
            let mut schema = entry.value.as_written();
            let mut refers = Vec::new();
            rewrite(&mut schema, &mut refers);
            let size = schema.to_string().len();
            named.insert(entry.key.text.clone(), Named { schema, size, refers });
        }
        Types { named, copied: std::cell::Cell::new(0) }
    }

    /// Makes a schema self-contained. Reports unknown type names at their places.
    pub(crate) fn schema(&self, cx: &mut Context, node: &Node) -> Json {
        self.report_unknown(cx, node);
        let mut schema = node.as_written();
        let mut waiting = Vec::new();
        rewrite(&mut schema, &mut waiting);
        let mut needed: BTreeMap<String, Json> = BTreeMap::new();
        while let Some(name) = waiting.pop() {
            let Some(named) = self.named.get(&name).filter(|_| !needed.contains_key(&name)) else {
                continue;
            };
            self.copied.set(self.copied.get().saturating_add(named.size));
            if self.copied.get() > MAX_COPIED {
                let message = "the types that schemas refer to exceed 16 MiB";
                cx.report(Diagnostic::error(codes::TOO_LARGE, node.span, message));
                return Json::Bool(true);
            }
            needed.insert(name, named.schema.clone());
            waiting.extend(named.refers.iter().cloned());
        }
        if let Json::Object(schema) = &mut schema
            && !needed.is_empty()
            && let Json::Object(defs) = schema.entry("$defs").or_insert_with(|| Json::Object(Map::new()))
        {
            for (name, named) in needed {
                defs.insert(format!("types.{name}"), named);
            }
        }
        schema
    }

    fn report_unknown(&self, cx: &mut Context, node: &Node) {
        for item in node.items() {
            self.report_unknown(cx, item);
        }
        for entry in node.entries() {
            self.report_unknown(cx, &entry.value);
            let Value::Text(text) = &entry.value.value else {
                continue;
            };
            let Some(name) = text.text.strip_prefix(PREFIX).filter(|_| entry.key.text == "$ref").map(first_token)
            else {
                continue;
            };
            if !self.named.contains_key(&name) {
                // Searching for a similar name is expensive: skip it once the list is full.
                if cx.sink.is_full() {
                    cx.sink.omit();
                    continue;
                }
                let problem = Diagnostic::error(codes::UNDEFINED, entry.value.span, format!("undefined type `{name}`"));
                let known = || self.named.keys().map(String::as_str);
                cx.report(match nearest(&name, known()) {
                    Some(near) => problem.help(format!("did you mean `#/types/{near}`?")),
                    None if self.named.is_empty() => problem.help("declare it under `types`"),
                    None => problem.help(format!("declared under `types`: {}", listed(known()))),
                });
            }
        }
    }
}

/// Rewrites `#/types/NAME...` to `#/$defs/types.NAME...` and collects the names. The parser limits
/// the depth.
fn rewrite(schema: &mut Json, names: &mut Vec<String>) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(|item| rewrite(item, names)),
        Json::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Json::String(text) if key == "$ref" => {
                        if let Some(rest) = text.strip_prefix(PREFIX) {
                            names.push(first_token(rest));
                            *text = format!("#/$defs/types.{rest}");
                        }
                    }
                    value => rewrite(value, names),
                }
            }
        }
        _ => {}
    }
}

fn first_token(pointer: &str) -> String {
    charter_expr::pointer::unescape(pointer.split('/').next().unwrap_or_default()).into_owned()
}
