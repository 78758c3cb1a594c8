//! Traversal of expression trees.

use std::collections::BTreeSet;

use charter_expr::ast::{BinaryOp, Kind, Link, LinkKind, Literal, MacroName, Node};

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

/// Whether an expression may read the status of an actor: whatever it does with `actors` that is
/// not plainly something else.
pub(crate) fn reads_status(root: &Node) -> bool {
    let mut actors: BTreeSet<&str> = BTreeSet::new();
    let mut harmless: Vec<*const Node> = Vec::new();
    let mut reads = false;
    let is_all = |node: &Node| matches!(&node.kind, Kind::Ident { name, .. } if name.as_ref() == "actors");
    let is_other =
        |link: Option<&Link>| matches!(link.map(|l| &l.kind), Some(LinkKind::Field(name)) if name.as_ref() != "status");
    let mut present: Vec<*const Node> = Vec::new();
    visit(root, &mut |node| match &node.kind {
        Kind::Has(operand) => present.push(std::ptr::from_ref(operand)),
        Kind::Call { function, args } if function.as_ref() == "size" => {
            harmless.extend(args.iter().filter(|n| is_all(n)).map(std::ptr::from_ref));
        }
        Kind::Chain { rest, .. } => {
            let of = rest.iter().filter(|(op, n)| *op == BinaryOp::In && is_all(n));
            harmless.extend(of.map(|(_, n)| std::ptr::from_ref(n)));
        }
        Kind::Postfix { base, links } => {
            let first = links.first().map(|link| &link.kind);
            let fine = match first {
                Some(LinkKind::Macro { name, vars, .. }) if is_all(base) => {
                    // The only variable is the id; of two, the second one is the actor.
                    actors.extend(vars.get(1).map(AsRef::as_ref));
                    vars.len() == 1 || !matches!(name, MacroName::Map | MacroName::Filter)
                }
                Some(LinkKind::Method { name, .. }) if is_all(base) => name.as_ref() == "size",
                Some(LinkKind::Field(_) | LinkKind::Index(_)) if is_all(base) => {
                    is_other(links.get(1)) || links.len() == 1 && present.contains(&std::ptr::from_ref(node))
                }
                Some(LinkKind::Field(_)) => is_other(links.first()),
                _ => false,
            };
            if fine {
                harmless.push(std::ptr::from_ref(&**base));
            }
        }
        Kind::Ident { name, .. } if name.as_ref() == "actors" || actors.contains(name.as_ref()) => {
            reads |= !harmless.contains(&std::ptr::from_ref(node));
        }
        _ => {}
    });
    reads
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
