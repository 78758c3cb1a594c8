//! A compiled schema: its subschemas in one list, which refer to each other by index.

use std::ops::ControlFlow;

use super::format::Format;
use super::number::{Decimal, ExactNumber};
use super::pattern::Matcher;
use super::same::Bytes;
use super::view::Kind;

/// The index of a schema in the list.
pub(super) type Id = u32;

/// One schema or subschema. What is absent does not restrict the data.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// JSON pointer to the schema in its source.
    pub(super) path: Box<str>,
    /// Whether results are kept, because the schema can be reached at one place in several ways.
    pub(super) memo: bool,
    /// The schema `false`.
    pub(super) never: bool,
    /// The allowed kinds, as bits of `Kind`; 0: any. Whole floats are integers, too.
    pub(super) kinds: u8,
    pub(super) constant: Option<Box<Options>>,
    pub(super) options: Option<Box<Options>>,
    pub(super) number: Option<Box<NumberRule>>,
    pub(super) text: Option<Box<TextRule>>,
    pub(super) list: Option<Box<ListRule>>,
    pub(super) object: Option<Box<ObjectRule>>,
    pub(super) mixed: Option<Box<Mixed>>,
}

/// `enum` and `const`.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The texts, sorted.
    pub(super) words: Vec<Box<str>>,
    /// The other values as bytes, sorted.
    pub(super) others: Vec<Bytes>,
    /// The length of the longest of them.
    pub(super) longest: usize,
}

#[derive(Debug, Default)]
pub(super) struct NumberRule {
    pub(super) minimum: Option<ExactNumber>,
    pub(super) maximum: Option<ExactNumber>,
    pub(super) above: Option<ExactNumber>,
    pub(super) below: Option<ExactNumber>,
    pub(super) multiple_of: Option<Decimal>,
}

#[derive(Debug, Default)]
pub(super) struct TextRule {
    pub(super) shortest: u64,
    pub(super) longest: Option<u64>,
    pub(super) pattern: Option<Matcher>,
    pub(super) format: Option<Format>,
}

#[derive(Debug, Default)]
pub(super) struct ListRule {
    pub(super) fewest: u64,
    pub(super) most: Option<u64>,
    pub(super) unique: bool,
    /// `prefixItems`
    pub(super) first: Vec<Id>,
    pub(super) items: Option<Id>,
    pub(super) contains: Option<Contains>,
    pub(super) unevaluated: Option<Id>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Contains {
    pub(super) item: Id,
    pub(super) fewest: Option<u64>,
    pub(super) most: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct ObjectRule {
    /// The properties and every other name that a keyword mentions, sorted by name.
    pub(super) names: Vec<ObjectName>,
    /// Places in `names`, as in the following fields.
    pub(super) required: Vec<usize>,
    pub(super) fewest: u64,
    pub(super) most: Option<u64>,
    pub(super) patterns: Vec<(Matcher, Id)>,
    pub(super) additional: Option<Id>,
    /// `propertyNames`
    pub(super) name: Option<Id>,
    pub(super) dependent_required: Vec<Dependent>,
    pub(super) dependent: Vec<(usize, Id)>,
    pub(super) unevaluated: Option<Id>,
}

/// A name that a keyword mentions.
#[derive(Debug)]
pub(super) struct ObjectName {
    /// The beginning of the name, which tells most names apart.
    pub(super) start: u64,
    pub(super) name: Box<str>,
    /// Its schema in `properties`.
    pub(super) schema: Option<Id>,
}

/// What a property requires, by `dependentRequired` or by `dependencies`.
#[derive(Debug)]
pub(super) struct Dependent {
    pub(super) given: usize,
    pub(super) required: Vec<usize>,
    pub(super) keyword: &'static str,
}

/// Schemas for the same place.
#[derive(Debug, Default)]
pub(super) struct Mixed {
    pub(super) all: Vec<Id>,
    pub(super) any: Vec<Id>,
    pub(super) one: Vec<Id>,
    pub(super) not: Option<Id>,
    pub(super) condition: Option<Condition>,
    /// `$ref` and `$dynamicRef`
    pub(super) refs: Vec<Id>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Condition {
    pub(super) test: Id,
    pub(super) then: Option<Id>,
    pub(super) otherwise: Option<Id>,
}

/// Where a schema applies, seen from the schema that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// To the same place.
    Here,
    /// To an item, a property or a name.
    Below,
}

impl Node {
    /// Calls `each` with every subschema, until it breaks.
    pub(super) fn edges(&mut self, mut each: impl FnMut(&mut Id, Edge) -> ControlFlow<()>) -> ControlFlow<()> {
        if let Some(list) = self.list.as_deref_mut() {
            let contains = list.contains.as_mut().map(|contains| &mut contains.item);
            let single = list.items.iter_mut().chain(contains).chain(&mut list.unevaluated);
            list.first.iter_mut().chain(single).try_for_each(|id| each(id, Edge::Below))?;
        }
        if let Some(object) = self.object.as_deref_mut() {
            let named = object.names.iter_mut().filter_map(|known| known.schema.as_mut());
            let patterns = object.patterns.iter_mut().map(|(_, id)| id);
            let single = object.additional.iter_mut().chain(&mut object.name).chain(&mut object.unevaluated);
            named.chain(patterns).chain(single).try_for_each(|id| each(id, Edge::Below))?;
            object.dependent.iter_mut().try_for_each(|(_, id)| each(id, Edge::Here))?;
        }
        if let Some(mixed) = self.mixed.as_deref_mut() {
            let Mixed { all, any, one, not, condition, refs } = mixed;
            let lists = all.iter_mut().chain(any).chain(one).chain(not).chain(refs);
            lists.into_iter().try_for_each(|id| each(id, Edge::Here))?;
            if let Some(Condition { test, then, otherwise }) = condition {
                each(test, Edge::Here)?;
                then.iter_mut().chain(otherwise).try_for_each(|id| each(id, Edge::Here))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The subschemas.
    pub(super) fn children(&mut self) -> Vec<(Id, Edge)> {
        let mut children = Vec::new();
        let _ = self.edges(|id, edge| {
            children.push((*id, edge));
            ControlFlow::Continue(())
        });
        children
    }

    /// The target, if the schema is nothing but a reference.
    pub(super) fn alias(&self) -> Option<Id> {
        let mixed = self.mixed.as_deref()?;
        let Mixed { all, any, one, not, condition, refs } = mixed;
        let [target] = refs.as_slice() else {
            return None;
        };
        let alone = all.is_empty() && any.is_empty() && one.is_empty() && not.is_none() && condition.is_none();
        let bare = self.constant.is_none() && self.options.is_none() && self.number.is_none() && self.text.is_none();
        let flat = self.list.is_none() && self.object.is_none() && self.kinds == 0 && !self.never;
        (alone && bare && flat).then_some(*target)
    }

    /// Whether deciding data of a kind may take more than comparing the data itself.
    pub(super) fn looks_inside(&self, kind: Kind) -> bool {
        let has_rule = match kind {
            Kind::List => self.list.is_some(),
            Kind::Object => self.object.is_some(),
            _ => false,
        };
        has_rule || self.mixed.is_some()
    }

    /// Whether the schema looks at what its data evaluated.
    pub(super) fn has_unevaluated(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.unevaluated.is_some())
            || self.object.as_ref().is_some_and(|object| object.unevaluated.is_some())
    }
}
