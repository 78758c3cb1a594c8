//! A list that is nearly always empty: one word of a snapshot, and nothing to copy from step to step.

use std::ops::Deref;

/// A list that is nearly always empty. It is read as a slice.
#[derive(Debug, Clone)]
#[allow(clippy::box_collection)] // that is the point: a vector has three words
pub(crate) struct ThinVec<T>(Option<Box<Vec<T>>>);

impl<T> ThinVec<T> {
    /// The list, to change it.
    pub(crate) fn list(&mut self) -> &mut Vec<T> {
        self.0.get_or_insert_default()
    }
}

impl<T> Default for ThinVec<T> {
    fn default() -> ThinVec<T> {
        ThinVec(None)
    }
}

impl<T> Deref for ThinVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.0 {
            None => &[],
            Some(list) => list,
        }
    }
}

impl<T: PartialEq> PartialEq for ThinVec<T> {
    fn eq(&self, other: &ThinVec<T>) -> bool {
        **self == **other
    }
}

impl<T> FromIterator<T> for ThinVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> ThinVec<T> {
        let list: Vec<T> = items.into_iter().collect();
        ThinVec((!list.is_empty()).then(|| Box::new(list)))
    }
}
