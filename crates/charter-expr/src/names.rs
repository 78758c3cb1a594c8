//! Name resolution, used by the compiler, the checker and the analysis of trees.

use std::sync::Arc;

use crate::ast::{Kind, Link, LinkKind, Literal, Node};
use crate::error::CompileError;
use crate::functions::{self, Entry, Style};
use crate::path::{Path, Segment};
use crate::{Env, FunctionId, Key, RootId, Span, TypeName, suggest};

/// The meaning of the name at the start of a chain, and how many links belong to it.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// A variable of a macro.
    Local(usize),
    /// A root; `used` links are part of its qualified name.
    Root { id: RootId, used: usize },
    /// A type; `used` links are part of its qualified name.
    Type { name: TypeName, used: usize },
    /// A function in a namespace. `used` links belong to it; the last one is the call.
    Library { entry: &'static Entry, used: usize },
    /// A host function with a qualified name.
    Host { id: FunctionId, used: usize },
    /// An unknown name.
    Unknown,
}

/// Resolves a name followed by links (CEL specification, "Name Resolution"): macro variables first,
/// then the longest qualified name that is a root, then namespaces and types.
pub(crate) fn resolve(env: &Env, locals: &[Arc<str>], name: &str, absolute: bool, links: &[Link]) -> Meaning {
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

/// Returns the key of an index, if it is constant.
pub(crate) fn constant_key(node: &Node) -> Option<Key<'static>> {
    match &node.kind {
        Kind::Literal(Literal::Int(i)) => Some(Key::Int(*i)),
        Kind::Literal(Literal::Uint(u)) => Some(Key::Uint(*u)),
        Kind::Literal(Literal::Bool(b)) => Some(Key::Bool(*b)),
        Kind::Literal(Literal::String(s)) => Some(Key::String(crate::Str::Owned(s.clone()))),
        _ => None,
    }
}

/// Returns the path of a root and the static links after it.
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

/// Lists all known names as help, for when none of them is similar.
pub(crate) fn listed(known: &[&str]) -> Option<String> {
    if known.is_empty() || known.len() > 12 {
        return None;
    }
    let names: Vec<String> = known.iter().map(|n| format!("`{n}`")).collect();
    Some(format!("known names: {}", names.join(", ")))
}

pub(crate) fn unknown_function(env: &Env, name: &str, method: bool, span: Span) -> CompileError {
    let other_way = functions::find(name, !method).is_some();
    let help = if other_way && method {
        Some(format!("write `{name}(x)`"))
    } else if other_way {
        Some(format!("write `x.{name}(...)`"))
    } else {
        let wanted = if method { Style::Method } else { Style::Global };
        let library = functions::LIBRARY.iter().filter(|e| e.style == wanted || e.style == Style::Both).map(|e| e.name);
        let macros = ["all", "exists", "exists_one", "map", "filter", "transformList", "transformMap"];
        let macros = macros.into_iter().filter(|_| method);
        let host: Vec<&str> = if method { Vec::new() } else { env.function_names().collect() };
        suggest::did_you_mean(name, library.chain(macros).chain(host))
    };
    CompileError { span, message: format!("there is no function `{name}`"), help }
}
