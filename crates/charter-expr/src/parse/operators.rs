//! Operator precedence (CEL specification, "Syntax"): groups operands in source order into chains,
//! one for each level of precedence.

use super::lexer::Token;
use crate::ast::{BinaryOp, Kind, Node};

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Binary(BinaryOp),
}

impl Operator {
    /// Returns the operator for a token, if it is one.
    pub(super) fn of(token: &Token) -> Option<Operator> {
        Some(Operator::Binary(match token {
            Token::In => BinaryOp::In,
            Token::Sign("||") => return Some(Operator::Or),
            Token::Sign("&&") => return Some(Operator::And),
            Token::Sign("==") => BinaryOp::Eq,
            Token::Sign("!=") => BinaryOp::Ne,
            Token::Sign("<") => BinaryOp::Lt,
            Token::Sign("<=") => BinaryOp::Le,
            Token::Sign(">") => BinaryOp::Gt,
            Token::Sign(">=") => BinaryOp::Ge,
            Token::Sign("+") => BinaryOp::Add,
            Token::Sign("-") => BinaryOp::Sub,
            Token::Sign("*") => BinaryOp::Mul,
            Token::Sign("/") => BinaryOp::Div,
            Token::Sign("%") => BinaryOp::Rem,
            _ => return None,
        }))
    }

    /// The precedence; a higher one binds tighter.
    fn level(self) -> u8 {
        match self {
            Operator::Or => 0,
            Operator::And => 1,
            Operator::Binary(op) => op.level().saturating_add(1),
        }
    }
}

/// Groups operands, operators of the highest precedence first.
pub(super) fn group(first: Node, rest: Vec<(Operator, Node)>) -> Node {
    let mut first = first;
    let mut rest = rest;
    for level in (0..=4).rev() {
        if rest.iter().any(|(op, _)| op.level() == level) {
            (first, rest) = join(first, rest, level);
        }
    }
    first
}

/// Combines every sequence of operators of one level into a node.
fn join(first: Node, rest: Vec<(Operator, Node)>, level: u8) -> (Node, Vec<(Operator, Node)>) {
    // The node for which a sequence is collected, and the operator before it, if any.
    let mut before: Option<Operator> = None;
    let mut current = first;
    let mut run: Vec<(Operator, Node)> = Vec::new();
    let mut done: Vec<(Option<Operator>, Node)> = Vec::new();
    for (op, node) in rest {
        if op.level() == level {
            run.push((op, node));
            continue;
        }
        done.push((before, chain(current, std::mem::take(&mut run))));
        before = Some(op);
        current = node;
    }
    done.push((before, chain(current, run)));
    let mut done = done.into_iter();
    let first = done.next().map(|(_, node)| node);
    let rest = done.filter_map(|(op, node)| Some((op?, node))).collect();
    match first {
        Some(first) => (first, rest),
        // Unreachable, because `done` always has an element; an empty list is harmless.
        None => (Node { span: crate::Span::default(), kind: Kind::List(Vec::new()) }, rest),
    }
}

/// Creates one node for a sequence of operators of one level.
fn chain(first: Node, run: Vec<(Operator, Node)>) -> Node {
    let Some((op, last)) = run.last() else {
        return first;
    };
    let span = first.span.to(last.span);
    let kind = match op {
        Operator::Or => Kind::Or(operands(first, run)),
        Operator::And => Kind::And(operands(first, run)),
        Operator::Binary(_) => {
            let binary = |(op, node)| match op {
                Operator::Binary(op) => Some((op, node)),
                _ => None,
            };
            Kind::Chain { first: Box::new(first), rest: run.into_iter().filter_map(binary).collect() }
        }
    };
    Node { span, kind }
}

fn operands(first: Node, run: Vec<(Operator, Node)>) -> Vec<Node> {
    std::iter::once(first).chain(run.into_iter().map(|(_, node)| node)).collect()
}
