//! `matches`: regular expressions with RE2's syntax, in linear time and bounded memory.

use regex::{Regex, RegexBuilder};

use crate::detail::{EvalDetail, Expected, shorten};
use crate::error::EvalError;
use crate::{Fuel, Value};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Fuel for every 16 bytes that are searched; large automata are slower.
    weight: u64,
}

/// Maximum compiled sizes in bytes, each with the weight of patterns up to that size.
const SIZES: [(usize, u64); 3] = [(1 << 15, 1), (1 << 17, 4), (1 << 19, 16)];

impl Pattern {
    /// Compiles a pattern. An invalid pattern is the error `InvalidArgument`.
    pub(crate) fn new(pattern: &str) -> Result<Pattern, EvalError> {
        for (size, weight) in SIZES {
            let built = RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(size).nest_limit(64).build();
            match built {
                Ok(regex) => return Ok(Pattern { regex, weight }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => {
                    return Err(EvalDetail::not_a(Expected::Regex, pattern).into());
                }
            }
        }
        Err(EvalDetail::LargePattern { pattern: shorten(pattern) }.into())
    }

    /// Whether the pattern is found somewhere in the text.
    pub(crate) fn is_match(&self, text: &str, fuel: &mut Fuel) -> Result<bool, EvalError> {
        fuel.spend((text.len() as u64 / 16).saturating_add(1).saturating_mul(self.weight))?;
        Ok(self.regex.is_match(text))
    }
}

/// Evaluates `matches` with a pattern that is not constant; compiling it costs fuel.
pub(super) fn call<'a>(args: &[Value<'a>], fuel: &mut Fuel) -> Result<Option<Value<'a>>, EvalError> {
    let [Value::String(text), Value::String(pattern)] = args else {
        return Ok(None);
    };
    fuel.spend((pattern.len() as u64).saturating_add(100))?;
    let pattern = Pattern::new(pattern)?;
    fuel.spend(pattern.weight.saturating_mul(10))?;
    Ok(Some(Value::Bool(pattern.is_match(text, fuel)?)))
}
