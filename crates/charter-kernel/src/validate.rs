//! What is checked of every piece of data that comes in: size, depth, and that its numbers mean the same in every JSON reader.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::refusal::{Code, Refusal};

/// Nesting of data; what `serde_json` reads is never deeper.
pub(crate) const MAX_DEPTH: usize = 128;

/// Lets data in, in canonical form; borrowed if it was canonical already.
pub(crate) fn validate_event(data: &Json, limit: u64) -> Result<Cow<'_, Json>, Refusal> {
    let mut canonical = true;
    let mut size = 0u64;
    let mut stack = Vec::new();
    measure(data, &mut size, &mut canonical, &mut stack);
    let mut depth_of_top = 1usize;
    // Breadth first, a level at a time: no recursion, and the depth is the number of levels.
    let mut level = std::mem::take(&mut stack);
    while !level.is_empty() {
        depth_of_top = depth_of_top.saturating_add(1);
        if size > limit {
            return Err(too_large(limit));
        }
        if depth_of_top > MAX_DEPTH {
            return Err(Refusal::with(Code::TooLarge, None, format!("the data nests deeper than {MAX_DEPTH}")));
        }
        let mut next = Vec::new();
        for value in level {
            measure(value, &mut size, &mut canonical, &mut next);
        }
        level = next;
    }
    if size > limit {
        return Err(too_large(limit));
    }
    if canonical {
        return Ok(Cow::Borrowed(data));
    }
    let mut data = data.clone();
    match charter_expr::json::canonical(&mut data) {
        Ok(()) => Ok(Cow::Owned(data)),
        Err(e) => Err(Refusal::with(Code::Schema, None, e.to_string())),
    }
}

fn too_large(limit: u64) -> Refusal {
    Refusal::with(
        Code::TooLarge,
        None,
        format!(
            "the data is larger than {limit} bytes (`limits.data`); keep large values elsewhere and send their digest"
        ),
    )
}

/// Adds the size of one value without its children (about what its JSON takes), and gives the children that have to be looked at.
fn measure<'j>(value: &'j Json, size: &mut u64, canonical: &mut bool, children: &mut Vec<&'j Json>) {
    let mut add = |n: usize| *size = size.saturating_add(u64::try_from(n).unwrap_or(u64::MAX));
    match value {
        Json::Null | Json::Bool(_) => add(4),
        Json::Number(n) => {
            add(8);
            // An int within the safe range is canonical; anything else is looked at by the slow path.
            let safe = |i: i64| i.unsigned_abs() < 1 << 53;
            let fractional = |f: f64| f.fract() != 0.0;
            *canonical &= match n.as_i64() {
                Some(i) => safe(i),
                None => n.is_f64() && n.as_f64().is_some_and(fractional),
            };
        }
        Json::String(s) => add(s.len().saturating_add(2)),
        Json::Array(list) => {
            add(list.len().saturating_add(2));
            children.extend(list);
        }
        Json::Object(map) => {
            add(2);
            for (key, value) in map {
                add(key.len().saturating_add(4));
                children.push(value);
            }
        }
    }
}
