//! What an expression divides by: where a result is infinite, one of these is zero.

use crate::ast::{Ast, BinaryOp, Kind, Link, LinkKind, Node};

impl Ast {
    /// The right operands of the divisions, as they are written, each once.
    #[must_use]
    pub fn divisors(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut open = vec![self.root()];
        while let Some(node) = open.pop() {
            if let Kind::Chain { rest, .. } = &node.kind {
                let divided = rest.iter().filter(|(op, _)| *op == BinaryOp::Div);
                for text in divided.map(|(_, by)| by.span.of(self.source())) {
                    if !found.contains(&text) {
                        found.push(text);
                    }
                }
            }
            let before = open.len();
            push_parts(node, &mut open);
            // In the order of the source.
            if let Some(parts) = open.get_mut(before..) {
                parts.reverse();
            }
        }
        found
    }
}

/// Adds the nodes of which a node consists.
fn push_parts<'a>(node: &'a Node, out: &mut Vec<&'a Node>) {
    match &node.kind {
        Kind::Literal(_) | Kind::Ident { .. } => {}
        Kind::List(all) | Kind::Call { args: all, .. } | Kind::And(all) | Kind::Or(all) => out.extend(all),
        Kind::Map(entries) => out.extend(entries.iter().flat_map(|(key, value)| [key, value])),
        Kind::Has(one) | Kind::Unary { operand: one, .. } => out.push(one),
        Kind::Bind { value, body, .. } => out.extend([&**value, &**body]),
        Kind::Chain { first, rest } => {
            out.push(first);
            out.extend(rest.iter().map(|(_, right)| right));
        }
        Kind::Conditional { arms, otherwise } => {
            out.extend(arms.iter().flat_map(|(condition, result)| [condition, result]));
            out.push(otherwise);
        }
        Kind::Postfix { base, links } => {
            out.push(base);
            for Link { kind, .. } in links {
                match kind {
                    LinkKind::Field(_) => {}
                    LinkKind::Index(index) => out.push(index),
                    LinkKind::Method { args, .. } => out.extend(args),
                    LinkKind::Macro { condition, body, .. } => {
                        out.extend(condition.as_deref());
                        out.push(body);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    #[test]
    fn every_divisor_is_found_once() {
        for (source, divisors) in [
            ("a / b", "b"),
            ("a * b / c.d / (e + 1.0)", "c.d, (e + 1.0)"),
            (
                "[1.0 / a, {'k': 2.0 / b['x' + string(3.0 / c)]}, x.map(i, i / d, i % e), f(1.0 / a)]",
                "a, b['x' + string(3.0 / c)], c, d",
            ),
            ("p / q > 1.0 ? r : -(s / t)", "q, t"),
            ("a + b % c", ""),
        ] {
            let ast = parse(source).unwrap();
            let found: Vec<String> = ast.divisors().into_iter().map(str::to_owned).collect();
            assert_eq!(found.join(", "), divisors, "{source}");
        }
    }
}
