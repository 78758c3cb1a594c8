//! Commands of `git` that change the working files. Those that they name can be looked at; what a
//! branch, a stash or a patch changes cannot, so such a command is opaque.

use std::path::PathBuf;

use super::expand::Arg;
use super::git_options::{CHECKOUT, CLEAN, RESET, RESTORE, SWITCH};
use super::git_paths::{Selected, is_plain};
use super::options::{Options, Parsed};
use super::shell::Shell;
use crate::data::Usage;
use crate::path::{Depth, Marks};
use crate::repository::Repository;

/// Where the new contents of named files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The index, whose names the guard reads.
    Index,
    /// A commit, whose names it does not.
    Commit,
}

impl Shell<'_> {
    /// A command that changes files which it does not name.
    pub(super) fn git_changes_tree(&mut self, command: &str) {
        self.git_writes();
        self.opaque(format!(
            "`git {command}` changes files that it does not name; name each file instead, such as `git restore -- src/a.rs`"
        ));
    }

    fn git_writes(&mut self) {
        self.git_uses_repository(true);
        self.links_after = true;
        self.does("write");
        self.description.does.write = true;
    }

    pub(super) fn git_checkout(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("git checkout", args, CHECKOUT) else {
            self.git_may_commit("checkout");
            return;
        };
        if parsed.has(&["b", "B", "orphan"]) {
            self.git_new_branch("checkout", &parsed, parsed.has(&["orphan"]) && !parsed.positional.is_empty());
            return;
        }
        if let Some(before) = parsed.before_dashes {
            let (revisions, specs) = parsed.positional.split_at(before);
            match (revisions, specs) {
                (_, []) => self.git_moves_head("checkout", &parsed),
                ([], specs) => self.git_restores("checkout", specs, Source::Index),
                (_, specs) => self.git_restores("checkout", specs, Source::Commit),
            }
            return;
        }
        match parsed.positional.as_slice() {
            [] if parsed.has(&["f", "force"]) => self.git_changes_tree("checkout"),
            [] => self.git_uses_repository(false),
            [first, ..] if self.is_path(first) => self.git_restores("checkout", &parsed.positional, Source::Index),
            [first, specs @ ..] if !specs.is_empty() => {
                if first.exact().is_none_or(|text| self.exists(text)) {
                    self.opaque(
                        "a word of `git checkout` that may be a path or a revision; put `--` in front of paths",
                    );
                }
                self.git_restores("checkout", specs, Source::Commit);
            }
            _ => self.git_moves_head("checkout", &parsed),
        }
    }

    pub(super) fn git_switch(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("git switch", args, SWITCH) else {
            self.git_may_commit("switch");
            return;
        };
        if parsed.has(&["c", "C", "create", "force-create", "orphan"]) {
            self.git_new_branch("switch", &parsed, parsed.has(&["orphan"]));
        } else {
            self.git_moves_head("switch", &parsed);
        }
    }

    /// A new branch: from here it changes nothing else.
    fn git_new_branch(&mut self, command: &str, parsed: &Parsed, changes: bool) {
        let force = parsed.has(&["f", "force", "discard-changes"]);
        let start = parsed.positional.first();
        let is_here = start.is_none_or(|start| matches!(start.exact(), Some("HEAD" | "@")));
        self.git_uses_repository(true);
        self.does("stage");
        if !is_here || force || changes || parsed.positional.len() > 1 {
            self.git_changes_tree(command);
        }
        self.git_takes(parsed.positional.iter());
        self.names_changed = true;
    }

    fn git_moves_head(&mut self, command: &str, parsed: &Parsed) {
        self.git_changes_tree(command);
        self.git_takes(parsed.positional.iter());
    }

    /// A branch or the head of the working files becomes these commits. Unless a branch or a tag
    /// has them already, that is like making a commit.
    pub(super) fn git_takes<'a>(&mut self, mut commits: impl Iterator<Item = &'a Arg>) {
        let known = commits.all(|commit| commit.exact().is_some_and(|name| name == "-" || self.is_known_commit(name)));
        if !known {
            self.git_makes_commit();
            self.description.commits_index = true;
        }
    }

    pub(super) fn git_restore(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("git restore", args, RESTORE) else {
            self.git_writes();
            return;
        };
        if parsed.has(&["S", "staged"]) && !parsed.has(&["W", "worktree"]) {
            self.git_uses_repository(true);
            self.does("stage");
            self.index_changed = true;
            return;
        }
        let source = if parsed.has(&["s", "source"]) { Source::Commit } else { Source::Index };
        self.git_restores("restore", &parsed.positional, source);
    }

    pub(super) fn git_reset(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("git reset", args, RESET) else {
            self.git_may_commit("reset");
            return;
        };
        if parsed.has(&["hard", "merge", "keep"]) {
            self.git_moves_head("reset", &parsed);
            return;
        }
        self.git_uses_repository(true);
        self.does("stage");
        // With paths, only what is staged changes.
        let named = match parsed.before_dashes {
            Some(before) => before < parsed.positional.len(),
            None => parsed.positional.len() > 1 || parsed.positional.first().is_some_and(|only| self.is_path(only)),
        };
        self.index_changed = true;
        if !named || parsed.has(&["soft"]) {
            self.git_takes(parsed.positional.iter());
        }
    }

    pub(super) fn git_stash(&mut self, args: &[Arg]) {
        match args.split_first().map(|(first, rest)| (first.exact(), rest)) {
            Some((Some("list"), [])) => self.git_uses_repository(false),
            Some((Some("show"), rest))
                if rest.iter().all(|arg| {
                    arg.exact().is_some_and(|text| {
                        !text.starts_with('-') || matches!(text, "--stat" | "--name-only" | "--name-status")
                    })
                }) =>
            {
                self.git_uses_repository(false);
            }
            Some((Some("show"), _)) => self.opaque("what a stash holds cannot be seen"),
            // It is a branch of a commit that nobody has reviewed.
            Some((Some("branch"), _)) => self.git_may_commit("stash branch"),
            Some((None, _)) => self.git_may_commit("stash"),
            _ => self.git_changes_tree("stash"),
        }
    }

    pub(super) fn git_clean(&mut self, args: &[Arg]) {
        self.git_uses_repository(true);
        let Some(parsed) = self.options("git clean", args, CLEAN) else {
            self.touch(&Arg::literal("."), Usage::Delete, Depth::All);
            return;
        };
        let usage = if parsed.has(&["n", "dry-run"]) { Usage::Search } else { Usage::Delete };
        match self.plain_paths(&parsed.positional) {
            Some(paths) if !paths.is_empty() => {
                for path in paths {
                    self.touch(&Arg::literal(&path), usage, Depth::All);
                }
            }
            _ => self.touch(&Arg::literal("."), usage, Depth::All),
        }
    }

    pub(super) fn git_rm(&mut self, args: &[Arg]) {
        let spec =
            Options { flags: "rfqn", valued: "", long: "cached force quiet dry-run ignore-unmatch", long_valued: "" };
        self.git_uses_repository(true);
        let Some(parsed) = self.options("git rm", args, spec) else { return };
        match self.plain_paths(&parsed.positional) {
            Some(paths) => {
                for path in paths {
                    self.touch(&Arg::literal(&path), Usage::Delete, Depth::All);
                }
            }
            None => self.git_pattern("rm"),
        }
    }

    pub(super) fn git_mv(&mut self, args: &[Arg]) {
        let spec = Options { flags: "fknv", valued: "", long: "force verbose dry-run", long_valued: "" };
        self.git_uses_repository(true);
        let Some(parsed) = self.options("git mv", args, spec) else { return };
        self.touch_all(&parsed.positional, Usage::Write, Depth::All);
        if let Some((target, sources)) = parsed.positional.split_last() {
            for source in sources {
                let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                self.touch(&Arg::literal(&format!("{}/{name}", target.text)), Usage::Write, Depth::All);
            }
            self.links_after = true;
        }
    }

    fn git_pattern(&mut self, command: &str) {
        self.git_writes();
        self.opaque(format!("a pattern or magic in a path of `git {command}`; name each file as it is"));
    }

    /// Named files get the contents that the index or a commit has.
    fn git_restores(&mut self, command: &str, specs: &[Arg], source: Source) {
        self.git_writes();
        let Some(paths) = self.plain_paths(specs).filter(|paths| !paths.is_empty()) else {
            self.git_pattern(command);
            return;
        };
        for path in paths {
            let is_file = self
                .state
                .folders
                .iter()
                .all(|folder| folder.join(&path).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()));
            self.touch(&Arg::literal(&path), Usage::Write, Depth::One);
            if is_file || self.is_tracked_file(&path) {
                continue;
            }
            if source == Source::Commit || self.holds_root(&path) {
                self.git_changes_tree(command);
                continue;
            }
            // A folder: what the index lists below it.
            let marked = self.marked_files(&Selected::Paths(vec![path]), Marks::Any);
            for file in marked.unwrap_or_default() {
                self.touch(&Arg::literal(&file.to_string_lossy()), Usage::Write, Depth::One);
            }
        }
    }

    /// Whether the workspace, or a folder around it, is what a path names.
    fn holds_root(&self, path: &str) -> bool {
        self.state.folders.iter().any(|folder| {
            crate::path::folder(self.workspace, folder, path).is_ok_and(|found| self.workspace.root.starts_with(found))
        })
    }

    /// Whether a word in front of `--` is certainly a path to `git`, whatever files there are when
    /// the command runs.
    fn is_path(&mut self, word: &Arg) -> bool {
        let Some(text) = word.exact() else { return true };
        if !is_plain(text) || matches!(text, "." | "..") || text.starts_with("./") || text.starts_with("../") {
            return true;
        }
        let folders = &self.state.folders;
        let names = |folder: &PathBuf| Repository::of(folder).is_none_or(|repository| repository.may_name(text));
        let may_name = self.names_changed || folders.iter().any(names);
        !may_name && (self.exists(text) || self.is_tracked_file(text))
    }
}
