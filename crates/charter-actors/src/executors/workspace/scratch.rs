//! `scratch:NAME`: a copy of the folder NAME next to the charter, made for one run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::call::Call;
use crate::executor::Fault;
use crate::folder::Folder;

/// Returns the path of the copy, which is made on the first call.
pub(super) fn path(name: &str, call: &Call, store: &Path) -> Result<PathBuf, Fault> {
    let fault = |why: String| Fault::new("scratch", &why);
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !plain {
        return Err(fault(format!("`scratch:{name}` does not name a folder beside the charter")));
    }
    let to = place(&call.run, store);
    if to.exists() {
        return Ok(to);
    }
    let temporary = to.with_extension("new");
    let cannot = |e: std::io::Error| fault(format!("cannot copy the folder `{name}`: {e}"));
    let missing = || fault(format!("no folder `{name}` beside the charter"));
    let _ = fs::remove_dir_all(&temporary);
    match call.folder().at() {
        Folder::Dir(dir) => copy(&dir.join(name), &temporary).map_err(cannot)?,
        Folder::Texts(texts) => {
            let prefix = format!("{name}/");
            let mut any = false;
            for (file, text) in texts.iter() {
                let Some(below) = file.strip_prefix(&prefix) else {
                    continue;
                };
                let path = temporary.join(below);
                let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
                made.map_err(cannot)?;
                any = true;
            }
            if !any {
                return Err(missing());
            }
        }
        Folder::None | Folder::Kept(_) => return Err(missing()),
    }
    fs::rename(&temporary, &to).map_err(cannot)?;
    Ok(to)
}

/// Returns the path of a run's copy. It is next to the store, not inside it, because everything
/// inside belongs to the store.
pub(super) fn place(run: &str, store: &Path) -> PathBuf {
    let root = PathBuf::from(format!("{}-scratch", store.display()));
    root.join(run.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_"))
}

/// Copies files and folders; symbolic links are left out.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
