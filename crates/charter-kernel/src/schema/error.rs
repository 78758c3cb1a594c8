//! Why a value is not a JSON Schema.

use jsonschema::error::ValidationErrorKind;

/// Why a schema does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword does not have the form that JSON Schema gives it.
    #[error("{message}")]
    Invalid {
        /// JSON pointer into the schema.
        at: String,
        /// What is wrong.
        message: String,
    },
    /// A `$ref` has no target inside the schema.
    #[error("{message}")]
    Reference {
        /// What is wrong.
        message: String,
    },
}

impl SchemaError {
    pub(super) fn of(error: &jsonschema::ValidationError<'_>) -> SchemaError {
        let message = error.to_string();
        match error.kind() {
            ValidationErrorKind::Referencing(_) => SchemaError::Reference { message },
            _ => SchemaError::Invalid { at: error.instance_path().to_string(), message },
        }
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
