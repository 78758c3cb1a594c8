//! The files that a run may use: read once when its charter is added, named by digest in its
//! manifest, and kept as blobs.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use charter_journal::Manifest;
use charter_kernel::Digest;

use crate::codes;
use crate::error::{ConfigError, FolderError};
use crate::executor::Fault;
use crate::folder::{Folder, MAX_BYTES, inside, io_error};

/// Maximum number of files in a manifest.
const MAX_FILES: usize = 1_000;

/// Maximum size of all files of a manifest, in bytes.
const MAX_TOTAL: u64 = 32 << 20;

/// A file of the charter's folder that the configuration of an actor names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedFile {
    /// The executor reads it, with [`Folder::read`]. Runs read the blob, not the file.
    Read(String),
    /// A command uses it where it is: a program, or a file among its arguments. It must not change
    /// while runs use it.
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
        let (name, in_place) = match named {
            NamedFile::Read(name) => (name, false),
            NamedFile::InPlace(name) => (name, true),
        };
        let path = key(name)?;
        let list = if in_place { &mut self.manifest.programs } else { &mut self.manifest.files };
        if list.contains_key(&path) {
            return Ok(());
        }
        let bytes: Arc<[u8]> = folder.bytes(name)?.into();
        let digest = Digest::of_bytes(&bytes);
        list.insert(path.clone(), digest);
        if !in_place {
            self.files.insert(path, bytes.clone());
        }
        blobs.insert(digest, bytes);
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

    /// Checks that a file which a command uses in place is the one in the manifest.
    pub(crate) fn check_in_place(&self, name: &str, required: bool) -> Result<(), Fault> {
        let path = match key(name) {
            Ok(path) => path,
            Err(_) if !required => return Ok(()),
            Err(outside) => return Err(ConfigError::from(outside).into()),
        };
        let expected = self.manifest.programs.get(&path).copied();
        if expected.is_none() && !required {
            return Ok(());
        }
        let found = self.at.dir().map(|dir| digest_of(&dir.join(&path)));
        let found = match found {
            Some(Ok(digest)) => Some(digest),
            Some(Err(_)) | None => None,
        };
        if expected.is_some() && found == expected {
            return Ok(());
        }
        let text = |digest: Option<Digest>| digest.map_or_else(|| "none".to_owned(), |d| d.to_string());
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
        let message = format!("{what}; restore the file, or start a new run");
        let fault = Fault::new(codes::ACTOR_CHANGED, message).with("file", path).with("expected", text(expected));
        Err(fault.with("found", text(found)))
    }
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

fn digest_of(path: &Path) -> Result<Digest, FolderError> {
    let cannot = |e: std::io::Error| io_error(&path.display().to_string(), &e);
    // A named pipe would block, and a device never end.
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(FolderError::NotFound(path.display().to_string()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MAX_BYTES.saturating_add(1)).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(Digest::of_bytes(&bytes))
}
