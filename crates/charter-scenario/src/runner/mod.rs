//! Runs scenarios: executable tests of a charter.

mod cover;
mod expect;
mod gaps;
mod matching;
mod run;
mod scope;
mod sending;
mod unseen_codes;

pub use cover::Cover;
pub use gaps::{Gap, gaps};
pub use run::{ScenarioResult, run};
pub use scope::{Expressions, compile_expressions};
pub use unseen_codes::unseen_codes;

/// Codes of the diagnostics about scenarios; each has a page in `docs/codes/`.
pub mod codes {
    /// An expectation does not hold.
    pub const EXPECTATION: &str = "expectation";
    /// An event was refused, but expected to be accepted.
    pub const UNEXPECTED_REFUSAL: &str = "unexpected-refusal";
    /// An event was accepted, but expected to be refused.
    pub const NOT_REFUSED: &str = "not-refused";
    /// The scenario cannot run as written.
    pub const SCENARIO: &str = "scenario";
    /// All codes.
    pub const ALL: [&str; 4] = [EXPECTATION, UNEXPECTED_REFUSAL, NOT_REFUSED, SCENARIO];
}
