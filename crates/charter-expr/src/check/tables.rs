//! The overloads: the simple types that operators and functions accept, and their results.

use Ty::{Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Null, Object, String, Timestamp, Uint};

use crate::Type as Ty;
use crate::ast::BinaryOp;
use crate::functions::Function as F;

pub(super) fn conversion(op: BinaryOp, types: &[Ty]) -> Option<std::string::String> {
    let number = |t: &Ty| matches!(t, Ty::Int | Ty::Uint | Ty::Double);
    let [left, right] = types else { return None };
    let text = match (left, right) {
        (Ty::Double, r) | (r, Ty::Double) if number(r) && op == BinaryOp::Rem => "convert with `int(x)`",
        (Ty::Double, r) | (r, Ty::Double) if number(r) => "convert with `double(x)`",
        (l, r) if number(l) && number(r) => "convert with `int(x)` or `uint(x)`",
        (Ty::String, _) | (_, Ty::String) if op == BinaryOp::Add => "convert with `string(x)`",
        (Ty::Null, _) | (_, Ty::Null) => "check `x != null` first",
        _ => return None,
    };
    Some(text.to_owned())
}

pub(super) fn argument_help(f: F, types: &[Ty]) -> Option<std::string::String> {
    if types.contains(&Ty::Null) {
        return Some("check `x != null` first".to_owned());
    }
    let rounds = matches!(f, F::Ceil | F::Floor | F::Round | F::Trunc | F::IsNan | F::IsInf | F::IsFinite);
    (rounds && matches!(types, [Ty::Int | Ty::Uint])).then(|| "convert with `double(x)`".to_owned())
}

/// Returns the result type of an operator on simple types, or `None` if there is no such overload.
pub(super) fn operator(op: BinaryOp, left: &Ty, right: &Ty) -> Option<Ty> {
    use BinaryOp::*;
    let number = |t: &Ty| matches!(t, Int | Uint | Double);
    if *left == Dyn || *right == Dyn {
        return match op {
            Lt | Le | Gt | Ge | In => match (op, left, right) {
                (In, _, Dyn | List(_) | Map(..) | Object { .. }) => Some(Bool),
                (In, _, _) => None,
                (_, Null | List(_) | Map(..) | Object { .. } | Ty::Type, _) => None,
                (_, _, Null | List(_) | Map(..) | Object { .. } | Ty::Type) => None,
                _ => Some(Bool),
            },
            // Only a number can be the other operand.
            Add | Sub | Mul | Div if *left == Double || *right == Double => Some(Double),
            _ => Some(Dyn),
        };
    }
    match op {
        Eq | Ne => Some(Bool),
        Lt | Le | Gt | Ge => match (left, right) {
            (l, r) if number(l) && number(r) => Some(Bool),
            (String, String) | (Bytes, Bytes) | (Bool, Bool) => Some(Bool),
            (Timestamp, Timestamp) | (Duration, Duration) => Some(Bool),
            _ => None,
        },
        In => matches!(right, List(_) | Map(..) | Object { .. }).then_some(Bool),
        Add => match (left, right) {
            (Int, Int) | (Uint, Uint) | (Double, Double) | (String, String) | (Bytes, Bytes) => Some(left.clone()),
            (Int, Double) | (Double, Int) => Some(Double),
            (List(a), List(b)) => Some(Ty::list(Ty::union([(**a).clone(), (**b).clone()]))),
            (Timestamp, Duration) | (Duration, Timestamp) => Some(Timestamp),
            (Duration, Duration) => Some(Duration),
            _ => None,
        },
        Sub => match (left, right) {
            (Int, Int) | (Uint, Uint) | (Double, Double) => Some(left.clone()),
            (Int, Double) | (Double, Int) => Some(Double),
            (Timestamp, Timestamp) | (Duration, Duration) => Some(Duration),
            (Timestamp, Duration) => Some(Timestamp),
            _ => None,
        },
        Mul | Div => match (left, right) {
            (Int, Int) | (Uint, Uint) | (Double, Double) => Some(left.clone()),
            (Int, Double) | (Double, Int) => Some(Double),
            _ => None,
        },
        Rem => match (left, right) {
            (Int, Int) | (Uint, Uint) => Some(left.clone()),
            _ => None,
        },
    }
}

/// Returns the result type of a function on simple types, or `None` if there is no such overload.
pub(super) fn function(f: F, args: &[Ty]) -> Option<Ty> {
    // An argument of type `dyn` may have the required type.
    let is = |i: usize, wanted: &[Ty]| args.get(i).is_none_or(|t| *t == Dyn || wanted.contains(t));
    let number = [Int, Uint, Double];
    let given = |i: usize| args.get(i).cloned().unwrap_or(Dyn);
    let list = |i: usize| matches!(given(i), Dyn | List(_));
    let texts = args.iter().all(|t| matches!(t, String | Dyn));
    match f {
        F::Size => {
            let sized = is(0, &[String, Bytes]) || matches!(given(0), List(_) | Map(..) | Object { .. });
            sized.then_some(Int)
        }
        F::Type => Some(Ty::Type),
        F::Dyn => Some(Dyn),
        F::Bool => is(0, &[Bool, String]).then_some(Bool),
        F::Int => is(0, &[Int, Uint, Double, String, Timestamp, Duration]).then_some(Int),
        F::Uint => is(0, &[Int, Uint, Double, String]).then_some(Uint),
        F::Double => is(0, &[Int, Uint, Double, String]).then_some(Double),
        F::String => is(0, &[String, Bool, Int, Uint, Double, Bytes, Timestamp, Duration]).then_some(String),
        F::Bytes => is(0, &[Bytes, String]).then_some(Bytes),
        F::Timestamp => is(0, &[Timestamp, String, Int]).then_some(Timestamp),
        F::Duration => is(0, &[Duration, String]).then_some(Duration),
        F::Matches | F::Contains | F::StartsWith | F::EndsWith => texts.then_some(Bool),
        F::Hours | F::Minutes | F::Seconds | F::Milliseconds => {
            let ok = is(0, &[Timestamp]) && is(1, &[String]) || is(0, &[Duration]) && args.len() == 1;
            ok.then_some(Int)
        }
        F::FullYear | F::Month | F::Date | F::DayOfMonth | F::DayOfWeek | F::DayOfYear => {
            (is(0, &[Timestamp]) && is(1, &[String])).then_some(Int)
        }
        F::CharAt => (is(0, &[String]) && is(1, &[Int])).then_some(String),
        F::IndexOf | F::LastIndexOf => (is(0, &[String]) && is(1, &[String]) && is(2, &[Int])).then_some(Int),
        F::LowerAscii | F::UpperAscii | F::Trim | F::Reverse | F::Quote => texts.then_some(String),
        F::Replace => (is(0, &[String]) && is(1, &[String]) && is(2, &[String]) && is(3, &[Int])).then_some(String),
        F::Split => (is(0, &[String]) && is(1, &[String]) && is(2, &[Int])).then(|| Ty::list(String)),
        F::Substring => (is(0, &[String]) && is(1, &[Int]) && is(2, &[Int])).then_some(String),
        F::Join => (list(0) && is(1, &[String])).then_some(String),
        F::Format => (is(0, &[String]) && list(1)).then_some(String),
        F::Greatest | F::Least => match args {
            [List(item)] => Some((**item).clone()),
            _ => (0..args.len()).all(|i| is(i, &number)).then(|| Ty::union(args.iter().cloned())),
        },
        F::Ceil | F::Floor | F::Round | F::Trunc => is(0, &[Double]).then_some(Double),
        F::IsNan | F::IsInf | F::IsFinite => is(0, &[Double]).then_some(Bool),
        F::Sqrt => is(0, &number).then_some(Double),
        F::Abs | F::Sign => is(0, &number).then(|| given(0)),
        F::BitAnd | F::BitOr | F::BitXor => {
            let same = given(0) == given(1) || given(0) == Dyn || given(1) == Dyn;
            (is(0, &[Int, Uint]) && is(1, &[Int, Uint]) && same).then(|| given(0))
        }
        F::BitNot => is(0, &[Int, Uint]).then(|| given(0)),
        F::BitShiftLeft | F::BitShiftRight => (is(0, &[Int, Uint]) && is(1, &[Int])).then(|| given(0)),
        F::Base64Encode => is(0, &[Bytes]).then_some(String),
        F::Base64Decode => is(0, &[String]).then_some(Bytes),
    }
}
