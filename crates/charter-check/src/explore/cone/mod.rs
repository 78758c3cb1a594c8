//! The cone of influence: the context variables that affect the behavior of a run because
//! conditions read them, and the fields of events, answers and inputs that provide the compared
//! values.

mod compare;
mod flow;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use charter_kernel::definition::{Action, Block, InterlockRule, PropertyRule, Require, Template};
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

pub(crate) use sources::{Source, sources};

use crate::model::Model;
use crate::model::walk::{Item, indexes, variable_of};
use crate::tree;
use compare::{compared, sized, solution};
use flow::Flow;
use sources::strip;

/// How conditions use one field of the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Probe {
    /// Whether a condition depends on its value; otherwise it only has to be present.
    pub(crate) decides: bool,
    /// Literals that it is compared with.
    pub(crate) constants: Vec<Json>,
    /// Literals that its size is compared with.
    pub(crate) sizes: Vec<i64>,
    /// Whether it is a name (a key, an id), so that two different values are needed.
    pub(crate) names: bool,
    /// Expressions over the state of the run that it is compared with.
    pub(crate) like: BTreeSet<String>,
}

/// Probes by field path.
pub(crate) type Probes = BTreeMap<Vec<String>, Probe>;

/// Everything that affects the behavior of a run.
#[derive(Debug, Default)]
pub(crate) struct ConeOfInfluence {
    /// The variables in the cone, by chart.
    pub(crate) variables: Vec<FxHashSet<String>>,
    /// Whether the inputs of actors are in the cone.
    pub(crate) inputs: bool,
    /// Whether the data of ledger entries is in the cone.
    pub(crate) entries: bool,
    /// Whether conditions read the id or the roles of the sender.
    pub(crate) sender: bool,
    /// Whether conditions read the kind of the sender.
    pub(crate) kind: bool,
    /// Whether conditions read how the sender was authenticated.
    pub(crate) auth: bool,
    /// Whether conditions read the time.
    pub(crate) clock: bool,
    /// The probes, by source of the data.
    pub(crate) probes: BTreeMap<Source, Probes>,
}

impl ConeOfInfluence {
    /// Adds the variables of all charts.
    pub(crate) fn add_all(&mut self, model: &Model<'_>) {
        for (names, chart) in self.variables.iter_mut().zip(&model.charts) {
            names.extend(chart.outline.variables.iter().map(|name| (*name).to_owned()));
        }
    }
}

/// What `event` can refer to in an expression: the possible sources, each with the field that wraps
/// its data.
type Events<'s> = &'s [(Source, Option<&'static str>)];

struct ConeBuilder<'m, 'd> {
    model: &'m Model<'d>,
    cone: ConeOfInfluence,
    flows: Vec<Flow>,
    /// Context paths that have not been traced to their origin yet: chart, variable and fields,
    /// probe.
    pending: Vec<(usize, Vec<String>, Probe)>,
}

pub(crate) fn cone_of_influence(model: &Model<'_>) -> ConeOfInfluence {
    let mut b = ConeBuilder { model, cone: ConeOfInfluence::default(), flows: Vec::new(), pending: Vec::new() };
    b.cone.variables = vec![FxHashSet::default(); model.charts.len()];
    b.rules();
    for number in 0..model.charts.len() {
        b.chart(number);
    }
    b.variables();
    b.trace_origins();
    b.cone
}

impl<'d> ConeBuilder<'_, 'd> {
    /// Adds what unique keys, interlocks and properties read.
    fn rules(&mut self) {
        let model = self.model;
        for (event, decl) in &model.def.events {
            if let Some(unique) = &decl.unique {
                self.name(0, &unique.key, &[(Source::Event(event.clone()), None)]);
            }
        }
        for lock in &model.def.interlocks {
            if let InterlockRule::Assert(cel) = &lock.rule {
                self.deciding(0, cel, &[]);
            }
        }
        for property in &model.def.properties {
            match &property.rule {
                PropertyRule::Never { when, .. } => self.deciding(0, when, &[]),
                PropertyRule::Always(cel) | PropertyRule::Eventually(cel) => self.deciding(0, cel, &[]),
            }
        }
    }

    fn chart(&mut self, number: usize) {
        let model = self.model;
        let Some(chart) = model.charts.get(number) else {
            return;
        };
        for (name, value) in &chart.def.context {
            self.flow(number, std::slice::from_ref(name), value, &[]);
            self.touch(number, value, &[]);
        }
        if let Some(output) = &chart.def.output {
            self.touch(number, output, &[]);
        }
        let arrivals = self.arrivals(chart);
        for (state, events) in chart.states.iter().zip(&arrivals) {
            let mut cels: Vec<&'d str> = Vec::new();
            model.visit_state(state.def, &state.at, &mut |_, item| {
                if let Item::Cel(cel) = item {
                    cels.push(cel);
                }
            });
            cels.into_iter().for_each(|cel| self.reads(number, cel, &[], false));
            for after in &state.def.after {
                model.visit_delay(&after.delay, "", &mut |_, item| {
                    if let Item::Cel(cel) = item {
                        self.deciding(number, cel, &[]);
                    }
                });
            }
            let blocks =
                state.def.entry.iter().chain(&state.def.exit).chain(state.def.initial.iter().map(|i| &i.actions));
            // Entry actions see the event that led to the state, which is any of the events that
            // can enter it.
            for block in blocks {
                self.block(number, block, events, 0);
            }
        }
        for t in &chart.transitions {
            let events = sources(model, chart, t);
            model.visit_condition(t.def, t.at, &mut |_, item| {
                if let Item::Cel(cel) = item {
                    self.deciding(number, cel, &events);
                }
            });
            self.cone.sender |= t.def.not_by.is_some();
            for require in &t.def.requires {
                if let Require::Use { key, .. } | Require::Open { key, .. } = require {
                    self.naming(number, key, &events);
                }
                self.cone.entries |= matches!(require, Require::Use { when: Some(_), .. });
            }
            self.block(number, &t.def.actions, &events, 0);
        }
    }

    fn block(&mut self, chart: usize, block: &'d Block, events: Events<'_>, depth: usize) {
        if depth > 110 {
            return;
        }
        let deeper = depth.saturating_add(1);
        for action in block {
            match action {
                Action::Name(name) => {
                    if let Some(block) = self.model.def.actions.get(name) {
                        self.block(chart, block, events, deeper);
                    }
                }
                Action::Assign(list) => {
                    for (path, value) in list {
                        let to = if path.contains('[') {
                            vec![variable_of(path).to_string()]
                        } else {
                            path.split('.').map(str::to_string).collect()
                        };
                        self.flow(chart, &to, value, events);
                        indexes(path).into_iter().for_each(|cel| self.reads(chart, cel, events, false));
                    }
                }
                Action::If(branches) => {
                    for branch in branches {
                        if let Some(when) = &branch.when {
                            self.deciding(chart, when, events);
                        }
                        self.block(chart, &branch.r#do, events, deeper);
                    }
                }
                Action::Each { r#in, r#do, .. } => {
                    self.deciding(chart, r#in, events);
                    self.block(chart, r#do, events, deeper);
                }
                Action::Spawn { id, .. } => self.naming(chart, id, events),
                Action::Stop(id) => self.naming(chart, id, events),
                Action::Grant { key, uses, expires, .. } => {
                    self.naming(chart, key, events);
                    for t in uses.iter().chain(expires) {
                        Model::cels(t).into_iter().for_each(|cel| self.deciding(chart, cel, events));
                    }
                }
                Action::Revoke { key: Some(key), .. }
                | Action::Open { key, .. }
                | Action::Close { key: Some(key), .. } => self.naming(chart, key, events),
                Action::Send(send) => {
                    for t in send.to.iter().chain([&send.r#type]) {
                        Model::cels(t).into_iter().for_each(|cel| self.deciding(chart, cel, events));
                    }
                }
                _ => {}
            }
            let mut cels: Vec<&'d str> = Vec::new();
            if !matches!(action, Action::Name(_) | Action::If(_) | Action::Each { .. }) {
                self.model.visit_block(std::slice::from_ref(action), "", &mut |_, item| {
                    if let Item::Cel(cel) = item {
                        cels.push(cel);
                    }
                });
            }
            cels.into_iter().for_each(|cel| self.reads(chart, cel, events, false));
        }
    }

    /// Records what a template reads if the template itself does not affect behavior.
    fn touch(&mut self, chart: usize, value: &'d Template, events: Events<'_>) {
        Model::cels(value).into_iter().for_each(|cel| self.reads(chart, cel, events, false));
    }

    /// Records a template whose value is a name (a key, an id).
    fn naming(&mut self, chart: usize, value: &'d Template, events: Events<'_>) {
        Model::cels(value).into_iter().for_each(|cel| self.name(chart, cel, events));
    }

    fn name(&mut self, chart: usize, cel: &'d str, events: Events<'_>) {
        self.deciding(chart, cel, events);
        let Some(ast) = self.model.ast(cel) else {
            return;
        };
        let naming = Probe { decides: true, names: true, ..Probe::default() };
        if let Some((root, fields)) = tree::path_of(ast.root()) {
            self.probe(chart, &root, &fields, events, &naming);
        }
    }

    /// Records an expression that affects behavior.
    fn deciding(&mut self, chart: usize, cel: &'d str, events: Events<'_>) {
        self.reads(chart, cel, events, true);
        let Some(ast) = self.model.ast(cel) else {
            return;
        };
        let mut probes: Vec<(String, Vec<String>, Probe)> = Vec::new();
        tree::comparisons(ast.root(), &mut |left, op, right| {
            for (a, b) in [(left, right), (right, left)] {
                if let Some((root, fields)) = tree::path_of(a) {
                    probes.extend(compared(a, b, op, cel).map(|probe| (root, fields, probe)));
                } else if let (Some((root, fields)), Some(n)) =
                    (sized(a).and_then(tree::path_of), tree::literal_of(b).and_then(|l| l.as_i64()))
                {
                    probes.push((root, fields, Probe { decides: true, sizes: vec![n], ..Probe::default() }));
                } else if let Some((root, fields, value)) = solution(a, b) {
                    probes.push((root, fields, Probe { decides: true, constants: vec![value], ..Probe::default() }));
                }
            }
        });
        for (root, fields, probe) in probes {
            self.probe(chart, &root, &fields, events, &probe);
        }
    }

    fn probe(&mut self, chart: usize, root: &str, fields: &[String], events: Events<'_>, probe: &Probe) {
        match root {
            "event" => {
                for (source, drop) in events {
                    if let Some(path) = strip(fields, *drop) {
                        self.put(source.clone(), path, probe);
                    }
                }
            }
            "input" if chart == 0 => self.put(Source::Input, fields.to_vec(), probe),
            "context" => self.pending.push((chart, fields.to_vec(), probe.clone())),
            // For example `actors.root.context.spent`.
            "actors" => {
                if let [_, context, rest @ ..] = fields
                    && context == "context"
                {
                    for chart in 0..self.model.charts.len() {
                        self.pending.push((chart, rest.to_vec(), probe.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, source: Source, path: Vec<String>, probe: &Probe) {
        let known = self.cone.probes.entry(source).or_default().entry(path).or_default();
        known.decides |= probe.decides;
        known.names |= probe.names;
        known.like.extend(probe.like.iter().cloned());
        known
            .constants
            .extend(probe.constants.iter().filter(|c| !known.constants.contains(c)).cloned().collect::<Vec<_>>());
        known.sizes.extend(probe.sizes.iter().filter(|s| !known.sizes.contains(s)).copied().collect::<Vec<_>>());
    }

    /// Records the paths that an expression reads.
    fn reads(&mut self, chart: usize, cel: &'d str, events: Events<'_>, decides: bool) {
        let Some(ast) = self.model.ast(cel) else {
            return;
        };
        let probe = Probe { decides, ..Probe::default() };
        for path in ast.reads() {
            let mut fields = Vec::new();
            for segment in path.segments() {
                match segment {
                    charter_expr::Segment::Field(name) => fields.push(name.to_string()),
                    charter_expr::Segment::Index(charter_expr::Key::String(name)) => {
                        fields.push(name.as_str().to_string())
                    }
                    charter_expr::Segment::Index(_) => break,
                }
            }
            self.probe(chart, path.root(), &fields, events, &probe);
            if !decides {
                continue;
            }
            match path.root() {
                "context" => self.decide(chart, fields.first()),
                "by" => match fields.first().map(String::as_str) {
                    Some("kind") => self.cone.kind = true,
                    Some("auth") => self.cone.auth = true,
                    Some(_) => self.cone.sender = true,
                    None => (self.cone.sender, self.cone.kind, self.cone.auth) = (true, true, true),
                },
                "now" => self.cone.clock = true,
                "input" => self.cone.inputs = true,
                "ledger" | "entry" => self.cone.entries = true,
                "actors" => {
                    let context = match fields.as_slice() {
                        [_, word, rest @ ..] if word == "context" => Some(rest.first()),
                        // `actors.all(a, ... .context...)` may read the context of any actor.
                        [] | [_] if cel.contains("context") => Some(None),
                        _ => None,
                    };
                    if let Some(variable) = context {
                        (0..self.model.charts.len()).for_each(|chart| self.decide(chart, variable));
                    }
                }
                _ => {}
            }
        }
    }

    fn decide(&mut self, chart: usize, variable: Option<&String>) {
        let all = self.model.charts.get(chart).map(|c| c.outline.variables.clone()).unwrap_or_default();
        let Some(set) = self.cone.variables.get_mut(chart) else {
            return;
        };
        match variable {
            Some(name) => drop(set.insert(name.clone())),
            None => set.extend(all.into_iter().map(str::to_string)),
        }
    }
}
