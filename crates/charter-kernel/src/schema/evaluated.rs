//! `unevaluatedItems` and `unevaluatedProperties`: which items and fields no other keyword of the
//! schema, and of the schemas that it applies to the same place, has evaluated.

use std::ops::ControlFlow;

use super::TooCostly;
use super::node::{Id, Node};
use super::object::Places;
use super::view::View;
use super::walk::Walk;

/// What is evaluated at one place.
struct Marks {
    evaluated: Places,
    len: usize,
    /// The schemas that have marked what they evaluate.
    done: Vec<Id>,
}

impl Marks {
    fn new(len: usize) -> Marks {
        Marks { evaluated: Places::new(len), len, done: Vec::new() }
    }
}

impl<'s> Walk<'s, '_> {
    /// The places of the items that do not match `unevaluatedItems` of a schema.
    pub(super) fn unevaluated_items<V: View>(&mut self, id: Id, data: V) -> Result<Vec<usize>, TooCostly> {
        let unevaluated = self.node(id).and_then(|node| node.list.as_ref()?.unevaluated);
        let mut marks = Marks::new(data.len());
        self.mark(id, data, &mut marks, true, Self::mark_items)?;
        let (mut wrong, mut place) = (Vec::new(), 0usize);
        self.every(data, |walk, item| {
            if !marks.evaluated.has(place)
                && let Some(schema) = unevaluated
                && !walk.visit(schema, item)?
            {
                wrong.push(place);
            }
            place = place.saturating_add(1);
            Ok(true)
        })?;
        Ok(wrong)
    }

    /// The names of the fields that do not match `unevaluatedProperties` of a schema.
    pub(super) fn unevaluated_fields<V: View>(&mut self, id: Id, data: V) -> Result<Vec<String>, TooCostly> {
        let unevaluated = self.node(id).and_then(|node| node.object.as_ref()?.unevaluated);
        let mut marks = Marks::new(data.len());
        self.mark(id, data, &mut marks, true, Self::mark_fields)?;
        let (mut wrong, mut place) = (Vec::new(), 0usize);
        self.fields(data, |walk, name, value| {
            if !marks.evaluated.has(place)
                && let Some(schema) = unevaluated
                && !walk.visit(schema, value)?
            {
                wrong.push(name.to_owned());
            }
            place = place.saturating_add(1);
            Ok(())
        })?;
        Ok(wrong)
    }

    fn node(&self, id: Id) -> Option<&'s Node> {
        self.nodes.get(id as usize)
    }

    /// Marks what a schema and those that it applies here evaluate; of `anyOf` and its like, those
    /// that match. `own` marks by the schema's own keywords.
    fn mark<V: View>(
        &mut self,
        id: Id,
        data: V,
        marks: &mut Marks,
        is_root: bool,
        own: fn(&mut Self, &'s Node, V, &mut Marks, bool) -> Result<(), TooCostly>,
    ) -> Result<(), TooCostly> {
        let Some(node) = self.node(id).filter(|_| !marks.done.contains(&id)) else {
            return Ok(());
        };
        self.fuel.spend(1u64.saturating_add((marks.done.len() / 16) as u64).saturating_add((marks.len / 16) as u64))?;
        marks.done.push(id);
        let mut next: Vec<Id> = Vec::new();
        if let Some(mixed) = &node.mixed {
            next.extend(&mixed.refs);
            for schema in mixed.all.iter().chain(&mixed.any) {
                if self.visit(*schema, data)? {
                    next.push(*schema);
                }
            }
            if let ControlFlow::Break(only) = self.one(&mixed.one, data)? {
                next.push(only);
            }
            if let Some(condition) = mixed.condition {
                if self.visit(condition.test, data)? {
                    next.push(condition.test);
                    next.extend(condition.then);
                } else {
                    next.extend(condition.otherwise);
                }
            }
        }
        if let Some(object) = &node.object
            && !object.dependent.is_empty()
        {
            let mut found = Places::new(object.names.len());
            self.fields(data, |_, name, _| {
                object.place(name, 0).into_iter().for_each(|place| found.insert(place));
                Ok(())
            })?;
            next.extend(object.dependent.iter().filter(|(given, _)| found.has(*given)).map(|(_, id)| *id));
        }
        for schema in next {
            self.mark(schema, data, marks, false, own)?;
        }
        own(self, node, data, marks, is_root)
    }

    fn mark_items<V: View>(
        &mut self,
        node: &'s Node,
        data: V,
        marks: &mut Marks,
        is_root: bool,
    ) -> Result<(), TooCostly> {
        let Some(list) = &node.list else {
            return Ok(());
        };
        let unevaluated = list.unevaluated.filter(|_| !is_root);
        let mut place = 0usize;
        self.every(data, |walk, item| {
            let here = place;
            place = place.saturating_add(1);
            let mut evaluated = list.items.is_some() || here < list.first.len();
            for schema in list.contains.map(|contains| contains.item).into_iter().chain(unevaluated) {
                evaluated = evaluated || !marks.evaluated.has(here) && walk.visit(schema, item)?;
            }
            if evaluated {
                marks.evaluated.insert(here);
            }
            Ok(true)
        })?;
        Ok(())
    }

    fn mark_fields<V: View>(
        &mut self,
        node: &'s Node,
        data: V,
        marks: &mut Marks,
        is_root: bool,
    ) -> Result<(), TooCostly> {
        let Some(object) = &node.object else {
            return Ok(());
        };
        let unevaluated = object.unevaluated.filter(|_| !is_root);
        let mut at = 0usize;
        self.fields(data, |walk, name, value| {
            let here = at;
            at = at.saturating_add(1);
            let named = object.place(name, 0).and_then(|place| object.names.get(place)?.schema).is_some();
            let mut evaluated = named || object.additional.is_some();
            for (pattern, _) in &object.patterns {
                evaluated = evaluated || pattern.is_match(name, walk.fuel)?;
            }
            if let Some(schema) = unevaluated {
                evaluated = evaluated || !marks.evaluated.has(here) && walk.visit(schema, value)?;
            }
            if evaluated {
                marks.evaluated.insert(here);
            }
            Ok(())
        })
    }
}
