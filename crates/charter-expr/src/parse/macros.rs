//! Macro calls (CEL specification, "Macros"; extensions `macros2` and `bindings`).

use std::sync::Arc;

use crate::Span;
use crate::ast::{Kind, LinkKind, MacroName, Node};
use crate::error::ParseError;

/// Creates the node for `f(args)`: `has` or a function call.
pub(super) fn global(name: &str, mut args: Vec<Node>, span: Span) -> Result<Kind, ParseError> {
    if name != "has" || args.len() != 1 {
        return Ok(Kind::Call { function: name.into(), args });
    }
    let Some(operand) = args.pop() else {
        return Ok(Kind::Call { function: name.into(), args });
    };
    let is_field = match &operand.kind {
        Kind::Postfix { links, .. } => {
            matches!(links.last().map(|l| &l.kind), Some(LinkKind::Field(_)))
        }
        _ => false,
    };
    if is_field {
        Ok(Kind::Has(Box::new(operand)))
    } else {
        Err(ParseError::new(span.to(operand.span), "`has` requires a field")
            .help("write `has(x.field)`; for a key that is computed, `key in x`"))
    }
}

/// Creates the node for `cel.bind(name, value, body)`.
pub(super) fn bind(args: Vec<Node>, span: Span) -> Result<Kind, ParseError> {
    let Ok([name, value, body]) = <[Node; 3]>::try_from(args) else {
        return Err(
            ParseError::new(span, "`cel.bind` takes three arguments").help("write `cel.bind(name, value, expression)`")
        );
    };
    let name = variable(&name, "cel.bind")?;
    Ok(Kind::Bind { name, value: Box::new(value), body: Box::new(body) })
}

/// Creates the link for `x.f(args)`: a macro, or a function called as a method. A macro name with
/// an unexpected number of arguments is a function.
pub(super) fn method(name: String, args: Vec<Node>, span: Span) -> Result<LinkKind, ParseError> {
    use MacroName::*;
    let found = match (name.as_str(), args.len()) {
        ("all", 2) => Some((All, 1)),
        ("all", 3) => Some((All, 2)),
        ("exists", 2) => Some((Exists, 1)),
        ("exists", 3) => Some((Exists, 2)),
        ("exists_one" | "existsOne", 2) => Some((ExistsOne, 1)),
        ("exists_one" | "existsOne", 3) => Some((ExistsOne, 2)),
        ("map", 2 | 3) => Some((Map, 1)),
        ("filter", 2) => Some((Filter, 1)),
        ("transformList", 3 | 4) => Some((TransformList, 2)),
        ("transformMap", 3 | 4) => Some((TransformMap, 2)),
        ("transformMapEntry", 3 | 4) => Some((TransformMapEntry, 2)),
        _ => None,
    };
    let Some((which, count)) = found else {
        return Ok(LinkKind::Method { name: name.into(), args });
    };
    let mut args = args.into_iter();
    let mut vars = Vec::new();
    for node in args.by_ref().take(count) {
        let var = variable(&node, &name)?;
        if vars.contains(&var) {
            return Err(ParseError::new(node.span, format!("the variable `{var}` of `{name}` is named twice")));
        }
        vars.push(var);
    }
    let last = args.next_back().map(Box::new);
    let condition = args.next().map(Box::new);
    match last {
        Some(body) => Ok(LinkKind::Macro { name: which, vars, condition, body }),
        None => Err(ParseError::new(span, format!("`{name}` needs an expression as its last argument"))),
    }
}

fn variable(node: &Node, of: &str) -> Result<Arc<str>, ParseError> {
    match &node.kind {
        Kind::Ident { name, absolute: false } => Ok(name.clone()),
        _ => Err(ParseError::new(node.span, format!("the variable of `{of}` must be a plain name"))),
    }
}
