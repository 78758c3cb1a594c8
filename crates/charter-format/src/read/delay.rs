//! Lengths of time: `24h`, `1h30m`, `500ms`, plain milliseconds, `= CEL`, or a name.

use charter_kernel::definition::Delay;

use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Node, Value};

pub(crate) const HELP: &str =
    "a time is written as `500ms`, `5s`, `1h30m`, `24h`, `2d`, as milliseconds, as a name from `delays`, or as `= CEL`";

/// Milliseconds, longest unit first.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
/// 2^53 - 1: beyond it JSON readers disagree.
const MOST: u64 = (1 << 53) - 1;

/// Reads a delay where a value stands.
pub(crate) fn read(node: &Node) -> Result<Delay, Diagnostic> {
    let refuse = |message: String| Err(Diagnostic::error(codes::VALUE, node.span, message).help(HELP));
    match &node.value {
        Value::Int(ms) => match u64::try_from(*ms) {
            Ok(ms) => Ok(Delay::Ms(ms)),
            Err(_) => refuse(format!("a length of time cannot be negative, but `{ms}` is")),
        },
        Value::Text(text) => match from_text(&text.text) {
            Some(delay) => Ok(delay),
            None => refuse(format!("`{}` is no length of time", text.text)),
        },
        _ => refuse(format!("expected a length of time, found {}", node.kind())),
    }
}

/// Reads a delay from text (keys of `after` are text, even if they are numbers). `None`: it is none.
pub(crate) fn from_text(text: &str) -> Option<Delay> {
    if let Some(cel) = text.strip_prefix("= ") {
        return Some(Delay::Cel(cel.to_owned()));
    }
    // A name does not begin with a digit, so that `5sec` is a mistake and not a name that nobody declared.
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return milliseconds(text).map(Delay::Ms);
    }
    let is_name = !text.is_empty() && !text.starts_with(['-', '+', '=']) && !text.contains(char::is_whitespace);
    is_name.then(|| Delay::Name(text.to_owned()))
}

fn milliseconds(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().filter(|ms| *ms <= MOST);
    }
    let mut total = 0_u64;
    let mut rest = text;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = (rest.get(..digits)?, rest.get(digits..)?);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = (after.get(..letters)?, after.get(letters..)?);
        // Each unit once, the longest first: `30m1h` is more likely a slip than meant.
        let (_, factor) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, *factor)?).filter(|ms| *ms <= MOST)?;
        rest = next;
    }
    Some(total)
}

/// `1.5` of a unit, if that is a whole number of milliseconds.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    if part.is_empty() {
        return number.bytes().all(|b| b.is_ascii_digit()).then_some(whole);
    }
    let tens = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(factor)?;
    if part.checked_rem(tens)? != 0 {
        return None;
    }
    whole.checked_add(part.checked_div(tens)?)
}
