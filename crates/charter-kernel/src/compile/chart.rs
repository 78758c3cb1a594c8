//! States numbered in document order, targets resolved, transitions put into the tables that selection reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Compiler, MAX_NESTING, MAX_STATES, escape, is_platform};
use crate::definition::{self, StateKind};
use crate::machine::{
    After, Chart, Domain, EventId, Initial, Invoke, NONE, Pattern, Quorum, Src, StateId, StateNode,
    Transition, TransitionId,
};
use crate::snapshot::Shape;

/// A state of the definition with its place.
struct Flat<'d> {
    def: &'d definition::State,
    key: &'d str,
    parent: StateId,
    last: StateId,
    path: Arc<str>,
    at: String,
    children: Vec<StateId>,
}

/// What compiling one chart needs to know about it.
pub(crate) struct Scheme<'d> {
    flat: Vec<Flat<'d>>,
    /// Each state by its parent and key.
    children: FxHashMap<(StateId, &'d str), StateId>,
    /// Explicit ids and paths.
    names: FxHashMap<Arc<str>, StateId>,
    slots: FxHashMap<String, u32>,
    /// Named actions, compiled once per chart (they name its context variables).
    pub(super) blocks: FxHashMap<&'d str, Option<Arc<crate::machine::Block>>>,
    pub(super) pending: Vec<&'d str>,
}

impl Scheme<'_> {
    pub(super) fn slot(&self, name: &str) -> Option<u32> {
        self.slots.get(name).copied()
    }
    pub(super) fn slot_names(&self) -> Vec<&str> {
        self.slots.keys().map(String::as_str).collect()
    }
    fn get(&self, id: StateId) -> Option<&Flat<'_>> {
        self.flat.get(id as usize)
    }
    fn kind(&self, id: StateId) -> StateKind {
        self.get(id).map_or(StateKind::Atomic, kind_of)
    }
    fn parent(&self, id: StateId) -> StateId {
        self.get(id).map_or(NONE, |f| f.parent)
    }
    fn last(&self, id: StateId) -> StateId {
        self.get(id).map_or(id, |f| f.last)
    }
    /// Is `inner` a proper descendant of `outer`?
    fn inside(&self, inner: StateId, outer: StateId) -> bool {
        inner > outer && inner <= self.last(outer)
    }
    fn child(&self, of: StateId, key: &str) -> Option<StateId> {
        self.children.get(&(of, key)).copied()
    }
    /// Follows `a.b.c` down from a state. A key may itself contain dots: the longest match is tried first.
    fn descend(&self, from: StateId, path: &str) -> Option<StateId> {
        if let Some(child) = self.child(from, path) {
            return Some(child);
        }
        let mut ends: Vec<usize> = path.match_indices('.').map(|(i, _)| i).collect();
        ends.reverse();
        ends.into_iter().find_map(|i| {
            let (head, tail) = path.split_at_checked(i)?;
            self.descend(self.child(from, head)?, tail.strip_prefix('.')?)
        })
    }
    /// A target as written in a transition of `from` (`inside`: as written in `initial`, seen from inside the state).
    fn resolve(&self, from: StateId, target: &str, inside: bool) -> Option<StateId> {
        if let Some(id) = target.strip_prefix('#') {
            if let Some(state) = self.names.get(id) {
                return Some(*state);
            }
            let ends: Vec<usize> = id.match_indices('.').map(|(i, _)| i).collect();
            return ends.into_iter().rev().find_map(|i| {
                let (head, tail) = id.split_at_checked(i)?;
                self.descend(*self.names.get(head)?, tail.strip_prefix('.')?)
            });
        }
        if let Some(path) = target.strip_prefix('.') {
            return self.descend(from, path);
        }
        let base = if inside || from == 0 {
            from
        } else {
            self.parent(from)
        };
        self.descend(base, target)
    }
    /// The least common compound ancestor of some states; the root counts as one (SCXML `findLCCA`).
    fn lcca(&self, states: &[StateId], parallel: bool) -> StateId {
        let Some((first, rest)) = states.split_first() else {
            return 0;
        };
        let mut at = self.parent(*first);
        while at != NONE && at != 0 {
            let kind = self.kind(at);
            if (kind == StateKind::Compound || (parallel && kind == StateKind::Parallel))
                && rest.iter().all(|s| self.inside(*s, at))
            {
                return at;
            }
            at = self.parent(at);
        }
        0
    }
}

/// A state with children is compound even if the definition does not say so.
fn kind_of(flat: &Flat<'_>) -> StateKind {
    match flat.def.kind {
        StateKind::Atomic if !flat.children.is_empty() => StateKind::Compound,
        StateKind::Compound if flat.children.is_empty() => StateKind::Atomic,
        kind => kind,
    }
}

impl<'d> Compiler<'d> {
    pub(super) fn chart(&mut self, number: u32, chart: &'d definition::Chart, at: &str) -> Chart {
        let name: &str = if number == 0 {
            "root"
        } else {
            self.def
                .machines
                .keys()
                .nth(number.saturating_sub(1) as usize)
                .map_or("", String::as_str)
        };
        let flat = self.flatten(chart, &format!("{at}/state"));
        let names = self.names(&flat);
        let slots = slots_of(chart, &self.def.actions);
        let children = flat.iter().zip(0..).map(|(f, id)| ((f.parent, f.key), id));
        let mut scheme = Scheme {
            children: children.collect(),
            slots: slots
                .iter()
                .enumerate()
                .map(|(i, s)| (s.clone(), u32::try_from(i).unwrap_or(u32::MAX)))
                .collect(),
            flat,
            names,
            blocks: FxHashMap::default(),
            pending: Vec::new(),
        };
        let shape = Arc::new(Shape {
            chart: number,
            machine: name.into(),
            lenient: !self.def.strict,
            paths: scheme.flat.iter().map(|f| f.path.clone()).collect(),
            atomic: scheme
                .flat
                .iter()
                .map(|f| matches!(kind_of(f), StateKind::Atomic | StateKind::Final))
                .collect(),
            sorted: {
                let mut sorted: Vec<(&String, u32)> = slots.iter().zip(0u32..).collect();
                sorted.sort();
                sorted.into_iter().map(|(_, i)| i).collect()
            },
            slots: slots.iter().map(|s| s.clone().into_boxed_str()).collect(),
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
            has_parallel: false,
            moves: Vec::new(),
            forwards: false,
            transitions: Vec::new(),
            invokes: Vec::new(),
            context,
            input: self.schema(chart.input.as_ref(), &format!("{at}/input")),
            output: chart
                .output
                .as_ref()
                .map(|t| self.template(t, &format!("{at}/output"), &[])),
        };
        for id in 0..scheme.flat.len() {
            let node = self.state(
                &mut scheme,
                &mut compiled,
                u32::try_from(id).unwrap_or(u32::MAX),
            );
            compiled.states.push(node);
        }
        compiled.has_always = compiled.states.iter().any(|s| !s.always.is_empty());
        compiled.forwards = compiled
            .invokes
            .iter()
            .any(|i| i.autoforward || !i.finalize.is_empty());
        compiled.has_parallel = compiled
            .states
            .iter()
            .any(|s| s.kind == StateKind::Parallel);
        compiled.moves = if self.problems.is_empty() {
            crate::lane::moves(&compiled)
        } else {
            Vec::new()
        };
        self.invocation_ids(&scheme, &compiled);
        compiled
    }

    /// All states in pre-order, without recursion on the nesting of the definition.
    fn flatten(&mut self, chart: &'d definition::Chart, at: &str) -> Vec<Flat<'d>> {
        let mut flat: Vec<Flat<'d>> = Vec::new();
        let mut stack = vec![(
            &chart.state,
            "",
            NONE,
            at.to_string(),
            Arc::<str>::from(""),
            0usize,
        )];
        while let Some((def, key, parent, at, path, depth)) = stack.pop() {
            let id = u32::try_from(flat.len()).unwrap_or(NONE);
            if depth > MAX_NESTING || flat.len() >= MAX_STATES {
                let what = if depth > MAX_NESTING {
                    format!("states nest deeper than {MAX_NESTING}")
                } else {
                    format!("more than {MAX_STATES} states")
                };
                self.problem("too-large", &at, what, None);
                break;
            }
            for (key, child) in def.states.iter().rev() {
                let path = if path.is_empty() {
                    Arc::from(key.as_str())
                } else {
                    Arc::from(format!("{path}.{key}"))
                };
                let at = format!("{at}/states/{}", escape(key));
                stack.push((child, key.as_str(), id, at, path, depth.saturating_add(1)));
            }
            if let Some(parent) = flat.get_mut(parent as usize) {
                parent.children.push(id);
            }
            flat.push(Flat {
                def,
                key,
                parent,
                last: id,
                path,
                at,
                children: Vec::new(),
            });
        }
        // A state's last descendant is that of its last child: settle from the back.
        for id in (1..flat.len()).rev() {
            let Some((last, parent)) = flat.get(id).map(|f| (f.last, f.parent)) else {
                continue;
            };
            if let Some(parent) = flat.get_mut(parent as usize) {
                parent.last = parent.last.max(last);
            }
        }
        flat
    }

    fn names(&mut self, flat: &[Flat<'d>]) -> FxHashMap<Arc<str>, StateId> {
        let mut names: FxHashMap<Arc<str>, StateId> = FxHashMap::default();
        for (f, id) in flat.iter().zip(0u32..) {
            let Some(name) = &f.def.id else { continue };
            if let Some(other) = names.insert(name.as_str().into(), id) {
                let other = flat.get(other as usize).map_or("", |f| f.path.as_ref());
                let help = Some(format!(
                    "state `{other}` has it already; an id is unique in its chart"
                ));
                self.problem(
                    "duplicate-id",
                    &format!("{}/id", f.at),
                    format!("two states have the id `{name}`"),
                    help,
                );
            }
        }
        // An explicit id wins over a path of the same text.
        for (f, id) in flat.iter().zip(0u32..) {
            names.entry(f.path.clone()).or_insert(id);
        }
        names
    }

    fn state(&mut self, scheme: &mut Scheme<'d>, chart: &mut Chart, id: StateId) -> StateNode {
        let Some(flat) = scheme.flat.get(id as usize) else {
            return blank();
        };
        let (def, at, path, parent, last) = (
            flat.def,
            flat.at.clone(),
            flat.path.clone(),
            flat.parent,
            flat.last,
        );
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
            output: def
                .output
                .as_ref()
                .map(|t| self.template(t, &format!("{at}/output"), &[])),
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

        // The order of selection: `on`, then the answers of invocations, completion, time.
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
                    "no event is named here",
                    Some("an event type, `prefix.*`, or `*`".into()),
                );
            }
            for (k, t) in on.transitions.iter().enumerate() {
                let count = counts.entry(text).or_default();
                let name = format!("{path}/on/{text}/{count}");
                *count = count.saturating_add(1);
                let t = self.transition(
                    scheme,
                    chart,
                    id,
                    t,
                    &name,
                    &format!("{on_at}/transitions/{k}"),
                );
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
            for (key, field, list) in [
                ("done.invoke", "onDone", &invoke.on_done),
                ("error.invoke", "onError", &invoke.on_error),
            ] {
                let event = self.event(&format!("{key}.{invocation}"));
                let core = if field == "onDone" {
                    "on_done"
                } else {
                    "on_error"
                };
                for (k, t) in list.iter().enumerate() {
                    let name = format!("{path}/invoke/{invocation}/{field}/{k}");
                    let t = self.transition(
                        scheme,
                        chart,
                        id,
                        t,
                        &name,
                        &format!("{invoke_at}/{core}/{k}"),
                    );
                    listen.push((vec![Listen::Exact(event)], t));
                }
            }
        }
        for (k, t) in def.on_done.iter().enumerate() {
            let t = self.transition(
                scheme,
                chart,
                id,
                t,
                &format!("{path}/onDone/{k}"),
                &format!("{at}/on_done/{k}"),
            );
            if node.done_event == NONE {
                let help = Some(
                    "`onDone` belongs to a compound or parallel state, or under `invoke`"
                        .to_string(),
                );
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
                node.after.push(After {
                    delay,
                    event,
                    timer: format!("{path}/after/{}", after.key).into(),
                });
            }
        }
        for (k, t) in def.always.iter().enumerate() {
            let t = self.transition(
                scheme,
                chart,
                id,
                t,
                &format!("{path}/always/{k}"),
                &format!("{at}/always/{k}"),
            );
            node.always.push(t);
        }
        tables(&mut node, &listen, &self.events);
        node
    }

    /// What a state of its kind cannot have.
    fn plain_kind(
        &mut self,
        def: &definition::State,
        kind: StateKind,
        id: StateId,
        at: &str,
        children: &[StateId],
    ) {
        let active = !def.on.is_empty()
            || !def.always.is_empty()
            || !def.after.is_empty()
            || !def.invoke.is_empty();
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
                if active
                    || !children.is_empty()
                    || !def.entry.is_empty()
                    || !def.exit.is_empty() =>
            {
                self.problem(
                    "history-state",
                    at,
                    "a history state has a default target and nothing else",
                    None,
                );
            }
            StateKind::Final | StateKind::Shallow | StateKind::Deep if id == 0 => {
                self.problem(
                    "root-state",
                    at,
                    "the root of a chart is a compound or parallel state",
                    None,
                );
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
                let help =
                    Some("a parallel state enters all its regions; remove `initial`".to_string());
                self.problem(
                    "parallel-initial",
                    &format!("{at}/initial"),
                    "a parallel state has no `initial`",
                    help,
                );
            }
            _ => {}
        }
    }

    fn initial(
        &mut self,
        scheme: &mut Scheme<'d>,
        node: &StateNode,
        def: &'d definition::State,
        id: StateId,
        at: &str,
    ) -> Option<Initial> {
        let at = format!("{at}/initial");
        let history = node.is_history();
        if !history && node.kind != StateKind::Compound {
            return None;
        }
        let Some(initial) = &def.initial else {
            if history {
                let help = Some(
                    "say with `target` what the state stands for before its parent was ever left"
                        .to_string(),
                );
                self.problem(
                    "history-target",
                    at.trim_end_matches("/initial"),
                    "a history state needs a default target",
                    help,
                );
                return None;
            }
            return Some(Initial {
                targets: node.children.first().copied().into_iter().collect(),
                block: Vec::new(),
            });
        };
        let scope = if history { node.parent } else { id };
        let mut targets: SmallVec<[StateId; 1]> = SmallVec::new();
        for (i, target) in initial.target.iter().enumerate() {
            let at = format!("{at}/target/{i}");
            match scheme.resolve(scope, target, true) {
                Some(state) if scheme.inside(state, scope) => targets.push(state),
                Some(_) => {
                    let whose = if history {
                        "a descendant of the parent of the history state"
                    } else {
                        "a descendant of the state"
                    };
                    self.problem(
                        "bad-target",
                        &at,
                        format!("`{target}` is not inside"),
                        Some(format!("name {whose}")),
                    );
                }
                None => self.missing(scheme, scope, target, &at, true),
            }
        }
        if targets.is_empty() {
            if initial.target.is_empty() {
                self.problem("missing-target", &at, "no target is named", None);
            }
            return None;
        }
        self.together(scheme, &targets, &at);
        let block = self.block(
            scheme,
            &initial.actions,
            &format!("{at}/actions"),
            &mut Vec::new(),
        );
        Some(Initial { targets, block })
    }

    fn missing(
        &mut self,
        scheme: &Scheme<'d>,
        from: StateId,
        target: &str,
        at: &str,
        inside: bool,
    ) {
        let base = if inside || from == 0 {
            from
        } else {
            scheme.parent(from)
        };
        let key = target
            .trim_start_matches(['#', '.'])
            .rsplit('.')
            .next()
            .unwrap_or(target);
        let elsewhere = scheme
            .flat
            .iter()
            .skip(1)
            .find(|f| f.key == key || f.def.id.as_deref() == Some(key));
        let help = match elsewhere {
            Some(f) => format!(
                "there is `#{}`; a plain name means a sibling, `.name` a child, `#id` or `#path` any state",
                f.def.id.as_deref().unwrap_or(&f.path)
            ),
            None => {
                let siblings: Vec<&str> = scheme
                    .get(base)
                    .map(|f| f.def.states.keys().map(String::as_str).take(12).collect())
                    .unwrap_or_default();
                match charter_expr::nearest(key, siblings.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("states here: {}", siblings.join(", ")),
                }
            }
        };
        self.problem(
            "missing-target",
            at,
            format!("no state `{target}`"),
            Some(help),
        );
    }

    /// Several targets must be able to be active at once.
    fn together(&mut self, scheme: &Scheme<'d>, targets: &[StateId], at: &str) {
        for (i, a) in targets.iter().enumerate() {
            for b in targets.iter().skip(i.saturating_add(1)) {
                let mut up = scheme.parent(*a.min(b));
                while up != NONE && !scheme.inside(*a.max(b), up) {
                    up = scheme.parent(up);
                }
                if scheme.inside(*a.max(b), *a.min(b))
                    || a == b
                    || up == NONE
                    || scheme.kind(up) != StateKind::Parallel
                {
                    let name =
                        |s: StateId| scheme.get(s).map_or("", |f| f.path.as_ref()).to_string();
                    let help = Some(
                        "several targets stand in different regions of one parallel state"
                            .to_string(),
                    );
                    self.problem(
                        "bad-target",
                        at,
                        format!("`{}` and `{}` cannot be active at once", name(*a), name(*b)),
                        help,
                    );
                    return;
                }
            }
        }
    }

    fn transition(
        &mut self,
        scheme: &mut Scheme<'d>,
        chart: &mut Chart,
        source: StateId,
        def: &'d definition::Transition,
        name: &str,
        at: &str,
    ) -> TransitionId {
        let mut targets: SmallVec<[StateId; 1]> = SmallVec::new();
        for (i, target) in def.target.iter().enumerate() {
            let at = format!("{at}/target/{i}");
            match scheme.resolve(source, target, false) {
                Some(0) => self.problem(
                    "bad-target",
                    &at,
                    "the root of a chart cannot be a target",
                    Some("name one of its states".into()),
                ),
                Some(state) => targets.push(state),
                None => self.missing(scheme, source, target, &at, false),
            }
        }
        self.together(scheme, &targets, &format!("{at}/target"));
        let internal = !def.reenter;
        let domain = if targets.is_empty() {
            Domain::Targetless
        } else if targets
            .iter()
            .any(|t| matches!(scheme.kind(*t), StateKind::Shallow | StateKind::Deep))
        {
            Domain::Dynamic
        } else if internal
            && (scheme.kind(source) == StateKind::Compound
                || source == 0
                || (def.parallel_domain && scheme.kind(source) == StateKind::Parallel))
            && targets.iter().all(|t| scheme.inside(*t, source))
        {
            Domain::State(source)
        } else {
            let mut states: SmallVec<[StateId; 4]> = SmallVec::from_slice(&[source]);
            states.extend(targets.iter().copied());
            Domain::State(scheme.lcca(&states, def.parallel_domain))
        };
        let guard = match (&def.guard, &def.when) {
            (None, None) => None,
            (Some(guard), None) => self.guard(guard, &format!("{at}/guard"), 0),
            (None, Some(when)) => self
                .cel(when, &format!("{at}/when"), &[])
                .map(crate::machine::Guard::Cel),
            (Some(guard), Some(when)) => {
                let when = self
                    .cel(when, &format!("{at}/when"), &[])
                    .map(crate::machine::Guard::Cel);
                let both: Vec<_> = self
                    .guard(guard, &format!("{at}/guard"), 0)
                    .into_iter()
                    .chain(when)
                    .collect();
                Some(crate::machine::Guard::And(both))
            }
        };
        let by = self.role_set(&def.by, &format!("{at}/by"));
        let approves = def
            .approves
            .as_ref()
            .and_then(|cel| self.cel(cel, &format!("{at}/approves"), &[]));
        let requires: Vec<_> = def
            .requires
            .iter()
            .enumerate()
            .filter_map(|(i, r)| self.require(r, &format!("{at}/requires/{i}")))
            .collect();
        let quorum = def.quorum.as_ref().map(|q| {
            if q.count == 0 {
                self.problem(
                    "bad-quorum",
                    &format!("{at}/quorum/count"),
                    "a quorum of nobody",
                    Some("`count` is at least 1".into()),
                );
            }
            Quorum {
                count: q.count,
                of: q
                    .of
                    .as_ref()
                    .map(|r| self.role_set(std::slice::from_ref(r), &format!("{at}/quorum/of")))
                    .unwrap_or_default(),
            }
        });
        // Digests are taken of the whole.
        self.whole_events |= def.approves.is_some() || def.quorum.is_some();
        let refuse = def
            .refuse
            .as_ref()
            .and_then(|rule| self.rule(rule, &format!("{at}/refuse")));
        if def.refuse.is_some()
            && (!def.target.is_empty() || !def.actions.is_empty() || def.quorum.is_some())
        {
            self.problem(
                "refuse-and-move",
                &format!("{at}/refuse"),
                "a transition that refuses the event goes nowhere and does nothing",
                Some("leave `target`, `actions` and `quorum` out, or write two transitions".into()),
            );
        }
        let block = self.block(
            scheme,
            &def.actions,
            &format!("{at}/actions"),
            &mut Vec::new(),
        );
        let id = u32::try_from(chart.transitions.len()).unwrap_or(u32::MAX);
        let mut t = Transition {
            name: name.into(),
            at: at.into(),
            source,
            targets,
            domain,
            internal,
            parallel_domain: def.parallel_domain,
            guard,
            by,
            approves,
            requires,
            quorum,
            refuse,
            block,
            reads_event: false,
        };
        t.reads_event = super::content::reads_event(&t);
        chart.transitions.push(t);
        id
    }

    fn invoke(
        &mut self,
        scheme: &mut Scheme<'d>,
        def: &'d definition::Invoke,
        at: &str,
    ) -> Option<Invoke> {
        let src = self.src(&def.src, &format!("{at}/src"))?;
        self.whole_events |= def.autoforward;
        let id_location = match &def.id_location {
            Some(name) => self.slot_of(scheme, name, &format!("{at}/id_location")),
            None => None,
        };
        let choose = match &def.choose {
            Some(choose) => {
                let at = format!("{at}/choose");
                let machines = choose.machines.iter().filter_map(|(text, name)| {
                    Some((
                        text.clone().into_boxed_str(),
                        self.src(name, &format!("{at}/machines/{}", escape(text)))?,
                    ))
                });
                let machines = machines.collect();
                Some((
                    self.cel(&choose.value, &format!("{at}/value"), &[])?,
                    machines,
                ))
            }
            None => None,
        };
        Some(Invoke {
            id: def.id.as_deref().unwrap_or(&def.src).into(),
            src,
            choose,
            input: def
                .input
                .as_ref()
                .map(|t| self.template(t, &format!("{at}/input"), &[])),
            timeout: def
                .timeout
                .as_ref()
                .and_then(|d| self.delay(d, &format!("{at}/timeout"), &[])),
            id_location,
            finalize: self.block(
                scheme,
                &def.finalize,
                &format!("{at}/finalize"),
                &mut Vec::new(),
            ),
            autoforward: def.autoforward,
        })
    }

    pub(super) fn src(&mut self, name: &str, at: &str) -> Option<Src> {
        if let Some(chart) = self.chart_ids.get(name) {
            return Some(Src::Chart(*chart));
        }
        if let Some(service) = self.service_ids.get(name) {
            return Some(Src::Service(*service));
        }
        let known: Vec<&str> = self
            .chart_ids
            .keys()
            .chain(self.service_ids.keys())
            .copied()
            .collect();
        let help = match charter_expr::nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it under `actors` or `machines`".to_string(),
        };
        self.problem(
            "unknown-actor",
            at,
            format!("no actor or machine is called `{name}`"),
            Some(help),
        );
        None
    }

    fn descriptor(&mut self, text: &str, at: &str) -> Option<Listen> {
        if text == "*" {
            return Some(Listen::Pattern(Pattern::Any));
        }
        let bad = |c: &mut Self, help: &str| {
            c.problem(
                "bad-event-name",
                at,
                format!("`{text}` is not an event descriptor"),
                Some(help.into()),
            )
        };
        if let Some(prefix) = text.strip_suffix(".*") {
            if prefix.is_empty() || prefix.contains('*') {
                bad(self, "a descriptor is a type, `prefix.*`, or `*`");
                return None;
            }
            return Some(Listen::Pattern(Pattern::Prefix(prefix.into())));
        }
        if text.is_empty() || text.contains('*') || text.chars().any(char::is_whitespace) {
            bad(self, "a descriptor is a type, `prefix.*`, or `*`");
            return None;
        }
        let declared = self.def.events.contains_key(text);
        if self.def.strict
            && !declared
            && !is_platform(text)
            && !self.def.events.is_empty()
            && !raised(self.def, text)
        {
            let near = charter_expr::nearest(text, self.def.events.keys().map(String::as_str));
            let help = near.map_or_else(
                || "declare it under `events`".to_string(),
                |n| format!("did you mean `{n}`? otherwise declare it under `events`"),
            );
            self.problem(
                "undeclared-event",
                at,
                format!("no event `{text}` is declared, and no action raises or sends it"),
                Some(help),
            );
        }
        Some(Listen::Exact(self.event(text)))
    }

    /// Two invocations that can be at work at once need different ids, or an answer could mean either.
    fn invocation_ids(&mut self, scheme: &Scheme<'d>, chart: &Chart) {
        let mut users: FxHashMap<&str, Vec<(StateId, u32)>> = FxHashMap::default();
        for (node, id) in chart.states.iter().zip(0u32..) {
            for (place, invoke) in node.invokes.iter().zip(0u32..) {
                if let Some(invoke_def) = chart.invokes.get(*place as usize) {
                    users.entry(&invoke_def.id).or_default().push((id, invoke));
                }
            }
        }
        let mut clashes = Vec::new();
        for (name, places) in &users {
            for (i, (a, _)) in places.iter().enumerate().take(50) {
                for (b, k) in places.iter().skip(i.saturating_add(1)).take(50) {
                    let mut up = *a;
                    while up != NONE && up != *b && !scheme.inside(*b, up) {
                        up = scheme.parent(up);
                    }
                    let nested = up == *a || up == *b;
                    if nested || (up != NONE && scheme.kind(up) == StateKind::Parallel) {
                        clashes.push((*b, *k, (*name).to_string()));
                    }
                }
            }
        }
        clashes.sort();
        clashes.dedup();
        for (state, place, name) in clashes {
            let at = scheme
                .get(state)
                .map(|f| format!("{}/invoke/{place}", f.at))
                .unwrap_or_default();
            let help = Some("give one of them another `id`".to_string());
            self.problem(
                "duplicate-invocation",
                &at,
                format!("two invocations with the id `{name}` can be at work at once"),
                help,
            );
        }
    }
}

/// What makes a transition a candidate.
#[derive(Debug, Clone)]
enum Listen {
    Exact(EventId),
    Pattern(Pattern),
}

/// Fills `exact` and `patterns`: for a type named in this state, all transitions that match it, wildcards included, in document order.
fn tables(
    node: &mut StateNode,
    listen: &[(Vec<Listen>, TransitionId)],
    events: &crate::machine::Events,
) {
    let mut named: Vec<EventId> = listen
        .iter()
        .flat_map(|(l, _)| l.iter())
        .filter_map(|l| match l {
            Listen::Exact(id) => Some(*id),
            Listen::Pattern(_) => None,
        })
        .collect();
    named.sort_unstable();
    named.dedup();
    let has_patterns = listen
        .iter()
        .any(|(l, _)| l.iter().any(|l| matches!(l, Listen::Pattern(_))));
    if !has_patterns {
        // The common case in linear time: a state with thousands of events must not cost thousands squared.
        let mut by_event: BTreeMap<EventId, SmallVec<[TransitionId; 2]>> = BTreeMap::new();
        for (descriptors, t) in listen {
            for l in descriptors {
                if let Listen::Exact(id) = l {
                    let list = by_event.entry(*id).or_default();
                    if list.last() != Some(t) {
                        list.push(*t);
                    }
                }
            }
        }
        node.exact = by_event.into_iter().collect();
        return;
    }
    for id in named {
        let name = events.info(id).map_or("", |i| i.name.as_ref());
        let matches = |l: &Listen| match l {
            Listen::Exact(e) => *e == id,
            Listen::Pattern(p) => p.matches(name),
        };
        let list = listen
            .iter()
            .filter(|(l, _)| l.iter().any(matches))
            .map(|(_, t)| *t)
            .collect();
        node.exact.push((id, list));
    }
    for (descriptors, t) in listen {
        for l in descriptors {
            if let Listen::Pattern(p) = l {
                node.patterns.push((p.clone(), *t));
            }
        }
    }
}

/// Context variables of a chart: those with a first value, those bound late, and those that some action sets.
fn slots_of(
    chart: &definition::Chart,
    named: &indexmap::IndexMap<String, definition::Block>,
) -> Vec<String> {
    let mut slots: indexmap::IndexSet<String> = chart.context.keys().cloned().collect();
    let mut stack: Vec<&definition::State> = vec![&chart.state];
    let mut assigned: Vec<String> = Vec::new();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    while let Some(state) = stack.pop() {
        stack.extend(state.states.values().rev());
        slots.extend(state.data.keys().cloned());
        let transitions = state.on.iter().flat_map(|o| &o.transitions);
        let transitions = transitions
            .chain(&state.always)
            .chain(&state.on_done)
            .chain(state.after.iter().flat_map(|a| &a.transitions));
        let transitions = transitions.chain(
            state
                .invoke
                .iter()
                .flat_map(|i| i.on_done.iter().chain(&i.on_error)),
        );
        let mut blocks: Vec<&definition::Block> = transitions.map(|t| &t.actions).collect();
        blocks.extend(state.entry.iter().chain(&state.exit));
        blocks.extend(state.invoke.iter().map(|i| &i.finalize));
        blocks.extend(state.initial.as_ref().map(|i| &i.actions));
        assigned.extend(state.invoke.iter().filter_map(|i| i.id_location.clone()));
        while let Some(block) = blocks.pop() {
            for action in block {
                match action {
                    definition::Action::Assign(paths) => assigned.extend(paths.keys().cloned()),
                    definition::Action::If(branches) => {
                        blocks.extend(branches.iter().map(|b| &b.r#do))
                    }
                    definition::Action::Each { r#do, .. } => blocks.push(r#do),
                    definition::Action::Send(send) => assigned.extend(send.id_location.clone()),
                    definition::Action::Name(name) if seen.insert(name) => {
                        blocks.extend(named.get(name))
                    }
                    _ => {}
                }
            }
        }
    }
    let mut variables: Vec<String> = assigned
        .iter()
        .map(|path| super::content::variable_of(path).to_string())
        .collect();
    variables.sort();
    slots.extend(variables.into_iter().filter(|v| !v.is_empty()));
    slots.into_iter().collect()
}

/// Does some action raise or send an event of this type (or of a computed one)?
fn raised(def: &definition::Definition, name: &str) -> bool {
    let mut charts: Vec<&definition::Chart> = vec![&def.root];
    charts.extend(def.machines.values());
    let is = |t: &definition::Template| match t {
        definition::Template::Literal(v) => v.as_str() == Some(name),
        _ => true,
    };
    let mut blocks: Vec<&definition::Block> = def.actions.values().collect();
    let mut states: Vec<&definition::State> = charts.iter().map(|c| &c.state).collect();
    while let Some(state) = states.pop() {
        states.extend(state.states.values());
        let transitions = state
            .on
            .iter()
            .flat_map(|o| &o.transitions)
            .chain(&state.always)
            .chain(&state.on_done);
        let transitions = transitions.chain(state.after.iter().flat_map(|a| &a.transitions));
        let transitions = transitions.chain(
            state
                .invoke
                .iter()
                .flat_map(|i| i.on_done.iter().chain(&i.on_error)),
        );
        blocks.extend(transitions.map(|t| &t.actions));
        blocks.extend(
            state
                .entry
                .iter()
                .chain(&state.exit)
                .chain(state.initial.iter().map(|i| &i.actions)),
        );
        blocks.extend(state.invoke.iter().map(|i| &i.finalize));
    }
    while let Some(block) = blocks.pop() {
        for action in block {
            match action {
                definition::Action::Raise { r#type, .. } if is(r#type) => return true,
                definition::Action::Send(send) if is(&send.r#type) => return true,
                definition::Action::If(branches) => blocks.extend(branches.iter().map(|b| &b.r#do)),
                definition::Action::Each { r#do, .. } => blocks.push(r#do),
                _ => {}
            }
        }
    }
    false
}

/// Stands in for a state that does not exist, so that compiling can go on to the next problem.
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
