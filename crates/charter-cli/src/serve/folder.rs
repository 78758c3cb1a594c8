//! A folder of charters, which is read again when it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use charter_format::Severity;
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
    /// Charters that may be started although their actors reach this machine.
    offer: Vec<String>,
    /// Why each file is not served, for who asks for its charter.
    missing: BTreeMap<PathBuf, Missing>,
}

/// A file that is not served.
struct Missing {
    /// What its charter may be called: its id, if it can be read, and the name of the file.
    names: Vec<String>,
    why: String,
    /// The id of a charter that is only not offered.
    closed: Option<String>,
}

impl CharterFolder {
    pub(super) fn new(path: PathBuf, offer: &[String]) -> Result<CharterFolder, Failure> {
        match path.is_dir() {
            true => Ok(CharterFolder { path, seen: BTreeMap::new(), offer: offer.to_vec(), missing: BTreeMap::new() }),
            false => Err(Failure::new(format!("`{}` is not a folder", path.display()))),
        }
    }

    /// The charters that are new or have changed since the last call, with their files. A file that
    /// cannot be read is an error, once. Those that are not offered are left out.
    pub(super) fn changed(&mut self) -> Vec<(PathBuf, Result<Charter, Failure>)> {
        let entries = match files(&self.path) {
            Ok(entries) => entries,
            // The folder may be about to be replaced.
            Err(_) => return Vec::new(),
        };
        self.seen.retain(|path, _| entries.contains(path));
        self.missing.retain(|path, _| entries.contains(path));
        let mut changed = Vec::new();
        for path in entries {
            let Ok(meta) = path.metadata() else { continue };
            let stamp = (meta.modified().ok(), meta.len());
            if self.seen.insert(path.clone(), stamp) != Some(stamp) {
                self.missing.remove(&path);
                let charter = read(&path);
                match &charter {
                    Err(failure) => self.refuse(&path, failure),
                    Ok(charter) if self.is_closed(charter) => {
                        let id = charter.machine().definition().id.clone();
                        let why = format!(
                            "its actors reach the machine of the server: `charter serve --offer {id}` offers it, and who may start it may run commands as the server's user"
                        );
                        self.missing.insert(path, Missing { names: vec![id.clone()], why, closed: Some(id) });
                        continue;
                    }
                    Ok(_) => {}
                }
                changed.push((path, charter));
            }
        }
        changed
    }

    fn is_closed(&self, charter: &Charter) -> bool {
        charter_server::reaches_machine(charter) && !self.offer.contains(&charter.machine().definition().id)
    }

    /// Keeps what is wrong with a file.
    pub(super) fn refuse(&mut self, path: &Path, failure: &Failure) {
        let why = format!("its file is broken: {}", why(path, failure));
        self.missing.insert(path.to_owned(), Missing { names: names(path), why, closed: None });
    }

    /// The charters that are missing, and why.
    pub(super) fn missing(&self) -> BTreeMap<String, String> {
        let each =
            |m: &Missing| -> Vec<(String, String)> { m.names.iter().map(|n| (n.clone(), m.why.clone())).collect() };
        self.missing.values().flat_map(each).collect()
    }

    /// The charters that are missing only because they are not offered.
    pub(super) fn closed(&self) -> impl Iterator<Item = &str> {
        self.missing.values().filter_map(|missing| missing.closed.as_deref())
    }

    /// Whether a charter of the folder may have this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.seen.keys().any(|path| names(path).iter().any(|known| known == name))
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

/// What the charter of a broken file may be called.
fn names(path: &Path) -> Vec<String> {
    let text = crate::load::text_of(path).unwrap_or_default();
    let id = text.lines().find_map(|line| line.strip_prefix("id:"));
    let id = id.map(|id| id.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned());
    let inside = path.file_name().is_some_and(|name| name == "charter.yaml");
    let file = if inside { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    let file = file.map(|name| name.to_string_lossy().into_owned());
    id.into_iter().chain(file).filter(|name| !name.is_empty()).collect()
}

/// What is wrong with a file, in a line, without the folder that it is in: others read it.
fn why(path: &Path, failure: &Failure) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    match failure {
        Failure::Source(diagnostics) => match diagnostics.list.iter().find(|d| d.severity == Severity::Error) {
            Some(d) => format!("{file}:{}:{}: {}", d.line, d.column, d.message),
            None => format!("{file} cannot be read"),
        },
        other => other.to_string().replace(&path.display().to_string(), &file),
    }
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
        let mut folder = CharterFolder::new(dir.clone(), &[]).unwrap();
        let ids = |found: Vec<(PathBuf, Result<Charter, Failure>)>| -> Vec<String> {
            found.into_iter().map(|(_, c)| c.map_or("error".into(), |c| c.machine().definition().id.clone())).collect()
        };
        assert_eq!(ids(folder.changed()), ["one", "two"]);
        assert_eq!(ids(folder.changed()), Vec::<String>::new());
        std::fs::write(dir.join("two.yaml"), "charter: 1\nid: third # not yet\ninitial: [").unwrap();
        assert_eq!(ids(folder.changed()), ["error"]);
        assert_eq!(ids(folder.changed()), Vec::<String>::new());
        let broken = folder.missing();
        assert_eq!(broken.keys().collect::<Vec<_>>(), ["third", "two"]);
        assert!(broken["two"].starts_with("its file is broken: two.yaml:3:"), "{broken:?}");
        std::fs::write(dir.join("two.yaml"), source("second")).unwrap();
        std::fs::write(dir.join("host.yaml"), source("host")).unwrap();
        assert_eq!(ids(folder.changed()), ["error", "second"]);
        let why = "its file is broken: `host.yaml`: the id `host` belongs to the server; choose another one";
        assert_eq!(folder.missing().into_iter().collect::<Vec<_>>(), [("host".to_owned(), why.to_owned())]);
        std::fs::remove_file(dir.join("host.yaml")).unwrap();
        assert_eq!((ids(folder.changed()), folder.missing().len()), (Vec::new(), 0));
        let exec = "actors: {x: {kind: exec, command: [ls]}}\n";
        std::fs::write(dir.join("two.yaml"), source("second").replace("initial", &format!("{exec}initial"))).unwrap();
        assert_eq!(ids(folder.changed()), Vec::<String>::new());
        assert_eq!(folder.closed().collect::<Vec<_>>(), ["second"]);
        assert!(folder.missing()["second"].contains("`charter serve --offer second`") && folder.has("second"));
        let mut offering = CharterFolder::new(dir.clone(), &["second".to_owned()]).unwrap();
        assert_eq!(ids(offering.changed()), ["one", "second"]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(CharterFolder::new(dir, &[]).is_err());
    }
}
