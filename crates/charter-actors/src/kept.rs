//! The files that a run may use: read once when its charter is added, named by digest in its
//! manifest, and kept as blobs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use charter_journal::Manifest;
use charter_kernel::Digest;

use crate::codes;
use crate::error::{ConfigError, FolderError};
use crate::executor::Fault;
use crate::folder::{Folder, inside};
use crate::place::{self, Found, Place};

/// Maximum number of files in a manifest.
const MAX_FILES: usize = 1_000;

/// Maximum size of all files of a manifest, in bytes.
const MAX_TOTAL: u64 = 32 << 20;

/// A file of the charter's folder that the configuration of an actor names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedFile {
    /// The executor reads it, with [`Folder::read`]. Runs read the blob, not the file.
    Read(String),
    /// A command uses it where it is: a program, or a file or a folder with all files in it among
    /// its arguments. It must not change while runs use it. May be absolute and may contain `..`.
    InPlace(String),
}

/// The files of a manifest, and where the charter's folder is.
#[derive(Clone)]
pub struct KeptFiles {
    manifest: Manifest,
    files: BTreeMap<String, Arc<[u8]>>,
    at: Box<Folder>,
}

impl fmt::Debug for KeptFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptFiles").field("manifest", &self.manifest).field("at", &self.at).finish()
    }
}

/// Bytes by their digest.
pub type Blobs = BTreeMap<Digest, Arc<[u8]>>;

impl KeptFiles {
    /// Begins with no files of a folder.
    #[must_use]
    pub fn new(folder: &Folder) -> KeptFiles {
        KeptFiles { manifest: Manifest::default(), files: BTreeMap::new(), at: Box::new(folder.at().clone()) }
    }

    /// Reads a file that an actor names, and adds it. Its content is added to `blobs`, which the
    /// host stores.
    ///
    /// # Errors
    /// The file cannot be read or is outside the folder, or the files exceed a limit.
    pub fn add(&mut self, folder: &Folder, named: &NamedFile, blobs: &mut Blobs) -> Result<(), FolderError> {
        match named {
            NamedFile::Read(name) => {
                let path = key(name)?;
                if !self.manifest.files.contains_key(&path) {
                    let bytes: Arc<[u8]> = folder.bytes(name)?.into();
                    self.manifest.files.insert(path.clone(), keep(blobs, bytes.clone()));
                    self.files.insert(path, bytes);
                }
            }
            NamedFile::InPlace(name) => self.add_in_place(folder, name, blobs)?,
        }
        self.check_limits(blobs)
    }

    fn add_in_place(&mut self, folder: &Folder, name: &str, blobs: &mut Blobs) -> Result<(), FolderError> {
        let place = match folder.place(name) {
            Ok(place) => place.ok_or_else(|| FolderError::Outside(name.into()))?,
            // Built into the program: a file without a place.
            Err(_) => {
                let digest = keep(blobs, folder.bytes(name)?.into());
                self.manifest.programs.insert(key(name)?, digest);
                return Ok(());
            }
        };
        if place.found() != Found::Folder {
            let bytes = place.bytes()?;
            if let Entry::Vacant(entry) = self.manifest.programs.entry(place.key) {
                entry.insert(keep(blobs, bytes.into()));
            }
            return Ok(());
        }
        if place.key.is_empty() {
            return Err(FolderError::Itself(name.into()));
        }
        for (key, path) in place.files()? {
            let bytes = place::bytes(&key, &path)?;
            if let Entry::Vacant(entry) = self.manifest.programs.entry(key) {
                entry.insert(keep(blobs, bytes.into()));
                self.check_limits(blobs)?;
            }
        }
        self.manifest.folders.insert(place.key);
        Ok(())
    }

    /// Sets the models that an actor asks, for the manifest.
    pub fn set_models(&mut self, actor: &str, models: Vec<String>) {
        if !models.is_empty() {
            self.manifest.models.insert(actor.to_owned(), models);
        }
    }

    fn check_limits(&self, blobs: &Blobs) -> Result<(), FolderError> {
        let total: usize = blobs.values().map(|bytes| bytes.len()).sum();
        if u64::try_from(total).unwrap_or(u64::MAX) > MAX_TOTAL {
            return Err(FolderError::TooLargeTogether { limit: MAX_TOTAL });
        }
        let count = self.manifest.all().count();
        match count > MAX_FILES {
            true => Err(FolderError::TooMany { name: ".".into(), count, limit: MAX_FILES }),
            false => Ok(()),
        }
    }

    /// Restores the files of a run from its manifest. `at` is where its host expects the charter's
    /// folder; nothing but programs with the digest of the manifest is used from there.
    ///
    /// # Errors
    /// `blob` fails, or returns bytes with another digest.
    pub fn restore<E>(
        manifest: Manifest,
        at: Folder,
        mut blob: impl FnMut(&str, Digest) -> Result<Vec<u8>, E>,
    ) -> Result<KeptFiles, E> {
        let mut files = BTreeMap::new();
        for (path, digest) in &manifest.files {
            files.insert(path.clone(), blob(path, *digest)?.into());
        }
        Ok(KeptFiles { manifest, files, at: Box::new(at) })
    }

    /// The digests of the files.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where the folder is, if it is known. Its content is not trusted.
    #[must_use]
    pub fn at(&self) -> &Folder {
        &self.at
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, FolderError> {
        let found = self.files.get(&key(name)?).ok_or_else(|| FolderError::NotKept(name.into()))?;
        Ok(found.to_vec())
    }

    /// The files directly inside a subfolder.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>, FolderError> {
        let folder = key(folder)?;
        let directly = |name: &&String| name.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
        Ok(self.files.keys().filter(directly).cloned().collect())
    }

    /// The place that a name leads to, if it is inside the folder, or was when the run started.
    fn place(&self, name: &str) -> Result<Option<Place>, FolderError> {
        let kept = |place: &Place| {
            self.manifest.programs.contains_key(&place.key) || self.manifest.folders.contains(&place.key)
        };
        let left = || self.at.dir().and_then(|dir| Place::left(dir, name)).filter(kept);
        Ok(self.at.place(name)?.or_else(left))
    }

    /// Checks that the program of a command is the one in the manifest.
    pub(crate) fn check_program(&self, name: &str) -> Result<(), Fault> {
        let place = match self.place(name) {
            Ok(Some(place)) => place,
            Ok(None) if Path::new(name).is_absolute() => return Ok(()),
            Ok(None) => return Err(ConfigError::from(FolderError::Outside(name.into())).into()),
            // Where the host does not know the folder, no program is in it.
            Err(_) => {
                let path = key(name).map_err(ConfigError::from)?;
                let expected = self.manifest.programs.get(&path).copied();
                return Err(self.changed(&path, expected, None));
            }
        };
        self.check_file(&place.key, &place.path)
    }

    /// Checks that an argument of a command leads to what it led to when the run started.
    pub(crate) fn check_argument(&self, name: &str) -> Result<(), Fault> {
        let place = match self.place(name) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(_) => {
                let path = key(name).unwrap_or_default();
                let expected = self.manifest.programs.get(&path).copied();
                return expected.map_or(Ok(()), |expected| Err(self.changed(&path, Some(expected), None)));
            }
        };
        let Place { key, path } = &place;
        let (is_file, is_folder) = (self.manifest.programs.contains_key(key), self.manifest.folders.contains(key));
        match place.found() {
            Found::Nothing if !is_file && !is_folder => Ok(()),
            Found::Folder if is_folder => self.check_folder(&place),
            _ if is_folder => {
                Err(fault(key, format!("`{key}` was a folder when the run started, and is not one now"), None, None))
            }
            _ => self.check_file(key, path),
        }
    }

    /// Checks that a file has the digest of the manifest.
    fn check_file(&self, key: &str, path: &Path) -> Result<(), Fault> {
        let expected = self.manifest.programs.get(key).copied();
        let found = place::digest(path);
        match expected.is_some() && found == expected {
            true => Ok(()),
            false => Err(self.changed(key, expected, found)),
        }
    }

    /// What the folder has that is not as it was when the run started, of what commands use there:
    /// each with why no command that names it would start.
    #[must_use]
    pub fn changes(&self) -> Vec<String> {
        let folders = &self.manifest.folders;
        let alone = |key: &&String| !folders.iter().any(|folder| key.starts_with(&format!("{folder}/")));
        let names = folders.iter().chain(self.manifest.programs.keys().filter(alone));
        names.filter_map(|name| self.check_argument(name).err()).map(|fault| fault.message).collect()
    }

    /// Checks that a folder has exactly the files of the manifest.
    fn check_folder(&self, place: &Place) -> Result<(), Fault> {
        let inside = format!("{}/", place.key);
        let files = place.files().map_err(|e| fault(&place.key, e.to_string(), None, None))?;
        let of_folder = |key: &&String| key.starts_with(&inside);
        if let Some(missing) = self.manifest.programs.keys().filter(of_folder).find(|key| !files.contains_key(*key)) {
            return Err(self.changed(missing, self.manifest.programs.get(missing).copied(), None));
        }
        files.iter().try_for_each(|(key, path)| self.check_file(key, path))
    }

    fn changed(&self, path: &str, expected: Option<Digest>, found: Option<Digest>) -> Fault {
        let what = match (expected, found) {
            (None, _) => format!("`{path}` was not beside the charter when the run started"),
            (Some(expected), None) => match self.at.dir() {
                None => format!("the host does not know where `{path}` is; the run started with {expected}"),
                Some(_) => format!("`{path}` is missing or cannot be read; the run started with {expected}"),
            },
            (Some(expected), Some(found)) => {
                format!(
                    "`{path}` has changed since the run started: the run started with {expected}, and it is {found} now"
                )
            }
        };
        fault(path, what, expected, found)
    }
}

fn fault(path: &str, what: String, expected: Option<Digest>, found: Option<Digest>) -> Fault {
    let text = |digest: Option<Digest>| digest.map_or_else(|| "none".to_owned(), |d| d.to_string());
    let message = format!("{what}; restore it as it was, or start a new run");
    let fault = Fault::new(codes::ACTOR_CHANGED, message).with("file", path).with("expected", text(expected));
    fault.with("found", text(found))
}

/// Adds bytes to the blobs of a charter.
fn keep(blobs: &mut Blobs, bytes: Arc<[u8]>) -> Digest {
    let digest = Digest::of_bytes(&bytes);
    blobs.insert(digest, bytes);
    digest
}

/// The path of a file in a manifest: without `.`, with `/` between names.
fn key(name: &str) -> Result<String, FolderError> {
    let parts: Option<Vec<&str>> = inside(name)?
        .components()
        .filter(|c| !matches!(c, std::path::Component::CurDir))
        .map(|c| c.as_os_str().to_str())
        .collect();
    Ok(parts.unwrap_or_default().join("/"))
}
