//! Where each part of the definition was written, as a tree of JSON pointers.
//!
//! A map from pointers to places would be too large: a pointer repeats all keys above it, so its
//! memory would grow with the length of a key times the number of its children. Filling the tree is
//! cheap; the index is built on the first lookup, because most charters have no errors.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::source::{Place, Span};

/// The index of a part of the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Part(u32);

#[derive(Debug, Clone, Copy)]
struct Entry {
    parent: Part,
    /// Range of bytes in `keys`.
    key: (u32, u32),
    place: Option<Place>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    keys: String,
    entries: Vec<Entry>,
    index: OnceLock<Index>,
}

#[derive(Debug, Clone, Default)]
struct Index {
    children: FxHashMap<(Part, Box<str>), Part>,
    /// Places by part. This is a map because the reader may visit a part twice.
    places: FxHashMap<Part, Place>,
}

impl Places {
    /// The definition itself.
    pub(crate) const ROOT: Part = Part(u32::MAX);

    /// Returns the part at a key of `parent`; creates it if necessary.
    pub(crate) fn enter(&mut self, parent: Part, key: &str) -> Part {
        // The limits on the source keep both numbers far below 2^32. If one of them does not fit,
        // the part shares the place of its parent.
        let (Ok(start), Ok(id)) = (u32::try_from(self.keys.len()), u32::try_from(self.entries.len())) else {
            return parent;
        };
        let Some(end) = u32::try_from(key.len()).ok().and_then(|length| start.checked_add(length)) else {
            return parent;
        };
        self.keys.push_str(key);
        self.entries.push(Entry { parent, key: (start, end), place: None });
        Part(id)
    }

    pub(crate) fn mark(&mut self, part: Part, place: Place) {
        if let Some(entry) = usize::try_from(part.0).ok().and_then(|id| self.entries.get_mut(id)) {
            entry.place = Some(place);
        }
    }

    /// A pseudo-key that refers to the key of a part, for keys that are expressions (`assign`). It
    /// is not a key in definitions.
    pub(crate) const KEY: &'static str = "#";

    /// The place of the part at a JSON pointer, or of its nearest ancestor with a known place.
    pub(crate) fn find(&self, pointer: &str) -> Place {
        let index = self.index.get_or_init(|| self.build_index());
        let mut part = Places::ROOT;
        let mut place = Place::at(Span::default());
        for key in charter_expr::pointer::keys(pointer) {
            let is_key = key == Places::KEY;
            match index.children.get(&(part, key.into())) {
                Some(child) => part = *child,
                // Offsets into the key do not apply to the value.
                None if is_key => return place.without_text(),
                None => break,
            }
            place = index.places.get(&part).copied().unwrap_or(place);
        }
        place
    }

    /// The pointers of all parts whose place is known.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = String> {
        self.entries.iter().filter(|entry| entry.place.is_some() && self.key(entry) != Places::KEY).map(|entry| {
            let mut keys = vec![self.key(entry)];
            let mut parent = entry.parent;
            while let Some(entry) = usize::try_from(parent.0).ok().and_then(|id| self.entries.get(id)) {
                keys.push(self.key(entry));
                parent = entry.parent;
            }
            keys.iter().rev().fold(String::new(), |pointer, key| charter_expr::pointer::join(&pointer, key))
        })
    }

    fn key(&self, entry: &Entry) -> &str {
        let bounds = |at: u32| usize::try_from(at).unwrap_or_default();
        self.keys.get(bounds(entry.key.0)..bounds(entry.key.1)).unwrap_or_default()
    }

    fn build_index(&self) -> Index {
        let mut index = Index::default();
        // Several entries for the same part are merged into the first.
        let mut same: Vec<Part> = Vec::with_capacity(self.entries.len());
        for (id, entry) in (0_u32..).zip(&self.entries) {
            let parent =
                usize::try_from(entry.parent.0).ok().and_then(|id| same.get(id)).copied().unwrap_or(entry.parent);
            let part = *index.children.entry((parent, self.key(entry).into())).or_insert(Part(id));
            same.push(part);
            if let Some(place) = entry.place {
                index.places.insert(part, place);
            }
        }
        index
    }
}
