//! The actors of a run, found by id.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use charter_expr::{Object, Str, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Actor;

/// As many actors are searched one after the other.
const FEW: usize = 16;

/// The actors: the root first, then in order of creation. `actors` in expressions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actors {
    list: SmallVec<[Arc<Actor>; 1]>,
    /// The index of the newest actor with each id, made when one of many actors is looked up.
    index: OnceLock<Arc<FxHashMap<Arc<str>, usize>>>,
}

impl Actors {
    pub(crate) fn new(list: SmallVec<[Arc<Actor>; 1]>) -> Actors {
        Actors { list, index: OnceLock::new() }
    }

    /// The same actors, changed but not renamed.
    pub(crate) fn with(&self, list: SmallVec<[Arc<Actor>; 1]>) -> Actors {
        match list.len() <= FEW {
            true => Actors::new(list),
            false => Actors { list, index: self.index.clone() },
        }
    }

    /// Returns the index of the newest actor with this id: an invocation may be restarted while its
    /// predecessor is being stopped.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        if self.list.len() <= FEW {
            return self.list.iter().rposition(|a| a.identity().id.as_ref() == id);
        }
        let indexed = || {
            let ids = self.list.iter().map(|a| a.identity().id.clone());
            Arc::new(ids.enumerate().map(|(i, id)| (id, i)).collect())
        };
        self.index.get_or_init(indexed).get(id).copied()
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Actor> {
        self.position(id).and_then(|i| self.list.get(i)).map(AsRef::as_ref)
    }

    pub(crate) fn push(&mut self, actor: Actor) {
        if let Some(index) = self.index.get_mut() {
            Arc::make_mut(index).insert(actor.identity().id.clone(), self.list.len());
        }
        self.list.push(Arc::new(actor));
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&Actor) -> bool) {
        self.list.retain(|a| keep(a));
        self.index = OnceLock::new();
    }
}

impl PartialEq for Actors {
    fn eq(&self, other: &Actors) -> bool {
        self.list == other.list
    }
}

impl Deref for Actors {
    type Target = [Arc<Actor>];
    fn deref(&self) -> &[Arc<Actor>] {
        &self.list
    }
}

/// Actors are changed in place, never replaced by one with another id.
impl DerefMut for Actors {
    fn deref_mut(&mut self) -> &mut [Arc<Actor>] {
        &mut self.list
    }
}

impl Object for Actors {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.find(key).map(|a| Value::object(a))
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let mut keys: Vec<_> = self.list.iter().map(|a| Str::from(a.id())).collect();
        keys.sort_unstable_by(|a: &Str<'_>, b| a.as_str().cmp(b.as_str()));
        keys
    }
    fn len(&self) -> usize {
        self.list.len()
    }
}
