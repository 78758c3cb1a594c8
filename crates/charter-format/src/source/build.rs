//! Builds the node tree from parse events. Limits depth, number of nodes and alias expansion, and
//! refuses duplicate keys.
//!
//! Uses an explicit stack instead of recursion, so that hostile nesting cannot exhaust the call
//! stack.

use std::collections::HashMap;

use super::tree::{Entry, Key, Node, Span, Value};
use crate::diagnostic::{Diagnostic, Note, codes};

/// Limits on a source text, checked before anything is allocated.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// Bytes of source text.
    pub(crate) bytes: usize,
    /// Nesting depth of lists and objects.
    pub(crate) depth: usize,
    /// Values in the document, including copies made for aliases.
    pub(crate) nodes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { bytes: 16 << 20, depth: 128, nodes: 1_000_000 }
    }
}

enum Open {
    List(Vec<Node>),
    Map(Vec<Entry>, Option<Key>),
}

struct Frame {
    open: Open,
    start: usize,
    anchor: usize,
    nodes_before: usize,
    bytes_before: usize,
}

/// A node with an anchor, and what each copy of it costs.
struct Anchored {
    node: Node,
    nodes: usize,
    bytes: usize,
    depth: usize,
}

pub(crate) struct Builder<'a> {
    bounds: &'a Bounds,
    stack: Vec<Frame>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    bytes: usize,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(bounds: &'a Bounds) -> Self {
        Builder { bounds, stack: Vec::new(), root: None, anchors: HashMap::new(), nodes: 0, bytes: 0 }
    }

    /// Whether the next scalar is the key of an object.
    pub(crate) fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { open: Open::Map(_, None), .. }))
    }

    pub(crate) fn has_root(&self) -> bool {
        self.root.is_some()
    }

    pub(crate) fn key(&mut self, text: String, span: Span) -> Result<(), Diagnostic> {
        self.spend(0, text.len(), span)?;
        if let Some(Frame { open: Open::Map(_, key @ None), .. }) = self.stack.last_mut() {
            *key = Some(Key { text, span });
        }
        Ok(())
    }

    pub(crate) fn scalar(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        let bytes = node.text().map_or(0, str::len);
        self.spend(1, bytes, node.span)?;
        self.keep(anchor, &node, 1, bytes)?;
        self.place(node);
        Ok(())
    }

    pub(crate) fn open(&mut self, is_map: bool, span: Span, anchor: usize) -> Result<(), Diagnostic> {
        if self.stack.len() >= self.bounds.depth {
            return Err(self.too_deep(span));
        }
        if self.wants_key() {
            return Err(Diagnostic::error(codes::KEY, span, "a key must be a string, not a list or an object"));
        }
        let (nodes_before, bytes_before) = (self.nodes, self.bytes);
        self.spend(1, 0, span)?;
        let open = if is_map { Open::Map(Vec::new(), None) } else { Open::List(Vec::new()) };
        self.stack.push(Frame { open, start: span.start, anchor, nodes_before, bytes_before });
        Ok(())
    }

    pub(crate) fn close(&mut self, end: usize) -> Result<(), Diagnostic> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let value = match frame.open {
            Open::List(items) => Value::List(items),
            Open::Map(entries, _) => {
                refuse_duplicates(&entries)?;
                Value::Map(entries)
            }
        };
        let node = Node { span: Span::new(frame.start, end), value };
        let (nodes, bytes) =
            (self.nodes.saturating_sub(frame.nodes_before), self.bytes.saturating_sub(frame.bytes_before));
        self.keep(frame.anchor, &node, nodes, bytes)?;
        self.place(node);
        Ok(())
    }

    pub(crate) fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            let message = "an alias refers to a value that contains it";
            return Err(Diagnostic::error(codes::ALIAS, span, message));
        };
        if self.stack.len().saturating_add(anchored.depth) > self.bounds.depth {
            return Err(self.too_deep(span));
        }
        let (nodes, bytes) = (anchored.nodes, anchored.bytes);
        self.spend(nodes, bytes, span)?;
        if let Some(node) = self.anchors.get(&anchor).map(|anchored| anchored.node.clone()) {
            self.place(node);
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Option<Node> {
        self.root
    }

    fn place(&mut self, node: Node) {
        match self.stack.last_mut().map(|frame| &mut frame.open) {
            Some(Open::List(items)) => items.push(node),
            Some(Open::Map(entries, key)) => {
                if let Some(key) = key.take() {
                    entries.push(Entry { key, value: node });
                }
            }
            None => self.root = Some(node),
        }
    }

    /// Stores a copy for aliases. The copy counts toward the limits, too, because nested anchors
    /// multiply.
    fn keep(&mut self, anchor: usize, node: &Node, nodes: usize, bytes: usize) -> Result<(), Diagnostic> {
        if anchor == 0 {
            return Ok(());
        }
        self.spend(nodes, bytes, node.span)?;
        self.anchors.insert(anchor, Anchored { node: node.clone(), nodes, bytes, depth: depth(node) });
        Ok(())
    }

    fn spend(&mut self, nodes: usize, bytes: usize, span: Span) -> Result<(), Diagnostic> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.nodes > self.bounds.nodes {
            let message = format!("more than {} values, including the copies made for aliases", self.bounds.nodes);
            return Err(Diagnostic::error(codes::TOO_LARGE, span, message));
        }
        // Only aliases can make the text longer than its source.
        if self.bytes > self.bounds.bytes.saturating_mul(4) {
            return Err(Diagnostic::error(codes::TOO_LARGE, span, "aliases expand to too much text"));
        }
        Ok(())
    }

    fn too_deep(&self, span: Span) -> Diagnostic {
        too_deep(self.bounds, span)
    }
}

pub(crate) fn too_deep(bounds: &Bounds, span: Span) -> Diagnostic {
    Diagnostic::error(
        codes::TOO_DEEP,
        span,
        format!("lists and objects are nested deeper than {} levels", bounds.depth),
    )
}

/// The nesting depth of a node. The recursion is bounded by the depth limit of the builder.
fn depth(node: &Node) -> usize {
    let children = node.items().iter().chain(node.entries().iter().map(|entry| &entry.value));
    match &node.value {
        Value::List(_) | Value::Map(_) => children.map(depth).max().unwrap_or(0).saturating_add(1),
        _ => 0,
    }
}

fn refuse_duplicates(entries: &[Entry]) -> Result<(), Diagnostic> {
    let mut keys: Vec<&Key> = entries.iter().map(|entry| &entry.key).collect();
    keys.sort_by(|a, b| a.text.cmp(&b.text).then(a.span.start.cmp(&b.span.start)));
    let twice = keys.iter().zip(keys.iter().skip(1)).find(|(a, b)| a.text == b.text);
    match twice {
        None => Ok(()),
        Some((first, second)) => {
            Err(Diagnostic::error(codes::DUPLICATE_KEY, second.span, format!("duplicate key `{}`", second.text))
                .note(Note::new(first.span, "first here"))
                .help("remove or rename one of them"))
        }
    }
}
