//! The infix operators on unknown values.

use charter_expr::ast::BinaryOp;
use charter_expr::{EvalError, Key, Value, apply};
use charter_kernel::Unknowns;

use super::domain::{BOOL, INT, LIST, MAP, NUMBER, OTHER, STRING, Types, Values};
use super::eval::{Evaluated, Evaluator};
use super::oracle::fails;
use super::store::mirrored;

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn binary(&mut self, op: BinaryOp, left: Value<'a>, right: Value<'a>) -> Evaluated<'a> {
        let (left, right) = (self.oracle.normal(left), self.oracle.normal(right));
        match op {
            BinaryOp::Eq | BinaryOp::Ne => {
                self.charge_comparison(&left, &right);
                let equal = self.oracle.equal(&left, &right);
                return Ok(Value::Bool(equal == (op == BinaryOp::Eq)));
            }
            BinaryOp::In => return self.contains(&left, &right),
            _ => {}
        }
        match (self.oracle.symbol(&left), self.oracle.symbol(&right)) {
            (None, None) => apply::binary(op, left, right, self.fuel),
            (a, b) => match op {
                BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => match (a, b) {
                    (Some(a), None) => self.compare(op, a, &left, &right),
                    (None, Some(b)) => self.compare(mirrored(op), b, &right, &left),
                    _ => self.compare_unknown(op, &left, &right),
                },
                _ => self.arithmetic(op, &left, &right),
            },
        }
    }

    fn contains(&mut self, item: &Value<'a>, container: &Value<'a>) -> Evaluated<'a> {
        if !self.oracle.holds_unknown(item) && !self.oracle.holds_unknown(container) {
            return apply::binary(BinaryOp::In, item.clone(), container.clone(), self.fuel);
        }
        match container {
            Value::List(list) => {
                list.iter().for_each(|candidate| self.charge_comparison(item, &candidate));
                let found = list.iter().any(|candidate| self.oracle.equal(item, &candidate));
                Ok(Value::Bool(found))
            }
            Value::Map(map) => match self.oracle.symbol(item) {
                None => Ok(Value::Bool(Key::from_value(item).is_some_and(|key| map.get(&key).is_some()))),
                Some(_) => {
                    let found = map.keys().into_iter().any(|key| self.oracle.equal(item, &key.into_value()));
                    Ok(Value::Bool(found))
                }
            },
            _ if self.oracle.symbol(container).is_some() => {
                let symbol = self.oracle.symbol(container).ok_or_else(fails)?;
                if !self.oracle.has_type(symbol, LIST | MAP) {
                    return Err(fails());
                }
                self.charge(None);
                self.term("in", &[item, container], Values::of(BOOL), false)
            }
            _ => Err(fails()),
        }
    }

    /// Compares a symbol with a known value.
    fn compare(&mut self, op: BinaryOp, symbol: u32, value: &Value<'a>, known: &Value<'a>) -> Evaluated<'a> {
        let (Some(n), false) = (known.as_f64(), known.as_f64().is_none_or(f64::is_nan)) else {
            return self.compare_unknown(op, value, known);
        };
        if !self.oracle.has_type(symbol, NUMBER | OTHER) {
            return Err(fails());
        }
        let values = self.oracle.store.borrow().values(symbol);
        if values.types & OTHER != 0 {
            return self.compare_unknown(op, value, known);
        }
        let holds = match values.split(op, n) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(yes), Some(no)) => {
                let holds = self.oracle.choose(2) == 0;
                self.oracle.store.borrow_mut().set(symbol, if holds { yes } else { no });
                holds
            }
            (None, None) => return Err(fails()),
        };
        Ok(Value::Bool(holds))
    }

    fn compare_unknown(&mut self, op: BinaryOp, left: &Value<'a>, right: &Value<'a>) -> Evaluated<'a> {
        let (a, b) = (self.oracle.values(left), self.oracle.values(right));
        let numbers = a.within(NUMBER) && b.within(NUMBER);
        if numbers {
            let below = a.high.0 < b.low.0;
            let above = a.low.0 > b.high.0;
            if below || above {
                let less = matches!(op, BinaryOp::Lt | BinaryOp::Le);
                return Ok(Value::Bool(less == below));
            }
        }
        self.term(op.symbol(), &[left, right], Values::of(BOOL), !numbers)
    }

    fn arithmetic(&mut self, op: BinaryOp, left: &Value<'a>, right: &Value<'a>) -> Evaluated<'a> {
        let (a, b) = (self.oracle.values(left), self.oracle.values(right));
        let both = |types: Types| a.types & types != 0 && b.types & types != 0;
        let mut types = 0;
        if both(NUMBER) {
            let whole = a.within(INT) && b.within(INT) && matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
            types |= if whole { INT } else { NUMBER | OTHER };
        }
        if op == BinaryOp::Add {
            types |= if both(STRING) { STRING } else { 0 } | if both(LIST) { LIST } else { 0 };
        }
        if (a.types | b.types) & OTHER != 0 {
            types |= OTHER | STRING;
        }
        if types == 0 {
            return Err(fails());
        }
        let numbers = a.within(NUMBER) && b.within(NUMBER);
        let mut values = Values::of(types);
        if numbers {
            values = interval(op, &a, &b, types);
        }
        // Whole numbers may overflow unless they are small.
        let small = values.low.0.is_finite() && values.high.0.is_finite();
        let safe = numbers && small && !matches!(op, BinaryOp::Div | BinaryOp::Rem);
        let safe =
            safe || op == BinaryOp::Add && (a.within(STRING) && b.within(STRING) || a.within(LIST) && b.within(LIST));
        if op == BinaryOp::Add {
            self.charge(self.oracle.steps_of(left));
            self.charge(self.oracle.steps_of(right));
        }
        let result = self.term(op.symbol(), &[left, right], values, !safe)?;
        self.relate(op, left, right, &result)?;
        Ok(result)
    }

    /// Remembers that a result is linear in a symbol.
    fn relate(
        &mut self,
        op: BinaryOp,
        left: &Value<'a>,
        right: &Value<'a>,
        result: &Value<'a>,
    ) -> Result<(), EvalError> {
        let Some(symbol) = self.oracle.symbol(result) else { return Ok(()) };
        if !self.oracle.values(result).within(INT) {
            return Ok(());
        }
        const MAX: u64 = 1 << 40;
        let linear = |value: &Value<'a>| match self.oracle.symbol(value) {
            Some(symbol) => {
                let (base, factor, offset) = self.oracle.store.borrow().linear(symbol);
                Some((Some(base), factor, offset))
            }
            None => value.as_i64().map(|n| (None, 0, n)),
        };
        let (Some((x, f, m)), Some((y, g, n))) = (linear(left), linear(right)) else { return Ok(()) };
        let scaled = |base: Option<u32>, factor: i64, offset: i64, by: i64| {
            Some((base, factor.checked_mul(by)?, offset.checked_mul(by)?))
        };
        let found = match op {
            BinaryOp::Add | BinaryOp::Sub if x.is_none() || y.is_none() || x == y => {
                let sign = if op == BinaryOp::Add { 1 } else { -1 };
                scaled(y, g, n, sign).and_then(|(y, g, n)| Some((x.or(y), f.checked_add(g)?, m.checked_add(n)?)))
            }
            BinaryOp::Mul if y.is_none() => scaled(x, f, m, n),
            BinaryOp::Mul if x.is_none() => scaled(y, g, n, m),
            _ => None,
        };
        if let Some((Some(base), factor, offset)) = found
            && base != symbol
            && factor.unsigned_abs() < MAX
            && offset.unsigned_abs() < MAX
        {
            self.oracle.store.borrow_mut().set_linear(symbol, (base, factor, offset));
        }
        Ok(())
    }
}

/// The interval of a sum, a difference or a product.
fn interval(op: BinaryOp, a: &Values, b: &Values, types: Types) -> Values {
    let ends = |f: &dyn Fn(f64, f64) -> f64| {
        let all = [f(a.low.0, b.low.0), f(a.low.0, b.high.0), f(a.high.0, b.low.0), f(a.high.0, b.high.0)];
        if all.iter().any(|n| n.is_nan()) {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let (low, high) = match op {
        BinaryOp::Add => (a.low.0 + b.low.0, a.high.0 + b.high.0),
        BinaryOp::Sub => (a.low.0 - b.high.0, a.high.0 - b.low.0),
        BinaryOp::Mul => ends(&|x, y| x * y),
        _ => return Values::of(types),
    };
    Values::between(types, low, high)
}
