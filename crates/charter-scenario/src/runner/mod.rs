//! Runs scenarios, the executable tests of a charter.

mod cover;
mod expect;
mod gaps;
mod matching;
mod roles;
mod run;
mod scope;
mod sending;
mod unseen_codes;

pub use cover::Cover;
pub use gaps::{Gap, gaps};
pub use roles::check_roles;
pub use run::{ScenarioResult, run};
pub use scope::{Expressions, compile_expressions};
pub use unseen_codes::unseen_codes;

/// Codes of the diagnostics about scenarios; each has a page in `docs/codes/`.
pub mod codes {
    /// An expectation does not hold.
    pub const EXPECTATION: &str = "expectation";
    /// An event was expected to be accepted, but was refused.
    pub const UNEXPECTED_REFUSAL: &str = "unexpected-refusal";
    /// An event was expected to be refused, but was accepted.
    pub const NOT_REFUSED: &str = "not-refused";
    /// The scenario cannot be run as it is written.
    pub const SCENARIO: &str = "scenario";
    /// All codes.
    pub const ALL: [&str; 4] = [EXPECTATION, UNEXPECTED_REFUSAL, NOT_REFUSED, SCENARIO];
}
