//! A charter as the host holds it: compiled, with the folder that its actors read from.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use charter_format::{Diagnostics, Document, ReadOptions};
use charter_journal::StoredCharter;
use charter_kernel::definition::ActorDecl;
use charter_kernel::{Digest, Machine, Schema};

use crate::config::ActorPolicy;
use crate::error::RuntimeError;

/// The largest file that an actor reads from its folder, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The most files that a listing gives.
const MAX_FILES: usize = 1000;

/// The files beside a charter. The host says where they are; a charter can only name what lies inside.
#[derive(Debug, Clone, Default)]
pub enum Folder {
    /// There are none.
    #[default]
    None,
    /// A folder of the file system.
    Dir(PathBuf),
    /// Texts by name, e.g. those that are built into a program.
    Texts(Arc<BTreeMap<String, String>>),
}

impl Folder {
    /// The folder of the file system, if it is one: where commands work.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        match self {
            Folder::Dir(dir) => Some(dir),
            _ => None,
        }
    }

    /// The text of a file inside.
    ///
    /// # Errors
    /// One sentence: there is no such file, it lies outside, it is too large, or no text.
    pub fn read(&self, name: &str) -> Result<String, String> {
        let path = inside(name)?;
        let missing = || format!("there is no file `{name}` beside the charter");
        match self {
            Folder::None => Err(format!("`{name}` cannot be read: the charter has no folder here")),
            Folder::Texts(texts) => texts.get(name).cloned().ok_or_else(missing),
            Folder::Dir(dir) => {
                let full = dir.join(path);
                let cannot = |e: std::io::Error| match e.kind() {
                    std::io::ErrorKind::NotFound => missing(),
                    _ => format!("`{name}` beside the charter cannot be read: {e}"),
                };
                let size = std::fs::metadata(&full).map_err(cannot)?.len();
                if size > MAX_BYTES {
                    return Err(format!("`{name}` has {size} bytes; the most is {MAX_BYTES}"));
                }
                std::fs::read_to_string(&full).map_err(cannot)
            }
        }
    }

    /// The files directly inside a folder inside, as names that [`Folder::read`] takes, sorted. A folder that is not there is empty.
    ///
    /// # Errors
    /// One sentence: it lies outside, cannot be read, or holds more than 1,000 files.
    pub fn list(&self, name: &str) -> Result<Vec<String>, String> {
        let path = inside(name)?;
        let mut names: Vec<String> = match self {
            Folder::None => Vec::new(),
            Folder::Texts(texts) => {
                let directly = |key: &&String| Path::new(key.as_str()).parent() == Some(path);
                texts.keys().filter(directly).cloned().collect()
            }
            Folder::Dir(dir) => {
                let cannot = |e: std::io::Error| format!("the folder `{name}` beside the charter cannot be read: {e}");
                let entries = match std::fs::read_dir(dir.join(path)) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
                    entries => entries.map_err(cannot)?,
                };
                let mut names = Vec::new();
                for entry in entries {
                    let entry = entry.map_err(cannot)?;
                    let text = path.join(entry.file_name()).to_str().map(str::to_owned);
                    if entry.file_type().map_err(cannot)?.is_file()
                        && let Some(text) = text
                    {
                        names.push(text);
                    }
                }
                names
            }
        };
        if names.len() > MAX_FILES {
            return Err(format!(
                "the folder `{name}` beside the charter holds {} files; the most is {MAX_FILES}",
                names.len()
            ));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// A path inside, for a folder of the file system.
    ///
    /// # Errors
    /// One sentence: it lies outside, or there is no folder.
    pub fn path(&self, name: &str) -> Result<PathBuf, String> {
        let path = inside(name)?;
        match self.dir() {
            Some(dir) => Ok(dir.join(path)),
            None => Err("the charter has no folder in the file system here".into()),
        }
    }
}

/// A relative path that does not leave its folder.
fn inside(name: &str) -> Result<&Path, String> {
    let path = Path::new(name);
    let stays = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !stays {
        return Err(format!(
            "`{name}` is no path inside the charter's folder; it may neither begin with `/` nor go up with `..`"
        ));
    }
    Ok(path)
}

/// A charter as the host holds it. Share it in an `Arc`.
#[derive(Debug)]
pub struct Charter {
    pub(crate) machine: Arc<Machine>,
    pub(crate) stored: StoredCharter,
    pub(crate) folder: Folder,
    pub(crate) actors: BTreeMap<String, Arc<Service>>,
}

/// An entry of `actors`, read.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) decl: ActorDecl,
    pub(crate) conduct: ActorPolicy,
    pub(crate) output: Option<Schema>,
}

impl Charter {
    /// From a document that was read.
    ///
    /// # Errors
    /// It does not compile, or the configuration of an actor is wrong.
    pub fn new(document: &Document, folder: Folder) -> Result<Charter, RuntimeError> {
        let machine = compile(document)?;
        let stored = StoredCharter::new(&document.definition, &document.name, &document.source);
        Charter::of(Arc::new(machine), stored, folder)
    }

    /// From a folder with a `charter.yaml`, or from the path of a charter; its folder is the one it lies in.
    ///
    /// # Errors
    /// It cannot be read or does not compile (the message has the places), or the configuration of an actor is wrong.
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

    /// From a compiled machine; `name` and `source` are kept with its runs.
    ///
    /// # Errors
    /// The configuration of an actor is wrong.
    pub fn compiled(machine: Machine, name: &str, source: &str, folder: Folder) -> Result<Charter, RuntimeError> {
        let stored = StoredCharter::new(machine.definition(), name, source);
        Charter::of(Arc::new(machine), stored, folder)
    }

    pub(crate) fn of(machine: Arc<Machine>, stored: StoredCharter, folder: Folder) -> Result<Charter, RuntimeError> {
        let definition = machine.definition();
        let wrong = |name: &str, why: String| RuntimeError::Charter {
            charter: definition.id.clone(),
            why: format!("actor `{name}`: {why}"),
        };
        let mut actors = BTreeMap::new();
        for (name, decl) in &definition.actors {
            let conduct = ActorPolicy::read(decl).map_err(|why| wrong(name, why))?;
            let output = decl.output.as_ref().map(Schema::compile).transpose().map_err(|why| wrong(name, why))?;
            let service = Service {
                name: name.as_str().into(),
                kind: decl.kind.as_str().into(),
                decl: decl.clone(),
                conduct,
                output,
            };
            actors.insert(name.clone(), Arc::new(service));
        }
        Ok(Charter { machine, stored, folder, actors })
    }

    /// Its digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.stored.digest
    }

    /// Compiled.
    #[must_use]
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// As it is kept with its runs.
    #[must_use]
    pub fn stored(&self) -> &StoredCharter {
        &self.stored
    }

    /// The files beside it.
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
