//! Compiles a definition into a machine: names become indices, expressions become programs, and all
//! problems are reported together.
//!
//! `scheme` numbers the states and resolves targets; `chart`, `transition` and `invoke` compile
//! them, `content` their actions, `guard` their conditions, and `value` the expressions in all of
//! these.

mod chart;
mod content;
mod declarations;
mod guard;
mod interlock;
mod invoke;
mod scheme;
mod survey;
mod transition;
mod value;

use std::sync::Arc;

use charter_expr::Env;
use charter_expr::pointer::escape;
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::definition::Definition;
use crate::machine::{EventId, EventInfo, Events, Functions, Machine, RoleSet};
use crate::problem::Problem;
use crate::schema::Schema;
use crate::scope;

/// Upper limit of the problems reported.
const MAX_PROBLEMS: usize = 100;

/// Upper limit of the nesting of states, actions, guards and templates.
pub(crate) const MAX_NESTING: usize = 100;

/// Bits in a [`RoleSet`].
const MAX_ROLES: usize = 128;

/// Upper limit of the states of a chart.
const MAX_STATES: usize = 1_000_000;

/// Event types that only the platform generates.
pub(crate) fn is_platform(name: &str) -> bool {
    ["done.", "error.", "after.", "charter."].iter().any(|p| name.starts_with(p))
}

pub(crate) fn compile(definition: Arc<Definition>) -> Result<Machine, Vec<Problem>> {
    let mut c = Compiler::new(&definition);
    c.declarations();
    let mut charts = Vec::with_capacity(definition.machines.len().saturating_add(1));
    charts.push(c.chart(0, &definition.root, "/root"));
    for (i, (name, chart)) in definition.machines.iter().enumerate() {
        charts.push(c.chart(
            u32::try_from(i).unwrap_or(u32::MAX).saturating_add(1),
            chart,
            &format!("/machines/{}", escape(name)),
        ));
    }
    let services = c.services();
    let interlocks = c.interlocks(&charts);
    c.projections();
    let rules = c.rules();
    c.properties();
    if !c.problems.is_empty() {
        return Err(c.problems);
    }
    let event_reads = (!c.whole_events).then_some(c.event_reads);
    let (events, roles, functions) = (c.events, c.roles, c.functions);
    let digest = definition.digest();
    let ledger = definition.ledger.keys().map(|k| k.clone().into_boxed_str()).collect();
    Ok(Machine {
        digest,
        events,
        roles,
        ledger,
        event_reads,
        rules,
        charts,
        services,
        interlocks,
        functions,
        definition,
        only_algorithm: false,
    })
}

pub(crate) struct Compiler<'d> {
    def: &'d Definition,
    problems: Vec<Problem>,
    events: Events,
    roles: Vec<Box<str>>,
    /// The names that expressions may use.
    env: Env,
    functions: Functions,
    service_ids: FxHashMap<&'d str, u32>,
    chart_ids: FxHashMap<&'d str, u32>,
    /// Fields of events that expressions read.
    event_reads: Vec<Vec<Box<str>>>,
    /// Whether any part of the charter needs whole events.
    whole_events: bool,
    /// The named guards that were compiled.
    named_guards: FxHashMap<&'d str, guard::NamedGuard>,
    /// The event types that actions raise or send; collected on first use.
    raised: Option<survey::Raised<'d>>,
}

impl<'d> Compiler<'d> {
    fn new(def: &'d Definition) -> Self {
        let (env, functions) = scope::env(def.strict);
        let number = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        Compiler {
            def,
            problems: Vec::new(),
            event_reads: Vec::new(),
            whole_events: !def.strict,
            named_guards: FxHashMap::default(),
            raised: None,
            events: Events::default(),
            roles: Vec::new(),
            env,
            functions,
            service_ids: def.actors.keys().enumerate().map(|(i, k)| (k.as_str(), number(i))).collect(),
            chart_ids: def
                .machines
                .keys()
                .enumerate()
                .map(|(i, k)| (k.as_str(), number(i).saturating_add(1)))
                .collect(),
        }
    }

    /// Whether further problems are dropped.
    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// Suggests a known name for an unknown one ("did you mean ...?"). Skipped for problems that
    /// are not reported, because comparing names is costly.
    fn did_you_mean<'n>(&self, name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
        if self.is_full() { None } else { charter_expr::did_you_mean(name, known) }
    }

    fn problem(&mut self, code: &'static str, at: &str, message: impl Into<String>, help: Option<String>) {
        self.problem_in(code, at, None, message, help);
    }

    fn problem_in(
        &mut self,
        code: &'static str,
        at: &str,
        span: Option<(usize, usize)>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        if !self.is_full() {
            self.problems.push(Problem { code, at: at.to_string(), span, message: message.into(), help });
        }
    }

    /// Returns the index of a rule, or reports that it is unknown.
    fn rule(&mut self, name: &str, at: &str) -> Option<u32> {
        let found = self.def.rules.get_index_of(name);
        if found.is_none() {
            let help = self
                .did_you_mean(name, self.def.rules.keys().map(String::as_str))
                .unwrap_or_else(|| "declare it under `rules`, with the sentence that explains a refusal".into());
            self.problem("unknown-rule", at, format!("there is no rule `{name}`"), Some(help));
        }
        found.and_then(|i| u32::try_from(i).ok())
    }

    /// Returns the id of an event type; adds the type on first use.
    fn event(&mut self, name: &str) -> EventId {
        if let Some(id) = self.events.ids.get(name) {
            return *id;
        }
        let id = u32::try_from(self.events.list.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.events.ids.insert(name.clone(), id);
        self.events.list.push(EventInfo {
            name,
            declared: false,
            by: RoleSet::default(),
            schema: None,
            while_paused: false,
            unique: None,
        });
        id
    }

    fn role_set(&mut self, names: &[String], at: &str) -> RoleSet {
        let mut set = RoleSet::default();
        for (i, name) in names.iter().enumerate() {
            match self.roles.iter().position(|r| r.as_ref() == name) {
                Some(bit) => set.0 |= 1u128 << bit,
                None => {
                    let known: Vec<&str> = self.roles.iter().map(AsRef::as_ref).collect();
                    let help = format!("declare it under `roles`; declared: {}", known.join(", "));
                    self.problem("unknown-role", &format!("{at}/{i}"), format!("no role named `{name}`"), Some(help));
                }
            }
        }
        set
    }

    fn schema(&mut self, schema: Option<&Json>, at: &str) -> Option<Schema> {
        match Schema::compile(schema?) {
            Ok(schema) => Some(schema),
            Err(error) => {
                self.problem("bad-schema", at, format!("this is not a JSON Schema: {error}"), None);
                None
            }
        }
    }
}
