//! Checks actions: the expressions that they evaluate, and whether values fit their destinations.

use charter_expr::Type;
use charter_kernel::definition::{Action, Block, Template};

use super::Checker;
use super::env::Place;
use super::fit;
use super::value::{Expected, item_of};
use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::escape;
use crate::model::walk::{indexes, variable_of};

impl<'d> Checker<'_, 'd> {
    pub(super) fn block(&mut self, block: &'d Block, at: &str, place: &Place, depth: usize) {
        if depth > 110 {
            return;
        }
        let mut place = place.clone();
        for (i, action) in block.iter().enumerate() {
            let at = format!("{at}/{i}");
            self.action(action, &at, &mut place, depth.saturating_add(1));
        }
    }

    /// Checks an action and updates `place` with the facts that hold after it.
    fn action(&mut self, action: &'d Action, at: &str, place: &mut Place, depth: usize) {
        match action {
            // A named block does not see the local names at the place where it is used.
            Action::Name(name) => {
                if let Some(block) = self.model.def.actions.get(name) {
                    let mut place = place.clone();
                    for (name, _) in std::mem::take(&mut place.locals) {
                        place.facts.forget(&name);
                    }
                    self.block(block, &format!("/actions/{}", escape(name)), &place, depth);
                }
                place.facts.forget("context");
            }
            Action::Assign(list) => {
                for (path, value) in list {
                    let at = format!("{at}/assign/{}", escape(path));
                    for cel in indexes(path) {
                        self.cel_without_span(cel, &at, place);
                    }
                    let ty = self.template(value, &at, place);
                    self.fits_context(place.chart, path, Some(value), &ty, &at);
                    place.assigned(path);
                }
            }
            Action::Raise { r#type, data } => self.event(r#type, data.as_ref(), &format!("{at}/raise"), place),
            Action::Emit { r#type, data } => {
                self.text(r#type, &format!("{at}/emit/type"), place);
                self.maybe(data.as_ref(), &format!("{at}/emit/data"), place);
            }
            Action::Send(send) => {
                let at = format!("{at}/send");
                self.event(&send.r#type, send.data.as_ref(), &at, place);
                for (key, t) in [("to", &send.to), ("id", &send.id)] {
                    if let Some(t) = t {
                        self.text(t, &format!("{at}/{key}"), place);
                    }
                }
                self.maybe(send.processor.as_ref(), &format!("{at}/processor"), place);
                if let Some(delay) = &send.delay {
                    self.delay(delay, &format!("{at}/delay"), place);
                }
            }
            Action::Cancel(id) => self.text(id, &format!("{at}/cancel"), place),
            Action::Stop(id) => self.text(id, &format!("{at}/stop"), place),
            Action::Log { value, .. } => drop(self.template(value, &format!("{at}/log/value"), place)),
            Action::Spawn { machine, id, input } => {
                self.text(id, &format!("{at}/spawn/id"), place);
                let ty = input.as_ref().map(|t| self.template(t, &format!("{at}/spawn/input"), place));
                self.fits_input(machine, input.as_ref(), ty, &format!("{at}/spawn"), "input");
            }
            Action::If(branches) => {
                let mut otherwise = place.clone();
                for (i, branch) in branches.iter().enumerate() {
                    let mut place = otherwise.clone();
                    if let Some(when) = &branch.when {
                        self.cel(when, &format!("{at}/if/{i}/when"), &place, Expected::Bool);
                        place.facts.add(self.facts_of(when, true));
                        otherwise.facts.add(self.facts_of(when, false));
                    }
                    self.block(&branch.r#do, &format!("{at}/if/{i}/do"), &place, depth);
                }
                place.facts.forget("context");
            }
            Action::Each { r#in, r#as, index, r#do } => {
                let ty = self.cel(r#in, &format!("{at}/each/in"), place, Expected::List);
                let (item, key) = item_of(&ty);
                // From the second iteration on, earlier iterations may have changed the context.
                place.facts.forget("context");
                let mut place = place.clone();
                for name in std::iter::once(r#as).chain(index) {
                    place.facts.forget(name);
                }
                place.locals.push((r#as.clone(), item));
                place.locals.extend(index.iter().map(|name| (name.clone(), key.clone())));
                self.block(r#do, &format!("{at}/each/do"), &place, depth);
            }
            Action::Grant { key, uses, expires, data, .. } => {
                let at = format!("{at}/grant");
                self.text(key, &format!("{at}/key"), place);
                self.maybe(uses.as_ref(), &format!("{at}/uses"), place);
                self.time(expires.as_ref(), &format!("{at}/expires"), place);
                self.maybe(data.as_ref(), &format!("{at}/data"), place);
            }
            Action::Revoke { key, .. } => {
                if let Some(key) = key {
                    self.text(key, &format!("{at}/revoke/key"), place);
                }
            }
            Action::Open { key, due, data, .. } => {
                let at = format!("{at}/open");
                self.text(key, &format!("{at}/key"), place);
                self.time(due.as_ref(), &format!("{at}/due"), place);
                self.maybe(data.as_ref(), &format!("{at}/data"), place);
            }
            Action::Close { key, r#as, .. } => {
                if let Some(key) = key {
                    self.text(key, &format!("{at}/close/key"), place);
                }
                self.maybe(r#as.as_ref(), &format!("{at}/close/as"), place);
            }
        }
    }

    /// Checks the data of a raised or sent event against the schema of its declaration.
    fn event(&mut self, kind: &'d Template, data: Option<&'d Template>, at: &str, place: &Place) {
        self.text(kind, &format!("{at}/type"), place);
        let ty = data.map_or(Type::Null, |t| self.template(t, &format!("{at}/data"), place));
        let Template::Literal(serde_json::Value::String(name)) = kind else {
            return;
        };
        let Some(schema) = self.model.def.events.get(name).and_then(|e| e.data.as_ref()) else {
            return;
        };
        if let Some(why) = fit::misfit(data, &ty, schema) {
            let at = if data.is_some() { format!("{at}/data") } else { at.to_string() };
            let finding = Finding::new(
                Severity::Warning,
                codes::DATA_MISMATCH,
                at,
                format!("the data does not fit the schema of `{name}`: {why}"),
            );
            self.findings.push(finding.help(format!("change the data, or the schema in `events.{name}.data`")));
        }
    }

    /// Checks an assignment against `types.context`.
    pub(super) fn fits_context(&mut self, chart: usize, path: &str, value: Option<&Template>, ty: &Type, at: &str) {
        self.fits_number(chart, path, ty, at);
        let Some(schema) = self.model.charts.get(chart).and_then(|c| c.def.context_schema.as_ref()) else {
            return;
        };
        if path != variable_of(path) {
            return;
        }
        let Some(property) = schema.get("properties").and_then(|p| p.get(path)) else {
            return;
        };
        // References in this part of the schema point into the whole schema.
        let mut part = property.clone();
        if let (Some(part), Some(defs)) = (part.as_object_mut(), schema.get("$defs")) {
            part.entry("$defs").or_insert_with(|| defs.clone());
        }
        if let Some(why) = fit::misfit(value, ty, &part) {
            let finding = Finding::new(
                Severity::Warning,
                codes::DATA_MISMATCH,
                at,
                format!("the value does not fit the declared type of `context.{path}`: {why}"),
            );
            self.findings.push(finding.help("change the value, or the type under `types.context`"));
        }
    }

    /// Checks the input of an actor or machine.
    pub(super) fn fits_input(&mut self, src: &str, value: Option<&Template>, ty: Option<Type>, at: &str, key: &str) {
        let model = self.model;
        let schema = match model.def.actors.get(src) {
            Some(actor) => actor.input.as_ref(),
            None => model.def.machines.get(src).and_then(|c| c.input.as_ref()),
        };
        let Some(schema) = schema else { return };
        if let Some(why) = fit::misfit(value, &ty.unwrap_or(Type::Null), schema) {
            let at = if value.is_some() { format!("{at}/{key}") } else { at.to_string() };
            let finding = Finding::new(
                Severity::Warning,
                codes::DATA_MISMATCH,
                at,
                format!("the input does not fit the input schema of `{src}`: {why}"),
            );
            self.findings.push(finding.help("an invocation with such an input fails with the code `schema`"));
        }
    }
}
