//! What a comparison tells about the values to try for the field that it reads.

use charter_expr::ast::{BinaryOp, Kind, LinkKind, Node, UnaryOp};
use serde_json::Value as Json;

use super::Probe;
use crate::tree;

/// Returns the probe for a path that is compared with `other`.
pub(super) fn compared(path: &Node, other: &Node, op: BinaryOp, cel: &str) -> Option<Probe> {
    let mut probe = Probe { decides: true, ..Probe::default() };
    if let Some(literal) = tree::literal_of(other) {
        probe.constants.push(literal);
        return Some(probe);
    }
    if let Kind::List(items) = &other.kind {
        probe.constants.extend(items.iter().filter_map(tree::literal_of));
        return Some(probe);
    }
    if !matches!(op, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::In) {
        return None;
    }
    // The path is compared with another part of the run: that part's current value is tried.
    let mut of_event = false;
    tree::visit(other, &mut |n| {
        of_event |= matches!(&n.kind, Kind::Ident { name, .. } if matches!(name.as_ref(), "event" | "entry" | "by"))
    });
    if of_event || path.span == other.span {
        return None;
    }
    probe.like.insert(cel.get(other.span.start..other.span.end)?.to_string());
    // What the run remembers of two events is equal or not.
    let remembered = |node: &Node| tree::path_of(node).is_some_and(|(root, _)| root == "context");
    probe.names = remembered(path) && remembered(other);
    Some(probe)
}

/// The operand of `size(x)` or `x.size()`.
pub(super) fn sized(node: &Node) -> Option<&Node> {
    match &node.kind {
        Kind::Call { function, args } if function.as_ref() == "size" => args.first(),
        Kind::Postfix { base, links } => match links.as_slice() {
            [link] if matches!(&link.kind, LinkKind::Method { name, .. } if name.as_ref() == "size") => Some(base),
            _ => None,
        },
        _ => None,
    }
}

/// Solves `node == other` for the only field that `node` reads, if `node` is linear in it and
/// `other` is an integer. For an inequality, the result lies beside its bound.
pub(super) fn solution(node: &Node, other: &Node) -> Option<(String, Vec<String>, Json)> {
    let wanted = tree::literal_of(other)?.as_i64()?;
    let Linear { path: Some((root, fields)), factor, offset } = linear(node)? else {
        return None;
    };
    let value = wanted.checked_sub(offset)?.checked_div(factor)?;
    Some((root, fields, value.into()))
}

/// `factor * path + offset`.
struct Linear {
    path: Option<(String, Vec<String>)>,
    factor: i64,
    offset: i64,
}

fn linear(node: &Node) -> Option<Linear> {
    if let Some(value) = tree::literal_of(node) {
        return Some(Linear { path: None, factor: 0, offset: value.as_i64()? });
    }
    if let Some(path) = tree::path_of(node) {
        return Some(Linear { path: Some(path), factor: 1, offset: 0 });
    }
    match &node.kind {
        Kind::Unary { op: UnaryOp::Negate, count, operand } => {
            let operand = linear(operand)?;
            if count % 2 == 0 { Some(operand) } else { scaled(operand, -1) }
        }
        Kind::Chain { first, rest } => {
            let first = linear(first);
            rest.iter().fold(first, |left, (op, right)| {
                let (left, right) = (left?, linear(right)?);
                match op {
                    BinaryOp::Add => sum(left, right),
                    BinaryOp::Sub => sum(left, scaled(right, -1)?),
                    BinaryOp::Mul if right.path.is_none() => scaled(left, right.offset),
                    BinaryOp::Mul if left.path.is_none() => scaled(right, left.offset),
                    _ => None,
                }
            })
        }
        _ => None,
    }
}

fn scaled(of: Linear, by: i64) -> Option<Linear> {
    Some(Linear { factor: of.factor.checked_mul(by)?, offset: of.offset.checked_mul(by)?, path: of.path })
}

fn sum(left: Linear, right: Linear) -> Option<Linear> {
    let path = match (left.path, right.path) {
        (Some(a), Some(b)) if a != b => return None,
        (a, b) => a.or(b),
    };
    let (factor, offset) = (left.factor.checked_add(right.factor)?, left.offset.checked_add(right.offset)?);
    Some(Linear { path, factor, offset })
}
