//! The parser: builds the syntax tree from tokens. It recurses only where the text is nested;
//! chains are parsed in loops.

use std::sync::Arc;

use super::lexer::{Token, is_reserved};
use super::macros;
use super::operators::{self, Operator};
use crate::ast::{Kind, Link, LinkKind, Literal, Node, UnaryOp};
use crate::error::ParseError;
use crate::{MAX_DEPTH, Span};

pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
}

/// Boxed, because every level of nesting has a result on the stack.
type Fail = Box<ParseError>;
type Parsed = Result<Node, Fail>;

fn fail<T>(e: ParseError) -> Result<T, Fail> {
    Err(Box::new(e))
}

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s str, tokens: Vec<(Token, Span)>) -> Parser<'s> {
        Parser { source, tokens, at: 0, depth: 0 }
    }

    /// Parses the whole text as one expression.
    pub(super) fn whole(mut self) -> Result<Node, ParseError> {
        self.all().map_err(|e| *e)
    }

    fn all(&mut self) -> Parsed {
        if self.token() == &Token::End {
            return fail(ParseError::new(self.span(), "the expression is empty"));
        }
        let node = self.expression()?;
        match self.token() {
            Token::End => Ok(node),
            _ => fail(self.unexpected("the end of the expression or an operator")),
        }
    }

    fn token(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(t, _)| t)
    }

    fn span(&self) -> Span {
        let end = Span::new(self.source.len(), self.source.len());
        self.tokens.get(self.at).map_or(end, |(_, s)| *s)
    }

    fn next(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(s) if *s == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.next();
        }
        found
    }

    /// Consumes a closing bracket and returns its position.
    fn close(&mut self, sign: &str) -> Result<Span, Fail> {
        let span = self.span();
        if self.eat(sign) { Ok(span) } else { fail(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        let span = self.span();
        let found = match self.token() {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", span.of(self.source)),
        };
        ParseError::new(span, format!("expected {wanted}, found {found}"))
    }

    fn deeper(&mut self) -> Result<(), Fail> {
        self.depth = self.depth.saturating_add(1);
        // The whole expression is the first level.
        if self.depth > MAX_DEPTH.saturating_add(1) {
            return fail(
                ParseError::new(self.span(), format!("the expression is nested deeper than {MAX_DEPTH} levels"))
                    .help("name a part of it, or split it"),
            );
        }
        Ok(())
    }

    /// Parses `condition ? a : b`, where `b` may be another conditional.
    fn expression(&mut self) -> Parsed {
        self.deeper()?;
        let mut arms = Vec::new();
        let last = loop {
            let operand = self.operation()?;
            if !self.eat("?") {
                break operand;
            }
            let result = self.operation()?;
            self.close(":")?;
            arms.push((operand, result));
        };
        self.depth = self.depth.saturating_sub(1);
        let Some((first, _)) = arms.first() else {
            return Ok(last);
        };
        let span = first.span.to(last.span);
        Ok(Node { span, kind: Kind::Conditional { arms, otherwise: Box::new(last) } })
    }

    /// Parses operands and the operators between them as a flat list and groups them afterwards, so
    /// that a level of precedence does not need a level of recursion.
    fn operation(&mut self) -> Parsed {
        let first = self.unary()?;
        let mut rest = Vec::new();
        while let Some(operator) = Operator::of(self.token()) {
            self.next();
            rest.push((operator, self.unary()?));
        }
        Ok(operators::group(first, rest))
    }

    fn unary(&mut self) -> Parsed {
        let start = self.span();
        let (sign, op) = match self.token() {
            Token::Sign("!") => ("!", UnaryOp::Not),
            Token::Sign("-") => ("-", UnaryOp::Negate),
            _ => return self.member(None),
        };
        let mut count: usize = 0;
        let mut negative = None;
        while self.is(sign) {
            negative = self.negative_number();
            if negative.is_some() {
                break;
            }
            self.next();
            count = count.saturating_add(1);
        }
        if negative.is_none() {
            negative = self.negative_number();
        }
        let operand = self.member(negative)?;
        if count == 0 {
            return Ok(operand);
        }
        let span = start.to(operand.span);
        Ok(Node { span, kind: Kind::Unary { op, count, operand: Box::new(operand) } })
    }

    /// Parses a minus and a number. The sign is part of the literal; otherwise, the smallest int
    /// could not be written.
    fn negative_number(&mut self) -> Option<Node> {
        if !self.is("-") {
            return None;
        }
        let (token, at) = self.tokens.get(self.at.saturating_add(1))?;
        let literal = match token {
            Token::Literal(Literal::Int(i)) => Literal::Int(i.saturating_neg()),
            Token::Literal(Literal::Double(d)) => Literal::Double(-d),
            Token::MinInt => Literal::Int(i64::MIN),
            _ => return None,
        };
        let span = self.span().to(*at);
        self.next();
        self.next();
        Some(Node { span, kind: Kind::Literal(literal) })
    }

    /// Parses a primary with its fields, indexes and calls.
    fn member(&mut self, literal: Option<Node>) -> Parsed {
        let base = match literal {
            Some(node) => node,
            None => self.primary()?,
        };
        let mut links = Vec::new();
        loop {
            let start = self.span();
            if self.eat(".") {
                let link = self.dotted(&base, &links)?;
                match link {
                    Dotted::Link(kind) => {
                        let end = self.previous();
                        links.push(Link { span: start.to(end), kind });
                    }
                    Dotted::Whole(kind) => {
                        // `cel.bind` replaces its base, so it can only be the first link.
                        let span = base.span.to(self.previous());
                        let node = Node { span, kind };
                        return self.member(Some(node));
                    }
                }
            } else if self.eat("[") {
                if self.is("?") {
                    return fail(self.optional());
                }
                let index = self.expression()?;
                let end = self.close("]")?;
                links.push(Link { span: start.to(end), kind: LinkKind::Index(index) });
            } else if self.is("{") {
                return fail(
                    ParseError::new(self.span(), "message literals are not part of the language")
                        .help("write a map: `{\"field\": value}`"),
                );
            } else {
                break;
            }
        }
        match links.last() {
            None => Ok(base),
            Some(last) => {
                let span = base.span.to(last.span);
                Ok(Node { span, kind: Kind::Postfix { base: Box::new(base), links } })
            }
        }
    }

    fn optional(&self) -> ParseError {
        ParseError::new(self.span(), "optional values are not part of the language")
            .help("check with `has(x.field)` first")
    }

    /// The position of the last consumed token.
    fn previous(&self) -> Span {
        self.tokens.get(self.at.saturating_sub(1)).map_or(Span::default(), |(_, s)| *s)
    }

    /// Parses the link after a dot.
    fn dotted(&mut self, base: &Node, links: &[Link]) -> Result<Dotted, Fail> {
        let name = match self.token() {
            Token::Ident(name) => name.clone(),
            Token::Quoted(name) => {
                let name: Arc<str> = name.as_str().into();
                self.next();
                return Ok(Dotted::Link(LinkKind::Field(name)));
            }
            Token::Sign("?") => return fail(self.optional()),
            Token::In | Token::Literal(Literal::Bool(_) | Literal::Null) => {
                return fail(self.unexpected("a field name").help("write such a field as an index: `x[\"in\"]`"));
            }
            _ => return fail(self.unexpected("a field name")),
        };
        let span = self.span();
        self.next();
        if !self.is("(") {
            return Ok(Dotted::Link(LinkKind::Field(name.into())));
        }
        let args = self.arguments()?;
        let is_cel = links.is_empty() && matches!(&base.kind, Kind::Ident { name, .. } if &**name == "cel");
        if is_cel && name == "bind" {
            return macros::bind(args, span).map(Dotted::Whole).map_err(Box::new);
        }
        macros::method(name, args, span).map(Dotted::Link).map_err(Box::new)
    }

    fn arguments(&mut self) -> Result<Vec<Node>, Fail> {
        self.close("(")?;
        let mut args = Vec::new();
        while !self.is(")") {
            args.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
            if self.is(")") {
                return fail(self.unexpected("an argument"));
            }
        }
        self.close(")")?;
        Ok(args)
    }

    fn primary(&mut self) -> Parsed {
        let start = self.span();
        let token = self.token().clone();
        let kind = match token {
            Token::Literal(literal) => {
                self.next();
                Kind::Literal(literal)
            }
            Token::Sign("(") => {
                self.next();
                let mut inner = self.expression()?;
                let end = self.close(")")?;
                inner.span = start.to(end);
                return Ok(inner);
            }
            Token::Sign("[") => {
                self.next();
                self.list()?
            }
            Token::Sign("{") => {
                self.next();
                self.map()?
            }
            Token::Sign(".") => {
                self.next();
                match self.token().clone() {
                    Token::Ident(name) => self.name(&name, true)?,
                    _ => return fail(self.unexpected("a name")),
                }
            }
            Token::Ident(name) => self.name(&name, false)?,
            // `in` between two operands is the operator; at the start of an operand, it is the
            // function of the host.
            Token::In => {
                self.next();
                if !self.is("(") {
                    return fail(
                        self.unexpected("`(`")
                            .help("`in` is written between two operands, or called as a function: `in(\"state\")`"),
                    );
                }
                Kind::Call { function: "in".into(), args: self.arguments()? }
            }
            Token::MinInt => {
                return fail(
                    ParseError::new(start, "`9223372036854775808` does not fit in a signed 64-bit integer")
                        .help("write a `u` after it to make it a uint"),
                );
            }
            Token::Quoted(_) => {
                return fail(ParseError::new(start, "a name between backticks can only be a field, after a dot"));
            }
            _ => return fail(self.unexpected("an operand")),
        };
        Ok(Node { span: start.to(self.previous()), kind })
    }

    fn name(&mut self, name: &str, absolute: bool) -> Result<Kind, Fail> {
        let span = self.span();
        if is_reserved(name) {
            return fail(ParseError::new(span, format!("`{name}` is reserved and cannot be a name")));
        }
        self.next();
        if !self.is("(") {
            return Ok(Kind::Ident { name: name.into(), absolute });
        }
        let args = self.arguments()?;
        macros::global(name, args, span).map_err(Box::new)
    }

    fn list(&mut self) -> Result<Kind, Fail> {
        let mut items = Vec::new();
        while !self.is("]") {
            if self.is("?") {
                return fail(self.optional());
            }
            items.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        self.close("]")?;
        Ok(Kind::List(items))
    }

    fn map(&mut self) -> Result<Kind, Fail> {
        let mut entries = Vec::new();
        while !self.is("}") {
            if self.is("?") {
                return fail(self.optional());
            }
            let key = self.expression()?;
            self.close(":")?;
            entries.push((key, self.expression()?));
            if !self.eat(",") {
                break;
            }
        }
        self.close("}")?;
        Ok(Kind::Map(entries))
    }
}

enum Dotted {
    Link(LinkKind),
    Whole(Kind),
}
