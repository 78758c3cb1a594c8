//! Parses XML with positions. Entities and document types are refused, and the depth is limited.

use roxmltree::{Document, Node, ParsingOptions};

use charter_format::source::Span;
use charter_format::{Diagnostic, codes};

/// The namespace of SCXML (REC 2).
const NAMESPACE: &str = "http://www.w3.org/2005/07/scxml";
/// The namespace that our exports use for what SCXML cannot express.
pub(crate) const CHARTER: &str = "urn:charter:1";
/// Upper limit of a document, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Upper limit of elements, text nodes and comments in a document.
const MAX_NODES: u32 = 1_000_000;
/// Upper limit of the nesting depth, which bounds the recursion of the reader.
const MAX_DEPTH: usize = 128;

/// Parses a document whose root is `<scxml>`.
pub(super) fn parse(source: &str) -> Result<Document<'_>, Diagnostic> {
    let too_large = |message: String| Diagnostic::error(codes::TOO_LARGE, Span::default(), message);
    if source.len() > MAX_BYTES {
        return Err(too_large(format!("the file has {} bytes; the limit is {MAX_BYTES}", source.len())));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let tree = Document::parse_with_options(source, options).map_err(|error| {
        let at = offset(source, error.pos());
        let span = Span::new(at, at.saturating_add(1));
        match error {
            roxmltree::Error::DtdDetected => {
                Diagnostic::error(codes::SYNTAX, Span::default(), "`<!DOCTYPE>` is not supported")
                    .help("remove it: SCXML needs no entities or document types, and they are a way to attack parsers")
            }
            roxmltree::Error::NodesLimitReached => too_large(format!("the document has more than {MAX_NODES} nodes")),
            _ if looks_like_json(source) => {
                Diagnostic::error(codes::SYNTAX, span, "expected an SCXML document, found JSON")
                    .help("an XState config is JSON: import it with `format: xstate`, or name the file `.json`")
            }
            other => Diagnostic::error(codes::SYNTAX, span, format!("invalid XML: {other}")),
        }
    })?;
    depth(&tree)?;
    let root = tree.root_element();
    if !is(root, "scxml") {
        let message = format!("expected `<scxml>`, found `<{}>`", root.tag_name().name());
        return Err(Diagnostic::error(codes::VALUE, tag(root), message)
            .help(format!("an SCXML document starts with `<scxml xmlns=\"{NAMESPACE}\" version=\"1.0\">`")));
    }
    Ok(tree)
}

/// Whether a text begins as a JSON object or list.
fn looks_like_json(source: &str) -> bool {
    source.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// Checks the depth, without recursion.
fn depth(tree: &Document<'_>) -> Result<(), Diagnostic> {
    let (mut node, mut depth) = (tree.root_element(), 1usize);
    loop {
        if depth > MAX_DEPTH {
            let message = format!("elements are nested deeper than {MAX_DEPTH} levels");
            return Err(Diagnostic::error(codes::TOO_DEEP, tag(node), message));
        }
        if let Some(child) = node.first_element_child() {
            (node, depth) = (child, depth.saturating_add(1));
            continue;
        }
        while node.next_sibling_element().is_none() {
            match node.parent_element() {
                Some(parent) => (node, depth) = (parent, depth.saturating_sub(1)),
                None => return Ok(()),
            }
        }
        match node.next_sibling_element() {
            Some(next) => node = next,
            None => return Ok(()),
        }
    }
}

/// Converts a line and column of the parser to a byte offset.
fn offset(source: &str, at: roxmltree::TextPos) -> usize {
    let mut lines = usize::try_from(at.row).unwrap_or(1).saturating_sub(1);
    let mut start = 0usize;
    while lines > 0 {
        let Some(end) = source.get(start..).and_then(|rest| rest.find('\n')) else {
            break;
        };
        start = start.saturating_add(end).saturating_add(1);
        lines = lines.saturating_sub(1);
    }
    let column = usize::try_from(at.col).unwrap_or(1).saturating_sub(1);
    let rest = source.get(start..).unwrap_or_default();
    start.saturating_add(rest.char_indices().nth(column).map_or(rest.len(), |(i, _)| i))
}

/// Whether a node is an SCXML element. Elements without a namespace are accepted.
pub(super) fn is_scxml(node: Node<'_, '_>) -> bool {
    node.is_element() && node.tag_name().namespace().is_none_or(|ns| ns == NAMESPACE)
}

/// Whether a node is the SCXML element of that name.
pub(super) fn is(node: Node<'_, '_>, name: &str) -> bool {
    is_scxml(node) && node.tag_name().name() == name
}

/// The first SCXML child element of that name.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| is(*child, name))
}

/// The child elements, of any namespace.
pub(super) fn elements<'a, 'i: 'a>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// The span of the name in the start tag, to underline.
pub(super) fn tag(node: Node<'_, '_>) -> Span {
    let range = node.range();
    Span::new(range.start, range.start.saturating_add(node.tag_name().name().len()).saturating_add(1).min(range.end))
}

/// The value of an attribute and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute<'a> {
    pub(super) value: &'a str,
    pub(super) span: Span,
}

/// An SCXML attribute.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<Attribute<'a>> {
    node.attribute_node(name).map(|attribute| {
        let range = attribute.range_value();
        Attribute { value: attribute.value(), span: Span::new(range.start, range.end) }
    })
}

/// Returns all descendant elements in document order, except those of nested documents, whose ids
/// are separate.
pub(super) fn inside<'a, 'i>(scxml: Node<'a, 'i>) -> Vec<Node<'a, 'i>> {
    let mut found = Vec::new();
    let mut stack: Vec<Node<'a, 'i>> = scxml.children().rev().filter(Node::is_element).collect();
    while let Some(node) = stack.pop() {
        if !is(node, "scxml") {
            found.push(node);
            stack.extend(node.children().rev().filter(Node::is_element));
        }
    }
    found
}
