//! What operations on unknown values may cost: an expression that exceeds its fuel fails, so with
//! a text of any length, even a condition that holds for every text may fail.

use charter_expr::Value;

use super::domain::{LIST, MAP, OTHER, STRING, Values};
use super::eval::Evaluator;
use super::oracle::Oracle;

/// Bytes that one step of fuel pays for.
const BYTES_PER_STEP: u64 = 16;
/// Bytes that a character has at most.
const BYTES_PER_CHARACTER: u64 = 4;

impl Oracle {
    /// The fuel that reading a value costs at most; `None` if there is no limit.
    pub(super) fn steps_of(&self, value: &Value<'_>) -> Option<u64> {
        let of = |bytes: usize| (bytes as u64).checked_div(BYTES_PER_STEP).unwrap_or(0).saturating_add(1);
        let value = self.normal(value.clone());
        if let Some(symbol) = self.symbol(&value) {
            return self.steps_of_any(&self.store.borrow().values(symbol));
        }
        match &value {
            Value::String(text) => Some(of(text.len())),
            Value::List(list) => {
                list.iter().try_fold(0u64, |sum, item| Some(sum.saturating_add(self.steps_of(&item)?)))
            }
            Value::Map(map) => map.entries().iter().try_fold(0u64, |sum, (key, item)| {
                let key = key.clone().into_value();
                Some(sum.saturating_add(of(key.as_str().map_or(0, str::len))).saturating_add(self.steps_of(item)?))
            }),
            _ => Some(1),
        }
    }

    fn steps_of_any(&self, values: &Values) -> Option<u64> {
        let steps = |bytes: u64| bytes.checked_div(BYTES_PER_STEP).unwrap_or(0).saturating_add(1);
        if values.within(!(STRING | LIST | MAP | OTHER)) {
            return Some(1);
        }
        if !values.within(!(LIST | MAP | OTHER)) {
            return None;
        }
        match &values.one_of {
            Some(list) => {
                Some(steps(list.iter().filter_map(|v| v.as_str()).map(|text| text.len() as u64).max().unwrap_or(0)))
            }
            None => values.length.map(|length| steps(length.saturating_mul(BYTES_PER_CHARACTER))),
        }
    }
}

impl Evaluator<'_, '_> {
    /// Charges what an operation may cost.
    pub(super) fn charge(&mut self, steps: Option<u64>) {
        self.most = self.most.saturating_add(steps.unwrap_or(u64::MAX));
    }

    /// Charges a comparison. Texts, lists and maps are compared as far as both go.
    pub(super) fn charge_comparison(&mut self, left: &Value<'_>, right: &Value<'_>) {
        let steps = match (self.oracle.steps_of(left), self.oracle.steps_of(right)) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        self.charge(steps);
    }
}
