//! Where a name that a command uses leads: to a file of the charter's folder, to a subfolder with
//! everything in it, to nothing, or out of the folder.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use charter_kernel::Digest;

use crate::error::FolderError;
use crate::folder::{MAX_BYTES, io_error};

/// Maximum number of files, links and subfolders of a folder that a command names.
pub(crate) const MAX_ENTRIES: usize = 1_000;

/// A place inside the charter's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its path in the folder, with `/` between names and without `.` and `..`; empty for the
    /// folder itself. Where only links lead into the folder, its name without `.` and inner `..`:
    /// such a link can be made to lead out again, which must be noticed.
    pub(crate) key: String,
    /// The path that the command opens. It may lead through links and out of a folder again, so its
    /// content counts, not that of the key.
    pub(crate) path: PathBuf,
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    File,
    Folder,
    /// A named pipe, a device, a socket.
    Other,
}

impl Place {
    /// The place that a name leads to, as written or by links; `None` if it is outside the folder.
    /// `name` is relative to `dir`, or absolute.
    pub(crate) fn new(dir: &Path, name: &str) -> Option<Place> {
        let path = dir.join(name);
        let below = |base: Option<PathBuf>, path: Option<PathBuf>| text(path?.strip_prefix(base?).ok()?);
        let as_written = below(plain(dir), plain(&path));
        let by_links = || match below(dir.canonicalize().ok(), path.canonicalize().ok())? {
            inside if inside.is_empty() => Some(inside),
            _ => outside_key(name),
        };
        Some(Place { key: as_written.or_else(by_links)?, path })
    }

    /// The place of a name that is outside the folder, under the key that it had when links led
    /// from it into the folder.
    pub(crate) fn left(dir: &Path, name: &str) -> Option<Place> {
        Some(Place { key: outside_key(name)?, path: dir.join(name) })
    }

    /// What is there now. What cannot be looked at cannot be used by the command either.
    pub(crate) fn found(&self) -> Found {
        match std::fs::metadata(&self.path) {
            Err(_) => Found::Nothing,
            Ok(found) if found.is_file() => Found::File,
            Ok(found) if found.is_dir() => Found::Folder,
            Ok(_) => Found::Other,
        }
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, FolderError> {
        bytes(&self.key, &self.path)
    }

    /// All files of a folder, by their paths in the charter's folder. Leaves out what is neither a
    /// file nor a folder.
    pub(crate) fn files(&self) -> Result<BTreeMap<String, PathBuf>, FolderError> {
        let mut files = BTreeMap::new();
        let mut seen = 0usize;
        let mut waiting = vec![(self.key.clone(), self.path.clone())];
        while let Some((key, path)) = waiting.pop() {
            for entry in std::fs::read_dir(&path).map_err(|e| io_error(&key, &e))? {
                let path = entry.map_err(|e| io_error(&key, &e))?.path();
                seen = seen.saturating_add(1);
                if seen > MAX_ENTRIES {
                    return Err(FolderError::TooManyInside { name: self.key.clone(), limit: MAX_ENTRIES });
                }
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name.ok_or_else(|| FolderError::NotText(path.display().to_string()))?;
                let key = format!("{key}/{name}");
                // Links are followed, as the command does; one that leads back ends at the limit.
                match std::fs::metadata(&path) {
                    Ok(found) if found.is_file() => drop(files.insert(key, path)),
                    Ok(found) if found.is_dir() => waiting.push((key, path)),
                    _ => {}
                }
            }
        }
        Ok(files)
    }
}

/// Reads a file of limited size.
pub(crate) fn bytes(name: &str, path: &Path) -> Result<Vec<u8>, FolderError> {
    let cannot = |e: std::io::Error| io_error(name, &e);
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    // A named pipe would block, and a device never end.
    if !metadata.is_file() {
        return Err(FolderError::NotAFile(name.into()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MAX_BYTES.saturating_add(1)).read_to_end(&mut bytes).map_err(cannot)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX).max(metadata.len());
    match size > MAX_BYTES {
        true => Err(FolderError::TooLarge { name: name.into(), size, limit: MAX_BYTES }),
        false => Ok(bytes),
    }
}

/// The digest of a file as it is now.
pub(crate) fn digest(path: &Path) -> Option<Digest> {
    bytes("", path).ok().map(|bytes| Digest::of_bytes(&bytes))
}

/// An absolute path without `.` and `..`, as written: links are not followed.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in std::path::absolute(path).ok()?.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// A name that leads out of the folder as it is written, without `.` and inner `..`.
fn outside_key(name: &str) -> Option<String> {
    let mut key = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if key.file_name().is_some() => drop(key.pop()),
            other => key.push(other),
        }
    }
    key.to_str().map(str::to_owned)
}

/// A relative path with `/` between its names.
fn text(path: &Path) -> Option<String> {
    let names: Option<Vec<&str>> = path.components().map(|c| c.as_os_str().to_str()).collect();
    names.map(|names| names.join("/"))
}
