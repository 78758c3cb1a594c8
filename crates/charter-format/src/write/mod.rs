//! Writes a definition that was built in Rust or imported as a charter.

mod chart;

use charter_kernel::Definition;
use charter_kernel::definition::{FinalRule, InterlockRule, Limits, PropertyRule};
use serde_json::Value as Json;

use crate::ordered::{OrderedJson, OrderedObject};
use crate::read::{ReadOptions, read};
use crate::source::Syntax;

/// Why a definition cannot be written as a charter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrepresentable {
    /// JSON pointer into the definition; empty if the charter cannot be read back at all.
    pub at: String,
    /// What is wrong with it.
    pub message: String,
}

impl std::fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot write the definition as a charter: ")?;
        if !self.at.is_empty() {
            write!(f, "`{}`: ", self.at)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unrepresentable {}

/// Writes a definition as a charter in JSON, and verifies that it reads back as the same
/// definition.
///
/// # Errors
/// Returns an error that names the first part of the definition that the language cannot express,
/// for example an undeclared name, an inline expression inside a combination of guards, or a root
/// state with its own description in addition to the description of the charter.
pub fn json(definition: &Definition) -> Result<String, Unrepresentable> {
    let text = serde_json::to_string_pretty(&charter(definition))
        .map_err(|error| Unrepresentable { at: String::new(), message: error.to_string() })?;
    let options = ReadOptions { syntax: Syntax::Json, ..ReadOptions::default() };
    let again = read(&text, "charter", &options).map_err(|errors| {
        let message =
            errors.list.first().map(|error| format!("{} (at `{}`)", error.message, error.path)).unwrap_or_default();
        Unrepresentable { at: String::new(), message }
    })?;
    let core = |definition: &Definition| serde_json::to_value(definition).map(normal).unwrap_or_default();
    match difference(&core(definition), &core(&again.definition)) {
        None => Ok(text),
        Some(at) => Err(Unrepresentable { at, message: "the charter language cannot express this part".to_owned() }),
    }
}

fn charter(definition: &Definition) -> OrderedJson {
    let mut out = OrderedObject::default();
    out.put("charter", definition.charter);
    out.put("id", definition.id.as_str());
    if !definition.version.is_empty() {
        out.put("version", definition.version.as_str());
    }
    out.put_some("title", definition.title.as_deref());
    out.put_some("description", definition.description.as_deref());
    if !definition.strict {
        out.put("strict", false);
    }
    out.put_map("roles", &definition.roles, |role| described(role.description.as_deref()));
    let mut types = definition.types.clone();
    if let Some(schema) = &definition.root.context_schema {
        types.entry("context".to_owned()).or_insert_with(|| schema.clone());
    }
    out.put_map("types", &types, |schema| schema.clone().into());
    out.put_map("events", &definition.events, |event| {
        let mut out = OrderedObject::default();
        out.put_names("by", &event.by);
        out.put_some("data", event.data.clone());
        if event.while_paused {
            out.put("whilePaused", true);
        }
        if let Some(unique) = &event.unique {
            let mut key = OrderedObject::default();
            key.put("key", unique.key.as_str());
            out.put("unique", key);
        }
        out.put_some("description", event.description.as_deref());
        out.into()
    });
    out.put_map("guards", &definition.guards, chart::guard);
    out.put_map("actions", &definition.actions, |block| chart::block(block));
    out.put_map("delays", &definition.delays, chart::delay);
    out.put_map("actors", &definition.actors, |actor| {
        let mut out = OrderedObject::default();
        out.put("kind", actor.kind.as_str());
        out.put_some("input", actor.input.clone());
        out.put_some("output", actor.output.clone());
        out.put_some("timeout", actor.timeout.as_ref().map(chart::delay));
        for (key, value) in &actor.config {
            out.put(key, value.clone());
        }
        out.into()
    });
    out.put_map("ledger", &definition.ledger, |kind| described(kind.description.as_deref()));
    out.put_map("rules", &definition.rules, chart::template);
    out.put_map("machines", &definition.machines, chart::machine);
    out.put_list("interlocks", &definition.interlocks, |interlock| {
        let mut out = OrderedObject::default();
        out.put("id", interlock.id.as_str());
        out.put_some("description", interlock.description.as_deref());
        match &interlock.rule {
            InterlockRule::Assert(cel) => out.put("assert", cel.as_str()),
            InterlockRule::Table { given, machine, allow, r#final } => {
                out.put("given", given.as_str());
                out.put("machine", machine.as_str());
                let allow: OrderedObject =
                    allow.iter().map(|(state, states)| (state.clone(), OrderedJson::from(states.clone()))).collect();
                out.put("allow", allow);
                if *r#final == FinalRule::Settled {
                    out.put("final", "settled");
                }
            }
        }
        out.into()
    });
    limits(&mut out, &definition.limits);
    out.put_list("properties", &definition.properties, |property| {
        let mut out = OrderedObject::default();
        out.put("id", property.id.as_str());
        out.put_some("description", property.description.as_deref());
        match &property.rule {
            PropertyRule::Never { when, unless_before } => {
                out.put("never", when.as_str());
                out.put_some("unless-before", unless_before.as_deref());
            }
            PropertyRule::Always(cel) => out.put("always", cel.as_str()),
            PropertyRule::Eventually(cel) => out.put("eventually", cel.as_str()),
        }
        out.into()
    });
    if let Some(stream) = &definition.stream {
        let mut part = OrderedObject::default();
        for (key, cel) in stream.parts() {
            part.put_some(key, cel.map(|cel| format!("= {cel}")));
        }
        for (key, map) in [("clocks", &stream.clocks), ("summary", &stream.summary)] {
            part.put_map(key, map, |cel| format!("= {cel}").into());
        }
        part.put_some("duplicate", stream.duplicate.as_deref());
        out.put("stream", part);
    }
    out.put_map("projections", &definition.projections, |view| {
        let mut out = OrderedObject::default();
        out.put_some("description", view.description.as_deref());
        out.put("of", view.of.as_str());
        out.put_map("columns", &view.columns, |path| path.as_str().into());
        out.into()
    });
    if !definition.meta.is_null() {
        out.put("meta", definition.meta.clone());
    }
    chart::chart(&mut out, &definition.root);
    out.into()
}

fn described(description: Option<&str>) -> OrderedJson {
    let mut out = OrderedObject::default();
    out.put_some("description", description);
    out.into()
}

fn limits(out: &mut OrderedObject, limits: &Limits) {
    let usual = Limits::default();
    let mut changed = OrderedObject::default();
    let all = [
        ("microsteps", u64::from(limits.microsteps), u64::from(usual.microsteps)),
        ("expression", limits.expression, usual.expression),
        ("actors", u64::from(limits.actors), u64::from(usual.actors)),
        ("timers", u64::from(limits.timers), u64::from(usual.timers)),
        ("data", limits.data, usual.data),
        ("fuel", limits.fuel, usual.fuel),
        ("bytes", limits.bytes, usual.bytes),
    ];
    for (key, value, usual) in all {
        if value != usual {
            changed.put(key, value);
        }
    }
    if !changed.is_empty() {
        out.put("limits", changed);
    }
}

/// Normalizes templates without expressions to literals.
fn normal(value: Json) -> Json {
    let literal = |value: &Json| {
        value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("literal")).cloned()
    };
    match value {
        Json::Array(items) => items.into_iter().map(normal).collect(),
        Json::Object(entries) => {
            let entries: serde_json::Map<String, Json> =
                entries.into_iter().map(|(key, value)| (key, normal(value))).collect();
            let only = entries.iter().next().filter(|_| entries.len() == 1);
            let plain = match only.map(|(key, value)| (key.as_str(), value)) {
                Some(("list", Json::Array(items))) => {
                    items.iter().map(literal).collect::<Option<Vec<Json>>>().map(Json::Array)
                }
                Some(("object", Json::Object(fields))) => {
                    let fields = fields.iter().map(|(key, value)| literal(value).map(|value| (key.clone(), value)));
                    fields.collect::<Option<serde_json::Map<String, Json>>>().map(Json::Object)
                }
                _ => None,
            };
            match plain {
                Some(plain) => Json::Object([("literal".to_owned(), plain)].into_iter().collect()),
                None => Json::Object(entries),
            }
        }
        other => other,
    }
}

/// The pointer to the first difference between two values.
fn difference(a: &Json, b: &Json) -> Option<String> {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            let none = Json::Null;
            keys.into_iter().find_map(|key| {
                let at = difference(a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none))?;
                Some(charter_expr::pointer::join("", key) + &at)
            })
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(index, (a, b))| difference(a, b).map(|at| format!("/{index}{at}")))
        }
        _ => (a != b).then(String::new),
    }
}
