//! A definition with the indices that the kernel assigns: each state and transition with its
//! pointer, kind and targets.

mod sender;
pub(crate) mod walk;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use charter_expr::Ast;
pub(crate) use charter_expr::pointer::escape;
use charter_kernel::definition::{self, StateKind};
use charter_kernel::{Definition, Machine, Outline};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

/// A charter, prepared for the checks.
pub(crate) struct Model<'d> {
    pub(crate) def: &'d Definition,
    pub(crate) machine: &'d Machine,
    /// The root first, then `machines` in document order.
    pub(crate) charts: Vec<Chart<'d>>,
    asts: RefCell<FxHashMap<&'d str, Rc<Ast>>>,
    raised: OnceCell<Raised<'d>>,
}

/// The undeclared events that actions raise or send inside the run.
#[derive(Default)]
pub(crate) struct Raised<'d> {
    /// Their names.
    pub(crate) names: BTreeSet<&'d str>,
    /// Whether a name is computed, so that any name is possible.
    pub(crate) any: bool,
}

/// A statechart.
pub(crate) struct Chart<'d> {
    pub(crate) name: &'d str,
    /// JSON pointer of the chart.
    pub(crate) at: String,
    pub(crate) def: &'d definition::Chart,
    pub(crate) outline: Outline<'d>,
    pub(crate) states: Vec<State<'d>>,
    pub(crate) transitions: Vec<Transition<'d>>,
}

/// A state.
pub(crate) struct State<'d> {
    pub(crate) def: &'d definition::State,
    pub(crate) at: String,
    pub(crate) path: &'d str,
    pub(crate) kind: StateKind,
    pub(crate) parent: Option<u32>,
    pub(crate) last: u32,
    /// Its transitions, in the order of evaluation.
    pub(crate) transitions: Vec<u32>,
}

/// A transition.
pub(crate) struct Transition<'d> {
    pub(crate) def: &'d definition::Transition,
    pub(crate) at: &'d str,
    pub(crate) name: &'d str,
    pub(crate) source: u32,
    pub(crate) targets: &'d [u32],
    pub(crate) trigger: Trigger<'d>,
}

/// What triggers a transition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Trigger<'d> {
    /// Descriptors under `on`.
    On(&'d [String]),
    /// An eventless transition has no trigger.
    Always,
    /// A timer.
    After,
    /// The completion of its state.
    StateDone,
    /// The answer to an invocation, which is given by its index in its state.
    InvokeDone(usize),
    /// The failure of an invocation, which is given by its index in its state.
    InvokeError(usize),
}

impl<'d> Model<'d> {
    pub(crate) fn new(def: &'d Definition, machine: &'d Machine) -> Model<'d> {
        let mut charts = Vec::new();
        for outline in machine.outlines() {
            let (def, at) =
                match def.machines.get(outline.machine).filter(|_| outline.machine != "root" || !charts.is_empty()) {
                    Some(chart) => (chart, format!("/machines/{}", escape(outline.machine))),
                    None => (&def.root, "/root".to_string()),
                };
            charts.push(chart(def, at, outline));
        }
        Model { def, machine, charts, asts: RefCell::default(), raised: OnceCell::new() }
    }

    /// Returns the syntax tree of an expression, which is parsed only once. `None` only for text
    /// that the kernel refuses to compile.
    pub(crate) fn ast(&self, text: &'d str) -> Option<Rc<Ast>> {
        if let Some(ast) = self.asts.borrow().get(text) {
            return Some(ast.clone());
        }
        let ast = Rc::new(charter_expr::parse(text).ok()?);
        self.asts.borrow_mut().insert(text, ast.clone());
        Some(ast)
    }

    /// Returns the undeclared events that actions raise or send. They are computed once, because up
    /// to 100,000 transitions look them up.
    pub(crate) fn raised(&self) -> &Raised<'d> {
        self.raised.get_or_init(|| {
            let mut raised = Raised::default();
            self.visit_all(&mut |_, item| {
                let walk::Item::Action(action) = item else {
                    return;
                };
                let kind = match action {
                    definition::Action::Raise { r#type, .. } => r#type,
                    definition::Action::Send(send) => &send.r#type,
                    _ => return,
                };
                match kind {
                    definition::Template::Literal(Json::String(name)) => {
                        if !self.def.events.contains_key(name) {
                            raised.names.insert(name);
                        }
                    }
                    _ => raised.any = true,
                }
            });
            raised
        })
    }

    /// The chart of the machine that `src` names, if it names one.
    pub(crate) fn chart_of(&self, src: &str) -> Option<&Chart<'d>> {
        self.charts.iter().skip(1).find(|c| c.name == src)
    }

    /// Whether the charter declares roles.
    pub(crate) fn has_roles(&self) -> bool {
        !self.def.roles.is_empty()
    }
}

fn chart<'d>(def: &'d definition::Chart, at: String, outline: Outline<'d>) -> Chart<'d> {
    let mut states: Vec<State<'d>> = Vec::with_capacity(outline.states.len());
    let mut found: FxHashMap<String, (&'d definition::Transition, Trigger<'d>)> = FxHashMap::default();
    // Use the order of the kernel: a state before its children, children in document order.
    let mut stack = vec![(&def.state, format!("{at}/state"))];
    while let Some((state, at)) = stack.pop() {
        let Some(known) = outline.states.get(states.len()) else {
            break;
        };
        for (key, child) in state.states.iter().rev() {
            stack.push((child, format!("{at}/states/{}", escape(key))));
        }
        collect(state, &at, &mut found);
        states.push(State {
            def: state,
            at,
            path: known.path,
            kind: known.kind,
            parent: known.parent,
            last: known.last,
            transitions: Vec::new(),
        });
    }
    let mut transitions = Vec::with_capacity(outline.transitions.len());
    for t in &outline.transitions {
        let Some((def, trigger)) = found.get(t.at).copied() else {
            continue;
        };
        let number = u32::try_from(transitions.len()).unwrap_or(u32::MAX);
        if let Some(state) = states.get_mut(t.source as usize) {
            state.transitions.push(number);
        }
        transitions.push(Transition { def, at: t.at, name: t.name, source: t.source, targets: t.targets, trigger });
    }
    Chart { name: outline.machine, at, def, outline, states, transitions }
}

fn collect<'d>(
    state: &'d definition::State,
    at: &str,
    found: &mut FxHashMap<String, (&'d definition::Transition, Trigger<'d>)>,
) {
    let mut put = |list: &'d [definition::Transition], at: String, trigger: Trigger<'d>| {
        for (i, t) in list.iter().enumerate() {
            found.insert(format!("{at}/{i}"), (t, trigger));
        }
    };
    for (i, on) in state.on.iter().enumerate() {
        put(&on.transitions, format!("{at}/on/{i}/transitions"), Trigger::On(&on.events));
    }
    for (i, invoke) in state.invoke.iter().enumerate() {
        put(&invoke.on_done, format!("{at}/invoke/{i}/on_done"), Trigger::InvokeDone(i));
        put(&invoke.on_error, format!("{at}/invoke/{i}/on_error"), Trigger::InvokeError(i));
    }
    put(&state.on_done, format!("{at}/on_done"), Trigger::StateDone);
    for (i, after) in state.after.iter().enumerate() {
        put(&after.transitions, format!("{at}/after/{i}/transitions"), Trigger::After);
    }
    put(&state.always, format!("{at}/always"), Trigger::Always);
}

// The indices of states and transitions come from the kernel's outline of the same chart.
#[allow(clippy::indexing_slicing)]
impl<'d> Chart<'d> {
    pub(crate) fn state(&self, number: u32) -> &State<'d> {
        &self.states[number as usize]
    }
    pub(crate) fn transition(&self, number: u32) -> &Transition<'d> {
        &self.transitions[number as usize]
    }
}

impl<'d> Chart<'d> {
    /// The indices of all states except the root.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// The state and its ancestors, innermost first.
    pub(crate) fn upwards(&self, from: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(from), |s| self.state(*s).parent)
    }

    /// Whether `inner` is a proper descendant of `outer`.
    pub(crate) fn inside(&self, inner: u32, outer: u32) -> bool {
        inner > outer && inner <= self.state(outer).last
    }

    /// The atomic and final states at or below a state.
    pub(crate) fn leaves(&self, state: u32) -> impl Iterator<Item = u32> {
        (state..=self.state(state).last).filter(|s| matches!(self.state(*s).kind, StateKind::Atomic | StateKind::Final))
    }

    /// The leaves that are entered by default when a state is entered, without those of other
    /// regions.
    pub(crate) fn default_leaves(&self, state: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut stack = vec![state];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(s) = stack.pop() {
            if !seen.insert(s) {
                continue;
            }
            let Some(known) = self.outline.states.get(s as usize) else {
                continue;
            };
            match known.kind {
                StateKind::Atomic | StateKind::Final => out.push(s),
                StateKind::Parallel => stack.extend(known.children.iter().copied()),
                StateKind::Compound => stack.extend(known.initial.iter().copied()),
                StateKind::Shallow | StateKind::Deep => match (known.initial, known.parent) {
                    ([], Some(parent)) => stack.push(parent),
                    (initial, _) => stack.extend(initial.iter().copied()),
                },
            }
        }
        out
    }

    /// The states that are active before or after a transition, or while it is taken.
    pub(crate) fn passed_by(&self, t: &Transition<'_>) -> Vec<u32> {
        let entered = t.targets.iter().flat_map(|s| self.default_leaves(*s));
        std::iter::once(t.source).chain(entered).flat_map(|s| self.upwards(s).collect::<Vec<_>>()).collect()
    }

    /// The name of a state in messages.
    pub(crate) fn label(&self, state: u32) -> String {
        let path = self.state(state).path;
        if self.name == "root" { format!("`{path}`") } else { format!("`{path}` of machine `{}`", self.name) }
    }

    /// The transitions with their indices.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Transition<'d>)> {
        (0u32..).zip(&self.transitions)
    }
}

impl<'d> Transition<'d> {
    /// The invocation whose answer or failure triggers the transition.
    pub(crate) fn invocation(&self, chart: &Chart<'d>) -> Option<&'d definition::Invoke> {
        match self.trigger {
            Trigger::InvokeDone(i) | Trigger::InvokeError(i) => chart.state(self.source).def.invoke.get(i),
            _ => None,
        }
    }

    /// Whether an event from a principal can trigger it, according to its descriptors.
    pub(crate) fn is_external(&self) -> bool {
        matches!(self.trigger, Trigger::On(events) if events.iter().any(|e| !is_platform(e)))
    }

    /// Whether it is enabled by its event alone.
    pub(crate) fn is_unconditional(&self) -> bool {
        let d = self.def;
        d.guard.is_none() && d.when.is_none() && d.approves.is_none() && d.requires.is_empty() && d.quorum.is_none()
    }
}

/// The id of an invocation.
pub(crate) fn invocation_id(invoke: &definition::Invoke) -> &str {
    invoke.id.as_deref().unwrap_or(&invoke.src)
}

/// Whether only the platform raises events of this type.
pub(crate) fn is_platform(name: &str) -> bool {
    ["done.", "error.", "after.", "charter."].iter().any(|p| name.starts_with(p))
}

/// The event that a descriptor names, if a principal can send it. SCXML's `a` is the descriptor
/// `a.*`.
pub(crate) fn named_event(descriptor: &str) -> Option<&str> {
    let name = descriptor.strip_suffix(".*").unwrap_or(descriptor);
    (!name.contains('*') && !is_platform(descriptor)).then_some(name)
}

/// Whether a descriptor matches an event type.
pub(crate) fn matches(descriptor: &str, event: &str) -> bool {
    match descriptor.strip_suffix('*') {
        Some("") => !is_platform(event),
        Some(prefix) => prefix
            .strip_suffix('.')
            .is_some_and(|p| event.strip_prefix(p).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))),
        None => descriptor == event,
    }
}
