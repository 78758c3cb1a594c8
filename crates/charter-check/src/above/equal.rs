//! Equality of unknown values, their digests and their fields.

use charter_expr::Value;
use charter_kernel::Unknowns;
use serde_json::{Value as Json, json};

use super::domain::{self, BOOL, INT, LIST, MAP, NUMBER, STRING, Values};
use super::oracle::Oracle;
use super::store::{FAILS, has_unknown, marker};

impl Oracle {
    /// The digest of a value with unknown parts.
    pub(super) fn digest(&self, value: &Json) -> Json {
        if !has_unknown(value) {
            return Json::String(charter_kernel::Digest::of_json(value).hex());
        }
        let operands = vec![value.clone()];
        let known = self.store.borrow().result("digest", &operands);
        if let Some(known) = known {
            return known;
        }
        let digest = self.fresh(Values::short_text());
        self.store.borrow_mut().remember("digest", operands, digest.clone());
        digest
    }

    /// Compares two values as `==` does, and remembers the result.
    pub(super) fn equal(&self, a: &Value<'_>, b: &Value<'_>) -> bool {
        let (a, b) = (self.normal(a.clone()), self.normal(b.clone()));
        match (self.symbol(&a), self.symbol(&b)) {
            (Some(a), Some(b)) => self.equal_symbols(a, b),
            (Some(symbol), None) => self.equal_known(symbol, &b),
            (None, Some(symbol)) => self.equal_known(symbol, &a),
            (None, None) => match (&a, &b) {
                (Value::List(x), Value::List(y)) => {
                    x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| self.equal(&x, &y))
                }
                (Value::Map(x), Value::Map(y)) => {
                    let (x, y) = (x.entries(), y.entries());
                    x.len() == y.len() && x.iter().zip(&y).all(|((k, x), (l, y))| k == l && self.equal(x, y))
                }
                _ => a == b,
            },
        }
    }

    fn equal_symbols(&self, a: u32, b: u32) -> bool {
        let (left, right) = (self.store.borrow().values(a), self.store.borrow().values(b));
        if a == b {
            // NaN differs from itself.
            return left.types & domain::OTHER == 0 || self.choose(2) == 0;
        }
        let other = (left.types | right.types) & domain::OTHER != 0;
        if self.store.borrow().are_different(a, b) || !other && left.meet(&right).is_none() {
            return false;
        }
        let equal = self.choose(2) == 0;
        let mut store = self.store.borrow_mut();
        // A number and the same number of another type are equal, but not one value; and the parts
        // of containers have names of their own.
        let numbers = left.types & NUMBER != 0 && right.types & NUMBER != 0;
        let parts = left.types & right.types & (LIST | MAP | domain::OTHER) != 0;
        match equal {
            true if !numbers && !parts => drop(store.unify(a, b)),
            true => {}
            false if !other => store.set_different(a, b),
            false => {}
        }
        equal
    }

    fn equal_known(&self, symbol: u32, value: &Value<'_>) -> bool {
        let values = self.store.borrow().values(symbol);
        let Ok(json) = value.to_json() else { return self.choose(2) == 0 };
        if matches!(value, Value::List(_) | Value::Map(_) | Value::Timestamp(_) | Value::Duration(_) | Value::Bytes(_))
        {
            let types = match value {
                Value::List(_) => LIST,
                Value::Map(_) => MAP,
                _ => domain::OTHER | STRING,
            };
            return values.types & types != 0 && self.choose(2) == 0;
        }
        if let (Some(wanted), true) = (value.as_i64(), values.within(INT))
            && wanted.unsigned_abs() < 1 << 40
        {
            let solved = self.store.borrow().solve(symbol, wanted);
            match solved {
                Some((_, None)) => return false,
                Some((base, Some(solution))) if base != symbol => {
                    return values.admits(&json) && self.equal_known(base, &Value::Int(solution));
                }
                _ => {}
            }
        }
        let excluded = self.store.borrow().excludes(symbol, &json);
        if !values.admits(&json) || excluded {
            return false;
        }
        let only = match &json {
            Json::Null => values.within(domain::NULL),
            Json::Number(_) => values.within(NUMBER) && values.low.0 == values.high.0,
            Json::Bool(b) => values.within(BOOL) && !values.admits(&json!(!b)),
            _ => values.within(STRING) && values.one_of.as_ref().is_some_and(|list| list.len() == 1),
        };
        let equal = only || self.choose(2) == 0;
        let mut store = self.store.borrow_mut();
        match (equal, json.as_f64()) {
            (true, Some(n)) => {
                if let Some(met) = Values::between(values.types & NUMBER, n, n).meet(&values) {
                    store.set(symbol, met);
                }
            }
            (true, None) if values.types & domain::OTHER == 0 => store.bind(symbol, json),
            (true, None) => {}
            (false, _) => {
                let mut values = values;
                values.exclude(&json);
                if values.tidy() {
                    store.set(symbol, values);
                }
            }
        }
        equal
    }

    /// A field of an unknown value; `None` if there is no such field.
    pub(super) fn field_of<'a>(&self, base: &Value<'_>, name: &str) -> Option<Value<'a>> {
        let symbol = self.symbol(base)?;
        if !self.has_type(symbol, MAP) {
            return None;
        }
        let (operation, operands) = (format!(".{name}"), vec![marker(symbol)]);
        let known = self.store.borrow().result(&operation, &operands);
        let result = known.unwrap_or_else(|| {
            let field = self.schemas.field(self.store.borrow().values(symbol).schema, name);
            let absent = field.absent || !field.required && self.choose(2) == 1;
            let result = if absent { Json::from(FAILS) } else { self.fresh(field.values.clone()) };
            self.store.borrow_mut().remember(&operation, operands, result.clone());
            result
        });
        match result.as_str() {
            Some(FAILS) => None,
            _ => Value::from_json(&result).into_owned().into(),
        }
    }
}
