//! Compiles the declarations outside the charts: roles, events, actors, rules, properties and
//! streams.

use std::sync::Arc;

use charter_expr::{Env, Numbers, Type};

use super::{Compiler, MAX_ROLES, escape, is_platform};
use crate::definition::{self, BUILT_IN_ROLES, Projection};
use crate::machine::Service;

/// The journal's own tables and views. The views of a charter cannot have these names.
const OWN_TABLES: [&str; 16] = [
    "approvals",
    "blobs",
    "charters",
    "decisions",
    "effects",
    "event_ids",
    "event_ids_until",
    "events",
    "ledger",
    "records",
    "refusals",
    "runs",
    "snapshots",
    "timers",
    "transitions",
    "unique_keys",
];

impl<'d> Compiler<'d> {
    /// Checks the projections. They become SQL views of the journal, so only plain names are
    /// accepted.
    pub(super) fn projections(&mut self) {
        for (name, view) in &self.def.projections {
            let at = format!("/projections/{}", escape(name));
            let taken = OWN_TABLES.contains(&name.as_str());
            if taken || !Projection::is_name(name) {
                let why = match taken {
                    true => "the journal has a table of that name",
                    false => "not a plain name",
                };
                let help =
                    "use at most 63 lowercase letters, digits and underscores, starting with a letter: `turns_by_day`";
                let message = format!("`{name}` cannot be the name of a view: {why}");
                self.problem("projection", &at, message, Some(help.into()));
            }
            for (column, path) in &view.columns {
                let at = format!("{at}/columns/{}", escape(column));
                if ["run", "seq", "at"].contains(&column.as_str()) || !Projection::is_name(column) {
                    let message = format!("`{column}` cannot be the name of a column");
                    let help = "every view has `run`, `seq` and `at`; name others with lowercase letters, digits and underscores";
                    self.problem("projection", &at, message, Some(help.into()));
                }
                if !Projection::is_path(path) {
                    let message = format!("invalid path `{path}` into the data of an event");
                    let help = "field names joined by dots: `turn.number`";
                    self.problem("projection", &at, message, Some(help.into()));
                }
            }
        }
    }

    /// Compiles the explanations of rules.
    pub(super) fn rules(&mut self) -> Vec<(Arc<str>, crate::machine::Template)> {
        let def = self.def;
        let sentence = |(name, sentence): (&String, &definition::Template)| {
            let at = format!("/rules/{}", escape(name));
            (name.as_str().into(), self.template(sentence, &at, &[]))
        };
        def.rules.iter().map(sentence).collect()
    }

    /// Compiles the declarations outside the charts.
    pub(super) fn declarations(&mut self) {
        let def = self.def;
        if def.charter != 1 {
            let help = Some("this program supports version 1: `charter: 1`".to_string());
            self.problem(
                "unknown-version",
                "/charter",
                format!("unsupported version {} of the charter language", def.charter),
                help,
            );
        }
        self.roles = BUILT_IN_ROLES.map(Box::from).to_vec();
        for name in def.roles.keys().filter(|n| !BUILT_IN_ROLES.contains(&n.as_str())) {
            if name.is_empty() || name.chars().any(char::is_control) {
                self.problem(
                    "bad-role-name",
                    &format!("/roles/{}", escape(name)),
                    format!("`{}` is not the name of a role", name.escape_debug()),
                    Some("use a name of printable characters, e.g. `reviewer`".into()),
                );
            }
            self.roles.push(name.clone().into_boxed_str());
        }
        if self.roles.len() > MAX_ROLES {
            self.problem(
                "too-many-roles",
                "/roles",
                format!("{} roles; at most {MAX_ROLES} are possible", self.roles.len()),
                None,
            );
            self.roles.truncate(MAX_ROLES);
        }
        for (name, decl) in &def.events {
            let at = format!("/events/{}", escape(name));
            if is_platform(name) {
                let help = Some("types that begin with `done.`, `error.`, `after.` or `charter.` are reserved for the platform; choose another name".into());
                self.problem("reserved-event", &at, format!("`{name}` cannot be declared"), help);
            }
            if name.is_empty() || name.contains('*') || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                self.problem(
                    "bad-event-name",
                    &at,
                    format!("`{}` is not an event type", name.escape_debug()),
                    Some("use a word that contains neither spaces nor `*`".into()),
                );
            }
            let by = self.role_set(&decl.by, &format!("{at}/by"));
            let schema = self.schema(decl.data.as_ref(), &format!("{at}/data"));
            let unique =
                decl.unique.as_ref().and_then(|unique| self.unique_key(&unique.key, &format!("{at}/unique/key")));
            let id = self.event(name);
            if let Some(info) = self.events.list.get_mut(id as usize) {
                info.declared = true;
                info.by = by;
                info.schema = schema;
                info.while_paused = decl.while_paused;
                info.unique = unique;
            }
        }
        for name in ["charter.start", "charter.overdue", "error.execution", "error.communication"] {
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
                    Some("write a duration, e.g. `24h`".into()),
                );
            }
        }
    }

    pub(super) fn services(&mut self) -> Vec<Service> {
        let def = self.def;
        let mut services = Vec::with_capacity(def.actors.len());
        for (name, actor) in &def.actors {
            let at = format!("/actors/{}", escape(name));
            let output = self.schema(actor.output.as_ref(), &format!("{at}/output"));
            let answer = output.as_ref().and_then(|schema| schema.numbers());
            let answer = answer.map(|numbers| Arc::new(Numbers::of_field("output", Numbers::clone(numbers))));
            services.push(Service {
                name: name.as_str().into(),
                kind: actor.kind.as_str().into(),
                input: self.schema(actor.input.as_ref(), &format!("{at}/input")),
                output,
                answer,
                timeout: actor.timeout.as_ref().and_then(|d| self.delay(d, &format!("{at}/timeout"), &[])),
            });
        }
        services
    }

    /// Checks properties and streams. The kernel does not evaluate them, but unknown names in them
    /// are reported.
    pub(super) fn properties(&mut self) {
        let def = self.def;
        for (i, property) in def.properties.iter().enumerate() {
            let at = format!("/properties/{i}/rule");
            match &property.rule {
                definition::PropertyRule::Never { when, .. } => self.cel(when, &format!("{at}/never/when"), &[]),
                definition::PropertyRule::Always(cel) => self.cel(cel, &format!("{at}/always"), &[]),
                definition::PropertyRule::Eventually(cel) => self.cel(cel, &format!("{at}/eventually"), &[]),
            };
        }
        if let Some(stream) = &def.stream {
            let mut env = Env::new();
            env.root("item", Type::Dyn);
            let parts = stream.parts().into_iter();
            let parts = parts.filter_map(|(key, cel)| Some((format!("/stream/{key}"), cel?)));
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
