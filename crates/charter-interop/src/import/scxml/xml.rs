//! XML in: parsed with positions, without entities and document types, and no deeper than a charter may be.

use roxmltree::{Document, Node, ParsingOptions};

use charter_format::source::Span;
use charter_format::{Diagnostic, codes};

/// SCXML's namespace (REC 2).
const NAMESPACE: &str = "http://www.w3.org/2005/07/scxml";
/// Namespace of what SCXML has no word for; our exports use it.
pub(crate) const CHARTER: &str = "urn:charter:1";
/// Bytes of one document.
const MAX_BYTES: usize = 16 << 20;
/// Elements, texts and comments of one document.
const MAX_NODES: u32 = 1_000_000;
/// Elements inside each other. The reader calls itself for what is inside, so this bounds its stack.
const MAX_DEPTH: usize = 128;

/// Parses a document and finds its `<scxml>`.
pub(super) fn parse(source: &str) -> Result<Document<'_>, Diagnostic> {
    let too_large = |message: String| Diagnostic::error(codes::TOO_LARGE, Span::default(), message);
    if source.len() > MAX_BYTES {
        return Err(too_large(format!("the text has {} bytes; at most {MAX_BYTES} are read", source.len())));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let tree = Document::parse_with_options(source, options).map_err(|error| {
        let at = offset(source, error.pos());
        let span = Span::new(at, at.saturating_add(1));
        match error {
            roxmltree::Error::DtdDetected => Diagnostic::error(
                codes::SYNTAX,
                Span::default(),
                "the document has a `<!DOCTYPE>`, which is not read",
            )
            .help("remove it: entities and document types have no use in SCXML and are a way to attack its readers"),
            roxmltree::Error::NodesLimitReached => too_large(format!("the document has more than {MAX_NODES} parts")),
            other => Diagnostic::error(codes::SYNTAX, span, format!("this is no XML: {other}")),
        }
    })?;
    depth(&tree)?;
    let root = tree.root_element();
    if !is(root, "scxml") {
        let message = format!("the document is a `<{}>`, not an `<scxml>`", root.tag_name().name());
        return Err(Diagnostic::error(codes::VALUE, tag(root), message)
            .help(format!("an SCXML document begins with `<scxml xmlns=\"{NAMESPACE}\" version=\"1.0\">`")));
    }
    Ok(tree)
}

/// No recursion here: this is what makes recursion safe elsewhere.
fn depth(tree: &Document<'_>) -> Result<(), Diagnostic> {
    let (mut node, mut depth) = (tree.root_element(), 1usize);
    loop {
        if depth > MAX_DEPTH {
            let message = format!("elements nest deeper than {MAX_DEPTH}");
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

/// The byte of a line and column as the parser counts them.
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

/// Is it an element of SCXML? Without any namespace it passes for one.
pub(super) fn is_scxml(node: Node<'_, '_>) -> bool {
    node.is_element() && node.tag_name().namespace().is_none_or(|ns| ns == NAMESPACE)
}

/// Is it SCXML's element of that name?
pub(super) fn is(node: Node<'_, '_>, name: &str) -> bool {
    is_scxml(node) && node.tag_name().name() == name
}

/// The first child element of SCXML with that name.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| is(*child, name))
}

/// Child elements, of whatever namespace.
pub(super) fn elements<'a, 'i: 'a>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// The start tag's name: what a message underlines.
pub(super) fn tag(node: Node<'_, '_>) -> Span {
    let range = node.range();
    Span::new(range.start, range.start.saturating_add(node.tag_name().name().len()).saturating_add(1).min(range.end))
}

/// An attribute's value and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute<'a> {
    pub(super) value: &'a str,
    pub(super) span: Span,
}

/// An attribute of SCXML.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<Attribute<'a>> {
    node.attribute_node(name).map(|attribute| {
        let range = attribute.range_value();
        Attribute { value: attribute.value(), span: Span::new(range.start, range.end) }
    })
}

/// All elements inside, document order, those of documents inside this one left out (they have names of their own).
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
