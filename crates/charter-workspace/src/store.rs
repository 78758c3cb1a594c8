//! The store: contents by their digest, and small files that are there completely or not at all. It is a folder of ours (beside the
//! database), never inside a workspace.

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

/// Contents by their SHA-256, in a folder. Cloning it gives another handle on the same folder.
#[derive(Debug, Clone)]
pub struct Store {
    root: Arc<Path>,
}

impl Store {
    /// Opens the store in a folder, which is made if it is not there. Only its owner may look into it: it holds file contents.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path) -> Result<Store, Error> {
        make(&folder.join("objects"))?;
        let root = folder.canonicalize().context(|| format!("open the store `{}`", folder.display()))?;
        Ok(Store { root: root.into() })
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.root
    }

    /// Keeps a content; it is on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, bytes: &[u8], watch: &mut dyn Watch) -> Result<Digest, Error> {
        let digest = Digest::of_bytes(bytes);
        let (folder, name) = self.place(digest);
        if !folder.join(&name).exists() {
            make(&folder)?;
            write(&folder, &name, bytes, watch)?;
        }
        Ok(digest)
    }

    /// A content that was kept.
    ///
    /// # Errors
    /// When it is not there, or is not what was kept.
    pub fn get(&self, digest: Digest) -> Result<Vec<u8>, Error> {
        let (folder, name) = self.place(digest);
        let bytes = match fs::read(folder.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Damaged(format!("it does not hold the content {digest}")));
            }
            read => read.context(|| format!("read the content {digest}"))?,
        };
        if Digest::of_bytes(&bytes) != digest {
            return Err(Error::Damaged(format!("what it holds as {digest} has another digest")));
        }
        Ok(bytes)
    }

    fn place(&self, digest: Digest) -> (PathBuf, String) {
        let hex = digest.hex();
        let (first, rest) = hex.split_at(2);
        (self.root.join("objects").join(first), rest.to_owned())
    }
}

/// Makes a folder that only its owner may look into, and those on the way.
pub(crate) fn make(folder: &Path) -> Result<(), Error> {
    let built = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    built.context(|| format!("make the folder `{}`", folder.display()))
}

/// Writes a file so that after a crash it has the old content or the new one, and brings it to the disk.
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

/// Brings the names in a folder to the disk.
pub(crate) fn sync(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|f| f.sync_all());
    synced.context(|| format!("bring the folder `{}` to the disk", folder.display()))
}

/// As [`write()`], a value as JSON.
pub(crate) fn write_json<T: Serialize>(
    folder: &Path,
    name: &str,
    value: &T,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    let text = serde_json::to_vec(value).map_err(|e| Error::Damaged(e.to_string()))?;
    write(folder, name, &text, watch)
}

/// A value from JSON, or nothing if there is no such file.
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

/// Removes a file and brings that to the disk; nothing if it is not there.
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
    fn contents_come_back_or_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a/b")).unwrap();
        let digest = store.put(b"hello", &mut Unwatched).unwrap();
        assert_eq!(digest, store.put(b"hello", &mut Unwatched).unwrap());
        assert_eq!(store.get(digest).unwrap(), b"hello");
        let (place, name) = store.place(digest);
        fs::write(place.join(name), b"hellO").unwrap();
        assert_eq!(store.get(digest).unwrap_err().code(), "damaged");
        assert_eq!(store.get(Digest::of_bytes(b"other")).unwrap_err().code(), "damaged");
    }
}
