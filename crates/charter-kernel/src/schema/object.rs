//! Decides whether an object matches the keywords for objects.

use smallvec::SmallVec;

use super::TooCostly;
use super::node::{Id, ObjectName, ObjectRule};
use super::view::{Name, View};
use super::walk::{Decided, Walk};

impl<'s> Walk<'s, '_> {
    /// Calls `each` with all fields.
    pub(super) fn fields<V: View>(
        &mut self,
        data: V,
        mut each: impl FnMut(&mut Self, &str, V) -> Result<(), TooCostly>,
    ) -> Result<(), TooCostly> {
        let mut fault = Ok(());
        data.fields(|name, value| {
            fault = each(self, name, value);
            fault.is_ok()
        });
        fault
    }

    pub(super) fn object_fits<V: View>(&mut self, rule: &'s ObjectRule, data: V) -> Decided {
        let len = data.len();
        self.fuel.spend((len / 8) as u64)?;
        if (len as u64) < rule.fewest || rule.most.is_some_and(|most| len as u64 > most) || len < rule.required.len() {
            return Ok(false);
        }
        let mut found = Places::new(rule.names.len());
        let mut fits = true;
        let mut next = 0usize;
        // All fields are visited, even if one does not match: the cost must not depend on their
        // order.
        self.fields(data, |walk, name, value| {
            let place = rule.place(name, next);
            if let Some(place) = place {
                found.insert(place);
                next = place.saturating_add(1);
            }
            fits &= walk.field_fits(rule, place, name, value)?;
            Ok(())
        })?;
        let fits = fits && rule.required.iter().all(|place| found.has(*place)) && {
            let mut given = rule.dependent_required.iter().filter(|dependent| found.has(dependent.given));
            given.all(|dependent| dependent.required.iter().all(|place| found.has(*place)))
        };
        if !fits {
            return Ok(false);
        }
        for (given, schema) in &rule.dependent {
            if found.has(*given) && !self.visit(*schema, data)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn field_fits<V: View>(&mut self, rule: &'s ObjectRule, place: Option<usize>, name: &str, value: V) -> Decided {
        let mut evaluated = false;
        if let Some(schema) = place.and_then(|place| rule.names.get(place)?.schema) {
            evaluated = true;
            if !self.visit(schema, value)? {
                return Ok(false);
            }
        }
        for (pattern, schema) in &rule.patterns {
            if pattern.is_match(name, self.fuel)? {
                evaluated = true;
                if !self.visit(*schema, value)? {
                    return Ok(false);
                }
            }
        }
        if let Some(schema) = rule.additional.filter(|_| !evaluated)
            && !self.visit(schema, value)?
        {
            return Ok(false);
        }
        match rule.name {
            Some(schema) => self.name_fits(schema, name),
            None => Ok(true),
        }
    }

    /// Whether the name of a property matches.
    pub(super) fn name_fits(&mut self, schema: Id, name: &str) -> Decided {
        let mut walk = Walk::new(self.nodes, self.fuel);
        walk.open = self.open;
        walk.visit(schema, Name(name))
    }
}

impl ObjectRule {
    /// The place of a name. Data often has its names in the same order, so `next` is tried first.
    pub(super) fn place(&self, name: &str, next: usize) -> Option<usize> {
        let first = start(name);
        if self.names.get(next).is_some_and(|known| known.start == first && *known.name == *name) {
            return Some(next);
        }
        self.names.binary_search_by(|known| known.start.cmp(&first).then_with(|| (*known.name).cmp(name))).ok()
    }
}

impl ObjectName {
    pub(super) fn new(name: &str, schema: Option<Id>) -> ObjectName {
        ObjectName { start: start(name), name: name.into(), schema }
    }
}

/// The first eight bytes as a number: two names whose numbers differ have the same order as these.
fn start(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut first = [0; 8];
    match bytes.first_chunk() {
        Some(chunk) => first = *chunk,
        None => first.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
    }
    u64::from_be_bytes(first)
}

/// Which places were found.
pub(super) struct Places(SmallVec<[u64; 2]>);

impl Places {
    pub(super) fn new(len: usize) -> Places {
        Places(SmallVec::from_elem(0, len.div_ceil(64)))
    }

    pub(super) fn insert(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word & (1 << (place % 64)) != 0)
    }
}
