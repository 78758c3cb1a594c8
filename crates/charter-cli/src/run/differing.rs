//! Example data for events with a unique key: what the key reads differs for each run, so that the
//! suggested commands of two runs do not take the same key.

use charter_kernel::{Digest, Legal, Machine, Principal, Schema};
use serde_json::Value as Json;

/// Changes the part of an example that the unique key of its event reads, if there is one and
/// another value fits. The same run has the same data.
pub(super) fn for_run(machine: &Machine, run: &str, event: &Legal, data: Json) -> Json {
    let declared = machine.definition().events.get(&event.r#type);
    if declared.is_none_or(|declared| declared.unique.is_none()) {
        return data;
    }
    let schema = event.data.as_ref().and_then(|schema| Schema::compile(schema).ok());
    let by = Principal::new("somebody", &[]);
    let key = |data: &Json| machine.unique_key(&event.r#type, data, &by);
    let before = key(&data);
    let mut places = Vec::new();
    leaves(&data, &mut String::new(), &mut places);
    for place in places {
        let Some(old) = data.pointer(&place) else { continue };
        for value in others(old, run) {
            let mut changed = data.clone();
            if let Some(at) = changed.pointer_mut(&place) {
                *at = value;
            }
            let after = key(&changed);
            if after.is_some() && after != before && schema.as_ref().is_none_or(|schema| schema.accepts(&changed)) {
                return changed;
            }
        }
    }
    data
}

/// The places of texts and numbers, as JSON pointers.
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
        Json::String(_) | Json::Number(_) => found.push(at.clone()),
        _ => {}
    }
}

/// Values like another one, derived from the id of a run; those that differ most come first.
fn others(old: &Json, run: &str) -> Vec<Json> {
    let digest = Digest::of_json(&run.into()).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    let short: String = hex.chars().take(8).collect();
    match old {
        Json::String(text) => {
            let is_placeholder = text.chars().all(|c| c == '.');
            let first = if is_placeholder { run.to_owned() } else { format!("{text}-{short}") };
            [first, short, alike(text, hex)].map(Json::from).to_vec()
        }
        Json::Number(_) => {
            let number = u64::from_str_radix(&short, 16).unwrap_or_default();
            let smaller = [1_000_000_000, 1_000_000, 10_000, 100, 10].map(|size| number.checked_rem(size).unwrap_or(0));
            smaller.map(Json::from).to_vec()
        }
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
