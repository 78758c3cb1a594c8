//! Changes JSON text in place: what is not changed stays byte for byte, with its order and layout.

use std::ops::Range;

use serde_json::Value as Json;

/// A value of a text, with its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

/// A member of an object; `start` is where its key begins.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    start: usize,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|member| member.key == key).map(|member| &member.value),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    /// How much a container holds.
    pub(super) fn len(&self) -> usize {
        self.children().len()
    }

    /// The places of what a container holds.
    fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|member| member.start..member.value.span.end).collect(),
            Kind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            Kind::Scalar => Vec::new(),
        }
    }
}

/// Finds the places of all values. The text must be JSON, which the caller has checked.
pub(super) fn parse(text: &str) -> Option<Node> {
    Parser { text, at: 0 }.value()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at = self.at.saturating_add(1);
        }
        bytes.get(self.at).copied()
    }

    fn skip(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn value(&mut self) -> Option<Node> {
        let first = self.peek()?;
        let start = self.at;
        let kind = match first {
            b'{' => {
                self.skip();
                let mut members = Vec::new();
                while self.peek()? != b'}' {
                    let start = self.at;
                    let key = serde_json::from_str(self.string()?).ok()?;
                    (self.peek()? == b':').then(|| self.skip())?;
                    members.push(Member { key, start, value: self.value()? });
                    if self.peek()? == b',' {
                        self.skip();
                    }
                }
                self.skip();
                Kind::Object(members)
            }
            b'[' => {
                self.skip();
                let mut items = Vec::new();
                while self.peek()? != b']' {
                    items.push(self.value()?);
                    if self.peek()? == b',' {
                        self.skip();
                    }
                }
                self.skip();
                Kind::Array(items)
            }
            b'"' => {
                self.string()?;
                Kind::Scalar
            }
            _ => {
                let rest = self.text.get(self.at..)?;
                let end = rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
                self.at = self.at.checked_add(end).filter(|_| end > 0)?;
                Kind::Scalar
            }
        };
        Some(Node { span: start..self.at, kind })
    }

    fn string(&mut self) -> Option<&str> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        self.at = self.at.saturating_add(1);
        loop {
            match bytes.get(self.at)? {
                b'\\' => self.at = self.at.saturating_add(2),
                b'"' => break,
                _ => self.at = self.at.saturating_add(1),
            }
        }
        self.at = self.at.saturating_add(1);
        self.text.get(start..self.at)
    }
}

/// Adds a member or an item at the end of a container, which is `depth` levels deep. `key` is that
/// of a member.
pub(super) fn push(text: &str, container: &Node, depth: usize, key: Option<&str>, value: &Json) -> Option<String> {
    let unit = indent_of(text);
    let inner = unit.repeat(depth.saturating_add(1));
    let mut lines = pretty(value, unit).replace('\n', &format!("\n{inner}"));
    if let Some(key) = key {
        lines = format!("{}: {lines}", Json::String(key.to_owned()));
    }
    match container.children().last() {
        Some(last) => Some(format!("{},\n{inner}{lines}{}", text.get(..last.end)?, text.get(last.end..)?)),
        None => {
            let (open, close) = (container.span.start.checked_add(1)?, container.span.end.checked_sub(1)?);
            let outer = unit.repeat(depth);
            Some(format!("{}\n{inner}{lines}\n{outer}{}", text.get(..open)?, text.get(close..)?))
        }
    }
}

/// Removes what a container holds at this place, with its comma.
pub(super) fn remove(text: &str, container: &Node, index: usize) -> Option<String> {
    let children = container.children();
    let own = children.get(index)?;
    let gap = match (index.checked_sub(1).and_then(|before| children.get(before)), children.get(index.checked_add(1)?))
    {
        (Some(before), _) => before.end..own.end,
        (None, Some(next)) => own.start..next.start,
        (None, None) => container.span.start.checked_add(1)?..container.span.end.checked_sub(1)?,
    };
    Some(format!("{}{}", text.get(..gap.start)?, text.get(gap.end..)?))
}

/// The place of a member of an object.
pub(super) fn position(container: &Node, key: &str) -> Option<usize> {
    match &container.kind {
        Kind::Object(members) => members.iter().position(|member| member.key == key),
        _ => None,
    }
}

/// What one level of the text is indented by.
fn indent_of(text: &str) -> &str {
    let mut lines = text.lines().skip(1);
    let first = lines.find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        line.get(..line.len().checked_sub(rest.len())?).filter(|indent| !indent.is_empty())
    });
    first.unwrap_or("  ")
}

/// JSON in lines. Commands are long, so that one line would not do.
fn pretty(value: &Json, unit: &str) -> String {
    use serde::Serialize as _;
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut to = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match value.serialize(&mut to) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}
