//! `matches`: regular expressions with RE2's syntax, in linear time and bounded memory.

use regex::{Regex, RegexBuilder};

use crate::detail::{EvalDetail, Expected, shorten};
use crate::error::EvalError;
use crate::{Fuel, Value};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// Fuel for every 16 bytes that are searched; large automata are slower.
    weight: u64,
}

/// Why a pattern does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is not a regular expression: what is wrong, in lowercase.
    Syntax(String),
    /// It would need too much memory.
    TooLarge,
}

/// Compiled sizes in bytes, each with the weight of patterns up to that size.
const SIZES: [(usize, u64); 4] = [(1 << 15, 1), (1 << 17, 4), (1 << 19, 16), (1 << 21, 64)];

impl Pattern {
    /// Upper limit of the compiled size of a pattern in an expression, which may be compiled at
    /// each evaluation.
    const MAX_IN_EXPRESSION: usize = 1 << 19;

    /// Compiles a pattern of an expression. An invalid pattern is the error `InvalidArgument`.
    pub(crate) fn new(pattern: &str) -> Result<Pattern, EvalError> {
        Pattern::up_to(Pattern::MAX_IN_EXPRESSION, pattern).map_err(|e| match e {
            PatternError::Syntax(_) => EvalDetail::not_a(Expected::Regex, pattern).into(),
            PatternError::TooLarge => EvalDetail::LargePattern { pattern: shorten(pattern) }.into(),
        })
    }

    /// Compiles a pattern that is compiled only once, such as one in a schema.
    ///
    /// # Errors
    /// The pattern is invalid, or its automaton has more than 2 MiB.
    pub fn compile(pattern: &str) -> Result<Pattern, PatternError> {
        Pattern::up_to(usize::MAX, pattern)
    }

    fn up_to(largest: usize, pattern: &str) -> Result<Pattern, PatternError> {
        for (size, weight) in SIZES.into_iter().filter(|(size, _)| *size <= largest) {
            match RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(size).nest_limit(64).build() {
                Ok(regex) => return Ok(Pattern { regex, weight }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(e) => {
                    let why = e.to_string();
                    let last = why.trim_end().rsplit('\n').next().unwrap_or_default();
                    return Err(PatternError::Syntax(last.trim_start_matches("error: ").to_owned()));
                }
            }
        }
        Err(PatternError::TooLarge)
    }

    /// Whether the pattern is found somewhere in the text, in time proportional to its length.
    ///
    /// # Errors
    /// The fuel does not suffice.
    pub fn is_match(&self, text: &str, fuel: &mut Fuel) -> Result<bool, EvalError> {
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
