//! Runs scenarios: executable tests of a charter, on the pure kernel.
//!
//! ```
//! use charter_cli::scenario::{Cover, compile_expressions, run};
//! use charter_format::{ReadOptions, read, scenario::read_scenarios};
//! use charter_kernel::Machine;
//!
//! let charter = "
//! charter: 1
//! id: door
//! events: {OPEN: {}}
//! states: {closed: {on: {OPEN: opened}}, opened: {}}
//! ";
//! let document = read(charter, "door.yaml", &ReadOptions::default()).unwrap();
//! let machine = Machine::compile(document.definition).unwrap();
//! let file = read_scenarios("
//! name: a door opens once
//! steps:
//!   - send: {type: OPEN}
//!   - expect: {state: opened}
//!   - refused: {type: OPEN, code: unhandled}
//! ", "once.yaml").unwrap();
//! let expressions = compile_expressions(&file).unwrap();
//! let mut cover = Cover::default();
//! let ran = run(&file, &file.scenarios[0], &expressions, &machine, &mut cover);
//! assert!(ran.failure.is_none());
//! assert_eq!(cover.codes().collect::<Vec<_>>(), ["unhandled"]);
//! ```

mod codes_seen;
mod cover;
mod expect;
mod matching;
mod run;
mod scope;
mod skeleton;

pub use codes_seen::unseen_codes;
pub use cover::Cover;
pub use run::{Ran, run};
pub use scope::{Expressions, compile_expressions};
pub use skeleton::{Gap, gaps};

/// Codes of the diagnostics about scenarios; each has a page in `docs/codes/`.
pub mod codes {
    /// What was expected is not what is.
    pub const EXPECTATION: &str = "expectation";
    /// Something was refused that should not be.
    pub const UNEXPECTED_REFUSAL: &str = "unexpected-refusal";
    /// Something was taken that should be refused.
    pub const NOT_REFUSED: &str = "not-refused";
    /// The scenario cannot be run as it is written.
    pub const SCENARIO: &str = "scenario";
    /// All of them.
    pub const ALL: [&str; 4] = [EXPECTATION, UNEXPECTED_REFUSAL, NOT_REFUSED, SCENARIO];
}
