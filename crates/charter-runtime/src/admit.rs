//! What a host takes: which charters, judged before anything of them is kept, and which ids of runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::call::Executor;
use crate::charter::{Charter, Service};
use crate::error::RuntimeError;
use crate::options::{Limits, Options};

type Executors = BTreeMap<String, Arc<dyn Executor>>;

/// What a host has against an actor of a charter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The entry of `actors`.
    pub actor: String,
    /// One sentence.
    pub why: String,
    /// The kind, if the host has no executor for it.
    pub unknown_kind: Option<String>,
}

impl Options {
    /// Whether a host that is set up like this would take a charter, and a run with this id: what [`Runtime::add`](crate::Runtime::add)
    /// and [`Runtime::start`](crate::Runtime::start) refuse without looking into a journal.
    ///
    /// # Errors
    /// As those say.
    pub fn admits(&self, charter: &Charter, run: Option<&str>) -> Result<(), RuntimeError> {
        run.map_or(Ok(()), check_run_id)?;
        admit(&self.limits, &self.executors, charter)
    }

    /// What a host that is set up like this has against the actors of a charter, in the order of their names.
    #[must_use]
    pub fn objections(&self, charter: &Charter) -> Vec<ConfigError> {
        objections(&self.executors, charter).collect()
    }
}

/// Whether a charter may be hosted.
pub(crate) fn admit(limits: &Limits, executors: &Executors, charter: &Charter) -> Result<(), RuntimeError> {
    let definition = charter.machine.definition();
    let asked = &definition.limits;
    let bounds = [
        ("actors_per_run", limits.actors_per_run, asked.actors, "actors"),
        ("timers_per_run", limits.timers_per_run, asked.timers, "timers"),
    ];
    for (limit, most, asked, key) in bounds {
        if most > 0 && asked > most {
            return Err(RuntimeError::Limit {
                limit,
                value: most.into(),
                what: format!("the charter `{}` asks for `limits.{key}: {asked}`", definition.id),
            });
        }
    }
    match objections(executors, charter).next() {
        None => Ok(()),
        Some(first) => Err(RuntimeError::Charter {
            charter: definition.id.clone(),
            why: format!("actor `{}`: {}", first.actor, first.why),
        }),
    }
}

fn objections<'a>(executors: &'a Executors, charter: &'a Charter) -> impl Iterator<Item = ConfigError> + 'a {
    charter.actors.iter().filter_map(move |(name, service)| {
        let executor = executors.get(service.kind.as_ref());
        let why = match executor {
            Some(executor) => against(executor.as_ref(), name, service, charter)?,
            None => {
                let kinds: Vec<String> = executors.keys().map(|k| format!("`{k}`")).collect();
                format!("this host has no executor for the kind `{}`; it has {}", service.kind, kinds.join(", "))
            }
        };
        Some(ConfigError {
            actor: name.clone(),
            why,
            unknown_kind: executor.is_none().then(|| service.kind.to_string()),
        })
    })
}

fn against(executor: &dyn Executor, name: &str, service: &Service, charter: &Charter) -> Option<String> {
    let declared = &charter.machine.definition().roles;
    let mut roles = service.conduct.roles.iter();
    if let Some(role) = roles.find(|r| !declared.contains_key(*r)) {
        return Some(format!("`as` names the role `{role}`, which the charter does not declare"));
    }
    executor.check(name, &service.decl, &charter.folder).err()
}

/// Whether a run may have this id.
///
/// # Errors
/// [`RuntimeError::BadRunId`].
pub fn check_run_id(run: &str) -> Result<(), RuntimeError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if run.is_empty() || run.len() > 128 || !run.chars().all(fine) {
        return Err(RuntimeError::BadRunId(run.chars().take(140).collect()));
    }
    Ok(())
}
