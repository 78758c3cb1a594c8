//! Admission: which charters and run ids a host accepts, checked before anything is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::{ActorConfig, Beside, Blobs, ConfigError, Executor, Executors, Folder, FolderError, KeptFiles};
use charter_expr::did_you_mean;
use charter_journal::Manifest;

use crate::charter::{Charter, Kept};
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
        admit(&self.limits, &self.executors, charter).map(drop)
    }

    /// Returns a charter with the files that its actors name, and their contents, as
    /// [`Runtime::add`](crate::Runtime::add) keeps them. For hosts with a store of their own.
    ///
    /// # Errors
    /// The host does not accept the charter.
    pub fn prepare(&self, charter: &Charter) -> Result<(Charter, Blobs), RuntimeError> {
        admit(&self.limits, &self.executors, charter).map(|kept| (kept.charter, kept.blobs))
    }

    /// Returns the errors of the actors that a host with these options does not accept, sorted by
    /// actor name.
    #[must_use]
    pub fn actor_errors(&self, charter: &Charter) -> Vec<ActorError> {
        keep(&self.executors, charter).1
    }
}

/// Says what the actors of a run with this manifest need of the folder of its charter, as a clause;
/// `None` if they can start without one. An imported run is not allowed to work before the folder
/// is known: its failure would send it on a path that nobody chose.
#[must_use]
pub fn folder_need(executors: &Executors, charter: &Charter, manifest: &Manifest) -> Option<String> {
    if let Some(file) = manifest.folders.iter().chain(manifest.programs.keys()).next() {
        return Some(format!("they use `{file}`"));
    }
    let folder = match charter.folder().at() {
        texts @ Folder::Texts(_) => texts.clone(),
        _ => Folder::None,
    };
    let charter = Charter { folder: Arc::new(folder), ..charter.clone() };
    let needs_folder = |e: &ConfigError| matches!(e, ConfigError::Folder(FolderError::NotInFileSystem));
    let first = keep(executors, &charter).1.into_iter().find(|e| needs_folder(&e.error));
    first.map(|e| format!("the command of `{}` runs there", e.actor))
}

/// Like [`folder_need`], for the folder that the charter of a run has: `None` also if it is there.
pub(crate) fn lacking_folder(executors: &Executors, charter: &Charter) -> Option<String> {
    match charter.folder().at() {
        Folder::Dir(dir) if dir.is_dir() => None,
        _ => folder_need(executors, charter, &charter.manifest()),
    }
}

/// Checks whether a host accepts a charter, and returns it with the files that its actors name.
pub(crate) fn admit(limits: &Limits, executors: &Executors, charter: &Charter) -> Result<Kept, RuntimeError> {
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
    let (kept, errors) = keep(executors, charter);
    match errors.into_iter().next() {
        None => Ok(kept),
        Some(first) => Err(RuntimeError::Charter { charter: definition.id.clone(), why: first.to_string() }),
    }
}

/// Reads the files that the actors of a charter name, and checks the actors with exactly these
/// files. Also returns the errors, sorted by actor name.
fn keep(executors: &Executors, charter: &Charter) -> (Kept, Vec<ActorError>) {
    let mut files = KeptFiles::new(charter.folder());
    let mut blobs = Blobs::new();
    let mut errors = Vec::new();
    for actor in charter.actors.values() {
        let read = match executors.get(actor.kind.as_ref()) {
            Some(executor) => read(executor.as_ref(), actor, charter.folder(), executors, &mut files, &mut blobs),
            None => Err(ConfigError::UnknownKind {
                kind: actor.kind.to_string(),
                known: executors.keys().cloned().collect(),
            }),
        };
        errors.extend(read.err().map(|error| ActorError { actor: actor.name.to_string(), error }));
    }
    let charter = charter.with_files(files);
    for actor in charter.actors.values() {
        if let Some(executor) = executors.get(actor.kind.as_ref())
            && errors.iter().all(|e| e.actor != actor.name.as_ref())
            && let Err(error) = check(executor.as_ref(), actor, &charter)
        {
            errors.push(ActorError { actor: actor.name.to_string(), error });
        }
    }
    errors.sort_by(|a, b| a.actor.cmp(&b.actor));
    (Kept { charter, blobs }, errors)
}

/// The models that the actors of a charter ask, without those whose configuration is invalid here.
pub(crate) fn models(executors: &Executors, charter: &Charter) -> BTreeMap<String, Vec<String>> {
    let beside = Beside::new(charter.folder(), executors);
    let asked = charter.actors.values().filter_map(|actor| {
        let models = executors.get(actor.kind.as_ref())?.models(&actor.name, &actor.decl, &beside).ok()?;
        (!models.is_empty()).then(|| (actor.name.to_string(), models))
    });
    asked.collect()
}

fn read(
    executor: &dyn Executor,
    actor: &ActorConfig,
    folder: &Folder,
    executors: &Executors,
    files: &mut KeptFiles,
    blobs: &mut Blobs,
) -> Result<(), ConfigError> {
    for named in executor.files(&actor.name, &actor.decl, &Beside::new(folder, executors))? {
        files.add(folder, &named, blobs)?;
    }
    files.set_models(&actor.name, executor.models(&actor.name, &actor.decl, &Beside::new(folder, executors))?);
    Ok(())
}

fn check(executor: &dyn Executor, actor: &ActorConfig, charter: &Charter) -> Result<(), ConfigError> {
    let declared = &charter.machine.definition().roles;
    if let Some(role) = actor.policy.roles.iter().find(|role| !declared.contains_key(*role)) {
        return Err(ConfigError::Other(format!("`as`: the charter does not declare the role `{role}`")));
    }
    executor.check(&actor.name, &actor.decl, &charter.folder)?;
    let events = &charter.machine.definition().events;
    match executor.sends(&actor.decl)?.into_iter().find(|event| !events.contains_key(event)) {
        Some(event) => {
            let near = did_you_mean(&event, events.keys().map(String::as_str));
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            Err(ConfigError::Other(format!("the charter does not declare the event `{event}`{near}")))
        }
        None => Ok(()),
    }
}
