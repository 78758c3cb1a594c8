//! A line of JSON as a flat list of its values, parsed in one pass without copying: the fast path
//! of `conform`.
//!
//! It parses what nearly all lines consist of and gives up on the rest (escapes in keys, duplicate
//! keys, numbers that need care, deep nesting, anything that is not JSON). The full parser takes
//! over then, so this one affects speed only.

use charter_kernel::{Kind, View};
use serde_json::{Map, Number, Value as Json};

/// The values of a line, in the order of the text; an object's fields are a key and a value each.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    /// For a string: whether it contains escapes; for a bool: its value.
    flag: bool,
    /// Byte range of a string (without quotes) or a number.
    start: u32,
    end: u32,
    /// Index of the node after this value.
    next: u32,
    /// Number of items or fields.
    count: u32,
}

const MAX_DEPTH: u32 = 40;
/// Objects with more fields are left to the full parser: here the search for duplicate keys is
/// quadratic.
const MAX_FIELDS: u32 = 48;

/// A value on a tape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'t> {
    tape: &'t [Node],
    text: &'t str,
    at: u32,
}

impl Tape {
    /// Parses a line; `false` if the full parser has to.
    pub(crate) fn read(&mut self, text: &str) -> bool {
        self.nodes.clear();
        if text.len() >= u32::MAX as usize {
            return false;
        }
        let mut parser = TapeParser { text: text.as_bytes(), at: 0, nodes: &mut self.nodes };
        parser.blank();
        let read = parser.value(0).is_some();
        parser.blank();
        read && parser.at == text.len()
    }

    /// The root value.
    pub(crate) fn root<'t>(&'t self, text: &'t str) -> Cursor<'t> {
        Cursor { tape: &self.nodes, text, at: 0 }
    }
}

struct TapeParser<'r> {
    text: &'r [u8],
    at: usize,
    nodes: &'r mut Vec<Node>,
}

impl TapeParser<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: Kind, flag: bool, start: usize, end: usize) -> usize {
        let at = self.nodes.len();
        #[allow(clippy::cast_possible_truncation)]
        // the text is shorter than 4 GiB, and each node takes at least one byte of it
        self.nodes.push(Node { kind, flag, start: start as u32, end: end as u32, next: at as u32 + 1, count: 0 });
        at
    }

    fn close(&mut self, at: usize, count: u32) {
        #[allow(clippy::cast_possible_truncation)] // as above
        let next = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(at) {
            (node.next, node.count) = (next, count);
        }
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(false),
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b't' => self.word(b"true", Kind::Bool, true),
            b'f' => self.word(b"false", Kind::Bool, false),
            b'n' => self.word(b"null", Kind::Null, false),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind, flag: bool) -> Option<()> {
        let end = self.at + word.len();
        (self.text.get(self.at..end)? == word).then_some(())?;
        self.push(kind, flag, self.at, end);
        self.at = end;
        Some(())
    }

    /// A string. Its escapes are decoded when the value is read.
    fn string(&mut self, key: bool) -> Option<()> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            match *self.text.get(at)? {
                b'"' => break,
                b'\\' if key => return None,
                b'\\' => {
                    escaped = true;
                    // Simple escapes pass here and are decoded later; `\u` is left to the full
                    // parser.
                    match *self.text.get(at + 1)? {
                        b'"' | b'\\' | b'/' | b'n' | b't' | b'r' => at += 2,
                        _ => return None,
                    }
                }
                0..=0x1f => return None,
                _ => at += 1,
            }
        }
        self.push(Kind::Text, escaped, start, at);
        self.at = at + 1;
        Some(())
    }

    /// A number that every parser reads alike: few digits, no exponent.
    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = |parser: &mut Self| {
            let from = parser.at;
            while let Some(b'0'..=b'9') = parser.peek() {
                parser.at += 1;
            }
            parser.at - from
        };
        let zero = self.peek() == Some(b'0');
        let whole = digits(self);
        if whole == 0 || whole > 15 || (zero && whole > 1) {
            return None;
        }
        let mut kind = Kind::Int;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let fraction = digits(self);
            if fraction == 0 || fraction > 15 {
                return None;
            }
            kind = Kind::Float;
        }
        if let Some(b'e' | b'E') = self.peek() {
            return None;
        }
        // The full parser reads `-0` as a float.
        if kind == Kind::Int && self.text.get(start..self.at) == Some(b"-0") {
            return None;
        }
        self.push(kind, false, start, self.at);
        Some(())
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let me = self.push(Kind::List, false, self.at, self.at);
        self.at += 1;
        let mut count = 0;
        self.blank();
        if self.peek()? == b']' {
            self.at += 1;
            self.close(me, 0);
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            count += 1;
            self.blank();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
            self.blank();
        }
        self.at += 1;
        self.close(me, count);
        Some(())
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let me = self.push(Kind::Object, false, self.at, self.at);
        self.at += 1;
        let mut count = 0;
        self.blank();
        if self.peek()? == b'}' {
            self.at += 1;
            self.close(me, 0);
            return Some(());
        }
        loop {
            if self.peek()? != b'"' || count >= MAX_FIELDS {
                return None;
            }
            let key = self.nodes.len();
            self.string(true)?;
            if self.is_duplicate(me, key) {
                return None;
            }
            self.blank();
            if self.peek()? != b':' {
                return None;
            }
            self.at += 1;
            self.blank();
            self.value(depth + 1)?;
            count += 1;
            self.blank();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
            self.blank();
        }
        self.at += 1;
        self.close(me, count);
        Some(())
    }

    /// Whether the object has this key already.
    fn is_duplicate(&self, object: usize, key: usize) -> bool {
        let bytes = |node: &Node| self.text.get(node.start as usize..node.end as usize);
        let Some(new) = self.nodes.get(key) else {
            return true;
        };
        let mut at = object + 1;
        while at < key {
            let (Some(old), Some(value)) = (self.nodes.get(at), self.nodes.get(at + 1)) else {
                return true;
            };
            if old.end - old.start == new.end - new.start && bytes(old) == bytes(new) {
                return true;
            }
            at = value.next as usize;
        }
        false
    }
}

impl<'t> Cursor<'t> {
    fn node(self) -> Node {
        // A cursor always points at a node; the fallback avoids a panic.
        self.tape.get(self.at as usize).copied().unwrap_or(Node {
            kind: Kind::Null,
            flag: false,
            start: 0,
            end: 0,
            next: u32::MAX,
            count: 0,
        })
    }

    fn bytes(self, node: Node) -> &'t str {
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    fn to(self, at: u32) -> Cursor<'t> {
        Cursor { at, ..self }
    }

    /// The field with this name.
    pub(crate) fn field(self, name: &str) -> Option<Cursor<'t>> {
        let mut found = None;
        View::fields(self, |key, value| {
            if key == name {
                found = Some(value);
            }
            found.is_none()
        });
        found
    }

    /// The value as JSON, reduced to the fields in `needed`.
    pub(crate) fn json(self, needed: &FieldSet) -> Option<Json> {
        let node = self.node();
        Some(match node.kind {
            Kind::Null => Json::Null,
            Kind::Bool => Json::Bool(node.flag),
            Kind::Int => Json::Number(self.bytes(node).parse::<i64>().ok()?.into()),
            Kind::Float => Json::Number(Number::from_f64(self.bytes(node).parse().ok()?)?),
            Kind::Text if node.flag => {
                serde_json::from_str(self.text.get(node.start as usize - 1..node.end as usize + 1)?).ok()?
            }
            Kind::Text => Json::String(self.bytes(node).to_owned()),
            Kind::List => {
                let mut list = Vec::new();
                // A list is needed whole, or only as the fact that it is a list.
                if needed.all {
                    list.reserve(node.count as usize);
                    let whole = View::items(self, |item| item.json(needed).map(|json| list.push(json)).is_some());
                    whole.then_some(())?;
                }
                Json::Array(list)
            }
            Kind::Object => {
                let mut map = Map::new();
                let whole = View::fields(self, |key, value| {
                    let part = match needed.all {
                        true => Some(needed),
                        false => needed.part(key),
                    };
                    match part {
                        Some(part) => value.json(part).map(|json| drop(map.insert(key.to_owned(), json))).is_some(),
                        None => true,
                    }
                });
                whole.then_some(())?;
                Json::Object(map)
            }
        })
    }
}

impl View for Cursor<'_> {
    fn kind(self) -> Kind {
        self.node().kind
    }
    fn text(self, with: impl FnOnce(&str) -> bool) -> bool {
        let node = self.node();
        // With escapes, the string differs from its bytes.
        node.kind == Kind::Text && !node.flag && with(self.bytes(node))
    }
    fn number(self) -> Option<f64> {
        let node = self.node();
        match node.kind {
            Kind::Int | Kind::Float => self.bytes(node).parse().ok(),
            _ => None,
        }
    }
    fn len(self) -> usize {
        self.node().count as usize
    }
    fn items(self, mut each: impl FnMut(Self) -> bool) -> bool {
        let node = self.node();
        let mut at = self.at + 1;
        for _ in 0..node.count {
            let item = self.to(at);
            if !each(item) {
                return false;
            }
            at = item.node().next;
        }
        true
    }
    fn fields(self, mut each: impl FnMut(&str, Self) -> bool) -> bool {
        let node = self.node();
        let mut at = self.at + 1;
        for _ in 0..node.count {
            let key = self.to(at);
            let value = self.to(at + 1);
            if !each(self.bytes(key.node()), value) {
                return false;
            }
            at = value.node().next;
        }
        true
    }
}

/// A set of fields of a value.
#[derive(Debug, Default, Clone)]
pub(crate) struct FieldSet {
    all: bool,
    parts: Vec<(Box<str>, FieldSet)>,
}

impl FieldSet {
    /// All fields.
    #[cfg(test)]
    pub(crate) fn all() -> FieldSet {
        FieldSet { all: true, parts: Vec::new() }
    }

    fn part(&self, key: &str) -> Option<&FieldSet> {
        let found = self.parts.iter().find(|(name, _)| name.as_ref() == key);
        found.map(|(_, part)| part)
    }

    /// Adds the value at the end of a path of fields.
    pub(crate) fn add<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) {
        let mut at = self;
        for key in path {
            if at.all {
                return;
            }
            let place = match at.parts.iter().position(|(name, _)| name.as_ref() == key) {
                Some(place) => place,
                None => {
                    at.parts.push((key.into(), FieldSet::default()));
                    at.parts.len() - 1
                }
            };
            match at.parts.get_mut(place) {
                Some((_, part)) => at = part,
                None => return,
            }
        }
        (at.all, at.parts) = (true, Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldSet, Tape};
    use serde_json::json;

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
