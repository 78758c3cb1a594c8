//! The store: contents by digest, and small files that are written atomically. It is a folder next
//! to the journal file. If that is inside a workspace, both do not belong to its content.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use charter_kernel::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Context as _, Error};
use crate::watch::Watch;

/// Contents by SHA-256, in a folder. A clone is another handle on the same folder.
#[derive(Debug, Clone)]
pub struct Store {
    root: Arc<Path>,
}

impl Store {
    /// Opens the store in a folder, which is created if missing. Only its owner can read it,
    /// because it contains file contents.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(folder: &Path) -> Result<Store, Error> {
        create_folder(&folder.join("objects"))?;
        let root = folder.canonicalize().context(|| format!("open the store `{}`", folder.display()))?;
        Ok(Store { root: root.into() })
    }

    /// The folder of the store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.root
    }

    /// The store, the journal file beside it, and what else belongs to that: for the store
    /// `charter.db-files`, all that is named `charter.db` or `charter.db-...`.
    pub(crate) fn with_journal(&self) -> Vec<PathBuf> {
        let mut all = vec![self.root.to_path_buf()];
        if let (Some(folder), Some(name)) = (self.root.parent(), self.journal_name()) {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.filter(|entry| entry.file_name().to_str().is_some_and(|n| belongs(n, name)));
            all.extend(names.map(|entry| entry.path()));
        }
        all
    }

    /// The store and the journal, if they are in a folder: what does not belong to its content.
    pub(crate) fn within(&self, folder: &Path) -> Option<Within> {
        let at = self.root.parent()?.strip_prefix(folder).ok()?.to_str()?;
        let at = if at.is_empty() { String::new() } else { format!("{at}/") };
        Some(Within { at, journal: self.journal_name()?.to_owned() })
    }

    /// The name of the journal file that the store belongs to, by its own name.
    fn journal_name(&self) -> Option<&str> {
        let name = self.root.file_name()?.to_str()?;
        Some(name.strip_suffix("-files").unwrap_or(name))
    }

    /// Stores content, which is on disk when this function returns.
    ///
    /// # Errors
    /// The content cannot be written.
    pub fn put(&self, bytes: &[u8], watch: &mut dyn Watch) -> Result<Digest, Error> {
        let digest = Digest::of_bytes(bytes);
        let (folder, name) = self.place(digest);
        if !folder.join(&name).exists() {
            create_folder(&folder)?;
            write(&folder, &name, bytes, watch)?;
        }
        Ok(digest)
    }

    /// Reads stored content.
    ///
    /// # Errors
    /// The content is missing or damaged.
    pub fn get(&self, digest: Digest) -> Result<Vec<u8>, Error> {
        let (folder, name) = self.place(digest);
        let bytes = match fs::read(folder.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Damaged(format!("the content {digest} is missing")));
            }
            read => read.context(|| format!("read the content {digest}"))?,
        };
        if Digest::of_bytes(&bytes) != digest {
            return Err(Error::Damaged(format!("the content {digest} does not match its digest")));
        }
        Ok(bytes)
    }

    /// Returns the number of bytes of stored content; `None` if it is not stored.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn size(&self, digest: Digest) -> Result<Option<u64>, Error> {
        let (folder, name) = self.place(digest);
        match fs::metadata(folder.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(|file| Some(file.len())).context(|| format!("read the content {digest}")),
        }
    }

    fn place(&self, digest: Digest) -> (PathBuf, String) {
        let hex = digest.hex();
        let (first, rest) = hex.split_at(2);
        (self.root.join("objects").join(first), rest.to_owned())
    }
}

/// A journal, with all that belongs to it, inside a workspace.
#[derive(Debug, Clone)]
pub(crate) struct Within {
    /// The folder of the journal in the workspace: empty, or with a `/` at the end.
    at: String,
    journal: String,
}

impl Within {
    /// Whether a path in the workspace is that of the journal, or of something that belongs to it.
    pub(crate) fn has(&self, path: &str) -> bool {
        let name = path.strip_prefix(self.at.as_str()).and_then(|below| below.split('/').next());
        name.is_some_and(|name| belongs(name, &self.journal))
    }
}

/// Whether a file is the journal file, or belongs to it.
fn belongs(name: &str, journal: &str) -> bool {
    name.strip_prefix(journal).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Creates a folder that only its owner can read, and its parents.
pub(crate) fn create_folder(folder: &Path) -> Result<(), Error> {
    let built = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    built.context(|| format!("create the folder `{}`", folder.display()))
}

/// Writes and syncs a file atomically: after a crash it has the old content or the new one.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8], watch: &mut dyn Watch) -> Result<(), Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let path = folder.join(name);
    let shown = path.display().to_string();
    let doing = || format!("write `{shown}`");
    let unique = format!(".new-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let temporary = folder.join(unique);
    watch.before("write", &shown).context(doing)?;
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        watch.before("rename", &shown)?;
        fs::rename(&temporary, &path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.context(doing)?;
    watch.before("sync", &shown).context(doing)?;
    sync(folder)
}

/// Syncs the names in a folder to disk.
pub(crate) fn sync(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|f| f.sync_all());
    synced.context(|| format!("sync the folder `{}`", folder.display()))
}

/// Writes a value as JSON, like [`write()`].
pub(crate) fn write_json<T: Serialize>(
    folder: &Path,
    name: &str,
    value: &T,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    let text = serde_json::to_vec(value).map_err(|e| Error::Damaged(e.to_string()))?;
    write(folder, name, &text, watch)
}

/// Reads a value from a JSON file; returns `None` if the file does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, Error> {
    let path = folder.join(name);
    let mut text = Vec::new();
    match File::open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|mut f| f.read_to_end(&mut text)).context(|| format!("read `{}`", path.display()))?,
    };
    let value = serde_json::from_slice(&text).map_err(|e| Error::Damaged(format!("`{}`: {e}", path.display())))?;
    Ok(Some(value))
}

/// Removes a file, if it exists, and syncs its folder.
pub(crate) fn remove(folder: &Path, name: &str, watch: &mut dyn Watch) -> Result<(), Error> {
    let path = folder.join(name);
    let doing = || format!("remove `{}`", path.display());
    watch.before("remove", &path.display().to_string()).context(doing)?;
    match fs::remove_file(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.context(doing).and_then(|()| sync(folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Unwatched;

    #[test]
    fn contents_are_read_back_or_reported_as_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a/b")).unwrap();
        let digest = store.put(b"hello", &mut Unwatched).unwrap();
        assert_eq!(digest, store.put(b"hello", &mut Unwatched).unwrap());
        assert_eq!(store.get(digest).unwrap(), b"hello");
        assert_eq!(store.size(digest).unwrap(), Some(5));
        assert_eq!(store.size(Digest::of_bytes(b"other")).unwrap(), None);
        let (place, name) = store.place(digest);
        fs::write(place.join(name), b"hellO").unwrap();
        assert_eq!(store.get(digest).unwrap_err().code(), "damaged");
        assert_eq!(store.get(Digest::of_bytes(b"other")).unwrap_err().code(), "damaged");
    }
}
