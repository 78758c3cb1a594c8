//! From a definition to a machine: names become numbers, expressions become programs, and everything wrong is reported at once.
//!
//! `chart` numbers the states and resolves targets, `content` compiles what is in them (guards, actions, values).

mod chart;
mod content;
mod delay;

use std::sync::Arc;

use charter_expr::{Env, Type};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

pub use delay::parse_delay;

use crate::definition::{self, Definition, InterlockRule, Projection};
use crate::machine::{
    EventId, EventInfo, Events, Functions, Interlock, Machine, RoleSet, Rule, Service,
};
use crate::problem::Problem;
use crate::schema::Schema;
use crate::scope;

/// More problems than this are not worth reading.
const MAX_PROBLEMS: usize = 100;
/// Nesting of states, actions, guards and templates in a definition.
pub(crate) const MAX_NESTING: usize = 100;
/// Bits in a [`RoleSet`].
const MAX_ROLES: usize = 128;
/// Numbers of states are 32 bits wide; far fewer are useful.
const MAX_STATES: usize = 1_000_000;

/// Event types that only the platform makes.
pub(crate) fn is_platform(name: &str) -> bool {
    ["done.", "error.", "after.", "charter."]
        .iter()
        .any(|p| name.starts_with(p))
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
    let ledger = definition
        .ledger
        .keys()
        .map(|k| k.clone().into_boxed_str())
        .collect();
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

/// A part of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Tables and views of a journal, which no view of a charter may hide.
const OWN_TABLES: [&str; 13] = [
    "approvals",
    "blobs",
    "charters",
    "decisions",
    "effects",
    "events",
    "ledger",
    "records",
    "refusals",
    "runs",
    "snapshots",
    "timers",
    "transitions",
];

pub(crate) struct Compiler<'d> {
    def: &'d Definition,
    problems: Vec<Problem>,
    events: Events,
    roles: Vec<Box<str>>,
    /// The names expressions may use.
    env: Env,
    functions: Functions,
    service_ids: FxHashMap<&'d str, u32>,
    chart_ids: FxHashMap<&'d str, u32>,
    /// Fields of events that expressions read.
    event_reads: Vec<Vec<Box<str>>>,
    /// Something needs events as they are.
    whole_events: bool,
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
            events: Events::default(),
            roles: Vec::new(),
            env,
            functions,
            service_ids: def
                .actors
                .keys()
                .enumerate()
                .map(|(i, k)| (k.as_str(), number(i)))
                .collect(),
            chart_ids: def
                .machines
                .keys()
                .enumerate()
                .map(|(i, k)| (k.as_str(), number(i).saturating_add(1)))
                .collect(),
        }
    }

    fn problem(
        &mut self,
        code: &'static str,
        at: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) {
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
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem {
                code,
                at: at.to_string(),
                span,
                message: message.into(),
                help,
            });
        }
    }

    /// Views become SQL in the journal: only plain names are let through.
    fn projections(&mut self) {
        for (name, view) in &self.def.projections {
            let at = format!("/projections/{}", escape(name));
            let taken = OWN_TABLES.contains(&name.as_str());
            if taken || !Projection::is_name(name) {
                let why = match taken {
                    true => "the journal has a table of that name",
                    false => "it is no plain name",
                };
                let help = "small letters, digits and underscores, beginning with a letter, at most 63: `turns_by_day`";
                let message = format!("`{name}` cannot be the name of a view: {why}");
                self.problem("projection", &at, message, Some(help.into()));
            }
            for (column, path) in &view.columns {
                let at = format!("{at}/columns/{}", escape(column));
                if ["run", "seq", "at"].contains(&column.as_str()) || !Projection::is_name(column) {
                    let message = format!("`{column}` cannot be the name of a column");
                    let help = "every view has `run`, `seq` and `at`; others are small letters, digits and underscores";
                    self.problem("projection", &at, message, Some(help.into()));
                }
                if !Projection::is_path(path) {
                    let message = format!("`{path}` is no path into the data of an event");
                    let help = "names of fields with dots between them: `turn.number`";
                    self.problem("projection", &at, message, Some(help.into()));
                }
            }
        }
    }

    /// The sentences of rules.
    fn rules(&mut self) -> Vec<(Arc<str>, crate::machine::Template)> {
        let def = self.def;
        let sentence = |(name, sentence): (&String, &definition::Template)| {
            let at = format!("/rules/{}", escape(name));
            (name.as_str().into(), self.template(sentence, &at, &[]))
        };
        def.rules.iter().map(sentence).collect()
    }

    /// The number of a rule.
    fn rule(&mut self, name: &str, at: &str) -> Option<u32> {
        let found = self.def.rules.get_index_of(name);
        if found.is_none() {
            let near = charter_expr::nearest(name, self.def.rules.keys().map(String::as_str));
            let help = near.map_or_else(
                || "declare it under `rules`, with the sentence that explains a refusal".into(),
                |near| format!("did you mean `{near}`?"),
            );
            self.problem(
                "unknown-rule",
                at,
                format!("there is no rule `{name}`"),
                Some(help),
            );
        }
        found.and_then(|i| u32::try_from(i).ok())
    }

    /// The number of an event type; a new one if it was not mentioned before.
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
                    let help = format!(
                        "declare it under `roles`; declared are: {}",
                        known.join(", ")
                    );
                    self.problem(
                        "unknown-role",
                        &format!("{at}/{i}"),
                        format!("no role is called `{name}`"),
                        Some(help),
                    );
                }
            }
        }
        set
    }

    fn schema(&mut self, schema: Option<&Json>, at: &str) -> Option<Schema> {
        match Schema::compile(schema?) {
            Ok(schema) => Some(schema),
            Err(message) => {
                self.problem(
                    "bad-schema",
                    at,
                    format!("this is not a JSON Schema: {message}"),
                    None,
                );
                None
            }
        }
    }

    /// Whatever is declared apart from the charts.
    fn declarations(&mut self) {
        let def = self.def;
        if def.charter != 1 {
            let help = Some("this program knows version 1: `charter: 1`".to_string());
            self.problem(
                "unknown-version",
                "/charter",
                format!(
                    "version {} of the charter language is not known",
                    def.charter
                ),
                help,
            );
        }
        self.roles = vec!["system".into(), "operator".into()];
        for name in def
            .roles
            .keys()
            .filter(|n| !matches!(n.as_str(), "system" | "operator"))
        {
            self.roles.push(name.clone().into_boxed_str());
        }
        if self.roles.len() > MAX_ROLES {
            self.problem(
                "too-many-roles",
                "/roles",
                format!(
                    "{} roles; at most {MAX_ROLES} are possible",
                    self.roles.len()
                ),
                None,
            );
            self.roles.truncate(MAX_ROLES);
        }
        for (name, decl) in &def.events {
            let at = format!("/events/{}", escape(name));
            if is_platform(name) {
                let help = Some("types that begin with `done.`, `error.`, `after.` or `charter.` are the platform's; choose another name".into());
                self.problem(
                    "reserved-event",
                    &at,
                    format!("`{name}` cannot be declared"),
                    help,
                );
            }
            if name.is_empty() || name.contains('*') || name.chars().any(char::is_whitespace) {
                self.problem(
                    "bad-event-name",
                    &at,
                    format!("`{name}` is not an event type"),
                    Some("use a word without spaces and `*`".into()),
                );
            }
            let by = self.role_set(&decl.by, &format!("{at}/by"));
            let schema = self.schema(decl.data.as_ref(), &format!("{at}/data"));
            let id = self.event(name);
            if let Some(info) = self.events.list.get_mut(id as usize) {
                info.declared = true;
                info.by = by;
                info.schema = schema;
                info.while_paused = decl.while_paused;
            }
        }
        for name in [
            "charter.start",
            "charter.overdue",
            "error.execution",
            "error.communication",
        ] {
            self.event(name);
        }
        for name in def.machines.keys().filter(|n| def.actors.contains_key(*n)) {
            let at = format!("/machines/{}", escape(name));
            self.problem(
                "duplicate-name",
                &at,
                format!("`{name}` is a machine and an actor"),
                Some("`src` could mean either; rename one".into()),
            );
        }
        for (name, delay) in &def.delays {
            if let definition::Delay::Name(other) = delay {
                let at = format!("/delays/{}", escape(name));
                self.problem(
                    "bad-delay",
                    &at,
                    format!("delay `{name}` refers to the name `{other}`"),
                    Some("give a length, e.g. `24h`".into()),
                );
            }
        }
    }

    fn services(&mut self) -> Vec<Service> {
        let def = self.def;
        let mut services = Vec::with_capacity(def.actors.len());
        for (name, actor) in &def.actors {
            let at = format!("/actors/{}", escape(name));
            services.push(Service {
                name: name.as_str().into(),
                kind: actor.kind.as_str().into(),
                input: self.schema(actor.input.as_ref(), &format!("{at}/input")),
                output: self.schema(actor.output.as_ref(), &format!("{at}/output")),
                timeout: actor
                    .timeout
                    .as_ref()
                    .and_then(|d| self.delay(d, &format!("{at}/timeout"), &[])),
            });
        }
        services
    }

    fn interlocks(&mut self, charts: &[crate::machine::Chart]) -> Vec<Interlock> {
        let def = self.def;
        let mut compiled: Vec<Interlock> = Vec::new();
        for (i, lock) in def.interlocks.iter().enumerate() {
            let at = format!("/interlocks/{i}");
            if compiled.iter().any(|l| l.id.as_ref() == lock.id) {
                self.problem(
                    "duplicate-name",
                    &format!("{at}/id"),
                    format!("two interlocks are called `{}`", lock.id),
                    None,
                );
            }
            let rule = match &lock.rule {
                InterlockRule::Assert(cel) => self
                    .cel(cel, &format!("{at}/rule/assert"), &[])
                    .map(Rule::Assert),
                InterlockRule::Table {
                    given,
                    machine,
                    allow,
                    r#final,
                } => {
                    let at = format!("{at}/rule/table");
                    self.table(charts, (given, machine), allow, &at)
                        .map(|(chart, allow)| Rule::Table {
                            given: given.clone().into_boxed_str(),
                            chart,
                            allow,
                            r#final: *r#final,
                        })
                }
            };
            if let Some(rule) = rule {
                compiled.push(Interlock {
                    id: lock.id.clone().into_boxed_str(),
                    rule,
                });
            }
        }
        compiled
    }

    /// Names of a table interlock become numbers. `given` is an actor id: `root`, or that of an actor whose machine has the same name.
    #[allow(clippy::type_complexity)] // a pair used in one place
    fn table(
        &mut self,
        charts: &[crate::machine::Chart],
        (given, machine): (&String, &String),
        allow: &indexmap::IndexMap<String, Vec<String>>,
        at: &str,
    ) -> Option<(u32, Vec<(u32, Vec<u32>)>)> {
        let given_chart = if given == "root" {
            Some(0)
        } else {
            self.chart_ids.get(given.as_str()).copied()
        };
        let Some(given_chart) = given_chart.and_then(|c| charts.get(c as usize)) else {
            let help = Some(
                "`given` is `root`, or a machine of which one actor of the same name runs"
                    .to_string(),
            );
            self.problem(
                "unknown-machine",
                &format!("{at}/given"),
                format!("no actor is called `{given}`"),
                help,
            );
            return None;
        };
        let Some((chart_id, chart)) = self
            .chart_ids
            .get(machine.as_str())
            .and_then(|c| Some((*c, charts.get(*c as usize)?)))
        else {
            let help = Some(format!(
                "declared are: {}",
                self.def
                    .machines
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
            self.problem(
                "unknown-machine",
                &format!("{at}/machine"),
                format!("no machine is called `{machine}`"),
                help,
            );
            return None;
        };
        let find = |chart: &crate::machine::Chart, path: &str| {
            let at = chart.shape.paths.iter().position(|p| p.as_ref() == path)?;
            u32::try_from(at).ok()
        };
        let mut rows = Vec::new();
        for (state, allowed) in allow {
            let row_at = format!("{at}/allow/{}", escape(state));
            let Some(row) = find(given_chart, state) else {
                self.problem(
                    "unknown-state",
                    &row_at,
                    format!("`{given}` has no state `{state}`"),
                    None,
                );
                continue;
            };
            let mut cells = Vec::new();
            for (i, cell) in allowed.iter().enumerate() {
                match find(chart, cell) {
                    Some(cell) => cells.push(cell),
                    None => self.problem(
                        "unknown-state",
                        &format!("{row_at}/{i}"),
                        format!("machine `{machine}` has no state `{cell}`"),
                        None,
                    ),
                }
            }
            rows.push((row, cells));
        }
        Some((chart_id, rows))
    }

    /// The kernel does not evaluate properties and streams, but a name that means nothing is reported with everything else.
    fn properties(&mut self) {
        let def = self.def;
        for (i, property) in def.properties.iter().enumerate() {
            let at = format!("/properties/{i}/rule");
            match &property.rule {
                definition::PropertyRule::Never { when, .. } => {
                    self.cel(when, &format!("{at}/never/when"), &[])
                }
                definition::PropertyRule::Always(cel) => {
                    self.cel(cel, &format!("{at}/always"), &[])
                }
                definition::PropertyRule::Eventually(cel) => {
                    self.cel(cel, &format!("{at}/eventually"), &[])
                }
            };
        }
        if let Some(stream) = &def.stream {
            let mut env = Env::new();
            env.root("item", Type::Dyn);
            let parts = [
                ("run", &stream.run),
                ("type", &stream.r#type),
                ("id", &stream.id),
                ("at", &stream.at),
                ("data", &stream.data),
                ("to", &stream.to),
                ("by", &stream.by),
                ("input", &stream.input),
            ];
            let parts = parts.into_iter().filter_map(|(key, cel)| {
                let cel = cel.as_deref()?;
                Some((format!("/stream/{key}"), cel))
            });
            let clocks = stream.clocks.iter().map(|(name, cel)| {
                let at = format!("/stream/clocks/{}", escape(name));
                (at, cel.as_str())
            });
            for (at, cel) in parts.chain(clocks) {
                if let Err(e) = charter_expr::Program::compile(cel, &env) {
                    let span = (e.span.start, e.span.end);
                    self.problem_in("bad-expression", &at, Some(span), e.message, e.help);
                }
            }
            for (name, cel) in &stream.summary {
                self.cel(cel, &format!("/stream/summary/{}", escape(name)), &[]);
            }
            if let Some(rule) = &stream.duplicate {
                self.rule(rule, "/stream/duplicate");
            }
        }
    }
}
