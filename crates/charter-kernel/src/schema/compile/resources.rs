//! The parts of a schema that references can name: by `$id`, by anchor, by JSON pointer.

use std::collections::{BTreeSet, HashMap};

use charter_expr::pointer;
use serde_json::Value as Json;

use super::super::error::SchemaError;
use super::keywords::{Form, form};

/// What relative references refer to in a schema without `$id`.
const NO_BASE: &str = "json-schema:///";

/// The target of a reference.
pub(super) struct Target<'s> {
    pub(super) json: &'s Json,
    /// JSON pointer to it.
    pub(super) path: String,
    pub(super) resource: usize,
}

/// A schema with an `$id`, or the whole schema.
struct Resource<'s> {
    uri: String,
    json: &'s Json,
    path: String,
}

pub(super) struct Resources<'s> {
    list: Vec<Resource<'s>>,
    /// Schemas that begin a resource, by address.
    roots: HashMap<*const Json, usize>,
    /// Schemas by resource and anchor.
    anchors: HashMap<(usize, &'s str), (&'s Json, String)>,
    /// Resources and names of `$dynamicAnchor`.
    dynamic: BTreeSet<(&'s str, usize)>,
}

impl<'s> Resources<'s> {
    /// Finds them in the places of a schema that hold schemas.
    pub(super) fn of(schema: &'s Json) -> Result<Resources<'s>, SchemaError> {
        let root = Resource { uri: NO_BASE.to_owned(), json: schema, path: String::new() };
        let mut found =
            Resources { list: vec![root], roots: HashMap::new(), anchors: HashMap::new(), dynamic: BTreeSet::new() };
        let mut stack = vec![(schema, String::new(), 0usize)];
        while let Some((json, path, outer)) = stack.pop() {
            let Some(map) = json.as_object() else {
                continue;
            };
            let mut resource = outer;
            if let Some(id) = map.get("$id").and_then(Json::as_str) {
                let base = found.list.get(outer).map_or(NO_BASE, |outer| &outer.uri);
                let uri = resolve(base, id.trim_end_matches('#'));
                if path.is_empty() {
                    found.list.iter_mut().for_each(|root| root.uri.clone_from(&uri));
                } else {
                    resource = found.list.len();
                    found.roots.insert(std::ptr::from_ref(json), resource);
                    found.list.push(Resource { uri, json, path: path.clone() });
                }
            }
            for keyword in ["$anchor", "$dynamicAnchor"] {
                let Some(anchor) = map.get(keyword).and_then(Json::as_str) else {
                    continue;
                };
                if keyword == "$dynamicAnchor" {
                    found.dynamic.insert((anchor, resource));
                }
                if found.anchors.insert((resource, anchor), (json, path.clone())).is_some_and(|(old, _)| old != json) {
                    let message = format!("the anchor `{anchor}` is declared twice");
                    return Err(SchemaError::invalid(&format!("{path}/{keyword}"), message));
                }
            }
            for (keyword, value) in map {
                let at = |part: &str| format!("{path}/{}/{}", pointer::escape(keyword), pointer::escape(part));
                match (form(keyword), value) {
                    (Form::Schema, _) => stack.push((value, format!("{path}/{keyword}"), resource)),
                    (Form::List, Json::Array(list)) => {
                        stack.extend((0usize..).zip(list).map(|(i, json)| (json, at(&i.to_string()), resource)));
                    }
                    (Form::Map, Json::Object(map)) => {
                        stack.extend(map.iter().map(|(name, json)| (json, at(name), resource)));
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// The resource of a schema that is found in `outer`.
    pub(super) fn within(&self, json: &Json, outer: usize) -> usize {
        self.roots.get(&std::ptr::from_ref(json)).copied().unwrap_or(outer)
    }

    /// Follows a reference of a schema at `path` in `resource`.
    pub(super) fn target(
        &self,
        resource: usize,
        keyword: &str,
        reference: &str,
        path: &str,
    ) -> Result<Target<'s>, SchemaError> {
        let error = |message| Err(SchemaError::Reference { at: format!("{path}/{keyword}"), message });
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if uri.is_empty() {
            resource
        } else {
            let base = self.list.get(resource).map_or(NO_BASE, |resource| &resource.uri);
            let uri = resolve(base, uri);
            match self.list.iter().position(|resource| resource.uri == uri) {
                Some(resource) => resource,
                None => {
                    return error(format!(
                        "`{reference}` is not in this schema, and nothing is fetched; copy it under `$defs` and refer \
                         to it as `#/$defs/NAME`"
                    ));
                }
            }
        };
        let Some(root) = self.list.get(resource) else {
            return error(format!("`{reference}` has no target"));
        };
        let Some(fragment) = decode(fragment) else {
            return error(format!("the fragment of `{reference}` is not percent-encoded UTF-8"));
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            let Some(json) = root.json.pointer(&fragment) else {
                return error(format!(
                    "`{reference}` has no target; write it as `#/$defs/NAME` of a schema in `$defs`"
                ));
            };
            return Ok(Target {
                json,
                path: format!("{}{fragment}", root.path),
                resource: self.within(json, resource),
            });
        }
        let Some((json, path)) = self.anchors.get(&(resource, fragment.as_str())) else {
            return error(format!("`{reference}` has no target: no `$anchor` is named `{fragment}`"));
        };
        let same = self.dynamic.range((fragment.as_str(), 0)..).take_while(|(name, _)| *name == fragment);
        let is_dynamic = keyword == "$dynamicRef" && self.dynamic.contains(&(fragment.as_str(), resource));
        if is_dynamic && same.count() > 1 {
            return error(format!(
                "`$dynamicRef` to `{fragment}` is not supported where several schemas with an `$id` have this \
                 `$dynamicAnchor`; use `$ref`"
            ));
        }
        Ok(Target { json, path: path.clone(), resource })
    }
}

/// Resolves a reference without fragment (RFC 3986, section 5.2).
fn resolve(base: &str, reference: &str) -> String {
    fn scheme(uri: &str) -> Option<(&str, &str)> {
        let (scheme, rest) = uri.split_once(':')?;
        let known = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        known.then_some((scheme, rest))
    }
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let Some((name, rest)) = scheme(base) else {
        return reference.to_owned();
    };
    if reference.starts_with("//") {
        return format!("{name}:{reference}");
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            (Some(after.get(..end).unwrap_or_default()), after.get(end..).unwrap_or_default())
        }
        None => (None, rest),
    };
    let path = path.split('?').next().unwrap_or_default();
    let (reference, query) = match reference.split_once('?') {
        Some((reference, query)) => (reference, Some(query)),
        None => (reference, None),
    };
    let merged = if reference.starts_with('/') {
        reference.to_owned()
    } else if reference.is_empty() {
        path.to_owned()
    } else {
        let folder = path.rfind('/').and_then(|slash| path.get(..=slash));
        format!("{}{reference}", folder.unwrap_or(if authority.is_some() { "/" } else { "" }))
    };
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = merged.split('/').peekable();
    while let Some(part) = rest.next() {
        match part {
            "." | ".." => {
                if part == ".." && parts.len() > 1 {
                    parts.pop();
                }
                if rest.peek().is_none() {
                    parts.push("");
                }
            }
            _ => parts.push(part),
        }
    }
    let authority = authority.map(|authority| format!("//{authority}")).unwrap_or_default();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{name}:{authority}{}{query}", parts.join("/"))
}

/// Decodes percent-encoded text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|d| u8::try_from(d).ok());
            let high = digit(rest.next())?;
            bytes.push(high.wrapping_mul(16) | digit(rest.next())?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{decode, resolve};

    #[test]
    fn references_are_resolved_as_in_rfc_3986() {
        // Section 5.4.
        let base = "http://a/b/c/d;p?q";
        for (reference, target) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("g?y", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
        ] {
            assert_eq!(resolve(base, reference), target, "{reference}");
        }
        assert_eq!(resolve("json-schema:///", "item"), "json-schema:///item");
        assert_eq!(resolve("urn:charter:schema:1", "item"), "urn:item");
    }

    #[test]
    fn fragments_are_decoded() {
        assert_eq!(decode("/$defs/a%20b").as_deref(), Some("/$defs/a b"));
        assert_eq!(decode("%C3%A9").as_deref(), Some("é"));
        assert_eq!(decode("%C3"), None);
        assert_eq!(decode("%4"), None);
    }
}
