//! A folder of charters, which is read again when it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use charter_runtime::Charter;

use crate::io::Failure;
use crate::run::setup::hosted;

/// Charters of a folder, at most.
const MAX_CHARTERS: usize = 1_000;

/// When a file was changed, and its size.
type Stamp = (Option<SystemTime>, u64);

/// A folder with charters: `NAME/charter.yaml`, or `NAME.yaml`.
pub(super) struct CharterFolder {
    path: PathBuf,
    seen: BTreeMap<PathBuf, Stamp>,
}

impl CharterFolder {
    pub(super) fn new(path: PathBuf) -> Result<CharterFolder, Failure> {
        match path.is_dir() {
            true => Ok(CharterFolder { path, seen: BTreeMap::new() }),
            false => Err(Failure::new(format!("`{}` is not a folder", path.display()))),
        }
    }

    /// The charters that are new or have changed since the last call. A file that cannot be read is
    /// an error, once.
    pub(super) fn changed(&mut self) -> Vec<Result<Charter, Failure>> {
        let entries = match files(&self.path) {
            Ok(entries) => entries,
            // The folder may be about to be replaced.
            Err(_) => return Vec::new(),
        };
        let mut changed = Vec::new();
        for path in entries {
            let Ok(meta) = path.metadata() else { continue };
            let stamp = (meta.modified().ok(), meta.len());
            if self.seen.insert(path.clone(), stamp) != Some(stamp) {
                changed.push(read(&path));
            }
        }
        changed
    }
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let inside = path.join("charter.yaml");
        let is_charter = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
        match (inside.is_file(), is_charter && path.is_file()) {
            (true, _) => found.push(inside),
            (false, true) => found.push(path),
            (false, false) => {}
        }
        if found.len() >= MAX_CHARTERS {
            break;
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Charter, Failure> {
    let name = path.to_str().ok_or_else(|| Failure::new(format!("`{}` is not UTF-8", path.display())))?;
    let charter = hosted(&crate::load::load(name)?)?;
    match charter.machine().definition().id == charter_server::identity::HOST_RUN {
        true => Err(Failure::new(format!("`{name}`: the id `host` belongs to the server; choose another one"))),
        false => Ok(charter),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn source(id: &str) -> String {
        format!(
            "charter: 1\nid: {id}\nevents: {{GO: {{}}}}\ninitial: a\nstates: {{a: {{on: {{GO: b}}}}, b: {{type: final}}}}\n"
        )
    }

    #[test]
    fn what_changed_is_read_again_and_what_is_broken_is_reported_once() {
        let dir = std::env::temp_dir().join(format!("charter-folder-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("one")).unwrap();
        std::fs::write(dir.join("one/charter.yaml"), source("one")).unwrap();
        std::fs::write(dir.join("two.yaml"), source("two")).unwrap();
        std::fs::write(dir.join("notes.txt"), "no charter").unwrap();
        let mut folder = CharterFolder::new(dir.clone()).unwrap();
        let ids = |found: Vec<Result<Charter, Failure>>| -> Vec<String> {
            found.into_iter().map(|c| c.map_or("error".into(), |c| c.machine().definition().id.clone())).collect()
        };
        assert_eq!(ids(folder.changed()), ["one", "two"]);
        assert_eq!(ids(folder.changed()), Vec::<String>::new());
        std::fs::write(dir.join("two.yaml"), "charter: 1\nid: [").unwrap();
        assert_eq!(ids(folder.changed()), ["error"]);
        assert_eq!(ids(folder.changed()), Vec::<String>::new());
        std::fs::write(dir.join("two.yaml"), source("second")).unwrap();
        std::fs::write(dir.join("host.yaml"), source("host")).unwrap();
        assert_eq!(ids(folder.changed()), ["error", "second"]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(CharterFolder::new(dir).is_err());
    }
}
