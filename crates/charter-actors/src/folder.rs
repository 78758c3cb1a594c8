//! The files next to a charter, which its actors read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::error::FolderError;
use crate::kept::KeptFiles;
use crate::place::Place;

/// Maximum size of a file, in bytes.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of files in a listing.
const MAX_FILES: usize = 1000;

/// The files next to a charter. The host decides where they are; a charter can only name files
/// inside that folder.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Folder {
    /// The charter has no files.
    #[default]
    None,
    /// A folder in the file system.
    Dir(PathBuf),
    /// Texts by name, such as those built into a program.
    Texts(Arc<BTreeMap<String, String>>),
    /// The files of a run: its manifest names them, and the journal keeps them.
    Kept(Arc<KeptFiles>),
}

impl Folder {
    /// The folder in the file system, if there is one: the working directory of commands.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        match self {
            Folder::Dir(dir) => Some(dir),
            Folder::Kept(kept) => kept.at().dir(),
            Folder::None | Folder::Texts(_) => None,
        }
    }

    /// The folder itself, if this is the files of a run: for data that no actor names. Its content
    /// may have changed since the run started.
    #[must_use]
    pub fn at(&self) -> &Folder {
        match self {
            Folder::Kept(kept) => kept.at(),
            other => other,
        }
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// There is no such file, or it is outside the folder, too large, or not UTF-8.
    pub fn read(&self, name: &str) -> Result<String, FolderError> {
        String::from_utf8(self.bytes(name)?).map_err(|_| FolderError::NotText(name.into()))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// There is no such file, or it is outside the folder or too large.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, FolderError> {
        let path = inside(name)?;
        match self {
            Folder::None => Err(FolderError::NoFolder(name.into())),
            Folder::Kept(kept) => kept.bytes(name),
            Folder::Texts(texts) => {
                texts.get(name).map(|t| t.clone().into_bytes()).ok_or_else(|| FolderError::NotFound(name.into()))
            }
            Folder::Dir(dir) => crate::place::bytes(name, &dir.join(path)),
        }
    }

    /// Whether a file with this name exists.
    ///
    /// # Errors
    /// The name is outside the folder.
    pub fn is_file(&self, name: &str) -> Result<bool, FolderError> {
        let path = inside(name)?;
        Ok(match self {
            Folder::None => false,
            Folder::Kept(kept) => kept.at().is_file(name)?,
            Folder::Texts(texts) => texts.contains_key(name),
            Folder::Dir(dir) => dir.join(path).is_file(),
        })
    }

    /// The place that a name leads to, if it is inside the folder.
    ///
    /// # Errors
    /// The folder is not in the file system.
    pub(crate) fn place(&self, name: &str) -> Result<Option<Place>, FolderError> {
        Ok(Place::new(self.dir().ok_or(FolderError::NotInFileSystem)?, name))
    }

    /// Lists the files directly inside a subfolder, sorted, as names that [`Folder::read`] accepts.
    /// A subfolder that does not exist is empty.
    ///
    /// # Errors
    /// The subfolder is outside the folder, cannot be read, or has more than 1,000 files.
    pub fn list(&self, name: &str) -> Result<Vec<String>, FolderError> {
        let path = inside(name)?;
        let mut names: Vec<String> = match self {
            Folder::None => Vec::new(),
            Folder::Kept(kept) => kept.list(name)?,
            Folder::Texts(texts) => {
                let directly = |key: &&String| Path::new(key.as_str()).parent() == Some(path);
                texts.keys().filter(directly).cloned().collect()
            }
            Folder::Dir(dir) => match std::fs::read_dir(dir.join(path)) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries.and_then(|entries| files(path, entries)).map_err(|e| io_error(name, &e))?,
            },
        };
        if names.len() > MAX_FILES {
            return Err(FolderError::TooMany { name: name.into(), count: names.len(), limit: MAX_FILES });
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the path of a file or subfolder in the file system.
    ///
    /// # Errors
    /// The path is outside the folder, or the folder is not in the file system.
    pub fn path(&self, name: &str) -> Result<PathBuf, FolderError> {
        let path = inside(name)?;
        Ok(self.dir().ok_or(FolderError::NotInFileSystem)?.join(path))
    }
}

/// Lists the regular files of a folder. Omits names that are not UTF-8: no charter can name them.
fn files(folder: &Path, entries: std::fs::ReadDir) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file()
            && let Some(name) = folder.join(entry.file_name()).to_str()
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

pub(crate) fn io_error(name: &str, error: &std::io::Error) -> FolderError {
    match error.kind() {
        std::io::ErrorKind::NotFound => FolderError::NotFound(name.into()),
        _ => FolderError::Io { name: name.into(), error: error.to_string() },
    }
}

/// Checks that a path is relative and does not leave the folder.
pub(crate) fn inside(name: &str) -> Result<&Path, FolderError> {
    let path = Path::new(name);
    let stays = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !stays {
        return Err(FolderError::Outside(name.into()));
    }
    Ok(path)
}
