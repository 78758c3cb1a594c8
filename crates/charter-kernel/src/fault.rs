//! Faults: failed actions and expressions, which become error events inside the run.

use std::sync::Arc;

use charter_expr::EvalError;
use serde_json::{Map, Value as Json, json};

use crate::budget::Budget;
use crate::refusal::ExpressionError;
use crate::schema::Schema;

/// Why an action failed: becomes `error.execution` or `error.communication`.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: FaultCode,
    /// The fields of `error` besides `code` and `message`: a `reason`, and the values it refers to.
    pub(crate) details: Map<String, Json>,
    pub(crate) send_id: Option<Arc<str>>,
}

/// The codes of the kernel's own errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultCode {
    Execution,
    Communication,
    Expression,
    Schema,
    Timeout,
}

impl FaultCode {
    fn word(self) -> &'static str {
        match self {
            FaultCode::Execution => "execution",
            FaultCode::Communication => "communication",
            FaultCode::Expression => "expression",
            FaultCode::Schema => "schema",
            FaultCode::Timeout => "timeout",
        }
    }

    /// The `message` of the error event. Snapshots can contain it, so it is fixed: changing a
    /// message needs a new record version.
    fn message(self) -> &'static str {
        match self {
            FaultCode::Execution => "an action failed",
            FaultCode::Communication => "an event could not be delivered",
            FaultCode::Expression => "an expression could not be evaluated",
            FaultCode::Schema => "the input does not match its schema",
            FaultCode::Timeout => "no answer in time",
        }
    }
}

impl Fault {
    pub(crate) fn new(code: FaultCode, reason: &str) -> Fault {
        let details = Map::from_iter([("reason".to_string(), Json::from(reason))]);
        Fault { code, details, send_id: None }
    }

    pub(crate) fn execution(reason: &str) -> Fault {
        Fault::new(FaultCode::Execution, reason)
    }

    pub(crate) fn communication(reason: &str) -> Fault {
        Fault::new(FaultCode::Communication, reason)
    }

    /// Adds a value to the details.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Json>) -> Fault {
        self.details.insert(key.to_string(), value.into());
        self
    }

    /// The fault of an input that does not match the schema of the actor `name`.
    pub(crate) fn unless_fits(name: &str, schema: &Schema, input: &Json, budget: &Budget) -> Result<(), Fault> {
        let fault = || Fault::new(FaultCode::Schema, "input").with("name", name);
        let misfits = || json!(budget.misfits(schema, input));
        if budget.fits(schema, input).unwrap_or(false) { Ok(()) } else { Err(fault().with("misfits", misfits())) }
    }

    /// Returns the `error` of the event that reports the fault.
    pub(crate) fn error(self) -> Json {
        let code = self.code;
        Json::Object(self.with("code", code.word()).with("message", code.message()).details)
    }
}

impl From<EvalError> for Fault {
    fn from(e: EvalError) -> Fault {
        let error = ExpressionError::from(&e);
        let mut fault = Fault::new(FaultCode::Expression, "expression").with("error", error.error);
        if let Some(detail) = error.detail {
            fault = fault.with("detail", serde_json::to_value(detail).unwrap_or_default());
        }
        let fields = [("expression", error.expression), ("part", error.part)];
        fields.into_iter().fold(fault, |fault, (key, text)| match text {
            Some(text) => fault.with(key, text),
            None => fault,
        })
    }
}
