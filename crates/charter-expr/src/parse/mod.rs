//! Parses text to the syntax tree.

mod lexer;
mod literal;
mod macros;
mod operators;
mod parser;
#[cfg(test)]
mod tests;

pub(crate) use lexer::is_identifier;

use crate::ast::Ast;
use crate::error::ParseError;
use crate::{MAX_SOURCE_LENGTH, Span};

/// Parses an expression.
///
/// Errors: a source text longer than [`MAX_SOURCE_LENGTH`], nesting deeper than
/// [`crate::MAX_DEPTH`], and everything outside the grammar (CEL specification, "Syntax"). Message
/// literals and optional syntax are not part of this language.
pub fn parse(source: &str) -> Result<Ast, ParseError> {
    if source.len() > MAX_SOURCE_LENGTH {
        let message = format!("the expression is {} bytes long; the limit is {MAX_SOURCE_LENGTH}", source.len());
        return Err(ParseError::new(Span::new(0, source.len()), message));
    }
    let tokens = lexer::tokens(source)?;
    let root = parser::Parser::new(source, tokens).whole()?;
    Ok(Ast::new(source.to_owned(), root))
}
