//! Decides whether data matches a schema. Every schema visited at a place costs a unit of fuel;
//! results are kept where a schema can be reached at the same place again, so the work is at most
//! the number of subschemas times the number of values. Keeping one costs more than looking it up:
//! it takes memory, and a table that grows is copied.

use std::ops::ControlFlow;

use charter_expr::Fuel;
use rustc_hash::FxHashMap;

use super::TooCostly;
use super::node::{Contains, Id, ListRule, Mixed, Node, NumberRule, Options, TextRule};
use super::same;
use super::view::{Kind, View};

/// Upper limit of the schemas that are open at once, each because of the one before.
const MAX_OPEN: usize = 600;

/// What keeping a result costs.
const FUEL_TO_KEEP: u64 = 4;

/// The state of one check.
pub(super) struct Walk<'s, 'f> {
    pub(super) nodes: &'s [Node],
    pub(super) fuel: &'f mut Fuel,
    /// By schema and place.
    memo: FxHashMap<(Id, usize), bool>,
    /// Whether to keep all results.
    keep_all: bool,
    pub(super) open: usize,
}

pub(super) type Decided = Result<bool, TooCostly>;

impl<'s, 'f> Walk<'s, 'f> {
    pub(super) fn new(nodes: &'s [Node], fuel: &'f mut Fuel) -> Walk<'s, 'f> {
        Walk { nodes, fuel, memo: FxHashMap::default(), keep_all: false, open: 0 }
    }

    /// For a caller that asks again and again for the same places.
    pub(super) fn keeping(nodes: &'s [Node], fuel: &'f mut Fuel) -> Walk<'s, 'f> {
        Walk { keep_all: true, ..Walk::new(nodes, fuel) }
    }

    /// Whether the data matches a schema.
    pub(super) fn visit<V: View>(&mut self, id: Id, data: V) -> Decided {
        let Some(node) = self.nodes.get(id as usize) else {
            return Ok(false);
        };
        self.fuel.spend(1)?;
        // What is decided at once is not worth keeping.
        if !(node.memo || self.keep_all) || !node.looks_inside(data.kind()) {
            return self.decide(node, id, data);
        }
        let key = (id, data.place());
        if let Some(known) = self.memo.get(&key) {
            return Ok(*known);
        }
        self.fuel.spend(FUEL_TO_KEEP)?;
        let fits = self.decide(node, id, data)?;
        self.memo.insert(key, fits);
        Ok(fits)
    }

    #[inline]
    fn decide<V: View>(&mut self, node: &'s Node, id: Id, data: V) -> Decided {
        let kind = data.kind();
        if node.never || !allowed(node.kinds, kind, data) {
            return Ok(false);
        }
        for options in node.constant.iter().chain(&node.options) {
            if !self.is_option(options, kind, data)? {
                return Ok(false);
            }
        }
        match kind {
            Kind::Int | Kind::Float if node.number.as_ref().is_some_and(|rule| !number_fits(rule, data)) => {
                return Ok(false);
            }
            Kind::Text => {
                if let Some(rule) = &node.text
                    && !self.text_fits(rule, data)?
                {
                    return Ok(false);
                }
            }
            _ => {}
        }
        if !node.looks_inside(kind) {
            return Ok(true);
        }
        if self.open >= MAX_OPEN {
            return Err(TooCostly);
        }
        self.open = self.open.saturating_add(1);
        let fits = self.inside(node, id, kind, data);
        self.open = self.open.saturating_sub(1);
        fits
    }

    fn inside<V: View>(&mut self, node: &'s Node, id: Id, kind: Kind, data: V) -> Decided {
        match kind {
            Kind::List => {
                if let Some(rule) = &node.list
                    && !self.list_fits(rule, data)?
                {
                    return Ok(false);
                }
            }
            Kind::Object => {
                if let Some(rule) = &node.object
                    && !self.object_fits(rule, data)?
                {
                    return Ok(false);
                }
            }
            _ => {}
        }
        if let Some(mixed) = &node.mixed
            && !self.mixed_fits(mixed, data)?
        {
            return Ok(false);
        }
        match kind {
            Kind::List if node.list.as_ref().is_some_and(|list| list.unevaluated.is_some()) => {
                Ok(self.unevaluated_items(id, data)?.is_empty())
            }
            Kind::Object if node.object.as_ref().is_some_and(|object| object.unevaluated.is_some()) => {
                Ok(self.unevaluated_fields(id, data)?.is_empty())
            }
            _ => Ok(true),
        }
    }

    /// Whether the data is one of the values.
    pub(super) fn is_option<V: View>(&mut self, options: &Options, kind: Kind, data: V) -> Decided {
        if kind == Kind::Text {
            let words = options.words.as_slice();
            return Ok(data
                .text(|text| match words {
                    [word] => **word == *text,
                    _ => words.binary_search_by(|word| (**word).cmp(text)).is_ok(),
                })
                .unwrap_or(false));
        }
        if options.others.is_empty() {
            return Ok(false);
        }
        let bytes = same::bytes(data, options.longest, self.fuel)?;
        Ok(bytes.is_some_and(|bytes| options.others.binary_search(&bytes).is_ok()))
    }

    fn text_fits<V: View>(&mut self, rule: &TextRule, data: V) -> Decided {
        data.text(|text| {
            if !length_fits(rule, text, self.fuel)? {
                return Ok(false);
            }
            if let Some(pattern) = &rule.pattern
                && !pattern.is_match(text, self.fuel)?
            {
                return Ok(false);
            }
            match rule.format {
                Some(format) => format.fits(text, self.fuel),
                None => Ok(true),
            }
        })
        .unwrap_or(Ok(true))
    }

    fn list_fits<V: View>(&mut self, rule: &'s ListRule, data: V) -> Decided {
        let len = data.len() as u64;
        if len < rule.fewest || rule.most.is_some_and(|most| len > most) {
            return Ok(false);
        }
        if rule.unique && !self.is_unique(data)? {
            return Ok(false);
        }
        if rule.items.is_some() || !rule.first.is_empty() {
            let mut first = rule.first.iter();
            let fits = self.every(data, |walk, item| match first.next().or(rule.items.as_ref()) {
                Some(schema) => walk.visit(*schema, item),
                None => Ok(true),
            })?;
            if !fits {
                return Ok(false);
            }
        }
        match rule.contains {
            Some(contains) => Ok(contains.admits(self.count(&contains, data)?)),
            None => Ok(true),
        }
    }

    /// Whether the items are different.
    pub(super) fn is_unique<V: View>(&mut self, data: V) -> Decided {
        let mut seen = std::collections::BTreeSet::new();
        self.every(data, |walk, item| match same::bytes(item, usize::MAX, walk.fuel)? {
            Some(bytes) => Ok(seen.insert(bytes)),
            None => Ok(true),
        })
    }

    /// The number of items that match `contains`.
    pub(super) fn count<V: View>(&mut self, contains: &Contains, data: V) -> Result<u64, TooCostly> {
        let mut count = 0u64;
        let enough = contains.most.is_none().then(|| contains.fewest.unwrap_or(1));
        self.every(data, |walk, item| {
            count = count.saturating_add(walk.visit(contains.item, item)?.into());
            Ok(enough.is_none_or(|enough| count < enough))
        })?;
        Ok(count)
    }

    /// Whether a condition holds for every item, in their order.
    pub(super) fn every<V: View>(&mut self, data: V, mut fits: impl FnMut(&mut Self, V) -> Decided) -> Decided {
        let mut fault = None;
        let all = data.items(|item| match fits(self, item) {
            Ok(fits) => fits,
            Err(e) => {
                fault = Some(e);
                false
            }
        });
        fault.map_or(Ok(all), Err)
    }

    fn mixed_fits<V: View>(&mut self, mixed: &'s Mixed, data: V) -> Decided {
        for schema in mixed.refs.iter().chain(&mixed.all) {
            if !self.visit(*schema, data)? {
                return Ok(false);
            }
        }
        if !mixed.any.is_empty() && !self.any(&mixed.any, data)? {
            return Ok(false);
        }
        if !mixed.one.is_empty() && self.one(&mixed.one, data)?.is_continue() {
            return Ok(false);
        }
        if let Some(not) = mixed.not
            && self.visit(not, data)?
        {
            return Ok(false);
        }
        // Alone, `if` only says what is evaluated.
        let Some(condition) = mixed.condition.filter(|c| c.then.is_some() || c.otherwise.is_some()) else {
            return Ok(true);
        };
        let next = if self.visit(condition.test, data)? { condition.then } else { condition.otherwise };
        next.map_or(Ok(true), |schema| self.visit(schema, data))
    }

    /// Whether the data matches one of the schemas or more.
    pub(super) fn any<V: View>(&mut self, schemas: &[Id], data: V) -> Decided {
        for schema in schemas {
            if self.visit(*schema, data)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The only schema that the data matches; otherwise, whether it matches several.
    pub(super) fn one<V: View>(&mut self, schemas: &[Id], data: V) -> Result<ControlFlow<Id, bool>, TooCostly> {
        let mut only = None;
        for schema in schemas {
            if self.visit(*schema, data)? {
                if only.is_some() {
                    return Ok(ControlFlow::Continue(true));
                }
                only = Some(*schema);
            }
        }
        Ok(only.map_or(ControlFlow::Continue(false), ControlFlow::Break))
    }
}

/// Whether the data has one of the kinds.
pub(super) fn allowed<V: View>(kinds: u8, kind: Kind, data: V) -> bool {
    kinds == 0
        || kinds & kind.bit() != 0
        || kind == Kind::Float && kinds & Kind::Int.bit() != 0 && data.number().is_some_and(|n| n.is_integer())
}

fn number_fits<V: View>(rule: &NumberRule, data: V) -> bool {
    data.number().is_none_or(|n| {
        rule.minimum.is_none_or(|least| n.order(least).is_ge())
            && rule.maximum.is_none_or(|most| n.order(most).is_le())
            && rule.above.is_none_or(|above| n.order(above).is_gt())
            && rule.below.is_none_or(|below| n.order(below).is_lt())
            && rule.multiple_of.is_none_or(|of| super::number::Decimal::of(n).is_multiple_of(of))
    })
}

/// Whether the text has as many characters as the rule allows.
fn length_fits(rule: &TextRule, text: &str, fuel: &mut Fuel) -> Decided {
    // A character has one byte to four.
    let bytes = text.len() as u64;
    let surely = bytes / 4 >= rule.shortest && rule.longest.is_none_or(|longest| bytes <= longest);
    if surely || rule.shortest <= 1 && bytes >= rule.shortest && rule.longest.is_none() {
        return Ok(true);
    }
    fuel.spend(bytes / 64)?;
    let chars = text.chars().count() as u64;
    Ok(chars >= rule.shortest && rule.longest.is_none_or(|longest| chars <= longest))
}

impl Contains {
    pub(super) fn admits(&self, count: u64) -> bool {
        count >= self.fewest.unwrap_or(1) && self.most.is_none_or(|most| count <= most)
    }
}
