//! Static paths from a root: `context.decision.confidence`, `ledger.token["k"]`.

use std::sync::Arc;

use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::parse::is_identifier;
use crate::{Fuel, Key, RootId, Scope, Span, Value};

/// A path that an expression reads: a root and the fields and constant indexes after it, as far as
/// they are static.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub(crate) root: Arc<str>,
    pub(crate) id: Option<RootId>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) span: Span,
    pub(crate) text: String,
}

/// A step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// `.name`
    Field(Arc<str>),
    /// `[constant]`
    Index(Key<'static>),
}

impl Path {
    pub(crate) fn new(root: Arc<str>, id: Option<RootId>, segments: Vec<Segment>, span: Span) -> Path {
        let mut text = root.to_string();
        for segment in &segments {
            match segment {
                Segment::Field(name) if is_identifier(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Segment::Field(name) => text.push_str(&format!(".`{name}`")),
                Segment::Index(key) => text.push_str(&format!("[{:?}]", key.clone().into_value())),
            }
        }
        Path { root, id, segments, span, text }
    }

    /// The path as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the root.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The id of the root in its environment; `None` if the tree was not compiled.
    pub fn root_id(&self) -> Option<RootId> {
        self.id
    }

    /// The segments after the root.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The position in the source.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The names of the fields, if the path has no index.
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.segments
            .iter()
            .map(|s| match s {
                Segment::Field(name) => Some(&**name),
                Segment::Index(_) => None,
            })
            .collect()
    }

    /// Reads the value at the path.
    pub fn eval<'a>(&self, scope: &dyn Scope<'a>) -> Result<Value<'a>, EvalError> {
        let root = self.id.and_then(|id| scope.root(id));
        let mut value =
            root.ok_or_else(|| EvalError::from(EvalDetail::Unbound { name: self.root.to_string() }).at(self.span))?;
        let fuel = &mut Fuel::new(u64::MAX);
        for segment in &self.segments {
            let next = match segment {
                Segment::Field(name) => crate::eval::field(&value, name, fuel),
                Segment::Index(key) => crate::eval::index(&value, &key.clone().into_value(), fuel),
            };
            value = next.map_err(|e| e.at(self.span))?;
        }
        Ok(value)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
