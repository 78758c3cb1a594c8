//! Which files the pathspecs of `git` are about, as the index of the repository lists them.

use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::expand::Arg;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::{self, Depth, Marks};
use crate::repository::Repository;

/// Files with a meaning that are described for one command; the others have the same effect.
const MAX_MARKED: usize = 16;
/// Names of an index that cost as much as one entry of a folder.
const NAMES_PER_ENTRY: usize = 64;

/// What pathspecs select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selected {
    /// These files, and what is below them.
    Paths(Vec<String>),
    /// All files but these, and what is below them.
    AllBut(Vec<String>),
}

/// Whether a pathspec is a path: without magic, and without patterns of `git` itself.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(':') && !text.contains(['*', '?', '[', '\\'])
}

/// The path that a pathspec leaves out.
fn excluded(text: &str) -> Option<&str> {
    [":!", ":^", ":(exclude)"].iter().find_map(|magic| text.strip_prefix(magic)).filter(|path| is_plain(path))
}

impl Shell<'_> {
    /// The paths that pathspecs name; nothing if one of them is or may be a pattern.
    pub(super) fn plain_paths(&mut self, specs: &[Arg]) -> Option<Vec<String>> {
        let items: Vec<Arg> = specs.iter().flat_map(|spec| self.matches(spec.clone())).collect();
        items.iter().map(|item| item.exact().filter(|text| is_plain(text)).map(str::to_owned)).collect()
    }

    /// What pathspecs select for a command that reads: patterns count as everything.
    pub(super) fn selected(&mut self, specs: &[Arg]) -> Selected {
        let is_excluded = |spec: &Arg| spec.exact().is_some_and(|text| excluded(text).is_some());
        let (without, with): (Vec<Arg>, Vec<Arg>) = specs.iter().cloned().partition(is_excluded);
        let left_out = || without.iter().filter_map(|spec| excluded(spec.exact()?)).map(str::to_owned).collect();
        match self.plain_paths(&with) {
            Some(paths) if !paths.is_empty() && without.is_empty() => Selected::Paths(paths),
            _ => Selected::AllBut(left_out()),
        }
    }

    /// The tracked files that a command selects and that mean something. `None` if the index cannot
    /// be read, which is noted.
    pub(super) fn marked_files(&mut self, selected: &Selected, marks: Marks) -> Option<Vec<PathBuf>> {
        let mut found = Vec::new();
        for folder in self.state.folders.clone() {
            let Some(repository) = Repository::of(&folder) else { continue };
            let names = self.tracked_names(&repository)?;
            if !self.description.charge(names.len() / NAMES_PER_ENTRY) {
                return None;
            }
            let relative = |paths: &[String]| -> Vec<PathBuf> {
                paths.iter().filter_map(|path| below_top(&repository.top, &folder, path)).collect()
            };
            let covers = |paths: &[PathBuf], name: &str| paths.iter().any(|path| Path::new(name).starts_with(path));
            let (listed, wanted) = match selected {
                Selected::Paths(paths) => (relative(paths), true),
                Selected::AllBut(paths) => (relative(paths), false),
            };
            let names = names.iter().map(String::as_str).filter(|name| covers(&listed, name) == wanted);
            found.extend(path::marked(self.workspace, &repository.top, names, marks, MAX_MARKED));
        }
        Some(found)
    }

    /// Whether the index lists exactly this file, in each folder that the command may run in.
    pub(super) fn is_tracked_file(&mut self, path: &str) -> bool {
        self.state.folders.clone().iter().all(|folder| {
            Repository::of(folder).is_some_and(|repository| {
                let name = below_top(&repository.top, folder, path);
                let names = self.tracked_names(&repository).unwrap_or_default();
                name.is_some_and(|name| names.iter().any(|listed| Path::new(listed) == name))
            })
        })
    }

    /// A command prints what files contain, or did.
    pub(super) fn git_prints(&mut self, selected: &Selected) {
        for file in self.marked_files(selected, Marks::Secrets).unwrap_or_default() {
            self.touch(&Arg::literal(&file.to_string_lossy()), Usage::Read, Depth::One);
        }
    }

    fn tracked_names(&mut self, repository: &Repository) -> Option<Rc<Vec<String>>> {
        if self.index_changed {
            self.opaque("an earlier command has changed what `git` tracks; use two calls");
            return None;
        }
        let names = match self.tracked.get(&repository.top) {
            Some(names) => names.clone(),
            None => {
                let names = repository.tracked().map(Rc::new);
                self.tracked.insert(repository.top.clone(), names.clone());
                names
            }
        };
        if names.is_none() {
            self.opaque("an index of `git` that the guard cannot read, so it does not know which files are tracked");
        }
        names
    }
}

/// A path of a command in a folder, relative to the top of the repository, as `git` reads it.
fn below_top(top: &Path, folder: &Path, path: &str) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out.strip_prefix(top).ok().map(Path::to_path_buf)
}
