//! Scenario files: executable tests of charters (04-interfaces, "Scenario file"). Read with the same care as charters; run elsewhere.
//!
//! ```
//! use charter_format::scenario::{Act, read_scenarios};
//!
//! let file = read_scenarios(
//!     "
//! name: a door opens
//! steps:
//!   - send: {type: OPEN, as: ana}
//!   - expect: {state: opened}
//! ",
//!     "door.yaml",
//! )?;
//! assert!(matches!(file.scenarios[0].steps[0].act, Act::Send(_)));
//! # Ok::<(), charter_format::Diagnostics>(())
//! ```

mod read;

use std::sync::Arc;

use charter_kernel::definition::{Delay, Template};
use indexmap::IndexMap;

pub use read::{is_scenario_file, read_scenarios};

use crate::diagnostic::{Diagnostic, Severity};
use crate::read::places::Places;
use crate::source::{Node, Span};

/// A file with one scenario or several.
#[derive(Debug, Clone)]
pub struct ScenarioFile {
    /// Name of the source, for people.
    pub name: String,
    /// The source text.
    pub source: Arc<str>,
    /// The charter, if the file says: a path relative to it, or the name of a bundled one.
    pub charter: Option<String>,
    /// In the order of the file.
    pub scenarios: Vec<Scenario>,
    /// What is legal, but probably not what was meant.
    pub warnings: Vec<Diagnostic>,
    root: Arc<Node>,
    places: Places,
}

/// What happens to a run, and what is expected of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What it shows.
    pub name: String,
    /// Its beginning.
    pub span: Span,
    /// Roles by principal.
    pub principals: IndexMap<String, Vec<String>>,
    /// What the run starts with.
    pub input: Option<Computed>,
    /// When it starts, in milliseconds since 1970.
    pub at: i64,
    /// The start is refused, and there are no steps.
    pub refused: Option<(Span, Refusal)>,
    /// What happens; the steps of `before` are the first.
    pub steps: Vec<Step>,
}

/// Something happens, or is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What.
    pub act: Act,
    /// Its key and a bit of what follows, to be underlined.
    pub span: Span,
    /// Why.
    pub description: Option<String>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// An event is sent.
    Send(Sending),
    /// Something is sent and refused.
    Refused(Sending, Refusal),
    /// The run stands like this.
    Expect(Box<Expectation>),
    /// Time passes.
    Tick(Tick),
    /// Through JSON and back.
    Restore,
    /// The same steps several times.
    Repeat {
        /// How often.
        times: u32,
        /// Which.
        steps: Vec<Step>,
    },
}

/// An event or an answer on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// What is sent.
    pub what: What,
    /// The actor it is for.
    pub to: Option<String>,
    /// When; milliseconds since 1970.
    pub at: Option<i64>,
    /// Who; not for answers.
    pub sender: Sender,
    /// The last record that the sender has seen.
    pub expected_seq: Option<u64>,
    /// What becomes of it: `accepted` unless it is said.
    pub verdict: &'static str,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An event.
    Event {
        /// Its type.
        kind: String,
        /// Its data.
        data: Option<Computed>,
    },
    /// An invoked actor answers.
    Done {
        /// Id of the invocation.
        actor: String,
        /// The answer.
        output: Option<Computed>,
    },
    /// An invoked actor fails.
    Failed {
        /// Id of the invocation.
        actor: String,
        /// Its error.
        error: Option<Computed>,
    },
}

/// A principal: by name, with roles of its own if they are given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sender {
    /// Its id.
    pub id: String,
    /// Its roles; none: those under `principals`.
    pub roles: Option<Vec<String>>,
}

/// How something is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: String,
    /// The rule that it names.
    pub rule: Option<String>,
    /// A part of the message.
    pub message: Option<String>,
}

/// How the run stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expectation {
    /// Whose.
    pub actor: Option<String>,
    /// Active states, each with its place.
    pub state: Option<Vec<String>>,
    /// Of the run or of the actor.
    pub status: Option<String>,
    /// Variables of the context.
    pub context: IndexMap<String, Computed>,
    /// What it gave.
    pub output: Option<Computed>,
    /// Services at work.
    pub invocations: Option<Vec<String>>,
    /// What the last step asks of the host.
    pub effects: Option<Vec<Computed>>,
    /// What is legal now.
    pub legal: Option<(Sender, Vec<String>)>,
    /// Permits and obligations.
    pub ledger: Option<Computed>,
    /// Machines in the run.
    pub actors: Option<Vec<String>>,
    /// Whether nothing can happen any more.
    pub stuck: Option<bool>,
    /// Conditions.
    pub assert: Vec<Computed>,
    /// Where each key was written.
    pub spans: IndexMap<String, Span>,
}

/// How far time goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Tick {
    /// For so long.
    For(Delay),
    /// Until a moment, in milliseconds since 1970.
    Until(i64),
}

/// A value of a scenario, computed when its step runs, and its address in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// The value. A condition is [`Template::Cel`].
    pub template: Template,
    /// Address for [`ScenarioFile::span_within`].
    pub at: String,
    /// Where it was written.
    pub span: Span,
}

impl ScenarioFile {
    /// Where bytes of the text at an address were written.
    #[must_use]
    pub fn span_within(&self, at: &str, bytes: (usize, usize)) -> Span {
        self.places.find(at).part(bytes.0, bytes.1, &self.source)
    }

    /// Where the part at an address was written.
    #[must_use]
    pub fn span(&self, at: &str) -> Span {
        self.places.find(at).span(&self.source)
    }

    /// A diagnostic about a place in this file.
    #[must_use]
    pub fn diagnostic(
        &self,
        severity: Severity,
        code: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(severity, code, span, message);
        diagnostic.help = help;
        diagnostic.locate(&self.source, Some(&self.root));
        diagnostic
    }
}
