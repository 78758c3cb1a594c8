//! Validates all incoming data: its size, its depth, and that every JSON reader understands its
//! numbers in the same way.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::budget::{Budget, Work};
use crate::definition::Limits;
use crate::refusal::{Cause, Code, Refusal};
use crate::schema::Schema;

/// Upper limit of the nesting of data; `serde_json` has the same limit.
pub(crate) const MAX_DEPTH: usize = 128;

/// Validates data and returns it in canonical form; borrowed if it is already canonical.
pub(crate) fn validate_event<'j>(data: &'j Json, limits: &Limits, budget: &Budget) -> Result<Cow<'j, Json>, Refusal> {
    let (data, size) = validate(data, limits.data.min(limits.bytes))?;
    // The record repeats the data.
    budget.build(size, Work::Data);
    Ok(data)
}

/// Returns data in canonical form that is known to be within the limits.
pub(crate) fn canonical_event(data: &Json) -> Result<Cow<'_, Json>, Refusal> {
    validate(data, u64::MAX).map(|(data, _)| data)
}

/// Returns the data in canonical form, and its approximate size.
fn validate(data: &Json, limit: u64) -> Result<(Cow<'_, Json>, u64), Refusal> {
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
            let limit = u64::try_from(MAX_DEPTH).unwrap_or(u64::MAX);
            return Err(Refusal::because(Code::TooLarge, Cause::Depth { limit }));
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
        return Ok((Cow::Borrowed(data), size));
    }
    let mut data = data.clone();
    match charter_expr::json::canonical(&mut data) {
        Ok(()) => Ok((Cow::Owned(data), size)),
        Err(e) => Err(Refusal::because(Code::Schema, Cause::Number { at: e.pointer })),
    }
}

/// Refuses data that does not match its schema.
pub(crate) fn matches(schema: &Schema, data: &Json, budget: &Budget) -> Result<(), Refusal> {
    let fits = budget.fits(schema, data).unwrap_or(false);
    budget.check()?;
    if fits { Ok(()) } else { Err(Code::Schema.into()) }
}

fn too_large(limit: u64) -> Refusal {
    Refusal::because(Code::TooLarge, Cause::Size { limit })
}

/// Adds the approximate JSON size of one value (without its children) to `size`, and adds its
/// children to the values that are still to be measured.
fn measure<'j>(value: &'j Json, size: &mut u64, canonical: &mut bool, children: &mut Vec<&'j Json>) {
    let mut add = |n: usize| *size = size.saturating_add(u64::try_from(n).unwrap_or(u64::MAX));
    match value {
        Json::Null | Json::Bool(_) => add(4),
        Json::Number(n) => {
            add(8);
            // An int within the safe range is canonical; the slow path looks at all other numbers.
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
