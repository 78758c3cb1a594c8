//! Example data for events with a unique key, with a key that is free.

use std::iter::once;

use charter_kernel::{Digest, Machine, Principal, Schema};
use serde_json::Value as Json;

/// How many values are tried for each part of the data.
const MAX_TRIES: u64 = 64;

/// Changes the part of an example that the unique key of its event reads, if there is one and
/// another value fits. The values are derived from `seed`, such as the id of a run, so that those
/// of two runs differ; and from `number`, such as that of the next record, if the first one is
/// taken. Returns `None` if the key of the example is taken, and so is that of everything that was
/// tried.
#[must_use]
pub fn with_free_key(
    machine: &Machine,
    event: &str,
    data: Json,
    (seed, number): (&str, u64),
    taken: &dyn Fn(&Json) -> bool,
) -> Option<Json> {
    let declared = machine.definition().events.get(event).filter(|declared| declared.unique.is_some());
    let Some(declared) = declared else {
        return Some(data);
    };
    let schema = declared.data.as_ref().and_then(|schema| Schema::compile(schema).ok());
    let by = Principal::new("somebody", &[]);
    let key = |data: &Json| machine.unique_key(event, data, &by);
    let before = key(&data);
    let is_free = |changed: &Json| {
        let after = key(changed);
        after != before
            && schema.as_ref().is_none_or(|schema| schema.accepts(changed))
            && after.is_some_and(|after| !taken(&after))
    };
    let mut places = Vec::new();
    leaves(&data, &mut String::new(), &mut places);
    // The rest of the values depends on the number, and most of them are free.
    let numbers = number..number.saturating_add(MAX_TRIES);
    for seed in once(seed.to_owned()).chain(numbers.map(|n| format!("{seed}-{n}"))) {
        for place in &places {
            let Some(old) = data.pointer(place) else { continue };
            for value in others(old, &seed).into_iter().chain(listed(declared.data.as_ref(), place)) {
                let mut changed = data.clone();
                if let Some(at) = changed.pointer_mut(place) {
                    *at = value;
                }
                if is_free(&changed) {
                    return Some(changed);
                }
            }
        }
    }
    before.is_none_or(|before| !taken(&before)).then_some(data)
}

/// The values that a schema lists for a place.
fn listed(schema: Option<&Json>, place: &str) -> Vec<Json> {
    let path = place.replace('/', "/properties/");
    let listed = schema.and_then(|schema| schema.pointer(&path)?.get("enum")?.as_array());
    listed.cloned().unwrap_or_default()
}

/// The places of texts, numbers and booleans, as JSON pointers.
fn leaves(data: &Json, at: &mut String, found: &mut Vec<String>) {
    let mut inner = |name: &str, value: &Json| {
        let length = at.len();
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        leaves(value, at, found);
        at.truncate(length);
    };
    match data {
        Json::Object(all) => all.iter().for_each(|(name, value)| inner(name, value)),
        Json::Array(all) => all.iter().enumerate().for_each(|(i, value)| inner(&i.to_string(), value)),
        Json::String(_) | Json::Number(_) | Json::Bool(_) => found.push(at.clone()),
        _ => {}
    }
}

/// Values like another one, derived from a seed; those that differ most come first.
fn others(old: &Json, seed: &str) -> Vec<Json> {
    let digest = Digest::of_json(&seed.into()).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    let short: String = hex.chars().take(8).collect();
    match old {
        Json::String(text) => {
            let is_placeholder = text.chars().all(|c| c == '.');
            let first = if is_placeholder { seed.to_owned() } else { format!("{text}-{short}") };
            [first, short, alike(text, hex)].map(Json::from).to_vec()
        }
        Json::Number(_) => {
            let number = u64::from_str_radix(&short, 16).unwrap_or_default();
            let smaller = [1_000_000_000, 1_000_000, 10_000, 100, 10].map(|size| number.checked_rem(size).unwrap_or(0));
            smaller.map(Json::from).to_vec()
        }
        Json::Bool(old) => vec![(!old).into()],
        _ => Vec::new(),
    }
}

/// A text with other letters and digits at the same places.
fn alike(text: &str, hex: &str) -> String {
    let numbers = hex.chars().cycle().filter_map(|c| c.to_digit(16));
    let other = |(c, number): (char, u32)| match c {
        '0'..='9' => char::from_digit(number % 10, 10).unwrap_or(c),
        'a'..='z' => char::from_digit(number % 16 + 10, 26).unwrap_or(c),
        'A'..='Z' => char::from_digit(number % 16 + 10, 26).unwrap_or(c).to_ascii_uppercase(),
        other => other,
    };
    text.chars().zip(numbers).map(other).collect()
}
