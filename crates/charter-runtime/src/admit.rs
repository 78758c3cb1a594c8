//! Admission: which charters and run ids a host accepts, checked before anything is stored.

use charter_actors::{ActorConfig, ConfigError, Executor, Executors};

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::options::{Limits, Options};

/// Error for an actor of a charter that a host does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("actor `{actor}`: {error}")]
pub struct ActorError {
    /// The entry of `actors`.
    pub actor: String,
    /// What is wrong with its configuration.
    pub error: ConfigError,
}

impl Options {
    /// Checks whether a host with these options accepts a charter, and a run with this id. These
    /// are the checks of [`Runtime::add`](crate::Runtime::add) and
    /// [`Runtime::start`](crate::Runtime::start) that need no journal.
    ///
    /// # Errors
    /// The host does not accept the charter or the run id; the errors are the same as those of
    /// [`Runtime::add`](crate::Runtime::add) and [`Runtime::start`](crate::Runtime::start).
    pub fn admits(&self, charter: &Charter, run: Option<&str>) -> Result<(), RuntimeError> {
        run.map_or(Ok(()), charter_run::check_run_id)?;
        admit(&self.limits, &self.executors, charter)
    }

    /// Returns the errors of the actors that a host with these options does not accept, sorted by
    /// actor name.
    #[must_use]
    pub fn actor_errors(&self, charter: &Charter) -> Vec<ActorError> {
        actor_errors(&self.executors, charter).collect()
    }
}

/// Checks whether a host accepts a charter.
pub(crate) fn admit(limits: &Limits, executors: &Executors, charter: &Charter) -> Result<(), RuntimeError> {
    let definition = charter.machine.definition();
    let bounds = [
        ("actors_per_run", limits.actors_per_run, definition.limits.actors, "actors"),
        ("timers_per_run", limits.timers_per_run, definition.limits.timers, "timers"),
    ];
    for (limit, max, requested, key) in bounds {
        if max > 0 && requested > max {
            return Err(RuntimeError::Limit {
                limit,
                value: max.into(),
                what: format!("the charter `{}` requests `limits.{key}: {requested}`", definition.id),
            });
        }
    }
    match actor_errors(executors, charter).next() {
        None => Ok(()),
        Some(first) => Err(RuntimeError::Charter { charter: definition.id.clone(), why: first.to_string() }),
    }
}

fn actor_errors<'a>(executors: &'a Executors, charter: &'a Charter) -> impl Iterator<Item = ActorError> + 'a {
    charter.actors.values().filter_map(move |actor| {
        let checked = match executors.get(actor.kind.as_ref()) {
            Some(executor) => check(executor.as_ref(), actor, charter),
            None => Err(ConfigError::UnknownKind {
                kind: actor.kind.to_string(),
                known: executors.keys().cloned().collect(),
            }),
        };
        checked.err().map(|error| ActorError { actor: actor.name.to_string(), error })
    })
}

fn check(executor: &dyn Executor, actor: &ActorConfig, charter: &Charter) -> Result<(), ConfigError> {
    let declared = &charter.machine.definition().roles;
    match actor.policy.roles.iter().find(|role| !declared.contains_key(*role)) {
        Some(role) => Err(ConfigError::Other(format!("`as`: the charter does not declare the role `{role}`"))),
        None => executor.check(&actor.name, &actor.decl, &charter.folder),
    }
}
