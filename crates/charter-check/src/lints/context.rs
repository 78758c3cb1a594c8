//! Variables that are never assigned, and events without a schema.

use charter_kernel::definition::Template;
use rustc_hash::FxHashSet;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::{Item, variable_of};
use crate::model::{Model, escape};

/// Returns the variables that actions assign, of all charts.
pub(super) fn assigned(model: &Model<'_>) -> FxHashSet<String> {
    let mut assigned: FxHashSet<String> = FxHashSet::default();
    model.visit_all(&mut |_, item| {
        if let Item::Assign(path, _) = item {
            assigned.insert(variable_of(path).to_string());
        }
    });
    assigned
}

/// Reports variables that start as null and that no action assigns.
pub(crate) fn never_assigned(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let assigned = assigned(model);
    for chart in &model.charts {
        let located = |name: &String| {
            chart.states.iter().flat_map(|s| &s.def.invoke).any(|i| i.id_location.as_ref() == Some(name))
        };
        for (name, value) in &chart.def.context {
            if *value != Template::Literal(serde_json::Value::Null)
                || assigned.contains(name)
                || located(name)
                || !model.def.strict
            {
                continue;
            }
            let at = format!("{}/context/{}", chart.at, escape(name));
            let message = format!("`context.{name}` is always null: it is never assigned");
            findings.push(
                Finding::new(Severity::Warning, codes::NEVER_ASSIGNED, at, message).help("assign it, or remove it"),
            );
        }
    }
}

/// Reports events without a schema.
pub(crate) fn without_schema(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for (name, _) in model.def.events.iter().filter(|(_, e)| e.data.is_none()) {
        let at = format!("/events/{}", escape(name));
        let message = format!("`{name}` has no schema: any data is accepted");
        let help = "add `data` with a JSON Schema; for an event without data, `data: {type: object, additionalProperties: false}`";
        findings.push(Finding::new(Severity::Info, codes::EVENT_WITHOUT_SCHEMA, at, message).help(help));
    }
}
