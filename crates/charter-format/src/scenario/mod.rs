//! Reads scenario files, the executable tests of charters that `charter test` runs. Diagnostics
//! work as for charters.
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
use charter_kernel::{Auth, Principal, PrincipalKind};
use indexmap::IndexMap;

pub use read::{is_scenario_file, read_scenarios};

use crate::diagnostic::{Diagnostic, Severity};
use crate::read::places::Places;
use crate::source::{Node, Span};

/// A file with one scenario or several.
#[derive(Debug, Clone)]
pub struct ScenarioFile {
    /// The name of the source, usually a path.
    pub name: String,
    /// The source text.
    pub source: Arc<str>,
    /// The charter, if the file names one: a path relative to it, or the name of a bundled charter.
    pub charter: Option<String>,
    /// The scenarios, in the order of the file.
    pub scenarios: Vec<Scenario>,
    /// Warnings: legal, but probably mistakes.
    pub warnings: Vec<Diagnostic>,
    /// The roles that the file names, and where it does.
    pub roles: Vec<(String, Span)>,
    root: Arc<Node>,
    places: Places,
}

/// The steps of a run and the expected results.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What the scenario tests.
    pub name: String,
    /// Its place in the file.
    pub span: Span,
    /// Principals by id.
    pub principals: IndexMap<String, Principal>,
    /// The input of the run.
    pub input: Option<Computed>,
    /// The time at which the run starts, in milliseconds since 1970.
    pub at: i64,
    /// Who starts the run, under `principals`; `None`: the system.
    pub starter: Option<Sender>,
    /// The expected refusal, if the run is expected not to start.
    pub refused: Option<(Span, ExpectedRefusal)>,
    /// The steps, including the steps of `before` at the start.
    pub steps: Vec<ScenarioStep>,
}

/// A step of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioStep {
    /// What it does.
    pub act: Act,
    /// Its key and value, which diagnostics underline.
    pub span: Span,
    /// Why the scenario contains this step.
    pub description: Option<String>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Sends an event or an answer.
    Send(Sending),
    /// Sends an event or an answer and expects a refusal.
    Refused(Sending, ExpectedRefusal),
    /// Checks the state of the run.
    Expect(Box<Expectation>),
    /// Advances the time.
    Tick(Tick),
    /// Writes the snapshot as JSON and reads it back.
    Restore,
    /// Repeats steps.
    Repeat {
        /// The number of times.
        times: u32,
        /// The steps.
        steps: Vec<ScenarioStep>,
    },
}

/// An event or an answer to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// What is sent.
    pub what: What,
    /// The actor that receives it.
    pub to: Option<String>,
    /// The time, in milliseconds since 1970.
    pub at: Option<i64>,
    /// The sender of an event; the person who gives an answer, or the default: the actor itself.
    pub sender: Sender,
    /// The sequence number of the last record that the sender has seen.
    pub expected_seq: Option<u64>,
    /// A run that has the unique key of the event already.
    pub taken_by: Option<String>,
    /// The expected verdict, `accepted` by default.
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

impl Scenario {
    /// Returns the principal of a sender: what the step says, and otherwise what `principals` says.
    /// A sender that is not listed there has no roles unless the step names them.
    #[must_use]
    pub fn principal(&self, sender: &Sender) -> Principal {
        let listed = self.principals.get(&sender.id);
        Principal {
            id: sender.id.clone(),
            roles: sender.roles.clone().or_else(|| Some(listed?.roles.clone())).unwrap_or_default(),
            kind: sender.kind.or_else(|| listed?.kind),
            auth: sender.auth.or_else(|| listed?.auth),
        }
    }
}

/// A principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sender {
    /// Its id.
    pub id: String,
    /// Its roles; by default the roles listed under `principals`.
    pub roles: Option<Vec<String>>,
    /// What it is; by default what `principals` says.
    pub kind: Option<PrincipalKind>,
    /// How it was authenticated; by default what `principals` says.
    pub auth: Option<Auth>,
}

/// An expected refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedRefusal {
    /// The code.
    pub code: String,
    /// The rule that the refusal names.
    pub rule: Option<String>,
    /// A substring of the message.
    pub message: Option<String>,
}

/// The expected state of the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expectation {
    /// The actor whose state is expected; by default the root.
    pub actor: Option<String>,
    /// The active states.
    pub state: Option<Vec<String>>,
    /// The status of the run or of the actor.
    pub status: Option<String>,
    /// Expected values of context variables.
    pub context: IndexMap<String, Computed>,
    /// The output.
    pub output: Option<Computed>,
    /// Active invocations.
    pub invocations: Option<Vec<String>>,
    /// The effects of the last step.
    pub effects: Option<Vec<Computed>>,
    /// The event types that are legal for a principal.
    pub legal: Option<(Sender, Vec<String>)>,
    /// The permits and obligations in the ledger.
    pub ledger: Option<Computed>,
    /// The machines in the run.
    pub actors: Option<Vec<String>>,
    /// Whether the run is stuck.
    pub stuck: Option<bool>,
    /// Conditions that must be true.
    pub assert: Vec<Computed>,
    /// Where each key was written.
    pub spans: IndexMap<String, Span>,
}

/// How far to advance the time.
#[derive(Debug, Clone, PartialEq)]
pub enum Tick {
    /// By a duration.
    For(Delay),
    /// To a timestamp, in milliseconds since 1970.
    Until(i64),
}

/// A value that is computed when its step runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// The value. A condition is [`Template::Cel`].
    pub template: Template,
    /// The address to pass to [`ScenarioFile::span_within`].
    pub at: String,
    /// Where it was written.
    pub span: Span,
}

impl ScenarioFile {
    /// The source span of a range of bytes in the text at an address.
    #[must_use]
    pub fn span_within(&self, at: &str, bytes: (usize, usize)) -> Span {
        self.places.find(at).part(bytes.0, bytes.1, &self.source)
    }

    /// The source span of the part at an address.
    #[must_use]
    pub fn span(&self, at: &str) -> Span {
        self.places.find(at).span(&self.source)
    }

    /// Creates a diagnostic about a place in this file.
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
