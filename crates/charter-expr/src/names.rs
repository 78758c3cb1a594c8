//! What the names in a tree mean: the rules that the compiler, the checker and the readers of a tree share.

use std::sync::Arc;

use crate::ast::Literal;
use crate::ast::{Kind, Link, LinkKind, Node};
use crate::functions::{self, Entry};
use crate::path::{Path, Segment};
use crate::{Env, FunctionId, Key, RootId, Span, TypeName};

/// What the start of a chain of names means, and how many of the links it uses up.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// A variable of a macro.
    Local(usize),
    /// A root; `used` links are part of its qualified name.
    Root { id: RootId, used: usize },
    /// A type; `used` links are part of its qualified name.
    Type { name: TypeName, used: usize },
    /// A function of a namespace: `used` links, the last of them the call.
    Library { entry: &'static Entry, used: usize },
    /// A host function with a qualified name.
    Host { id: FunctionId, used: usize },
    /// Nothing that is known.
    Unknown,
}

/// Resolves a name followed by links (langdef, "Name Resolution"): variables of macros first, then the longest
/// qualified name that is a root, then namespaces and types.
pub(crate) fn resolve(
    env: &Env,
    locals: &[Arc<str>],
    name: &str,
    absolute: bool,
    links: &[Link],
) -> Meaning {
    if !absolute && let Some(slot) = locals.iter().rposition(|l| &**l == name) {
        return Meaning::Local(slot);
    }
    let mut names = vec![name.to_owned()];
    let mut method = None;
    for link in links {
        let last = names.last().map_or("", String::as_str);
        match &link.kind {
            LinkKind::Field(field) => names.push(format!("{last}.{field}")),
            LinkKind::Method { name, .. } => {
                method = Some(format!("{last}.{name}"));
                break;
            }
            _ => break,
        }
    }
    for (used, qualified) in names.iter().enumerate().rev() {
        if let Some(id) = env.resolve(qualified, absolute, |n| env.root_id(n)) {
            return Meaning::Root { id, used };
        }
    }
    if let Some(qualified) = method {
        let used = names.len();
        if let Some(id) = env.resolve(&qualified, absolute, |n| env.function_id(n)) {
            return Meaning::Host { id, used };
        }
        if let Some(entry) = functions::find(&qualified, false) {
            return Meaning::Library { entry, used };
        }
    }
    for (used, qualified) in names.iter().enumerate().rev() {
        if let Some(name) = TypeName::from_name(qualified) {
            return Meaning::Type { name, used };
        }
    }
    Meaning::Unknown
}

/// The key of a constant index.
pub(crate) fn constant_key(node: &Node) -> Option<Key<'static>> {
    match &node.kind {
        Kind::Literal(Literal::Int(i)) => Some(Key::Int(*i)),
        Kind::Literal(Literal::Uint(u)) => Some(Key::Uint(*u)),
        Kind::Literal(Literal::Bool(b)) => Some(Key::Bool(*b)),
        Kind::Literal(Literal::String(s)) => Some(Key::String(crate::Str::Owned(s.clone()))),
        _ => None,
    }
}

/// The path of a root and the links after it, as far as they are static.
pub(crate) fn path(root: Arc<str>, id: Option<RootId>, start: Span, links: &[Link]) -> Path {
    let mut segments = Vec::new();
    let mut span = start;
    for link in links {
        let segment = match &link.kind {
            LinkKind::Field(name) => Segment::Field(name.clone()),
            LinkKind::Index(index) => match constant_key(index) {
                Some(key) => Segment::Index(key),
                None => break,
            },
            _ => break,
        };
        segments.push(segment);
        span = span.to(link.span);
    }
    Path::new(root, id, segments, span)
}
