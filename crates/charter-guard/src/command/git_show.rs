//! Commands of `git` that only show something: whose contents they print.

use super::expand::Arg;
use super::git_paths::{Selected, is_plain};
use super::options::Parsed;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;
use crate::repository::Repository;

/// Commands that only show something.
pub(super) const SHOWING: &[&str] = &[
    "status",
    "log",
    "show",
    "diff",
    "rev-parse",
    "describe",
    "blame",
    "annotate",
    "shortlog",
    "ls-files",
    "ls-tree",
    "rev-list",
    "merge-base",
    "name-rev",
    "grep",
    "count-objects",
    "check-ignore",
    "for-each-ref",
    "show-ref",
    "whatchanged",
    "cherry",
    "cat-file",
    "diff-tree",
    "diff-index",
    "diff-files",
    "version",
    "help",
    "range-diff",
    "check-attr",
    "var",
];

/// Options with which the lines of files are printed.
const PATCHES: &[&str] = &[
    "p",
    "u",
    "patch",
    "U",
    "unified",
    "W",
    "function-context",
    "c",
    "cc",
    "L",
    "word-diff",
    "word-diff-regex",
    "color-words",
    "binary",
    "check",
];
/// Options with which only names and numbers are.
const SUMMARIES: &[&str] = &[
    "stat",
    "shortstat",
    "numstat",
    "name-only",
    "name-status",
    "quiet",
    "raw",
    "summary",
    "dirstat",
    "no-patch",
    "s",
];

impl Shell<'_> {
    pub(super) fn git_show(&mut self, command: &str, args: &[Arg]) {
        self.does("read");
        self.description.does.read = true;
        self.git_uses_repository(false);
        let Some(parsed) = self.options(&format!("git {command}"), args, super::git_show_options::of(command)) else {
            return;
        };
        let (revisions, specs) = self.revisions_and_paths(&parsed);
        let untracked = parsed.has(&["no-index", "untracked"]) || !self.in_repository();
        let outside = |spec: &Arg| spec.text.starts_with(['/', '~']) || spec.text.split('/').any(|part| part == "..");
        // Outside of a repository, `git diff` compares whole folders.
        let depth = if untracked || specs.iter().any(outside) { Depth::All } else { Depth::One };
        for spec in specs.iter().filter(|spec| !spec.text.starts_with(':')) {
            self.touch(spec, Usage::Read, depth);
        }
        if command == "grep" && untracked {
            self.touch(&Arg::literal("."), Usage::Read, Depth::All);
        }
        // `main:path` and `:path` name a file of a commit.
        let files: Option<Vec<&str>> = revisions.iter().map(|revision| file_of_commit(revision.exact()?)).collect();
        for (revision, path) in revisions.iter().filter_map(|arg| Some((arg, arg.exact()?.rsplit_once(':')?.1))) {
            if revision.text.contains(':') && !path.is_empty() {
                self.touch(&Arg::literal(path), Usage::Read, Depth::One);
            }
        }
        if !prints(command, &parsed) {
            return;
        }
        let only_names = parsed.has(SUMMARIES) && !parsed.has(PATCHES);
        let selected = match files {
            _ if only_names && self.names_only(command, &parsed) => return,
            Some(files) if !files.is_empty() && specs.is_empty() && matches!(command, "show" | "diff" | "cat-file") => {
                Selected::Paths(files.into_iter().map(str::to_owned).collect())
            }
            _ if self.is_limited(command, &parsed) => self.selected(&specs),
            _ => Selected::AllBut(Vec::new()),
        };
        self.git_prints(&selected);
    }

    /// Whether a command that prints names and numbers prints nothing else: `show` prints whatever
    /// an id is of, and that may be a file.
    fn names_only(&self, command: &str, parsed: &Parsed) -> bool {
        let revisions = parsed.positional.get(..parsed.before_dashes.unwrap_or(parsed.positional.len()));
        match command {
            "diff" | "whatchanged" => true,
            "show" => revisions.unwrap_or_default().iter().all(|revision| self.is_known_revision(revision)),
            _ => false,
        }
    }

    /// Whether a command certainly prints nothing but the paths behind its `--`: in front of it, a
    /// word may be a path now and a revision when the command runs.
    fn is_limited(&self, command: &str, parsed: &Parsed) -> bool {
        let Some(before) = parsed.before_dashes else {
            return matches!(command, "blame" | "annotate") && parsed.positional.len() == 1;
        };
        let revisions = parsed.positional.get(..before).unwrap_or_default();
        match command {
            "log" | "whatchanged" | "blame" | "annotate" => true,
            "grep" => !parsed.has(&["e"]) && before == 1,
            // The id of a file prints it, whatever the paths are.
            "diff" | "show" => revisions.iter().all(|revision| self.is_known_revision(revision)),
            _ => false,
        }
    }

    /// Tells revisions and paths apart: in front of `--` a path is one that exists.
    fn revisions_and_paths(&mut self, parsed: &Parsed) -> (Vec<Arg>, Vec<Arg>) {
        if let Some(before) = parsed.before_dashes {
            let (revisions, specs) = parsed.positional.split_at(before);
            return (revisions.to_vec(), specs.to_vec());
        }
        let is_path = |arg: &Arg| {
            arg.exact()
                .is_none_or(|text| text.starts_with(['/', '.', '~']) || parsed.has(&["no-index"]) || self.exists(text))
        };
        let (specs, revisions) = parsed.positional.iter().cloned().partition(is_path);
        (revisions, specs)
    }

    /// Whether a revision is certainly that of a commit, or of a range of them.
    fn is_known_revision(&self, revision: &Arg) -> bool {
        let Some(text) = revision.exact() else { return false };
        let text = text.trim_start_matches('^').replace("...", "..");
        text.split("..").all(|name| name.is_empty() || self.is_known_commit(name))
    }

    fn in_repository(&self) -> bool {
        self.state.folders.iter().all(|folder| Repository::of(folder).is_some())
    }

    pub(super) fn exists(&self, text: &str) -> bool {
        self.state.folders.iter().any(|folder| folder.join(text).symlink_metadata().is_ok())
    }
}

/// Whether a command prints the lines of files.
fn prints(command: &str, parsed: &Parsed) -> bool {
    match command {
        "diff" | "show" | "range-diff" | "blame" | "annotate" | "grep" | "whatchanged" => true,
        "cat-file" => !parsed.has(&["t", "s", "e"]),
        "status" => parsed.has(&["v", "verbose"]),
        "log" | "diff-tree" | "diff-index" | "diff-files" => parsed.has(PATCHES),
        _ => false,
    }
}

/// The path in `REVISION:PATH`, if it is certain what that is.
fn file_of_commit(text: &str) -> Option<&str> {
    let (revision, path) = text.rsplit_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/~^-".contains(c);
    let stage = revision.strip_prefix(':').unwrap_or(revision);
    (stage.chars().all(plain) && is_plain(path) && !path.starts_with('/')).then_some(path)
}
