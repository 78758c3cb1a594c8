//! A charter on a host: the compiled machine and the folder that its actors read from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use charter_actors::{ActorConfig, Folder};
use charter_format::{Diagnostics, Document, ReadOptions};
use charter_journal::StoredCharter;
use charter_kernel::{Digest, Machine};

use crate::error::RuntimeError;

/// A charter on a host. Share it in an `Arc`.
#[derive(Debug, Clone)]
pub struct Charter {
    pub(crate) machine: Arc<Machine>,
    pub(crate) stored: StoredCharter,
    pub(crate) folder: Arc<Folder>,
    pub(crate) actors: BTreeMap<String, Arc<ActorConfig>>,
}

impl Charter {
    /// Compiles a document.
    ///
    /// # Errors
    /// The document does not compile, or the configuration of an actor is invalid.
    pub fn new(document: &Document, folder: Folder) -> Result<Charter, RuntimeError> {
        let machine = compile(document)?;
        let stored = StoredCharter::new(&document.definition, &document.name, &document.source);
        Charter::of(Arc::new(machine), stored, folder)
    }

    /// Loads a charter from its path, or from a folder with a `charter.yaml`. Its actors use the
    /// folder that contains it.
    ///
    /// # Errors
    /// The charter cannot be read, does not compile (the message has the positions), or has an
    /// actor with an invalid configuration.
    pub fn load(path: &Path) -> Result<Charter, RuntimeError> {
        let file = if path.is_dir() { path.join("charter.yaml") } else { path.to_owned() };
        let document = charter_format::read_file(
            &file,
            &ReadOptions { importer: &charter_interop::import::Importer, ..Default::default() },
        )
        .map_err(|e| RuntimeError::Charter { charter: path.display().to_string(), why: e.to_string() })?;
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Charter::new(&document, Folder::Dir(folder.to_owned()))
    }

    /// Creates a charter from a compiled machine; `name` and `source` are stored with its runs.
    ///
    /// # Errors
    /// The configuration of an actor is invalid.
    pub fn compiled(
        machine: impl Into<Arc<Machine>>,
        name: &str,
        source: &str,
        folder: Folder,
    ) -> Result<Charter, RuntimeError> {
        let machine = machine.into();
        let stored = StoredCharter::new(machine.definition(), name, source);
        Charter::of(machine, stored, folder)
    }

    pub(crate) fn of(machine: Arc<Machine>, stored: StoredCharter, folder: Folder) -> Result<Charter, RuntimeError> {
        let definition = machine.definition();
        let mut actors = BTreeMap::new();
        for (name, decl) in &definition.actors {
            let config = ActorConfig::read(name, decl).map_err(|error| RuntimeError::Charter {
                charter: definition.id.clone(),
                why: format!("actor `{name}`: {error}"),
            })?;
            actors.insert(name.clone(), Arc::new(config));
        }
        Ok(Charter { machine, stored, folder: Arc::new(folder), actors })
    }

    /// The digest of the charter.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.stored.digest
    }

    /// The compiled machine.
    #[must_use]
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The charter in the form that is stored with its runs.
    #[must_use]
    pub fn stored(&self) -> &StoredCharter {
        &self.stored
    }

    /// The files next to the charter.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

fn compile(document: &Document) -> Result<Machine, RuntimeError> {
    Machine::compile(document.definition.clone()).map_err(|problems| {
        let wrong = Diagnostics {
            name: document.name.clone(),
            source: Arc::clone(&document.source),
            list: problems.iter().map(|p| document.diagnose(p)).collect(),
            omitted: 0,
        };
        RuntimeError::Charter { charter: document.definition.id.clone(), why: wrong.to_string() }
    })
}
