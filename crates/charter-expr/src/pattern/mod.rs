//! Regular expressions with RE2's syntax, whose matching is charged before it is done.
//!
//! The crate `regex-automata` builds the automaton of a pattern. We run it ourselves, because what
//! a search costs must be known, and be the same on every platform: engines that choose among
//! several strategies and keep caches tell neither. A pattern whose deterministic automaton is
//! small gets a table and takes the same time for every byte; any other is searched for with sets
//! of states, and each visit of a state is charged.

mod search;
mod size;
mod table;

use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};

use crate::Fuel;
use crate::detail::{EvalDetail, Expected, shorten};
use crate::error::EvalError;
use table::Table;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    nfa: NFA,
    table: Option<Table>,
}

/// Why a pattern does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is not a regular expression: what is wrong, in lowercase.
    Syntax(String),
    /// It would need too much memory.
    TooLarge,
}

/// Upper limit of the size of an automaton, in bytes as `size::of` counts them.
const MAX_SIZE: u64 = 1 << 21;

/// The limit for a pattern in an expression, which may be compiled at each evaluation.
const MAX_SIZE_IN_EXPRESSION: u64 = 1 << 19;

impl Pattern {
    /// Compiles a constant pattern of an expression. An invalid pattern is the error
    /// `InvalidArgument`.
    pub(crate) fn constant(pattern: &str) -> Result<Pattern, EvalError> {
        Pattern::checked(pattern).map(Pattern::with_table)
    }

    /// Compiles a pattern of an expression without looking at what it costs.
    pub(crate) fn checked(pattern: &str) -> Result<Pattern, EvalError> {
        Pattern::once(pattern, &mut Fuel::new(u64::MAX))
    }

    /// Compiles a pattern for one search. An invalid pattern is the error `InvalidArgument`.
    pub(crate) fn once(pattern: &str, fuel: &mut Fuel) -> Result<Pattern, EvalError> {
        fuel.spend(size::parsing(pattern))?;
        let invalid = |e| match e {
            PatternError::Syntax(_) => EvalDetail::not_a(Expected::Regex, pattern).into(),
            PatternError::TooLarge => EvalDetail::LargePattern { pattern: shorten(pattern) }.into(),
        };
        let hir = size::parse(pattern).map_err(invalid)?;
        fuel.spend(size::building(&hir))?;
        Pattern::build(&hir, MAX_SIZE_IN_EXPRESSION).map_err(invalid)
    }

    /// Compiles a pattern that is compiled only once, such as one in a schema.
    ///
    /// # Errors
    /// The pattern is invalid, or its automaton has more than 2 MiB.
    pub fn compile(pattern: &str) -> Result<Pattern, PatternError> {
        Ok(Pattern::build(&size::parse(pattern)?, MAX_SIZE)?.with_table())
    }

    fn build(hir: &regex_syntax::hir::Hir, largest: u64) -> Result<Pattern, PatternError> {
        // The builder measures what depends on the platform; the limit that counts is ours.
        let memory = usize::try_from(largest.saturating_mul(2)).ok();
        let config = Config::new().which_captures(WhichCaptures::None).nfa_size_limit(memory);
        let built = Compiler::new().configure(config).build_from_hir(hir);
        let nfa = built.map_err(|_| PatternError::TooLarge)?;
        if size::of(&nfa) > largest {
            return Err(PatternError::TooLarge);
        }
        Ok(Pattern { nfa, table: None })
    }

    fn with_table(mut self) -> Pattern {
        self.table = Table::build(&self.nfa);
        self
    }

    /// Whether the pattern is found somewhere in the text.
    ///
    /// # Errors
    /// The fuel does not suffice.
    pub fn is_match(&self, text: &str, fuel: &mut Fuel) -> Result<bool, EvalError> {
        let Some(table) = &self.table else {
            return search::is_match(&self.nfa, text, fuel);
        };
        fuel.spend((text.len() as u64 / 16).saturating_add(1))?;
        Ok(table.is_match(text.as_bytes()))
    }

    /// Whether the time for a byte does not depend on the pattern.
    #[cfg(test)]
    fn has_table(&self) -> bool {
        self.table.is_some()
    }
}

#[cfg(test)]
mod tests;
