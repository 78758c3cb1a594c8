//! What schemas and examples say about a place, and how two of them are combined.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Fields, Items, NumberType, Numbers};

/// Maximum number of schemas and example values that are read; the rest declares nothing.
const MAX_PARTS: usize = 100_000;

/// What a schema or an example says about values of one kind in a place.
#[derive(Clone)]
pub(super) enum Says<T> {
    /// There are no such values, or they are not mentioned.
    Nothing,
    /// Any.
    Free,
    Is(T),
}

#[derive(Clone)]
pub(super) struct Place {
    pub(super) number: Says<NumberType>,
    pub(super) list: Says<Arc<ItemPlaces>>,
    pub(super) object: Says<Arc<FieldPlaces>>,
}

pub(super) struct ItemPlaces {
    pub(super) first: Vec<Place>,
    pub(super) rest: Place,
}

pub(super) struct FieldPlaces {
    pub(super) named: BTreeMap<String, Place>,
    pub(super) others: Place,
}

impl ItemPlaces {
    pub(super) fn item(&self, index: usize) -> &Place {
        self.first.get(index).unwrap_or(&self.rest)
    }

    pub(super) fn zip(self: &Arc<Self>, other: &Arc<Self>, both: Combine, left: &mut Budget) -> Arc<Self> {
        if Arc::ptr_eq(self, other) {
            return self.clone();
        }
        let count = self.first.len().max(other.first.len());
        Arc::new(ItemPlaces {
            first: (0..count).map(|i| both(self.item(i), other.item(i), left)).collect(),
            rest: both(&self.rest, &other.rest, left),
        })
    }
}

impl FieldPlaces {
    pub(super) fn field(&self, name: &str) -> &Place {
        self.named.get(name).unwrap_or(&self.others)
    }

    pub(super) fn zip(self: &Arc<Self>, other: &Arc<Self>, both: Combine, left: &mut Budget) -> Arc<Self> {
        if Arc::ptr_eq(self, other) {
            return self.clone();
        }
        let names: BTreeSet<&String> = self.named.keys().chain(other.named.keys()).collect();
        let field = |name: &String, left: &mut Budget| both(self.field(name), other.field(name), left);
        Arc::new(FieldPlaces {
            named: names.into_iter().map(|name| (name.clone(), field(name, left))).collect(),
            others: both(&self.others, &other.others, left),
        })
    }
}

pub(super) const NOTHING: Place = Place { number: Says::Nothing, list: Says::Nothing, object: Says::Nothing };
pub(super) const FREE: Place = Place { number: Says::Free, list: Says::Free, object: Says::Free };

impl Place {
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Place { number: Says::Nothing, list: Says::Nothing, object: Says::Nothing })
    }

    /// Keeps the types; `None` if there are none.
    pub(super) fn finish(&self) -> Option<Numbers> {
        Finish::default().place(self)
    }
}

/// Combines two places.
pub(super) type Combine = fn(&Place, &Place, &mut Budget) -> Place;

/// How many parts may still be read or combined.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Budget {
        Budget(MAX_PARTS)
    }

    pub(super) fn take(&mut self) -> bool {
        let some = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        some
    }
}

/// Combines what two alternatives say.
pub(super) fn either(a: &Place, b: &Place, left: &mut Budget) -> Place {
    fn says<T: Clone>(a: &Says<T>, b: &Says<T>, both: impl FnOnce(&T, &T) -> Says<T>) -> Says<T> {
        match (a, b) {
            (Says::Nothing, other) | (other, Says::Nothing) => other.clone(),
            (Says::Is(a), Says::Is(b)) => both(a, b),
            _ => Says::Free,
        }
    }
    if !left.take() {
        return FREE;
    }
    Place {
        number: says(&a.number, &b.number, |a, b| if a == b { Says::Is(*a) } else { Says::Free }),
        list: says(&a.list, &b.list, |a, b| Says::Is(a.zip(b, either, left))),
        object: says(&a.object, &b.object, |a, b| Says::Is(a.zip(b, either, left))),
    }
}

/// Combines what two schemas say that both hold. An integer is a number, so an int is both.
pub(super) fn both(a: &Place, b: &Place, left: &mut Budget) -> Place {
    fn says<T: Clone>(a: &Says<T>, b: &Says<T>, both: impl FnOnce(&T, &T) -> T) -> Says<T> {
        match (a, b) {
            (Says::Is(a), Says::Is(b)) => Says::Is(both(a, b)),
            (Says::Is(it), _) | (_, Says::Is(it)) => Says::Is(it.clone()),
            (Says::Nothing, _) | (_, Says::Nothing) => Says::Nothing,
            (Says::Free, Says::Free) => Says::Free,
        }
    }
    if !left.take() {
        return FREE;
    }
    Place {
        number: says(&a.number, &b.number, |a, b| if *a == NumberType::Int { *a } else { *b }),
        list: says(&a.list, &b.list, |a, b| a.zip(b, both, left)),
        object: says(&a.object, &b.object, |a, b| a.zip(b, both, left)),
    }
}

/// Keeps only the types. Shared parts, known by their addresses, stay shared.
#[derive(Default)]
pub(super) struct Finish {
    lists: HashMap<usize, Option<Arc<Items>>>,
    objects: HashMap<usize, Option<Arc<Fields>>>,
}

impl Finish {
    fn place(&mut self, place: &Place) -> Option<Numbers> {
        let number = match place.number {
            Says::Is(number) => Some(number),
            _ => None,
        };
        let list = match &place.list {
            Says::Is(items) => self.items(items),
            _ => None,
        };
        let object = match &place.object {
            Says::Is(fields) => self.fields(fields),
            _ => None,
        };
        (number.is_some() || list.is_some() || object.is_some()).then_some(Numbers { number, list, object })
    }

    fn items(&mut self, items: &Arc<ItemPlaces>) -> Option<Arc<Items>> {
        let address = Arc::as_ptr(items).addr();
        if let Some(known) = self.lists.get(&address) {
            return known.clone();
        }
        let first: Vec<Option<Numbers>> = items.first.iter().map(|place| self.place(place)).collect();
        let rest = self.place(&items.rest);
        let any = rest.is_some() || first.iter().any(Option::is_some);
        let done = any.then(|| Arc::new(Items { first, rest }));
        self.lists.insert(address, done.clone());
        done
    }

    fn fields(&mut self, fields: &Arc<FieldPlaces>) -> Option<Arc<Fields>> {
        let address = Arc::as_ptr(fields).addr();
        if let Some(known) = self.objects.get(&address) {
            return known.clone();
        }
        let others = self.place(&fields.others);
        let mut named = BTreeMap::new();
        for (name, place) in &fields.named {
            let place = self.place(place);
            if place.is_some() || others.is_some() {
                named.insert(name.as_str().into(), place);
            }
        }
        let done = (others.is_some() || !named.is_empty()).then(|| Arc::new(Fields { named, others }));
        self.objects.insert(address, done.clone());
        done
    }
}
