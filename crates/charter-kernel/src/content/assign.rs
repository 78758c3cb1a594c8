//! `assign`: sets context variables and parts of them.

use std::sync::Arc;

use charter_expr::{EvalError, Numbers};
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::budget::Work;
use crate::event::Ev;
use crate::fault::Fault;
use crate::machine::{Assign, Segment};
use crate::scope::Local;
use crate::transaction::StepTransaction;
use crate::unknown::Unknowns;

/// A path into a context variable: keys and indices.
type Keys = SmallVec<[Json; 2]>;

impl StepTransaction<'_> {
    /// Computes all values before setting the first variable, so that either all variables are set
    /// or none.
    pub(super) fn assign(
        &mut self,
        actor_ix: usize,
        assigns: &[Assign],
        ev: Option<&Ev<'_>>,
        locals: &[Local],
    ) -> Result<(), Fault> {
        let mut values: SmallVec<[(Arc<Json>, Keys); 2]> = SmallVec::new();
        {
            let ctx = self.context(actor_ix, ev, locals);
            for assign in assigns {
                let mut keys = Keys::new();
                for segment in &assign.path {
                    keys.push(match segment {
                        Segment::Key(key) => Json::String(key.to_string()),
                        Segment::Computed(program) => self.budget.json(&ctx.cel(program)?)?,
                    });
                }
                values.push((ctx.value(&assign.value)?, keys));
            }
        }
        for (assign, (value, keys)) in assigns.iter().zip(&values) {
            self.fits_place(actor_ix, assign.slot, keys, value)?;
        }
        if let ([assign], [(value, keys)]) = (assigns, values.as_slice())
            && keys.is_empty()
        {
            self.bind(actor_ix, assign.slot, value.clone());
            return Ok(());
        }
        // The value before the assignments is needed only if one of several can fail after another;
        // keeping it means copying each variable.
        let before = (assigns.len() > 1).then(|| self.actor(actor_ix).context.clone());
        let budget = self.budget;
        for (assign, (value, keys)) in assigns.iter().zip(values) {
            let Some(place) = self.actor_mut(actor_ix).context.place(assign.slot) else {
                continue;
            };
            if keys.is_empty() {
                *place = Some(value);
                continue;
            }
            let whole = place.get_or_insert_with(|| Arc::new(Json::Object(serde_json::Map::new())));
            if let Some(unknowns) = budget.unknowns()
                && meets_unknown(whole, &keys, unknowns)
            {
                // The place cannot be found: all that is known is that there is one.
                if unknowns.choose(2) == 1 {
                    if let Some(before) = before {
                        self.actor_mut(actor_ix).context = before;
                    }
                    return Err(Fault::execution("assign"));
                }
                *whole = Arc::new(unknowns.container());
                continue;
            }
            // A variable that the event has not changed yet is shared with the snapshot before it.
            if Arc::strong_count(whole) > 1 {
                budget.copy(whole, Work::Values);
            }
            if !budget.copy(&value, Work::Values) {
                return Err(EvalError::out_of_fuel().into());
            }
            if let Err(fault) = check(whole, &keys) {
                let name =
                    self.chart(actor_ix).shape.slots.get(assign.slot as usize).map_or("", AsRef::as_ref).to_string();
                if let Some(before) = before {
                    self.actor_mut(actor_ix).context = before;
                }
                return Err(fault.with("name", name));
            }
            put(Arc::make_mut(whole), &keys, Json::clone(&value));
        }
        Ok(())
    }
}

impl StepTransaction<'_> {
    /// Checks that a number stored in the place of an int has no fraction.
    pub(crate) fn fits_place(&self, actor_ix: usize, slot: u32, keys: &[Json], value: &Json) -> Result<(), Fault> {
        let shape = &self.chart(actor_ix).shape;
        let inside = |numbers: &'_ Numbers, key: &Json| match key {
            Json::String(name) => {
                let item = || numbers.item(name.parse().ok()?);
                numbers.field(name).or_else(item).cloned()
            }
            key => {
                numbers.item(usize::try_from(key.as_u64()?).ok()?).or_else(|| numbers.field(&key.to_string())).cloned()
            }
        };
        let Some(whole) = shape.numbers(slot) else {
            return Ok(());
        };
        if let Some(unknowns) = self.budget.unknowns().filter(|u| u.has_fraction(value)) {
            return if unknowns.choose(2) == 0 { Ok(()) } else { Err(Fault::execution("fraction")) };
        }
        let odd = match keys {
            [] => whole.fraction(value),
            [first, rest @ ..] => {
                let part = rest.iter().fold(inside(whole, first), |n, key| inside(&n?, key));
                part.and_then(|numbers| numbers.fraction(value))
            }
        };
        let Some((at, number)) = odd else {
            return Ok(());
        };
        let name = shape.slots.get(slot as usize).map_or("", AsRef::as_ref);
        let place = keys.iter().fold(String::new(), |at, key| match key {
            Json::String(key) => charter_expr::pointer::join(&at, key),
            key => charter_expr::pointer::join(&at, &key.to_string()),
        });
        let fault = Fault::execution("fraction").with("name", name).with("value", number.clone());
        let at = place + &at;
        Err(if at.is_empty() { fault } else { fault.with("at", at) })
    }
}

/// Whether the path to a part of a value, or a key in it, is not known.
fn meets_unknown(mut at: &Json, keys: &[Json], unknowns: &dyn Unknowns) -> bool {
    for key in keys {
        if at.is_string() && unknowns.is_unknown(at) || unknowns.is_unknown(key) {
            return true;
        }
        let next = match (at, key) {
            (Json::Object(map), Json::String(key)) => map.get(key),
            (Json::Object(map), key) => map.get(&key.to_string()),
            (Json::Array(list), key) => index(key).and_then(|i| list.get(i)),
            _ => None,
        };
        let Some(next) = next else { return false };
        at = next;
    }
    false
}

/// Checks that a part of a value can be set. Missing objects are created; an index equal to the
/// length of a list appends to it.
fn check(at: &Json, keys: &[Json]) -> Result<(), Fault> {
    let fault = |key: &Json| Fault::execution("assign").with("key", key.clone());
    let mut at = Some(at);
    for key in keys {
        at = match (at.filter(|at| !at.is_null()), key) {
            (None, Json::String(_) | Json::Number(_) | Json::Bool(_)) => None,
            (None, key) => return Err(fault(key).with("type", "object")),
            (Some(Json::Object(map)), Json::String(key)) => map.get(key),
            (Some(Json::Object(map)), key @ (Json::Number(_) | Json::Bool(_))) => map.get(&key.to_string()),
            (Some(Json::Array(list)), key) => {
                let index = index(key).filter(|i| *i <= list.len());
                list.get(index.ok_or_else(|| fault(key).with("length", list.len()))?)
            }
            (Some(other), key) => return Err(fault(key).with("type", type_of(other))),
        };
    }
    Ok(())
}

/// Sets a part of a value that [`check`] has accepted.
fn put(mut at: &mut Json, keys: &[Json], value: Json) {
    for key in keys {
        if at.is_null() {
            *at = Json::Object(serde_json::Map::new());
        }
        let part = match (at, key) {
            (Json::Object(map), Json::String(key)) => Some(map.entry(key.clone()).or_insert(Json::Null)),
            (Json::Object(map), key) => Some(map.entry(key.to_string()).or_insert(Json::Null)),
            (Json::Array(list), key) => index(key).and_then(|index| {
                if index == list.len() {
                    list.push(Json::Null);
                }
                list.get_mut(index)
            }),
            _ => None,
        };
        let Some(part) = part else { return };
        at = part;
    }
    *at = value;
}

/// The index that a key of a list stands for.
fn index(key: &Json) -> Option<usize> {
    match key {
        Json::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|i| usize::try_from(i).ok()),
    }
}

fn type_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}
