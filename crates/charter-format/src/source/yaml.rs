//! Parses YAML 1.2 into the node tree, from the events of `granit-parser` (the parser of
//! `serde-saphyr`).

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};

use super::build::{Bounds, Builder, too_deep};
use super::tree::{Node, Span, Style, Text, Value};
use super::{Parsed, scalar};
use crate::diagnostic::{Diagnostic, codes};

pub(crate) fn parse(source: &str, bounds: &Bounds) -> Result<Parsed, Diagnostic> {
    let mut parser = Parser::new_from_str(source);
    let mut builder = Builder::new(bounds);
    let mut warnings = Vec::new();
    while let Some(event) = parser.next_event() {
        let (event, place) = event.map_err(|error| explain(&error, source, bounds))?;
        let range = place.byte_range().unwrap_or_default();
        let span = Span::new(range.start, range.end);
        if let Some(tag) = event.tag() {
            let at = place
                .tag_span()
                .and_then(|tag| tag.byte_range())
                .map_or(span, |range| Span::new(range.start, range.end));
            return Err(Diagnostic::error(codes::TAG, at, format!("unexpected YAML tag `{}`", tag.original()))
                .help("charters have no tags; quote text that starts with `!`"));
        }
        match event {
            Event::DocumentStart(..) if builder.has_root() => {
                return Err(Diagnostic::error(
                    codes::SEVERAL_DOCUMENTS,
                    span,
                    "a second YAML document starts here; a file holds one",
                ));
            }
            Event::Scalar(text, style, anchor, _) => {
                if builder.wants_key() {
                    if &*text == "<<" && style == ScalarStyle::Plain {
                        return Err(Diagnostic::error(codes::MERGE_KEY, span, "merge keys (`<<`) are not supported")
                            .help("write the keys out, or use an alias for a whole value"));
                    }
                    builder.key(text.into_owned(), span)?;
                    continue;
                }
                let node = node(&text, style, span)?;
                warnings.extend(scalar::leading_zero(&node, &text));
                builder.scalar(node, anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => builder.open(false, span, anchor)?,
            Event::MappingStart(_, anchor, _) => builder.open(true, span, anchor)?,
            Event::SequenceEnd | Event::MappingEnd => builder.close(span.end)?,
            Event::Alias(anchor) if builder.wants_key() => {
                let _ = anchor;
                return Err(Diagnostic::error(codes::KEY, span, "an alias cannot be a key"));
            }
            Event::Alias(anchor) => builder.alias(anchor, span)?,
            _ => {}
        }
    }
    match builder.finish() {
        Some(root) => Ok(Parsed { root, warnings }),
        None => Err(Diagnostic::error(codes::SYNTAX, Span::default(), "the document is empty")),
    }
}

fn node(text: &str, style: ScalarStyle, span: Span) -> Result<Node, Diagnostic> {
    let text_of = |style| Value::Text(Text { text: text.to_owned(), style });
    let value = match style {
        ScalarStyle::Plain if span.start == span.end => Value::Null,
        ScalarStyle::Plain => scalar::plain(text, span)?,
        ScalarStyle::SingleQuoted => text_of(Style::Single),
        ScalarStyle::DoubleQuoted => text_of(Style::Double),
        ScalarStyle::Literal | ScalarStyle::Folded => text_of(Style::Block),
    };
    Ok(Node { span, value })
}

/// Converts a parse error to a diagnostic. For mistakes that are common with expressions, the help
/// says what to write instead.
fn explain(error: &ScanError, source: &str, bounds: &Bounds) -> Diagnostic {
    let start = error.marker().byte_offset().unwrap_or_default().min(source.len());
    let width = source.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let span = Span::new(start, start.saturating_add(width));
    let quote = "quote text that contains `: ` or ` #`, or that starts with one of `! & * @ % [ { ` \" '`";
    let tab =
        |span: Span| Diagnostic::error(codes::SYNTAX, span, "tab used for indentation").help("indent YAML with spaces");
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(bounds, span),
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => tab(span),
        // The parser reports the start of the multi-line text; find the tab itself.
        ErrorKind::TabInPlainScalar => {
            let rest = source.get(start..).unwrap_or_default();
            let mut line_at = start;
            let place = rest.split_inclusive('\n').find_map(|line| {
                let behind = line.trim_start_matches(' ');
                let blanks = line.len().saturating_sub(behind.len());
                let place = line_at.saturating_add(blanks);
                let indents = line_at > start && behind.starts_with('\t');
                line_at = line_at.saturating_add(line.len());
                indents.then_some(place)
            });
            tab(place.map_or(span, |at| Span::new(at, at.saturating_add(1))))
        }
        ErrorKind::UnknownAnchor => {
            Diagnostic::error(codes::ALIAS, span, "unknown alias: no anchor with this name comes before it")
                .help("quote text that starts with `*`")
        }
        ErrorKind::MappingValueNotAllowed => {
            Diagnostic::error(codes::SYNTAX, span, "unexpected `:`").help(format!("check the indentation; {quote}"))
        }
        ErrorKind::UnexpectedCharacter { character } => {
            Diagnostic::error(codes::SYNTAX, span, format!("a value cannot start with `{character}`")).help(quote)
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            Diagnostic::error(codes::SYNTAX, span, "unexpected text after the closing quote").help(quote)
        }
        ErrorKind::ExpectedFlowMappingSeparator => {
            Diagnostic::error(codes::SYNTAX, span, "expected `,` or `}`").help(quote)
        }
        ErrorKind::ExpectedFlowSequenceSeparator => {
            Diagnostic::error(codes::SYNTAX, span, "expected `,` or `]`").help(quote)
        }
        ErrorKind::SimpleKeyExpected => {
            Diagnostic::error(codes::SYNTAX, span, "expected `:` after the key").help("write `key: value`")
        }
        _ => Diagnostic::error(codes::SYNTAX, span, error.info()),
    }
}
