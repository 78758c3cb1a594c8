//! The messages of expressions that cannot be evaluated.

use std::borrow::Cow;
use std::fmt::Write as _;

use charter_expr::EvalDetail;

use crate::refusal::ExpressionError;

/// Renders why an expression could not be evaluated.
pub(crate) fn expression_error(e: &ExpressionError) -> String {
    let what = match e.error.as_str() {
        _ if e.detail.is_some() => "",
        "no-such-field" => "there is no such field",
        "no-such-key" => "there is no such key",
        "no-such-overload" => "a value has the wrong type",
        "overflow" => "a number is out of range",
        "divide-by-zero" => "division by zero",
        "index-out-of-range" => "an index is out of range",
        "out-of-fuel" => "it takes too many steps (`limits.expression`)",
        "invalid-argument" => "a value cannot be used here",
        "repeated-key" => "a key is repeated",
        "unbound" => "a name has no value here",
        "too-deep" => "the data is nested too deeply",
        "too-large" => "the value is too large",
        "not-json" => "the value has no JSON form",
        _ => "a function failed",
    };
    let mut out = String::new();
    if let Some(expression) = &e.expression {
        let _ = write!(out, "`{expression}`: ");
    }
    out.push_str(&e.detail.as_ref().map_or(Cow::Borrowed(what), |detail| detail.message().into()));
    if let Some(part) = &e.part {
        let _ = write!(out, " (at `{part}`)");
    } else if let Some(EvalDetail::NotJson { found, .. }) = &e.detail
        && found == "double"
        && let Some(ast) = e.expression.as_deref().and_then(|expression| charter_expr::parse(expression).ok())
        && let divisors = ast.divisors()
        && !divisors.is_empty()
    {
        let divisors: Vec<String> = divisors.iter().map(|divisor| format!("`{divisor}`")).collect();
        let _ = write!(out, " (divided by {})", divisors.join(", "));
    }
    out
}
