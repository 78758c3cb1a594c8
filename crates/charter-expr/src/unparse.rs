//! Renders the syntax tree as text. Each expression has one canonical form, with as few parentheses
//! as possible.

use crate::ast::{Ast, Kind, Link, LinkKind, Literal, Node, UnaryOp};
use crate::functions::quote;
use crate::parse::is_identifier;

impl Ast {
    /// Renders the expression in its canonical form. Parsing the result yields an equal tree.
    pub fn unparse(&self) -> String {
        node(self.root())
    }
}

/// The precedences of nodes. An operand with a lower precedence than its position requires gets
/// parentheses.
const CONDITIONAL: u8 = 0;
const OR: u8 = 1;
const AND: u8 = 2;
const UNARY: u8 = 6;
const MEMBER: u8 = 7;

fn level(node: &Node) -> u8 {
    match &node.kind {
        Kind::Conditional { .. } => CONDITIONAL,
        Kind::Or(_) => OR,
        Kind::And(_) => AND,
        Kind::Chain { rest, .. } => rest.first().map_or(UNARY, |(op, _)| op.level().saturating_add(2)),
        Kind::Unary { .. } => UNARY,
        _ => MEMBER,
    }
}

pub(crate) fn node(n: &Node) -> String {
    let mut out = String::new();
    write(n, &mut out);
    out
}

/// Writes an operand, in parentheses if its precedence is below `least`.
fn operand(n: &Node, least: u8, out: &mut String) {
    if level(n) < least {
        out.push('(');
        write(n, out);
        out.push(')');
    } else {
        write(n, out);
    }
}

fn list<'n>(items: impl IntoIterator<Item = &'n Node>, out: &mut String) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
}

fn series(items: &[Node], sign: &str, least: u8, out: &mut String) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(sign);
        }
        operand(item, least, out);
    }
}

fn write(n: &Node, out: &mut String) {
    match &n.kind {
        Kind::Literal(l) => literal(l, out),
        Kind::Ident { name, absolute } => {
            if *absolute {
                out.push('.');
            }
            out.push_str(name);
        }
        Kind::List(items) => {
            out.push('[');
            list(items, out);
            out.push(']');
        }
        Kind::Map(entries) => {
            out.push('{');
            for (i, (key, value)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write(key, out);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
        Kind::Call { function, args } => {
            out.push_str(function);
            out.push('(');
            list(args, out);
            out.push(')');
        }
        Kind::Has(of) => {
            out.push_str("has(");
            write(of, out);
            out.push(')');
        }
        Kind::Bind { name, value, body } => {
            out.push_str("cel.bind(");
            out.push_str(name);
            out.push_str(", ");
            list([&**value, &**body], out);
            out.push(')');
        }
        Kind::Postfix { base, links } => {
            // `(a.b).c` is not the same as `a.b.c`, which can be a qualified name.
            let least = if matches!(base.kind, Kind::Postfix { .. }) { MEMBER.saturating_add(1) } else { MEMBER };
            operand(base, least, out);
            links.iter().for_each(|l| link(l, out));
        }
        Kind::Unary { op, count, operand: of } => unary(*op, *count, of, out),
        Kind::Chain { first, rest } => {
            let here = level(n);
            operand(first, here.saturating_add(1), out);
            for (op, right) in rest {
                out.push(' ');
                out.push_str(op.symbol());
                out.push(' ');
                operand(right, here.saturating_add(1), out);
            }
        }
        Kind::And(items) => series(items, " && ", AND.saturating_add(1), out),
        Kind::Or(items) => series(items, " || ", OR.saturating_add(1), out),
        Kind::Conditional { arms, otherwise } => {
            for (condition, result) in arms {
                operand(condition, OR, out);
                out.push_str(" ? ");
                operand(result, OR, out);
                out.push_str(" : ");
            }
            operand(otherwise, OR, out);
        }
    }
}

fn unary(op: UnaryOp, count: usize, of: &Node, out: &mut String) {
    let sign = if op == UnaryOp::Not { "!" } else { "-" };
    for _ in 0..count {
        out.push_str(sign);
    }
    let mut text = String::new();
    operand(of, MEMBER, &mut text);
    // A minus directly before a digit would become part of the number.
    if op == UnaryOp::Negate && text.starts_with(|c: char| c.is_ascii_digit()) {
        out.push('(');
        out.push_str(&text);
        out.push(')');
    } else {
        out.push_str(&text);
    }
}

fn link(l: &Link, out: &mut String) {
    match &l.kind {
        LinkKind::Field(name) => {
            out.push('.');
            if is_identifier(name) {
                out.push_str(name);
            } else {
                out.push('`');
                out.push_str(name);
                out.push('`');
            }
        }
        LinkKind::Index(index) => {
            out.push('[');
            write(index, out);
            out.push(']');
        }
        LinkKind::Method { name, args } => {
            out.push('.');
            out.push_str(name);
            out.push('(');
            list(args, out);
            out.push(')');
        }
        LinkKind::Macro { name, vars, condition, body } => {
            out.push('.');
            out.push_str(name.name(vars.len()));
            out.push('(');
            for var in vars {
                out.push_str(var);
                out.push_str(", ");
            }
            if let Some(condition) = condition {
                write(condition, out);
                out.push_str(", ");
            }
            write(body, out);
            out.push(')');
        }
    }
}

fn literal(l: &Literal, out: &mut String) {
    match l {
        Literal::Null => out.push_str("null"),
        Literal::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Literal::Int(i) => out.push_str(&i.to_string()),
        Literal::Uint(u) => {
            out.push_str(&u.to_string());
            out.push('u');
        }
        // `{:?}` always writes a decimal point or an exponent.
        Literal::Double(d) => out.push_str(&format!("{d:?}")),
        Literal::String(s) => out.push_str(&quote(s)),
        Literal::Bytes(b) => {
            out.push_str("b\"");
            for byte in b.iter() {
                match byte {
                    b'"' | b'\\' => {
                        out.push('\\');
                        out.push(char::from(*byte));
                    }
                    0x20..=0x7e => out.push(char::from(*byte)),
                    _ => out.push_str(&format!("\\x{byte:02x}")),
                }
            }
            out.push('"');
        }
    }
}
