//! Lists: owned, or borrowed from JSON.

use std::sync::Arc;

use super::Value;
use crate::Numbers;

/// A list.
#[derive(Clone)]
#[non_exhaustive]
pub enum List<'a> {
    /// Created by an evaluation.
    Owned(Arc<[Value<'a>]>),
    /// A JSON array and the types of its numbers; its items are converted when they are read.
    // A `Vec`, because the pointer to a slice would make every value larger.
    Json(&'a Vec<serde_json::Value>, Option<&'a Numbers>),
}

impl<'a> List<'a> {
    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            List::Owned(v) => v.len(),
            List::Json(v, _) => v.len(),
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
            List::Json(v, numbers) => v.get(index).map(|item| Value::typed(item, numbers.and_then(|n| n.item(index)))),
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
