//! The fast path of `conform`: parses a line of JSON into a tape, which is a flat list of its
//! values, in one pass and without copying.
//!
//! It handles nearly all lines. A line goes to the full parser if it contains escaped keys,
//! duplicate keys, numbers with an exponent or more than 15 digits, deep nesting or invalid JSON.
//! The tape therefore affects only speed, never results.

mod cursor;
mod parser;

use charter_kernel::Kind;

pub(crate) use cursor::Cursor;

/// The values of a line, in the order of the text. Each field of an object is a key followed by a
/// value.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    nodes: Vec<Node>,
}

/// A value, or the key of a field.
#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    /// For a string, whether it contains escapes; for a boolean, its value.
    flag: bool,
    /// Byte range of a string (without quotes) or a number.
    start: u32,
    end: u32,
    /// Index of the node after this value.
    next: u32,
    /// Number of items or fields.
    count: u32,
}

impl Tape {
    /// Parses a line; returns `false` if the full parser has to parse it.
    pub(crate) fn read(&mut self, text: &str) -> bool {
        self.nodes.clear();
        if text.len() >= u32::MAX as usize {
            return false;
        }
        parser::parse(text, &mut self.nodes)
    }

    /// The root value.
    pub(crate) fn root<'t>(&'t self, text: &'t str) -> Cursor<'t> {
        Cursor::new(&self.nodes, text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Tape;
    use crate::conform::field_set::FieldSet;

    #[test]
    fn parses_to_the_same_values_as_the_full_parser() {
        let mut tape = Tape::default();
        for text in
            [r#"{"a": [1, -2.5, "x\n\"y", true, null, {}], "b": {"c": []}, "é": "ü"}"#, "[]", " 0 ", "\"\"", "-1"]
        {
            assert!(tape.read(text), "{text}");
            let json: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(tape.root(text).json(&FieldSet::all()), Some(json));
        }
    }

    #[test]
    fn leaves_difficult_input_to_the_full_parser() {
        let mut tape = Tape::default();
        for text in [
            "",
            "{",
            "01",
            "1e3",
            "-0",
            "-",
            "1.",
            ".5",
            "tru",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "[1 2]",
            "{\"a\":1,\"a\":2}",
            "{\"\\u0061\":1}",
            "\"\\u0061\"",
            "\"\\x\"",
            "\"a\nb\"",
            "9007199254740993",
            "{} {}",
            "nul",
            "[\"",
        ] {
            assert!(!tape.read(text), "{text}");
        }
        assert!(!tape.read(&"[".repeat(100_000)));
    }

    #[test]
    fn json_of_selected_fields() {
        let text = r#"{"a": {"b": 1, "c": [1, {"d": 2}]}, "e": [1], "f": 2}"#;
        let mut tape = Tape::default();
        assert!(tape.read(text));
        let mut needed = FieldSet::default();
        needed.add(["a", "c"]);
        needed.add(["f"]);
        needed.add(["f", "g"]);
        needed.add(["nothing"]);
        let json = tape.root(text).json(&needed);
        assert_eq!(json, Some(json!({"a": {"c": [1, {"d": 2}]}, "f": 2})));
    }
}
