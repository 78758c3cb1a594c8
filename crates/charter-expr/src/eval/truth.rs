//! Evaluates conditions to a bool without creating a value. Most guards consist only of conditions.

use std::cmp::Ordering;

use super::links::Leaf;
use super::{Evaluation, not_a_bool, operators};
use crate::Value;
use crate::ast::BinaryOp;
use crate::error::EvalError;
use crate::program::{Code, Constant, Op};
use crate::value::{int_double, number};

type Truth = Result<bool, EvalError>;

impl<'a> Evaluation<'a, '_> {
    /// Evaluates a condition. A value that is not a bool is an error that names the operator.
    pub(super) fn truth(&mut self, op: &'a Op, wanted_by: &dyn Fn() -> String) -> Truth {
        match &op.code {
            Code::And(operands) => {
                self.pay(op)?;
                self.decided_by(operands, false)
            }
            Code::Or(operands) => {
                self.pay(op)?;
                self.decided_by(operands, true)
            }
            Code::Chain(first, rest) if rest.len() == 1 => match rest.first() {
                Some((operator, right)) if operator.level() == 1 => {
                    self.pay(op)?;
                    self.relation(first, *operator, right).map_err(|e| e.at(op.span))
                }
                _ => self.value_as_truth(op, wanted_by),
            },
            Code::Not(count, operand) => {
                self.pay(op)?;
                self.not(*count, operand)
            }
            _ => self.value_as_truth(op, wanted_by),
        }
    }

    fn pay(&mut self, op: &Op) -> Result<(), EvalError> {
        self.fuel.spend(1).map_err(|e| e.at(op.span))
    }

    fn value_as_truth(&mut self, op: &'a Op, wanted_by: &dyn Fn() -> String) -> Truth {
        match self.eval(op)? {
            Value::Bool(b) => Ok(b),
            other => Err(not_a_bool(&other, &wanted_by()).at(op.span)),
        }
    }

    /// Evaluates `&&` (decided by false) and `||` (decided by true): an operand that decides the
    /// result takes precedence over errors in the others.
    pub(super) fn decided_by(&mut self, operands: &'a [Op], decisive: bool) -> Truth {
        let mut error = None;
        for operand in operands {
            let name = || if decisive { "`||`" } else { "`&&`" }.to_owned();
            match self.truth(operand, &name) {
                Ok(b) if b == decisive => return Ok(b),
                Ok(_) => {}
                Err(e) if !e.is_absorbable() => return Err(e),
                Err(e) => {
                    error.get_or_insert(e);
                }
            }
        }
        match error {
            Some(e) => Err(e),
            None => Ok(!decisive),
        }
    }

    /// Evaluates `!`, repeated `count` times.
    pub(super) fn not(&mut self, count: usize, operand: &'a Op) -> Truth {
        let b = self.truth(operand, &|| "`!`".to_owned())?;
        self.fuel.spend_elements(count.saturating_sub(1)).map_err(|e| e.at(operand.span))?;
        Ok(b ^ (count % 2 == 1))
    }

    /// Evaluates a comparison. A JSON field and a constant, the most common operands, are compared
    /// without creating values.
    fn relation(&mut self, left: &'a Op, operator: BinaryOp, right: &'a Op) -> Truth {
        let (Code::Fields(fields), Code::Constant(constant)) = (&left.code, &right.code) else {
            let left = self.eval(left)?;
            let right = self.eval(right)?;
            return operators::relation(operator, &left, &right, self.fuel);
        };
        self.pay(left)?;
        let leaf = self.leaf(fields, left)?;
        self.pay(right)?;
        let value = match leaf {
            // Numbers are compared by their values, whatever their types.
            Leaf::Json(json, numbers) => match scalar(operator, json, constant) {
                Some(answer) => return Ok(answer),
                None => Value::typed(json, numbers),
            },
            Leaf::Value(value) => value,
        };
        operators::relation(operator, &value, &constant.value(), self.fuel)
    }
}

/// Compares numbers and bools, which costs no fuel; returns `None` for all other types.
fn scalar(operator: BinaryOp, json: &serde_json::Value, constant: &Constant) -> Option<bool> {
    let ordering = match (json, constant) {
        (serde_json::Value::Bool(a), Constant::Bool(b)) => Some(a.cmp(b)),
        (serde_json::Value::Number(n), Constant::Int(b)) => match number::of_json(n) {
            number::Number::Int(a) => Some(a.cmp(b)),
            number::Number::Double(a) => int_double(*b, a).map(Ordering::reverse),
        },
        (serde_json::Value::Number(n), Constant::Double(b)) => match number::of_json(n) {
            number::Number::Int(a) => int_double(a, *b),
            number::Number::Double(a) => a.partial_cmp(b),
        },
        _ => return None,
    };
    operators::holds(operator, ordering)
}
