//! Variables of the shell.

use super::environment;
use super::shell::{MAX_VARIABLES, Shell, Value};
use super::syntax::Assignment;

/// Upper limit of a variable's value.
const MAX_VALUE_BYTES: usize = 4 * 1024;

impl Shell<'_> {
    /// The value of a variable.
    pub(super) fn variable(&self, name: &str) -> Value {
        if let Some(value) = self.state.variables.get(name) {
            return value.clone();
        }
        let folder = match self.state.folders.as_slice() {
            [only] => only.to_str(),
            _ => None,
        };
        let value = match name {
            "HOME" => self.workspace.home.as_ref().and_then(|home| home.to_str()),
            "PWD" => folder,
            _ => None,
        };
        value.map_or(Value::Unknown, |text| Value::Known(text.to_owned()))
    }

    /// Notes that the value of a variable is used: it may be a key of the environment, unless the
    /// command line itself has set it.
    pub(super) fn uses_variable(&mut self, name: &str) {
        if environment::is_secret(name) && !matches!(self.state.variables.get(name), Some(Value::Known(_))) {
            self.reveal();
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        let mut letters = name.bytes();
        let starts = letters.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !starts || !letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            // An index is evaluated, and may run a command.
            self.opaque("an unusual name of a variable");
            return;
        }
        if environment::decides(name) {
            self.opaque(format!("variable `{name}` may change what is run"));
        }
        // The shell evaluates the values of some variables as numbers, and an index in one may run
        // a command.
        if matches!(&value, Value::Known(text) if text.contains('[') && (text.contains("$(") || text.contains('`'))) {
            self.opaque(format!("a value of `{name}` that may be evaluated"));
        }
        let is_number = matches!(&value, Value::Known(text) if text.bytes().all(|byte| byte.is_ascii_digit()));
        if environment::is_number(name) && !is_number {
            self.opaque(format!("variable `{name}`, which the shell evaluates"));
        }
        let value = match value {
            Value::Known(text) if text.len() <= MAX_VALUE_BYTES && !matches!(name, "_" | "REPLY") => Value::Known(text),
            _ => Value::Unknown,
        };
        if self.state.variables.len() >= MAX_VARIABLES && !self.state.variables.contains_key(name) {
            self.opaque("too many variables");
            return;
        }
        self.state.variables.insert(name.to_owned(), value);
    }

    pub(super) fn assign(&mut self, assignment: &Assignment) {
        let value = self.expand_value(&assignment.value);
        let mut value = if value.known && !value.glob { Value::Known(value.text) } else { Value::Unknown };
        if assignment.appends {
            value = match (self.variable(&assignment.name), value) {
                (Value::Known(before), Value::Known(after)) => Value::Known(before + &after),
                _ => Value::Unknown,
            };
        }
        self.set(&assignment.name, value);
    }
}
