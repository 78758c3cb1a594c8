//! Type checking: checks every expression with the types at its place, and values against their
//! declarations.

mod action;
mod context;
mod env;
mod fit;
mod numbers;
mod value;

use charter_expr::{Env, Facts, Type};
use charter_kernel::definition::{Guard, InterlockRule, PropertyRule, Require};

use crate::finding::Finding;
use crate::model::{Model, escape};
use env::{Place, Types, event_of};
use value::Expected;

/// Checks all expressions.
pub(crate) fn check(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let mut types = Types::new(model);
    types.contexts = context::contexts(model, &types);
    let mut c = Checker { model, types, findings };
    for number in 0..model.charts.len() {
        c.chart(number);
    }
    c.shared();
}

struct Checker<'c, 'd> {
    model: &'c Model<'d>,
    types: Types,
    findings: &'c mut Vec<Finding>,
}

impl<'d> Checker<'_, 'd> {
    fn chart(&mut self, number: usize) {
        let model = self.model;
        let Some(chart) = model.charts.get(number) else {
            return;
        };
        let anything = Place::new(number, Type::Dyn);
        for (name, value) in &chart.def.context {
            let at = format!("{}/context/{}", chart.at, escape(name));
            let ty = self.template(value, &at, &anything);
            self.fits_context(number, name, Some(value), &ty, &at);
        }
        if let Some(output) = &chart.def.output {
            self.template(output, &format!("{}/output", chart.at), &anything);
        }
        for state in &chart.states {
            let (def, at) = (state.def, &state.at);
            for (key, blocks) in [("entry", &def.entry), ("exit", &def.exit)] {
                for (i, block) in blocks.iter().enumerate() {
                    self.block(block, &format!("{at}/{key}/{i}"), &anything, 0);
                }
            }
            if let Some(initial) = &def.initial {
                self.block(&initial.actions, &format!("{at}/initial/actions"), &anything, 0);
            }
            if let Some(output) = &def.output {
                self.template(output, &format!("{at}/output"), &anything);
            }
            for (name, value) in &def.data {
                self.template(value, &format!("{at}/data/{}", escape(name)), &anything);
            }
            for (i, after) in def.after.iter().enumerate() {
                self.delay(&after.delay, &format!("{at}/after/{i}/delay"), &anything);
            }
            for (i, invoke) in def.invoke.iter().enumerate() {
                let at = format!("{at}/invoke/{i}");
                let ty = invoke.input.as_ref().map(|t| self.template(t, &format!("{at}/input"), &anything));
                self.fits_input(&invoke.src, invoke.input.as_ref(), ty, &at, "input");
                if let Some(choose) = &invoke.choose {
                    let at = format!("{at}/choose/value");
                    self.cel(&choose.value, &at, &anything, Expected::Text);
                }
                if let Some(timeout) = &invoke.timeout {
                    self.delay(timeout, &format!("{at}/timeout"), &anything);
                }
                self.block(&invoke.finalize, &format!("{at}/finalize"), &anything, 0);
            }
        }
        let leaving = chart.states.iter().any(|s| !s.def.exit.is_empty());
        for t in &chart.transitions {
            let mut place = Place::new(number, event_of(model, chart, t));
            if let Some(guard) = &t.def.guard {
                self.guard(guard, &format!("{}/guard", t.at), &place, 0);
                place.facts.add(self.facts(guard, true, 0));
            }
            if let Some(when) = &t.def.when {
                self.cel(when, &format!("{}/when", t.at), &place, Expected::Bool);
                place.facts.add(self.facts_of(when, true));
            }
            if let Some(approves) = &t.def.approves {
                self.cel(approves, &format!("{}/approves", t.at), &place, Expected::Anything);
            }
            if let Some(not_by) = &t.def.not_by {
                self.cel(not_by, &format!("{}/not_by", t.at), &place, Expected::Principals);
            }
            for (i, require) in t.def.requires.iter().enumerate() {
                self.require(require, &format!("{}/requires/{i}", t.at), &place);
            }
            // Exit actions may have changed the context.
            if leaving {
                place.facts.forget("context");
            }
            self.block(&t.def.actions, &format!("{}/actions", t.at), &place, 0);
        }
    }

    /// Checks everything that does not belong to a chart.
    fn shared(&mut self) {
        let model = self.model;
        let anything = Place::new(0, Type::Dyn);
        // Guards and actions that are never used may still contain errors.
        let used = crate::lints::used_names(model);
        for (name, guard) in model.def.guards.iter().filter(|(n, _)| !used.guards.contains(n.as_str())) {
            self.guard(guard, &format!("/guards/{}", escape(name)), &anything, 0);
        }
        for (name, block) in model.def.actions.iter().filter(|(n, _)| !used.actions.contains(n.as_str())) {
            self.block(block, &format!("/actions/{}", escape(name)), &anything, 0);
        }
        for (name, delay) in &model.def.delays {
            self.delay(delay, &format!("/delays/{}", escape(name)), &anything);
        }
        for (name, sentence) in &model.def.rules {
            self.text(sentence, &format!("/rules/{}", escape(name)), &anything);
        }
        for (name, event) in &model.def.events {
            if let Some(unique) = &event.unique {
                let at = format!("/events/{}/unique/key", escape(name));
                let ty = self.check_expr(&unique.key, &at, &env::key_env(event), None, Expected::Key);
                self.may_be_no_key(&ty, &unique.key, &at);
            }
        }
        for (name, actor) in &model.def.actors {
            if let Some(timeout) = &actor.timeout {
                self.delay(timeout, &format!("/actors/{}/timeout", escape(name)), &anything);
            }
        }
        for (i, lock) in model.def.interlocks.iter().enumerate() {
            if let InterlockRule::Assert(cel) = &lock.rule {
                self.cel(cel, &format!("/interlocks/{i}/rule/assert"), &Place::without_event(0, true), Expected::Bool);
            }
        }
        for (i, property) in model.def.properties.iter().enumerate() {
            let at = format!("/properties/{i}/rule");
            let (cel, at) = match &property.rule {
                PropertyRule::Never { when, .. } => (when, format!("{at}/never/when")),
                PropertyRule::Always(cel) => (cel, format!("{at}/always")),
                PropertyRule::Eventually(cel) => (cel, format!("{at}/eventually")),
            };
            self.cel(cel, &at, &Place::without_event(0, false), Expected::Bool);
        }
        if let Some(stream) = &model.def.stream {
            let mut env = Env::new();
            env.root("item", Type::Dyn);
            for (key, cel) in stream.parts() {
                if let Some(cel) = cel {
                    self.check_expr(cel, &format!("/stream/{key}"), &env, None, Expected::Anything);
                }
            }
            for (name, cel) in &stream.clocks {
                let at = format!("/stream/clocks/{}", escape(name));
                self.check_expr(cel, &at, &env, None, Expected::Anything);
            }
            for (name, cel) in &stream.summary {
                let at = format!("/stream/summary/{}", escape(name));
                self.cel(cel, &at, &Place::without_event(0, false), Expected::Anything);
            }
        }
    }

    fn guard(&mut self, guard: &'d Guard, at: &str, place: &Place, depth: usize) {
        if depth > 110 {
            return;
        }
        let deeper = depth.saturating_add(1);
        match guard {
            Guard::Cel(cel) => drop(self.cel(cel, &format!("{at}/cel"), place, Expected::Bool)),
            Guard::Name(name) => {
                if let Some(guard) = self.model.def.guards.get(name) {
                    self.guard(guard, &format!("/guards/{}", escape(name)), place, deeper);
                }
            }
            Guard::And(parts) | Guard::Or(parts) => {
                // Evaluated in order until one of them decides the result.
                let (key, passed) = match guard {
                    Guard::And(_) => ("and", true),
                    _ => ("or", false),
                };
                let mut place = place.clone();
                for (i, part) in parts.iter().enumerate() {
                    self.guard(part, &format!("{at}/{key}/{i}"), &place, deeper);
                    place.facts.add(self.facts(part, passed, deeper));
                }
            }
            Guard::Not(guard) => self.guard(guard, &format!("{at}/not"), place, deeper),
        }
    }

    /// The facts that follow from the outcome of a guard.
    fn facts(&self, guard: &'d Guard, outcome: bool, depth: usize) -> Facts {
        let mut facts = Facts::default();
        if depth > 110 {
            return facts;
        }
        let deeper = depth.saturating_add(1);
        match guard {
            Guard::Cel(cel) => facts = self.facts_of(cel, outcome),
            Guard::Name(name) => {
                if let Some(guard) = self.model.def.guards.get(name) {
                    facts = self.facts(guard, outcome, deeper);
                }
            }
            Guard::Not(guard) => facts = self.facts(guard, !outcome, deeper),
            Guard::And(parts) if outcome => parts.iter().for_each(|g| facts.add(self.facts(g, true, deeper))),
            Guard::Or(parts) if !outcome => parts.iter().for_each(|g| facts.add(self.facts(g, false, deeper))),
            Guard::And(_) | Guard::Or(_) => {}
        }
        facts
    }

    fn facts_of(&self, condition: &'d str, outcome: bool) -> Facts {
        match self.model.ast(condition) {
            Some(ast) => Facts::of(&ast, outcome),
            None => Facts::default(),
        }
    }

    fn require(&mut self, require: &'d Require, at: &str, place: &Place) {
        match require {
            Require::Use { key, when, .. } => {
                self.text(key, &format!("{at}/use/key"), place);
                if let Some(when) = when {
                    self.cel(when, &format!("{at}/use/when"), &Place { entry: true, ..place.clone() }, Expected::Bool);
                }
            }
            Require::Open { key, .. } => self.text(key, &format!("{at}/open/key"), place),
            Require::None { .. } => {}
        }
    }
}
