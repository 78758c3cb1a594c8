//! A vector that is almost always empty: it takes one word in a snapshot, and there is usually
//! nothing to copy from step to step.

use std::ops::Deref;

/// A vector that is almost always empty. It dereferences to a slice.
///
/// The crate `thin-vec` has the same size, but is built on `unsafe` code with its own allocation
/// layout; this one is an optional box and adds no dependency.
#[derive(Debug, Clone)]
#[allow(clippy::box_collection)] // a `Vec` has three words, a box one
pub(crate) struct ThinVec<T>(Option<Box<Vec<T>>>);

impl<T> ThinVec<T> {
    /// Returns the vector for writing, allocating it if necessary.
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
