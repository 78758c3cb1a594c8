//! Which folder a workspace is: not its name, which may lead elsewhere later.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context as _, Error};

/// A folder: its path without links, and what the file system knows it by. It is part of what is
/// approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderIdentity {
    /// The absolute path, without links.
    pub path: String,
    /// The device, as a number.
    pub device: String,
    /// The number of the folder on the device.
    pub inode: String,
}

impl FolderIdentity {
    /// Looks at the folder to which a path leads now.
    ///
    /// # Errors
    /// The folder cannot be found, or its path is not UTF-8.
    pub fn of(path: &Path) -> Result<FolderIdentity, Error> {
        let doing = || format!("open the workspace `{}`", path.display());
        let whole = path.canonicalize().context(doing)?;
        let found = whole.metadata().context(doing)?;
        let Some(text) = whole.to_str() else {
            return Err(Error::Usage(format!("the path of the workspace `{}` is not UTF-8", whole.display())));
        };
        Ok(FolderIdentity { path: text.into(), device: found.dev().to_string(), inode: found.ino().to_string() })
    }

    /// The folder, if it is still this one.
    ///
    /// # Errors
    /// [`Error::Replaced`] if the path leads to another folder, or to none.
    pub fn find(&self) -> Result<PathBuf, Error> {
        let replaced = |why: String| Error::Replaced { path: self.path.clone(), why };
        let now = FolderIdentity::of(Path::new(&self.path)).map_err(|e| replaced(e.to_string()))?;
        if now.path != self.path {
            return Err(replaced(format!("the path leads to `{}` now", now.path)));
        }
        if now != *self {
            return Err(replaced("another folder has taken its place".into()));
        }
        Ok(PathBuf::from(now.path))
    }
}
