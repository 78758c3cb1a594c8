//! Analysis of a syntax tree: the paths it reads and the functions it calls. Also renames its
//! roots.

use std::sync::Arc;

use crate::ast::{Ast, Kind, Link, LinkKind, Node, children};
use crate::error::ParseError;
use crate::names::{self, Meaning};
use crate::parse::is_identifier;
use crate::path::Path;
use crate::{Env, Span};

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'n> {
    /// The name as written, with its namespace: `size`, `math.abs`.
    pub name: String,
    /// Whether the function is called on a value: `x.size()`.
    pub method: bool,
    /// The whole call.
    pub span: Span,
    /// The arguments in the parentheses.
    pub args: &'n [Node],
}

impl Ast {
    /// The names that are not macro variables, types or namespaces, with their positions, in source
    /// order.
    pub fn roots(&self) -> impl Iterator<Item = (&str, Span)> {
        let mut found = Vec::new();
        visit(self.root(), &mut Vec::new(), &mut |node, locals| {
            if let Some((name, span, _)) = free_name(node, locals, &Env::new()) {
                found.push((name, span));
            }
        });
        found.sort_by_key(|(_, span)| *span);
        found.into_iter()
    }

    /// Returns the longest static paths from the roots, such as `context.decision.confidence`, in
    /// source order.
    pub fn reads(&self) -> Vec<Path> {
        let mut found = Vec::new();
        visit(self.root(), &mut Vec::new(), &mut |node, locals| {
            if let Some((name, span, links)) = free_name(node, locals, &Env::new()) {
                found.push(names::path(name.into(), None, span, links));
            }
        });
        found.sort_by_key(Path::span);
        found
    }

    /// Returns all function calls except macros, in source order.
    pub fn calls(&self) -> Vec<Call<'_>> {
        let mut found = Vec::new();
        visit(self.root(), &mut Vec::new(), &mut |node, locals| calls(node, locals, &mut found));
        found.sort_by_key(|c| c.span);
        found
    }

    /// Renames roots. For the name of a root, `rename` returns the path that replaces it, e.g.
    /// `["context", "x"]` for `x`, or `None` to keep it. The text and the positions of the result
    /// are taken from its [`Ast::unparse`].
    ///
    /// Errors: the result is too long or nested too deeply.
    pub fn rename_roots(&self, rename: impl FnMut(&str) -> Option<Vec<String>>) -> Result<Ast, ParseError> {
        self.rename_roots_in(&Env::new(), rename)
    }

    /// Like [`Ast::rename_roots`], but also renames a root of `env` that hides a type or a
    /// namespace of the same name (`list`, `math`).
    pub fn rename_roots_in(
        &self,
        env: &Env,
        mut rename: impl FnMut(&str) -> Option<Vec<String>>,
    ) -> Result<Ast, ParseError> {
        let mut root = self.root().clone();
        let mut locals = Vec::new();
        renamed(&mut root, &mut locals, &mut Renaming { env, rename: &mut rename });
        crate::parse(&crate::unparse::node(&root))
    }
}

/// Visits all nodes with the variables in scope. A name and the links after it are visited once,
/// together.
fn visit<'n>(node: &'n Node, locals: &mut Vec<Arc<str>>, each: &mut dyn FnMut(&'n Node, &[Arc<str>])) {
    each(node, locals);
    let skip_base = match &node.kind {
        Kind::Postfix { base, .. } if matches!(base.kind, Kind::Ident { .. }) => Some(&**base),
        _ => None,
    };
    children(node, &mut |child, vars| {
        if skip_base.is_some_and(|base| std::ptr::eq(base, child)) {
            return;
        }
        let before = locals.len();
        locals.extend_from_slice(vars);
        visit(child, locals, each);
        locals.truncate(before);
    });
}

/// Returns the free name at the start of a node, its position, and the links after it.
fn free_name<'n>(node: &'n Node, locals: &[Arc<str>], env: &Env) -> Option<(&'n str, Span, &'n [Link])> {
    let (name, absolute, span, links): (_, _, _, &[Link]) = match &node.kind {
        Kind::Ident { name, absolute } => (name, *absolute, node.span, &[]),
        Kind::Postfix { base, links } => match &base.kind {
            Kind::Ident { name, absolute } => (name, *absolute, base.span, links),
            _ => return None,
        },
        _ => return None,
    };
    match names::resolve(env, locals, name, absolute, links) {
        Meaning::Unknown | Meaning::Root { .. } => Some((name, span, links)),
        _ => None,
    }
}

fn calls<'n>(node: &'n Node, locals: &[Arc<str>], found: &mut Vec<Call<'n>>) {
    match &node.kind {
        Kind::Call { function, args } => {
            found.push(Call { name: function.to_string(), method: false, span: node.span, args });
        }
        Kind::Postfix { base, links } => {
            let namespaced = match &base.kind {
                Kind::Ident { name, absolute } => match names::resolve(&Env::new(), locals, name, *absolute, links) {
                    Meaning::Library { entry, used } => Some((entry.name, used)),
                    _ => None,
                },
                _ => None,
            };
            for (i, link) in links.iter().enumerate() {
                let LinkKind::Method { name, args } = &link.kind else {
                    continue;
                };
                match namespaced {
                    Some((name, used)) if i.saturating_add(1) == used => {
                        found.push(Call { name: name.to_owned(), method: false, span: base.span.to(link.span), args });
                    }
                    _ => found.push(Call { name: name.to_string(), method: true, span: link.span, args }),
                }
            }
        }
        _ => {}
    }
}

/// The state while roots are renamed.
struct Renaming<'r> {
    env: &'r Env,
    rename: &'r mut dyn FnMut(&str) -> Option<Vec<String>>,
}

fn renamed(node: &mut Node, locals: &mut Vec<Arc<str>>, rename: &mut Renaming<'_>) {
    let target = free_name(node, locals, rename.env).and_then(|(name, _, _)| (rename.rename)(name));
    if let Some(target) = target {
        let mut names = target.iter();
        let first: Arc<str> = names.next().map_or("", String::as_str).into();
        // A macro variable must not capture the new name.
        let absolute = locals.contains(&first);
        let ident = Node { span: node.span, kind: Kind::Ident { name: first, absolute } };
        let mut links: Vec<Link> = names
            .map(|name| {
                let kind = if is_identifier(name) {
                    LinkKind::Field(name.as_str().into())
                } else {
                    let literal = crate::ast::Literal::String(name.as_str().into());
                    LinkKind::Index(Node { span: node.span, kind: Kind::Literal(literal) })
                };
                Link { span: node.span, kind }
            })
            .collect();
        if let Kind::Postfix { links: old, .. } = &mut node.kind {
            links.append(old);
        }
        node.kind = if links.is_empty() { ident.kind } else { Kind::Postfix { base: Box::new(ident), links } };
    }
    descend(node, locals, rename);
}

/// Renames roots in the children of a node.
fn descend(node: &mut Node, locals: &mut Vec<Arc<str>>, rename: &mut Renaming<'_>) {
    match &mut node.kind {
        Kind::Literal(_) | Kind::Ident { .. } => {}
        Kind::List(items) | Kind::And(items) | Kind::Or(items) | Kind::Call { args: items, .. } => {
            items.iter_mut().for_each(|n| renamed(n, locals, rename));
        }
        Kind::Map(pairs) => {
            for (a, b) in pairs {
                renamed(a, locals, rename);
                renamed(b, locals, rename);
            }
        }
        Kind::Conditional { arms, otherwise } => {
            for (a, b) in arms {
                renamed(a, locals, rename);
                renamed(b, locals, rename);
            }
            renamed(otherwise, locals, rename);
        }
        Kind::Has(operand) | Kind::Unary { operand, .. } => renamed(operand, locals, rename),
        Kind::Bind { name, value, body } => {
            renamed(value, locals, rename);
            locals.push(name.clone());
            renamed(body, locals, rename);
            locals.pop();
        }
        Kind::Chain { first, rest } => {
            renamed(first, locals, rename);
            rest.iter_mut().for_each(|(_, n)| renamed(n, locals, rename));
        }
        Kind::Postfix { base, links } => {
            // A name at the start of the chain has already been renamed.
            if !matches!(base.kind, Kind::Ident { .. }) {
                renamed(base, locals, rename);
            }
            for link in links {
                match &mut link.kind {
                    LinkKind::Field(_) => {}
                    LinkKind::Index(index) => renamed(index, locals, rename),
                    LinkKind::Method { args, .. } => args.iter_mut().for_each(|n| renamed(n, locals, rename)),
                    LinkKind::Macro { vars, condition, body, .. } => {
                        let before = locals.len();
                        locals.extend_from_slice(vars);
                        if let Some(condition) = condition {
                            renamed(condition, locals, rename);
                        }
                        renamed(body, locals, rename);
                        locals.truncate(before);
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
    fn reads_roots_and_calls() {
        let ast = parse("a.b['c'][0].d(e.f) + math.abs(g) + x.map(x, x.y + z).size() + size(int(1))").unwrap();
        let reads: Vec<String> = ast.reads().iter().map(|p| p.text().to_owned()).collect();
        assert_eq!(reads, ["a.b[\"c\"][0]", "e.f", "g", "x", "z"]);
        let roots: Vec<&str> = ast.roots().map(|(name, _)| name).collect();
        assert_eq!(roots, ["a", "e", "g", "x", "z"]);
        let calls: Vec<String> = ast.calls().iter().map(|c| format!("{}/{}", c.name, c.method)).collect();
        assert_eq!(calls, ["d/true", "math.abs/false", "size/true", "size/false", "int/false"]);
    }

    #[test]
    fn roots_are_renamed() {
        let renamed = |source: &str| {
            let into = |name: &str| (name != "In").then(|| vec!["context".to_owned(), name.to_owned()]);
            parse(source).unwrap().rename_roots(into).unwrap().unparse()
        };
        assert_eq!(renamed("x + y.z"), "context.x + context.y.z");
        assert_eq!(renamed("In('a') && has(x.y)"), "In(\"a\") && has(context.x.y)");
        assert_eq!(renamed("xs.all(x, x > y)"), "context.xs.all(x, x > context.y)");
        assert_eq!(renamed("xs.all(context, context > y)"), "context.xs.all(context, context > .context.y)");
        assert_eq!(renamed("math.abs(x) + int(y)"), "math.abs(context.x) + int(context.y)");
        assert_eq!(renamed("cel.bind(x, x, x)"), "cel.bind(x, context.x, x)");
    }
}
