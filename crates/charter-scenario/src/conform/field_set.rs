//! Sets of fields: the parts of an item that can affect its verdict.

/// A set of fields of a value.
#[derive(Debug, Default, Clone)]
pub(crate) struct FieldSet {
    all: bool,
    parts: Vec<(Box<str>, FieldSet)>,
}

impl FieldSet {
    /// Creates the set of all fields.
    #[cfg(test)]
    pub(crate) fn all() -> FieldSet {
        FieldSet { all: true, parts: Vec::new() }
    }

    /// Whether the whole value is in the set.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.all
    }

    /// Returns the part of the set below a field; `None` if the field is not in the set.
    pub(crate) fn part(&self, key: &str) -> Option<&FieldSet> {
        let found = self.parts.iter().find(|(name, _)| name.as_ref() == key);
        found.map(|(_, part)| part)
    }

    /// Adds the value at the end of a path of fields.
    pub(crate) fn add<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) {
        let mut at = self;
        for key in path {
            if at.all {
                return;
            }
            let place = match at.parts.iter().position(|(name, _)| name.as_ref() == key) {
                Some(place) => place,
                None => {
                    at.parts.push((key.into(), FieldSet::default()));
                    at.parts.len() - 1
                }
            };
            match at.parts.get_mut(place) {
                Some((_, part)) => at = part,
                None => return,
            }
        }
        (at.all, at.parts) = (true, Vec::new());
    }
}
