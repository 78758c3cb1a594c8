//! Why a value is not a JSON Schema, or why data cannot be checked with one.

use charter_expr::EvalError;

/// Why a schema does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword does not have the form that JSON Schema gives it, or is not supported.
    #[error("{}{message}", place(.at))]
    Invalid {
        /// JSON pointer into the schema.
        at: String,
        /// What is wrong.
        message: String,
    },
    /// A `$ref` has no target inside the schema.
    #[error("{}{message}", place(.at))]
    Reference {
        /// JSON pointer into the schema, to the keyword.
        at: String,
        /// What is wrong.
        message: String,
    },
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("at `{at}`: ") }
}

impl SchemaError {
    pub(super) fn invalid(at: &str, message: String) -> SchemaError {
        SchemaError::Invalid { at: at.to_owned(), message }
    }
}

/// Checking data with a schema takes more than the fuel for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("checking the data with its schema takes too long")]
pub struct TooCostly;

impl From<EvalError> for TooCostly {
    /// Spending fuel fails for one reason only.
    fn from(_: EvalError) -> TooCostly {
        TooCostly
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SchemaError;
    use crate::schema::Schema;

    #[test]
    fn an_invalid_keyword_and_a_missing_target_are_told_apart() {
        let error = Schema::compile(&json!({"properties": {"n": {"type": "whole"}}})).unwrap_err();
        assert!(matches!(&error, SchemaError::Invalid { at, .. } if at == "/properties/n/type"), "{error:?}");
        for target in ["#/$defs/none", "https://example.com/schema"] {
            let error = Schema::compile(&json!({"$ref": target})).unwrap_err();
            assert!(matches!(&error, SchemaError::Reference { .. }), "{error:?}");
        }
    }
}
