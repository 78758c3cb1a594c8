//! Checks of an actor's answer, which every host performs before it sends the answer to a run.

use charter_expr::Fuel;
use serde_json::Value as Json;

use crate::machine::Machine;
use crate::schema::{Misfit, Schema, TooCostly};

/// Why an answer cannot be sent to a run. Calling the actor again may help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadAnswer {
    /// The error code that conditions in charters can test: `too-large`, `too-costly` or `schema`.
    pub code: &'static str,
    /// The message, in one sentence.
    pub message: String,
    /// Where the answer does not match its schema, ordered by position; empty unless the code is
    /// `schema`.
    pub misfits: Vec<Misfit>,
}

/// Checks the answer of the actor `name`: its JSON text has at most `max` bytes (`limits.data`),
/// and it matches the actor's `output` schema, if there is one.
///
/// ```
/// use charter_kernel::{Schema, check_answer};
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({"type": "object", "required": ["score"]})).unwrap();
/// check_answer("judge", &json!({"score": 1}), 64, Some(&schema)).unwrap();
/// let why = check_answer("judge", &json!({}), 64, Some(&schema)).unwrap_err();
/// assert_eq!(why.code, "schema");
/// assert_eq!(
///     why.message,
///     "the answer of `judge` does not match its schema: \"score\" is a required property"
/// );
/// ```
///
/// # Errors
/// Returns what is wrong with the answer.
pub fn check_answer(name: &str, output: &Json, max: u64, schema: Option<&Schema>) -> Result<(), BadAnswer> {
    if is_larger(output, max) {
        return Err(BadAnswer {
            code: "too-large",
            message: format!("the answer of `{name}` has more than {max} bytes (`limits.data`)"),
            misfits: Vec::new(),
        });
    }
    let Some(schema) = schema else {
        return Ok(());
    };
    match schema.fits(output, &mut Fuel::new(Schema::FUEL)) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(TooCostly) => {
            return Err(BadAnswer {
                code: "too-costly",
                message: format!("the answer of `{name}` takes too long to check with its schema"),
                misfits: Vec::new(),
            });
        }
    }
    let misfits = schema.misfits(output);
    let first = misfits.first().map(|m| match m.at.as_str() {
        "" => format!(": {}", m.message),
        at => format!(": at `{at}` {}", m.message),
    });
    let first = first.unwrap_or_default();
    Err(BadAnswer {
        code: "schema",
        message: format!("the answer of `{name}` does not match its schema{first}"),
        misfits,
    })
}

impl Machine {
    /// Checks the answer of an actor as [`check_answer`] does, with the limit and the schema of the
    /// charter.
    ///
    /// # Errors
    /// Returns what is wrong with the answer.
    pub fn check_answer(&self, actor: &str, output: &Json) -> Result<(), BadAnswer> {
        let schema = self.services.iter().find(|s| s.name.as_ref() == actor).and_then(|s| s.output.as_ref());
        check_answer(actor, output, self.definition.limits.data, schema)
    }
}

/// Whether the JSON text of a value has more than `max` bytes, determined without building the
/// text.
#[must_use]
pub fn is_larger(value: &Json, max: u64) -> bool {
    struct Left(u64);
    impl std::io::Write for Left {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.0 = self.0.checked_sub(len).ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Left(max), value).is_err()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check_answer, is_larger};
    use crate::Schema;

    #[test]
    fn the_size_is_that_of_the_json_text() {
        let value = json!({"a": ["\u{e9}", 1.5]});
        let size = value.to_string().len() as u64;
        assert!(!is_larger(&value, size));
        assert!(is_larger(&value, size - 1));
        assert!(is_larger(&json!(0), 0));
    }

    #[test]
    fn a_large_answer_is_not_validated() {
        let schema = Schema::compile(&json!({"type": "object"})).unwrap();
        let why = check_answer("a", &json!("long"), 5, Some(&schema)).unwrap_err();
        assert_eq!(why.code, "too-large");
        assert_eq!(why.to_string(), "the answer of `a` has more than 5 bytes (`limits.data`)");
        assert!(why.misfits.is_empty());
        check_answer("a", &json!("long"), 6, None).unwrap();
    }

    #[test]
    fn the_message_has_the_first_misfit_and_the_list_has_all() {
        let schema = Schema::compile(&json!({
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        }));
        let schema = schema.unwrap();
        let why = check_answer("a", &json!({"b": 2, "a": "x"}), 99, Some(&schema)).unwrap_err();
        assert_eq!(
            why.message,
            "the answer of `a` does not match its schema: at `/a` \"x\" is not of type \"integer\""
        );
        let places: Vec<&str> = why.misfits.iter().map(|m| m.at.as_str()).collect();
        assert_eq!(places, ["/a", "/b"]);
    }
}
