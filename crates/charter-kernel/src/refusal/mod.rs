//! Why an event was refused, in three forms: [`Refusal`], a code, on the hot path;
//! [`RefusalDetails`], codes and values without messages, in a record; [`Explanation`], with
//! messages, for people.

mod cause;
mod code;
mod details;
mod explanation;

use serde_json::{Map, Value as Json};

pub use cause::Cause;
pub use code::Code;
pub use details::{ApprovalDetails, CandidateDetails, ExpressionError, LedgerDetails, RefusalDetails};
pub use explanation::{Candidate, Explanation};

/// The refusal of an event; the run is unchanged. It is small on purpose:
/// [`crate::Machine::explain`] returns the reasons.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("refused: {code}")]
pub struct Refusal {
    /// The refusal code.
    pub code: Code,
    /// Details that cannot be derived from the snapshot and the envelope.
    pub(crate) detail: Option<Box<Detail>>,
}

/// Details that were found during the step.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Detail {
    pub(crate) rule: Option<String>,
    pub(crate) interlock: Option<String>,
    /// The values that the rule's message depends on, by path.
    pub(crate) read: Map<String, Json>,
    pub(crate) cause: Option<Cause>,
}

impl Refusal {
    pub(crate) fn with(code: Code, detail: Detail) -> Refusal {
        Refusal { code, detail: Some(Box::new(detail)) }
    }

    /// Details beyond the code, if the step found any.
    #[must_use]
    pub fn cause(&self) -> Option<&Cause> {
        self.detail.as_deref()?.cause.as_ref()
    }

    pub(crate) fn because(code: Code, cause: Cause) -> Refusal {
        Refusal::with(code, Detail { cause: Some(cause), ..Detail::default() })
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Refusal {
        Refusal { code, detail: None }
    }
}
