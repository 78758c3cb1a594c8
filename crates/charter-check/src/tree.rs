//! Traversal of expression trees.

use charter_expr::ast::{BinaryOp, Kind, LinkKind, Literal, Node};

/// Visits all nodes, outermost first.
pub(crate) fn visit<'n>(node: &'n Node, each: &mut dyn FnMut(&'n Node)) {
    each(node);
    match &node.kind {
        Kind::Literal(_) | Kind::Ident { .. } => {}
        Kind::List(items) | Kind::And(items) | Kind::Or(items) | Kind::Call { args: items, .. } => {
            items.iter().for_each(|n| visit(n, each))
        }
        Kind::Map(entries) => entries.iter().for_each(|(k, v)| {
            visit(k, each);
            visit(v, each);
        }),
        Kind::Has(operand) | Kind::Unary { operand, .. } => visit(operand, each),
        Kind::Bind { value, body, .. } => {
            visit(value, each);
            visit(body, each);
        }
        Kind::Postfix { base, links } => {
            visit(base, each);
            for link in links {
                match &link.kind {
                    LinkKind::Field(_) => {}
                    LinkKind::Index(index) => visit(index, each),
                    LinkKind::Method { args, .. } => args.iter().for_each(|n| visit(n, each)),
                    LinkKind::Macro { condition, body, .. } => {
                        condition.iter().for_each(|n| visit(n, each));
                        visit(body, each);
                    }
                }
            }
        }
        Kind::Chain { first, rest } => {
            visit(first, each);
            rest.iter().for_each(|(_, n)| visit(n, each));
        }
        Kind::Conditional { arms, otherwise } => {
            arms.iter().for_each(|(c, r)| {
                visit(c, each);
                visit(r, each);
            });
            visit(otherwise, each);
        }
    }
}

/// Visits the string literals.
pub(crate) fn strings(node: &Node, each: &mut dyn FnMut(&str)) {
    visit(node, &mut |n| {
        if let Kind::Literal(Literal::String(text)) = &n.kind {
            each(text);
        }
    });
}

/// Visits the comparisons of two operands: left, operator, right.
pub(crate) fn comparisons<'n>(node: &'n Node, each: &mut dyn FnMut(&'n Node, BinaryOp, &'n Node)) {
    visit(node, &mut |n| {
        if let Kind::Chain { first, rest } = &n.kind
            && let [(op, right)] = rest.as_slice()
            && !matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem)
        {
            each(first, *op, right);
        }
    });
}

/// The root and fields of a node that is a static path; `None` for any other node.
pub(crate) fn path_of(node: &Node) -> Option<(String, Vec<String>)> {
    match &node.kind {
        Kind::Ident { name, .. } => Some((name.to_string(), Vec::new())),
        Kind::Postfix { base, links } => {
            let Kind::Ident { name, .. } = &base.kind else {
                return None;
            };
            let mut fields = Vec::new();
            for link in links {
                match &link.kind {
                    LinkKind::Field(field) => fields.push(field.to_string()),
                    LinkKind::Index(Node { kind: Kind::Literal(Literal::String(text)), .. }) => {
                        fields.push(text.to_string())
                    }
                    _ => return None,
                }
            }
            Some((name.to_string(), fields))
        }
        _ => None,
    }
}

/// A literal as JSON.
pub(crate) fn literal_of(node: &Node) -> Option<serde_json::Value> {
    match &node.kind {
        Kind::Literal(l) => Some(match l {
            Literal::Null => serde_json::Value::Null,
            Literal::Bool(b) => (*b).into(),
            Literal::Int(i) => (*i).into(),
            Literal::Uint(u) => (*u).into(),
            Literal::Double(d) => serde_json::Number::from_f64(*d).map(Into::into)?,
            Literal::String(s) => s.to_string().into(),
            Literal::Bytes(_) => return None,
        }),
        _ => None,
    }
}
