//! Finds out where a value does not match its schema.

use charter_expr::{Fuel, pointer};
use serde_json::{Map, Value as Json, json};

use super::TooCostly;
use super::misfit::{MisfitDetails, short_text};
use super::node::{Dependent, Id, ListRule, Mixed, Node, NumberRule, ObjectRule, TextRule};
use super::view::View;
use super::walk::{Walk, allowed};

/// Returns violations of the first schema by a value that does not match it, at most `max`; fewer
/// if the fuel ends.
pub(super) fn explain(nodes: &[Node], source: &Json, value: &Json, max: usize, fuel: &mut Fuel) -> Vec<MisfitDetails> {
    let mut explain = Explain { walk: Walk::keeping(nodes, fuel), source, found: Vec::new(), max };
    // Fuel that ends leaves what was found so far.
    let _ = explain.node(0, value, "");
    explain.found
}

struct Explain<'s, 'f> {
    walk: Walk<'s, 'f>,
    source: &'s Json,
    found: Vec<MisfitDetails>,
    max: usize,
}

type Done = Result<(), TooCostly>;

impl<'s> Explain<'s, '_> {
    /// Adds the violations of a schema, if there are any.
    fn node(&mut self, id: Id, value: &Json, at: &str) -> Done {
        // What is below was decided on the way here, or counts its own depth from here.
        self.walk.open = self.walk.open.saturating_add(1);
        let done = self.opened(id, value, at);
        self.walk.open = self.walk.open.saturating_sub(1);
        done
    }

    fn opened(&mut self, id: Id, value: &Json, at: &str) -> Done {
        let Some(node) = self.walk.nodes.get(id as usize) else {
            return Ok(());
        };
        if self.found.len() >= self.max || self.walk.visit(id, value)? {
            return Ok(());
        }
        if node.never {
            self.never(at, node.path.to_string());
            return Ok(());
        }
        let here = Here { node, source: self.source.pointer(&node.path), value, at };
        if !allowed(node.kinds, value.kind(), value) {
            self.add(&here, "type", here.types());
        }
        for (keyword, options) in [("const", &node.constant), ("enum", &node.options)] {
            if let Some(options) = options
                && !self.walk.is_option(options, value.kind(), value)?
            {
                self.add(&here, keyword, here.limit(keyword));
            }
        }
        if let Some(rule) = &node.number {
            self.number(&here, rule);
        }
        if let Some(rule) = &node.text {
            self.length(&here, rule);
        }
        if let (Some(rule), Json::Array(list)) = (&node.list, value) {
            self.bounds(&here, "Items", list.len(), rule.fewest, rule.most);
        }
        if let (Some(rule), Json::Object(map)) = (&node.object, value) {
            self.bounds(&here, "Properties", map.len(), rule.fewest, rule.most);
            self.required(&here, rule, map);
        }
        if let (Some(rule), Json::String(text)) = (&node.text, value) {
            self.text(&here, rule, text)?;
        }
        if let (Some(rule), Json::Object(map)) = (&node.object, value) {
            self.object(&here, rule, map)?;
        }
        if let (Some(rule), Json::Array(list)) = (&node.list, value) {
            self.list(&here, rule, list)?;
        }
        if let (Some(rule), Json::Object(map)) = (&node.object, value) {
            self.dependent(&here, rule, map)?;
        }
        if let Some(mixed) = &node.mixed {
            self.mixed(&here, mixed)?;
        }
        self.unevaluated(&here, id)?;
        for schema in node.mixed.iter().flat_map(|mixed| &mixed.refs) {
            self.node(*schema, value, at)?;
        }
        Ok(())
    }

    /// Adds a violation of the schema `false`.
    fn never(&mut self, at: &str, rule: String) {
        if self.found.len() < self.max {
            let never = MisfitDetails::new(at, rule, Json::Null, Json::Null);
            self.found.push(MisfitDetails { keyword: Some("false".to_owned()), ..never });
        }
    }

    /// Adds a violation whose message has the value.
    fn add(&mut self, here: &Here<'_>, keyword: &str, limit: Json) {
        self.push(here, keyword, limit, here.value.clone());
    }

    fn push(&mut self, here: &Here<'_>, keyword: &str, limit: Json, value: Json) {
        if self.found.len() < self.max {
            self.found.push(MisfitDetails::new(here.at, here.rule(keyword), limit, value));
        }
    }

    fn number(&mut self, here: &Here<'_>, rule: &NumberRule) {
        let Some(number) = here.value.number() else {
            return;
        };
        let checks = [
            ("minimum", rule.minimum.is_some_and(|limit| number.order(limit).is_lt())),
            ("maximum", rule.maximum.is_some_and(|limit| number.order(limit).is_gt())),
            ("exclusiveMinimum", rule.above.is_some_and(|limit| number.order(limit).is_le())),
            ("exclusiveMaximum", rule.below.is_some_and(|limit| number.order(limit).is_ge())),
        ];
        for (keyword, fails) in checks {
            if fails {
                self.add(here, keyword, here.limit(keyword));
            }
        }
        if rule.multiple_of.is_some_and(|of| !super::number::Decimal::of(number).is_multiple_of(of)) {
            self.add(here, "multipleOf", json!(here.limit("multipleOf").as_f64()));
        }
    }

    fn length(&mut self, here: &Here<'_>, rule: &TextRule) {
        let Json::String(text) = here.value else {
            return;
        };
        let chars = text.chars().count() as u64;
        if chars < rule.shortest {
            self.add(here, "minLength", json!(rule.shortest));
        }
        if let Some(longest) = rule.longest.filter(|longest| chars > *longest) {
            self.add(here, "maxLength", json!(longest));
        }
    }

    fn text(&mut self, here: &Here<'_>, rule: &TextRule, text: &str) -> Done {
        if let Some(pattern) = &rule.pattern
            && !pattern.is_match(text, self.walk.fuel)?
        {
            self.add(here, "pattern", here.limit("pattern"));
        }
        if let Some(format) = rule.format
            && !format.fits(text, self.walk.fuel)?
        {
            self.add(here, "format", here.limit("format"));
        }
        Ok(())
    }

    fn bounds(&mut self, here: &Here<'_>, what: &str, len: usize, fewest: u64, most: Option<u64>) {
        let len = len as u64;
        if len < fewest {
            self.push(here, &format!("min{what}"), json!(fewest), Json::Null);
        }
        if let Some(most) = most.filter(|most| len > *most) {
            self.push(here, &format!("max{what}"), json!(most), Json::Null);
        }
    }

    fn required(&mut self, here: &Here<'_>, rule: &ObjectRule, map: &Map<String, Json>) {
        for name in rule.required.iter().filter_map(|place| rule.name(*place)) {
            if !map.contains_key(name) {
                self.push(here, "required", json!(name), Json::Null);
            }
        }
        self.dependent_required(here, rule, map, "dependentRequired");
    }

    fn dependent_required(&mut self, here: &Here<'_>, rule: &ObjectRule, map: &Map<String, Json>, keyword: &str) {
        let given = |dependent: &&Dependent| {
            dependent.keyword == keyword && rule.name(dependent.given).is_some_and(|name| map.contains_key(name))
        };
        for dependent in rule.dependent_required.iter().filter(given) {
            for place in &dependent.required {
                let Some(name) = rule.name(*place).filter(|name| !map.contains_key(*name)) else {
                    continue;
                };
                // The first property that requires it.
                let first = rule.dependent_required.iter().filter(given).find(|d| d.required.contains(place));
                let misfit = MisfitDetails::new(here.at, here.rule(keyword), json!(name), Json::Null);
                if self.found.len() < self.max {
                    self.found.push(MisfitDetails {
                        keyword: Some("dependentRequired".to_owned()),
                        given: first.and_then(|first| rule.name(first.given)).map(short_text),
                        ..misfit
                    });
                }
            }
        }
    }

    fn object(&mut self, here: &Here<'_>, rule: &'s ObjectRule, map: &Map<String, Json>) -> Done {
        let mut unexpected = Vec::new();
        for (name, value) in map {
            let at = pointer::join(here.at, name);
            let mut evaluated = false;
            if let Some(schema) = rule.place(name, 0).and_then(|place| rule.names.get(place)?.schema) {
                evaluated = true;
                self.node(schema, value, &at)?;
            }
            for (pattern, schema) in &rule.patterns {
                if pattern.is_match(name, self.walk.fuel)? {
                    evaluated = true;
                    self.node(*schema, value, &at)?;
                }
            }
            if let Some(schema) = rule.additional.filter(|_| !evaluated) {
                if self.walk.nodes.get(schema as usize).is_some_and(|node| node.never) {
                    unexpected.push(name);
                } else {
                    self.node(schema, value, &at)?;
                }
            }
        }
        let alone = |keyword| here.source.is_some_and(|source| source.get(keyword).is_none());
        if unexpected.is_empty() {
        } else if alone("properties") && alone("patternProperties") {
            // As records have it: no property is expected, so none is named.
            self.never(here.at, here.rule("additionalProperties"));
        } else {
            self.push(here, "additionalProperties", json!(unexpected), Json::Null);
        }
        if let Some(schema) = rule.name {
            // One name is enough to say that none is allowed.
            let never = here.source.is_some_and(|source| source.get("propertyNames") == Some(&Json::Bool(false)));
            for name in map.keys().take(if never { 1 } else { usize::MAX }) {
                self.name(here, schema, name)?;
            }
        }
        Ok(())
    }

    /// Adds the violations of `propertyNames` by one name.
    fn name(&mut self, here: &Here<'_>, schema: Id, name: &str) -> Done {
        if self.walk.name_fits(schema, name)? {
            return Ok(());
        }
        let value = Json::from(name);
        let max = self.max.saturating_sub(self.found.len());
        let walk = Walk::keeping(self.walk.nodes, self.walk.fuel);
        let mut explain = Explain { walk, source: self.source, found: Vec::new(), max };
        explain.node(schema, &value, here.at)?;
        for misfit in explain.found {
            self.found.push(MisfitDetails { value: Json::Null, name: Some(short_text(name)), ..misfit });
        }
        Ok(())
    }

    fn list(&mut self, here: &Here<'_>, rule: &'s ListRule, list: &[Json]) -> Done {
        if rule.unique && !self.walk.is_unique(here.value)? {
            self.push(here, "uniqueItems", Json::Null, Json::Null);
        }
        let at = |place: usize| format!("{}/{place}", here.at);
        if let Some(schema) = rule.items {
            for (place, item) in list.iter().enumerate().skip(rule.first.len()) {
                self.node(schema, item, &at(place))?;
            }
        }
        for (place, (item, schema)) in list.iter().zip(&rule.first).enumerate() {
            self.node(*schema, item, &at(place))?;
        }
        if let Some(contains) = &rule.contains {
            let count = self.walk.count(contains, here.value)?;
            if !contains.admits(count) {
                let few = count < contains.fewest.unwrap_or(1);
                let keyword = match (few, contains.fewest) {
                    (true, None) => "contains",
                    (true, Some(_)) => "minContains",
                    (false, _) => "maxContains",
                };
                let limit = if keyword == "contains" { Json::Null } else { here.limit(keyword) };
                self.push(here, keyword, limit, Json::Null);
            }
        }
        Ok(())
    }

    /// `dependencies` and `dependentSchemas`.
    fn dependent(&mut self, here: &Here<'_>, rule: &'s ObjectRule, map: &Map<String, Json>) -> Done {
        self.dependent_required(here, rule, map, "dependencies");
        for (given, schema) in &rule.dependent {
            if rule.name(*given).is_some_and(|name| map.contains_key(name)) {
                self.node(*schema, here.value, here.at)?;
            }
        }
        Ok(())
    }

    fn mixed(&mut self, here: &Here<'_>, mixed: &'s Mixed) -> Done {
        for schema in &mixed.all {
            self.node(*schema, here.value, here.at)?;
        }
        if !mixed.any.is_empty() && !self.walk.any(&mixed.any, here.value)? {
            self.add(here, "anyOf", Json::Null);
        }
        if !mixed.one.is_empty()
            && let std::ops::ControlFlow::Continue(several) = self.walk.one(&mixed.one, here.value)?
        {
            self.add(here, "oneOf", if several { json!("several") } else { Json::Null });
        }
        if let Some(not) = mixed.not
            && self.walk.visit(not, here.value)?
        {
            self.add(here, "not", Json::Null);
        }
        if let Some(condition) = mixed.condition {
            let fits = self.walk.visit(condition.test, here.value)?;
            if let Some(schema) = if fits { condition.then } else { condition.otherwise } {
                self.node(schema, here.value, here.at)?;
            }
        }
        Ok(())
    }

    fn unevaluated(&mut self, here: &Here<'_>, id: Id) -> Done {
        if here.value.is_object() && here.node.object.as_ref().is_some_and(|object| object.unevaluated.is_some()) {
            let names = self.walk.unevaluated_fields(id, here.value)?;
            if !names.is_empty() {
                self.push(here, "unevaluatedProperties", json!(names), Json::Null);
            }
        }
        if here.value.is_array() && here.node.list.as_ref().is_some_and(|list| list.unevaluated.is_some()) {
            let places = self.walk.unevaluated_items(id, here.value)?;
            if !places.is_empty() {
                self.push(here, "unevaluatedItems", Json::Null, Json::Null);
            }
        }
        Ok(())
    }
}

/// A schema, the value that does not match it, and where both are.
struct Here<'h> {
    node: &'h Node,
    source: Option<&'h Json>,
    value: &'h Json,
    at: &'h str,
}

impl Here<'_> {
    fn rule(&self, keyword: &str) -> String {
        format!("{}/{keyword}", self.node.path)
    }

    /// What the keyword requires, as it is written.
    fn limit(&self, keyword: &str) -> Json {
        self.source.and_then(|source| source.get(keyword)).cloned().unwrap_or_default()
    }

    /// The allowed types; a list is sorted.
    fn types(&self) -> Json {
        let order = ["null", "boolean", "integer", "number", "string", "array", "object"];
        match self.limit("type") {
            Json::Array(list) => match list.as_slice() {
                [one] => one.clone(),
                _ => order.into_iter().filter(|name| list.iter().any(|ty| ty == name)).collect(),
            },
            one => one,
        }
    }
}

impl ObjectRule {
    fn name(&self, place: usize) -> Option<&str> {
        self.names.get(place).map(|known| &*known.name)
    }
}
