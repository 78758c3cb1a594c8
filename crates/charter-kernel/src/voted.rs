//! Whether a principal has voted with all the data that an event may have.

use charter_expr::Program;
use serde_json::{Map, Value as Json, json};

use crate::digest::Digest;
use crate::event::Ev;
use crate::machine::{Guard, Machine, Transition, TransitionId};
use crate::scope::EvalContext;

/// Upper limit of the data that a schema allows, for which the votes are compared.
const MAX_DATA: usize = 256;

impl Machine {
    /// Whether the sender has voted: with the data that the event needs at least, or with all the
    /// data that its schema and the condition of the transition allow. An approval needs the digest
    /// of its value; with more data it is no other approval.
    pub(crate) fn has_voted(&self, ctx: &EvalContext<'_>, kind: &str, id: TransitionId, t: &Transition) -> bool {
        if t.quorum.as_ref().is_none_or(|q| q.count < 2) {
            return false;
        }
        let voted = |v: &&crate::snapshot::Vote| v.transition == id && v.by.iter().any(|by| by.as_ref() == ctx.by.id);
        let own: Vec<&Digest> = ctx.actor.votes.iter().filter(voted).map(|v| &v.digest).collect();
        if own.is_empty() {
            return false;
        }
        let value = |program: &Program| ctx.cel(program).and_then(|value| ctx.budget.json(&value));
        let least = match t.approves.as_ref().map(value) {
            Some(Ok(value)) if ctx.budget.hash(&value) => json!({"digest": Digest::of_json(&value).to_string()}),
            Some(_) => return true,
            None => json!({}),
        };
        let event = self.events.id(kind);
        let schema = self.events.info(event).and_then(|i| i.schema.as_ref());
        let is_enough = |data: &Json| {
            let ev = Ev::external(&self.events, event, kind, data);
            let chooses = |guard: &Guard| EvalContext { event: Some(&ev), ..*ctx }.guard::<()>(guard).0 == Ok(true);
            schema.is_none_or(|s| s.accepts(data)) && t.guard.as_ref().is_none_or(chooses)
        };
        if is_enough(&least) {
            return own.contains(&&Digest::of_json(&least));
        }
        let declared = self.definition.events.get(kind).and_then(|declared| declared.data.as_ref());
        match declared.and_then(|schema| all_data(schema, 8)) {
            Some(all) => all.iter().all(|data| own.contains(&&t.ballot(data)) || !is_enough(data)),
            None => t.approves.is_some(),
        }
    }
}

/// Returns values among which are all that a schema allows; `None` if there may be too many.
fn all_data(schema: &Json, depth: u8) -> Option<Vec<Json>> {
    let depth = depth.checked_sub(1)?;
    if let Some(constant) = schema.get("const") {
        return Some(vec![constant.clone()]);
    }
    if let Some(listed) = schema.get("enum").and_then(Json::as_array) {
        return (listed.len() <= MAX_DATA).then(|| listed.clone());
    }
    match schema.get("type").and_then(Json::as_str)? {
        "boolean" => Some(vec![true.into(), false.into()]),
        "null" => Some(vec![Json::Null]),
        "object" if schema.get("additionalProperties") == Some(&Json::Bool(false)) => {
            if schema.get("patternProperties").is_some() {
                return None;
            }
            let required = schema.get("required").and_then(Json::as_array);
            let mut all = vec![Map::new()];
            for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
                let values = all_data(property, depth)?;
                let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
                let without = if is_required { Vec::new() } else { all.clone() };
                if all.len().saturating_mul(values.len()).saturating_add(without.len()) > MAX_DATA {
                    return None;
                }
                let with = |data: &Map<String, Json>| {
                    let data = data.clone();
                    values.iter().map(move |value| {
                        let mut data = data.clone();
                        data.insert(name.clone(), value.clone());
                        data
                    })
                };
                all = all.iter().flat_map(with).chain(without).collect();
            }
            Some(all.into_iter().map(Json::Object).collect())
        }
        _ => None,
    }
}
