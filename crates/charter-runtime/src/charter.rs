//! A charter on a host: the compiled machine and the folder that its actors read from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use charter_actors::{ActorConfig, Blobs, Folder, KeptFiles};
use charter_format::{Diagnostics, Document, ReadOptions};
use charter_journal::{Manifest, StoredCharter};
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
        let mut stored = StoredCharter::new(&document.definition, &document.name, &document.source);
        let folder = resolved(folder, &mut stored);
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
        let mut stored = StoredCharter::new(machine.definition(), name, source);
        let folder = resolved(folder, &mut stored);
        Charter::of(machine, stored, folder)
    }

    /// Compiles a charter in the form that is stored with its runs.
    ///
    /// # Errors
    /// The definition does not have its digest or does not compile, or the configuration of an
    /// actor is invalid.
    pub fn restore(stored: &StoredCharter, folder: Folder) -> Result<Charter, RuntimeError> {
        let definition = stored.definition()?;
        let id = definition.id.clone();
        let machine = Machine::compile(definition).map_err(|problems| RuntimeError::Charter {
            charter: id,
            why: problems.first().map(ToString::to_string).unwrap_or_default(),
        })?;
        Charter::compiled(machine, &stored.name, &stored.source, folder)
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

    /// The digests of the files that runs of the charter use, once a host has added it.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        match self.folder.as_ref() {
            Folder::Kept(kept) => kept.manifest().clone(),
            _ => Manifest::default(),
        }
    }

    /// Returns the charter with exactly these files.
    pub(crate) fn with_files(&self, kept: KeptFiles) -> Charter {
        Charter { folder: Arc::new(Folder::Kept(Arc::new(kept))), ..self.clone() }
    }
}

/// A charter with the files that its actors name, and their content.
pub(crate) struct Kept {
    pub(crate) charter: Charter,
    pub(crate) blobs: Blobs,
}

/// Resolves the folder of a charter once: from now on it is absolute, and so is the path under
/// which the charter is stored.
fn resolved(folder: Folder, stored: &mut StoredCharter) -> Folder {
    let Folder::Dir(dir) = folder else {
        return folder;
    };
    let dir = dir.canonicalize().or_else(|_| std::path::absolute(&dir)).unwrap_or(dir);
    if let Some(file) = Path::new(&stored.name).file_name() {
        stored.name = dir.join(file).display().to_string();
    }
    Folder::Dir(dir)
}

fn compile(document: &Document) -> Result<Machine, RuntimeError> {
    let invalid =
        |e: Diagnostics| RuntimeError::Charter { charter: document.definition.id.clone(), why: e.to_string() };
    document.compile().map_err(invalid)
}
