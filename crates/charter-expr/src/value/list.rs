//! Lists: owned, or borrowed from JSON.

use std::sync::Arc;

use super::Value;

/// A list.
#[derive(Clone)]
#[non_exhaustive]
pub enum List<'a> {
    /// Created by an evaluation.
    Owned(Arc<[Value<'a>]>),
    /// A JSON array; its items are converted when they are read.
    Json(&'a [serde_json::Value]),
}

impl<'a> List<'a> {
    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            List::Owned(v) => v.len(),
            List::Json(v) => v.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, from 0.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Owned(v) => v.get(index).cloned(),
            List::Json(v) => v.get(index).map(Value::from_json),
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        List::Owned(items.into())
    }
}
