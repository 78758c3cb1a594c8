//! Compiles one chart: its states in document order, each with the tables for selection.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::scheme::{Scheme, kind_of};
use super::survey::slots_of;
use super::transition::{Listen, tables};
use super::{Compiler, escape};
use crate::definition::{self, StateKind};
use crate::machine::{After, Chart, NONE, StateId, StateNode, TransitionId};
use crate::schema::Schema;
use crate::snapshot::Shape;

impl<'d> Compiler<'d> {
    pub(super) fn chart(&mut self, number: u32, chart: &'d definition::Chart, at: &str) -> Chart {
        let name: &str = if number == 0 {
            "root"
        } else {
            self.def.machines.keys().nth(number.saturating_sub(1) as usize).map_or("", String::as_str)
        };
        let flat = self.flatten(chart, &format!("{at}/state"));
        let names = self.names(&flat);
        let slots = slots_of(chart, &self.def.actions);
        let children = flat.iter().zip(0..).map(|(f, id)| ((f.parent, f.key), id));
        let mut scheme = Scheme {
            children: children.collect(),
            slots: slots.iter().enumerate().map(|(i, s)| (s.clone(), u32::try_from(i).unwrap_or(u32::MAX))).collect(),
            flat,
            names,
            blocks: FxHashMap::default(),
            sizes: FxHashMap::default(),
            pending: Vec::new(),
        };
        let input = self.schema(chart.input.as_ref(), &format!("{at}/input"));
        let shape = Arc::new(Shape {
            chart: number,
            machine: name.into(),
            lenient: !self.def.strict,
            longest: scheme.flat.iter().map(|f| crate::canonical::length_of_str(&f.path)).max().unwrap_or_default(),
            paths: scheme.flat.iter().map(|f| f.path.clone()).collect(),
            atomic: scheme.flat.iter().map(|f| matches!(kind_of(f), StateKind::Atomic | StateKind::Final)).collect(),
            sorted: {
                let mut sorted: Vec<(&String, u32)> = slots.iter().zip(0u32..).collect();
                sorted.sort();
                sorted.into_iter().map(|(_, i)| i).collect()
            },
            slots: slots.iter().map(|s| s.clone().into_boxed_str()).collect(),
            numbers: chart.numbers(slots.iter().map(String::as_str), self.def.strict),
            input: input.as_ref().and_then(Schema::numbers).cloned(),
        });
        let context = chart.context.iter().filter_map(|(name, value)| {
            let value = self.template(value, &format!("{at}/context/{}", escape(name)), &[]);
            Some((scheme.slot(name)?, value))
        });
        let context = context.collect();
        let mut compiled = Chart {
            shape,
            names: scheme.names.clone(),
            states: Vec::with_capacity(scheme.flat.len()),
            has_always: false,
            settles: chart.settles,
            has_parallel: false,
            moves: Vec::new(),
            forwards: false,
            transitions: Vec::new(),
            invokes: Vec::new(),
            context,
            input,
            output: chart.output.as_ref().map(|t| self.template(t, &format!("{at}/output"), &[])),
        };
        for id in 0..scheme.flat.len() {
            let node = self.state(&mut scheme, &mut compiled, u32::try_from(id).unwrap_or(u32::MAX));
            compiled.states.push(node);
        }
        compiled.has_always = compiled.states.iter().any(|s| !s.always.is_empty());
        compiled.forwards = compiled.invokes.iter().any(|i| i.autoforward || !i.finalize.is_empty());
        compiled.has_parallel = compiled.states.iter().any(|s| s.kind == StateKind::Parallel);
        compiled.moves = if self.problems.is_empty() { crate::fast_path::moves(&compiled) } else { Vec::new() };
        self.invocation_ids(&scheme, &compiled);
        self.histories(&scheme, &compiled);
        compiled
    }

    fn state(&mut self, scheme: &mut Scheme<'d>, chart: &mut Chart, id: StateId) -> StateNode {
        let Some(flat) = scheme.flat.get(id as usize) else {
            return blank();
        };
        let (def, at, path, parent, last) = (flat.def, flat.at.clone(), flat.path.clone(), flat.parent, flat.last);
        let kind = kind_of(flat);
        let all_children = flat.children.clone();
        let history = |s: &StateId| matches!(scheme.kind(*s), StateKind::Shallow | StateKind::Deep);
        let (histories, children): (Vec<_>, Vec<_>) = all_children.into_iter().partition(history);
        // The name in `done.state.NAME` and `after.DELAY.NAME`.
        let name: Arc<str> = def.id.as_deref().map_or_else(|| path.clone(), Arc::from);
        self.plain_kind(def, kind, id, &at, &children);

        let mut node = StateNode {
            kind,
            parent,
            last,
            initial: None,
            entry: Vec::new(),
            exit: Vec::new(),
            invokes: Vec::new(),
            exact: Vec::new(),
            patterns: Vec::new(),
            always: Vec::new(),
            after: Vec::new(),
            done_event: if matches!(kind, StateKind::Compound | StateKind::Parallel) {
                self.event(&format!("done.state.{name}"))
            } else {
                NONE
            },
            output: def.output.as_ref().map(|t| self.template(t, &format!("{at}/output"), &[])),
            data: Vec::new(),
            failed: def.tags.iter().any(|t| t == "failed"),
            children,
            histories,
        };
        node.initial = self.initial(scheme, &node, def, id, &at);
        node.entry = self.blocks(scheme, &def.entry, &format!("{at}/entry"));
        node.exit = self.blocks(scheme, &def.exit, &format!("{at}/exit"));
        for (var, value) in &def.data {
            let value = self.template(value, &format!("{at}/data/{}", escape(var)), &[]);
            node.data.extend(scheme.slot(var).map(|slot| (slot, value)));
        }

        // Transitions are selected in this order: `on`, `onDone` and `onError` of invocations,
        // `onDone` of the state, `after`.
        let mut listen: Vec<(Vec<Listen>, TransitionId)> = Vec::new();
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for (i, on) in def.on.iter().enumerate() {
            let on_at = format!("{at}/on/{i}");
            let text = on.events.first().map_or("", String::as_str);
            let descriptors: Vec<Listen> = on
                .events
                .iter()
                .enumerate()
                .filter_map(|(k, e)| self.descriptor(e, &format!("{on_at}/events/{k}")))
                .collect();
            if on.events.is_empty() {
                self.problem(
                    "missing-event",
                    &on_at,
                    "missing event type",
                    Some("write an event type, `prefix.*`, or `*`".into()),
                );
            }
            for (k, t) in on.transitions.iter().enumerate() {
                let count = counts.entry(text).or_default();
                let name = format!("{path}/on/{text}/{count}");
                *count = count.saturating_add(1);
                let t = self.transition(scheme, chart, id, t, &name, &format!("{on_at}/transitions/{k}"));
                listen.push((descriptors.clone(), t));
            }
        }
        for (i, invoke) in def.invoke.iter().enumerate() {
            let invoke_at = format!("{at}/invoke/{i}");
            let Some(compiled) = self.invoke(scheme, invoke, &invoke_at) else {
                continue;
            };
            let invocation = compiled.id.clone();
            let number = u32::try_from(chart.invokes.len()).unwrap_or(u32::MAX);
            chart.invokes.push(compiled);
            node.invokes.push(number);
            for (key, field, list) in
                [("done.invoke", "onDone", &invoke.on_done), ("error.invoke", "onError", &invoke.on_error)]
            {
                let event = self.event(&format!("{key}.{invocation}"));
                let core = if field == "onDone" { "on_done" } else { "on_error" };
                for (k, t) in list.iter().enumerate() {
                    let name = format!("{path}/invoke/{invocation}/{field}/{k}");
                    let t = self.transition(scheme, chart, id, t, &name, &format!("{invoke_at}/{core}/{k}"));
                    listen.push((vec![Listen::Exact(event)], t));
                }
            }
        }
        for (k, t) in def.on_done.iter().enumerate() {
            let t = self.transition(scheme, chart, id, t, &format!("{path}/onDone/{k}"), &format!("{at}/on_done/{k}"));
            if node.done_event == NONE {
                let help = Some("use `onDone` on a compound or parallel state, or under `invoke`".to_string());
                self.problem(
                    "never-done",
                    &format!("{at}/on_done"),
                    format!("`{path}` has no children that could complete it"),
                    help,
                );
            }
            listen.push((vec![Listen::Exact(node.done_event)], t));
        }
        for (i, after) in def.after.iter().enumerate() {
            let after_at = format!("{at}/after/{i}");
            let event = self.event(&format!("after.{}.{name}", after.key));
            for (k, t) in after.transitions.iter().enumerate() {
                let t = self.transition(
                    scheme,
                    chart,
                    id,
                    t,
                    &format!("{path}/after/{}/{k}", after.key),
                    &format!("{after_at}/transitions/{k}"),
                );
                listen.push((vec![Listen::Exact(event)], t));
            }
            if let Some(delay) = self.delay(&after.delay, &format!("{after_at}/delay"), &[]) {
                node.after.push(After { delay, event, timer: format!("{path}/after/{}", after.key).into() });
            }
        }
        for (k, t) in def.always.iter().enumerate() {
            let t = self.transition(scheme, chart, id, t, &format!("{path}/always/{k}"), &format!("{at}/always/{k}"));
            node.always.push(t);
        }
        tables(&mut node, &listen, &self.events);
        node
    }

    /// Reports the parts of a state that its kind does not allow.
    fn plain_kind(&mut self, def: &definition::State, kind: StateKind, id: StateId, at: &str, children: &[StateId]) {
        let active = !def.on.is_empty() || !def.always.is_empty() || !def.after.is_empty() || !def.invoke.is_empty();
        match kind {
            StateKind::Final if active || !children.is_empty() => {
                self.problem(
                    "final-state",
                    at,
                    "a final state has no children, transitions or invocations",
                    Some("remove them, or the `type: final`".into()),
                );
            }
            StateKind::Shallow | StateKind::Deep
                if active || !children.is_empty() || !def.entry.is_empty() || !def.exit.is_empty() =>
            {
                self.problem("history-state", at, "a history state has a default target and nothing else", None);
            }
            StateKind::Final | StateKind::Shallow | StateKind::Deep if id == 0 => {
                self.problem("root-state", at, "the root of a chart is a compound or parallel state", None);
            }
            StateKind::Compound if children.is_empty() => {
                self.problem(
                    "no-children",
                    at,
                    "all children are history states",
                    Some("a compound state needs a state that can be active".into()),
                );
            }
            StateKind::Parallel if def.initial.is_some() => {
                let help = Some("a parallel state enters all its regions; remove `initial`".to_string());
                self.problem("parallel-initial", &format!("{at}/initial"), "a parallel state has no `initial`", help);
            }
            _ => {}
        }
    }
}

/// A placeholder for a state that does not exist, so that compiling can continue to the next
/// problem.
fn blank() -> StateNode {
    StateNode {
        kind: StateKind::Atomic,
        parent: NONE,
        last: 0,
        children: Vec::new(),
        histories: Vec::new(),
        initial: None,
        entry: Vec::new(),
        exit: Vec::new(),
        invokes: Vec::new(),
        exact: Vec::new(),
        patterns: Vec::new(),
        always: Vec::new(),
        after: Vec::new(),
        done_event: NONE,
        output: None,
        data: Vec::new(),
        failed: false,
    }
}
