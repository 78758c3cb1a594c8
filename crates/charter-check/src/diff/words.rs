//! What decides about behavior: a definition without words for people and without its properties.

use charter_kernel::Definition;
use charter_kernel::definition::{Chart, State, Transition};
use serde_json::{Value as Json, json};

/// Returns a definition without titles, descriptions, `meta`, its version and its properties.
pub(super) fn removed(definition: &Definition) -> Definition {
    let mut plain = definition.clone();
    (plain.title, plain.description, plain.meta) = (None, None, Json::Null);
    plain.version.clear();
    plain.properties.clear();
    // Schemas contain copies of the types that they use.
    plain.types.clear();
    plain.roles.values_mut().for_each(|role| role.description = None);
    plain.events.values_mut().for_each(|event| {
        event.description = None;
        event.data.iter_mut().for_each(without_words);
        event.by.sort();
    });
    plain.actors.values_mut().for_each(|actor| {
        actor.input.iter_mut().chain(&mut actor.output).for_each(without_words);
    });
    plain.ledger.values_mut().for_each(|kind| kind.description = None);
    plain.projections.values_mut().for_each(|projection| projection.description = None);
    chart(&mut plain.root);
    plain.machines.values_mut().for_each(chart);
    plain
}

/// Removes what a schema says to people.
fn without_words(schema: &mut Json) {
    const WORDS: [&str; 4] = ["title", "description", "examples", "$comment"];
    const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
    const VALUES: [&str; 3] = ["const", "enum", "default"];
    match schema {
        Json::Object(keywords) => {
            keywords.retain(|keyword, _| !WORDS.contains(&keyword.as_str()));
            for (keyword, value) in keywords.iter_mut().filter(|(keyword, _)| !VALUES.contains(&keyword.as_str())) {
                match value {
                    // The keys are names.
                    Json::Object(of) if NAMED.contains(&keyword.as_str()) => of.values_mut().for_each(without_words),
                    value => without_words(value),
                }
            }
        }
        Json::Array(schemas) => schemas.iter_mut().for_each(without_words),
        _ => {}
    }
}

fn chart(chart: &mut Chart) {
    let schemas = chart.input.iter_mut().chain(&mut chart.context_schema);
    schemas.for_each(without_words);
    let mut stack = vec![&mut chart.state];
    while let Some(state) = stack.pop() {
        (state.description, state.meta) = (None, Json::Null);
        let answers = state.invoke.iter_mut().flat_map(|i| i.on_done.iter_mut().chain(&mut i.on_error));
        let all = (state.on.iter_mut().flat_map(|o| &mut o.transitions))
            .chain(&mut state.always)
            .chain(&mut state.on_done)
            .chain(state.after.iter_mut().flat_map(|a| &mut a.transitions))
            .chain(answers);
        all.for_each(|t: &mut Transition| (t.description, t.meta) = (None, Json::Null));
        stack.extend(state.states.values_mut());
    }
}

/// Returns a definition in a form in which the order of keys counts only where it decides: in
/// lists, and between sibling states.
pub(super) fn canonical(definition: &Definition) -> Json {
    let charts = std::iter::once(&definition.root).chain(definition.machines.values());
    let orders: Vec<Json> = charts.map(|chart| json!(order(&chart.state))).collect();
    json!([definition, orders])
}

/// The paths of all states, in document order.
pub(super) fn order(root: &State) -> Vec<String> {
    let mut paths = Vec::new();
    let mut stack = vec![(String::new(), root)];
    while let Some((path, state)) = stack.pop() {
        for (key, child) in state.states.iter().rev() {
            stack.push((if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, child));
        }
        paths.push(path);
    }
    paths
}
