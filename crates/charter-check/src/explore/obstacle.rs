//! Decides whether the exploration with concrete data, principals and times covers all behavior.
//!
//! It does if the behavior depends on nothing that has more values than are tried: not on data from
//! outside, not on who sends an event (beyond one role), and not on the time. Whatever this module
//! cannot rule out is an obstacle: then nothing is called proved.

use charter_expr::Ast;
use charter_format::{Diagnostic, Document};
use charter_kernel::definition::{Action, Delay, InterlockRule, Property, PropertyRule, StateKind, Template};

use crate::model::walk::{Item, indexes};
use crate::model::{Chart, Model, escape};

/// Where an obstacle is that no single place of the charter makes.
const WHOLE: &str = "/root";

/// The first thing that keeps an exploration from covering all behavior.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// JSON pointer into the core form.
    pub(crate) at: String,
    /// The expression, if it is one.
    pub(crate) expression: Option<String>,
    /// Why it is an obstacle.
    pub(crate) why: String,
}

impl Obstacle {
    pub(crate) fn new(at: &str, why: impl Into<String>) -> Obstacle {
        Obstacle { at: at.to_string(), expression: None, why: why.into() }
    }

    /// One that no single place of the charter makes.
    pub(crate) fn whole(why: impl Into<String>) -> Obstacle {
        Obstacle::new(WHOLE, why)
    }

    /// What it is, where, and why, for a message.
    pub(crate) fn named(&self, document: Option<&Document>) -> String {
        let place = match document {
            // It is about the charter as a whole: no line says more.
            _ if self.at == WHOLE => return self.why.clone(),
            Some(document) => {
                let place = document.placed(&self.at, None, Diagnostic::warning("", Default::default(), ""));
                // An import has no place of its own for an expression.
                match place.path.as_str() {
                    "" => format!("line {}", place.line),
                    path => format!("{path}, line {}", place.line),
                }
            }
            None => self.at.clone(),
        };
        match &self.expression {
            Some(cel) => format!("`{cel}` ({place}): {}", self.why),
            None => format!("{place}: {}", self.why),
        }
    }

    pub(crate) fn of(at: &str, cel: &str, why: impl Into<String>) -> Obstacle {
        Obstacle { at: at.to_string(), expression: Some(cel.to_string()), why: why.into() }
    }
}

struct Scan<'m, 'd> {
    model: &'m Model<'d>,
    found: Option<Obstacle>,
}

/// Finds the first obstacle in a charter; `None` if an exploration that visits all its states
/// covers all behavior.
pub(crate) fn obstacle(model: &Model<'_>) -> Option<Obstacle> {
    let mut scan = Scan { model, found: None };
    let def = model.def;
    for chart in &model.charts {
        scan.chart(chart);
    }
    for (i, lock) in def.interlocks.iter().enumerate() {
        if let InterlockRule::Assert(cel) = &lock.rule {
            scan.condition(&format!("/interlocks/{i}"), cel);
        }
    }
    for (i, property) in def.properties.iter().enumerate() {
        scan.condition(&format!("/properties/{i}"), condition_of(property));
    }
    if !def.interlocks.is_empty() && answers_at_once(model) {
        let why = "the run was not paused and resumed, which delivers several answers in one event";
        scan.add(Obstacle::new("/interlocks/0", why));
    }
    if !def.ledger.is_empty() {
        scan.add(Obstacle::new("/ledger", "only some times and keys of permits and obligations were tried"));
    }
    if !def.strict {
        scan.add(Obstacle::whole("events that neither the charter declares nor a transition names were not tried"));
    }
    scan.found
}

/// Whether a run may wait for several answers at once.
fn answers_at_once(model: &Model<'_>) -> bool {
    let invokes = model.charts.iter().flat_map(|c| &c.states).flat_map(|s| &s.def.invoke);
    let services = invokes.filter(|i| i.choose.is_some() || model.chart_of(&i.src).is_none()).count();
    // Each actor of a machine has its own.
    services > 1 || services > 0 && model.charts.len() > 1
}

/// The condition of a property.
pub(crate) fn condition_of(property: &Property) -> &str {
    match &property.rule {
        PropertyRule::Never { when, .. } => when,
        PropertyRule::Always(cel) | PropertyRule::Eventually(cel) => cel,
    }
}

impl<'d> Scan<'_, 'd> {
    fn add(&mut self, obstacle: Obstacle) {
        self.found.get_or_insert(obstacle);
    }

    fn chart(&mut self, chart: &Chart<'d>) {
        let parallel = chart.states.iter().any(|s| s.kind == StateKind::Parallel);
        for t in &chart.transitions {
            let of = |part: &str| format!("{}/{part}", t.at);
            let mut conditions = Vec::new();
            self.model.visit_condition(t.def, t.at, &mut |at, item| {
                if let Item::Cel(cel) = item {
                    conditions.push((at.to_string(), cel));
                }
            });
            conditions.iter().for_each(|(at, cel)| self.condition(at, cel));
            if let Some(cel) = &t.def.approves {
                self.add(Obstacle::of(&of("approves"), cel, "only some principals and values were tried"));
            }
            if t.def.quorum.as_ref().is_some_and(|q| q.count > 1) {
                self.add(Obstacle::new(&of("quorum"), "only some groups of principals were tried"));
            }
            if t.def.not_by.is_some() || t.def.quorum.is_some() {
                self.add(Obstacle::new(t.at, "only some principals were tried"));
            }
            if parallel && !t.def.by.is_empty() {
                let why = "principals with several roles, who can move several regions at once, were not tried";
                self.add(Obstacle::new(&of("by"), why));
            }
            self.block(&t.def.actions, &of("actions"));
        }
        for state in &chart.states {
            let blocks = state.def.entry.iter().chain(&state.def.exit);
            for block in blocks.chain(state.def.initial.iter().map(|i| &i.actions)) {
                self.block(block, &state.at);
            }
            if state.def.exit.iter().flatten().any(|a| !matches!(a, Action::Log { .. } | Action::Emit { .. })) {
                self.add(Obstacle::new(&state.at, "the run was not cancelled, which runs the `exit` actions"));
            }
            if let Some(value) = &state.def.output {
                self.values(&format!("{}/output", state.at), value);
            }
            for value in state.def.data.values() {
                self.values(&state.at, value);
            }
            for (i, after) in state.def.after.iter().enumerate() {
                self.delay(&format!("{}/after/{i}/delay", state.at), &after.delay);
            }
            for (i, invoke) in state.def.invoke.iter().enumerate() {
                let at = format!("{}/invoke/{i}", state.at);
                invoke.input.iter().for_each(|v| self.values(&at, v));
                invoke.timeout.iter().for_each(|d| self.delay(&at, d));
                self.block(&invoke.finalize, &at);
                invoke.choose.iter().for_each(|c| self.condition(&at, &c.value));
            }
        }
        for (name, value) in &chart.def.context {
            self.values(&format!("{}/context/{}", chart.at, escape(name)), value);
        }
        if let Some(value) = &chart.def.output {
            self.values(&format!("{}/output", chart.at), value);
        }
    }

    fn delay(&mut self, at: &str, delay: &'d Delay) {
        let mut cels = Vec::new();
        self.model.visit_delay(delay, at, &mut |at, item| {
            if let Item::Cel(cel) = item {
                cels.push((at.to_string(), cel));
            }
        });
        cels.iter().for_each(|(at, cel)| self.condition(at, cel));
    }

    /// A block of actions. Even an expression whose value does not matter may fail for some data:
    /// that raises `error.execution`, and what follows in the block is not done.
    fn block(&mut self, block: &'d [Action], at: &str) {
        let mut cels = Vec::new();
        self.model.visit_block(block, at, &mut |at, item| match item {
            Item::Cel(cel) => cels.push((at.to_string(), cel)),
            Item::Assign(path, value) => {
                cels.extend(indexes(path).into_iter().chain(Model::cels(value)).map(|cel| (at.to_string(), cel)));
            }
            Item::Action(action) => {
                cels.extend(naming(action).into_iter().flat_map(Model::cels).map(|cel| (at.to_string(), cel)));
            }
            _ => {}
        });
        cels.iter().for_each(|(at, cel)| self.condition(at, cel));
    }

    fn values(&mut self, at: &str, value: &'d Template) {
        Model::cels(value).into_iter().for_each(|cel| self.condition(at, cel));
    }

    /// An expression on whose value, or failure, the behavior depends: it may read the state of the
    /// run only.
    fn condition(&mut self, at: &str, cel: &'d str) {
        let Some(ast) = self.model.ast(cel) else { return };
        let found = outside(&ast);
        if let Some(why) = found {
            self.add(Obstacle::of(at, cel, why));
        }
    }
}

/// The parts of an action that are names: of actors, events and timers.
fn naming(action: &Action) -> Vec<&Template> {
    match action {
        Action::Spawn { id, input, .. } => std::iter::once(id).chain(input).collect(),
        Action::Stop(id) | Action::Cancel(id) => vec![id],
        Action::Raise { r#type, data } => std::iter::once(r#type).chain(data).collect(),
        Action::Send(send) => send.to.iter().chain([&send.r#type]).chain(&send.data).chain(&send.id).collect(),
        _ => Vec::new(),
    }
}

/// What an expression reads of which not every value is tried.
fn outside(ast: &Ast) -> Option<String> {
    for path in ast.reads() {
        let why = match path.root() {
            "context" => continue,
            "actors" if crate::tree::reads_status(ast.root()) => "the run was not paused or cancelled",
            "actors" => continue,
            "event" => "only some data of the event was tried",
            "by" => "only some principals were tried",
            "now" => "only the times at which timers are due were tried",
            "input" => "only some inputs of the run were tried",
            "ledger" | "entry" => "only some times and keys of permits and obligations were tried",
            "run" => "only one run id was tried",
            _ => "not every value that it reads was tried",
        };
        return Some(why.to_string());
    }
    None
}
