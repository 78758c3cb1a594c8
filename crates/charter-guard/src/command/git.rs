//! `git`: what reads, what changes the working files, what commits, what talks to a server.

use std::path::PathBuf;

use super::expand::Arg;
use super::git_bare::{below_top, is_bare, is_top};
use super::git_options::{ADD, COMMIT, GLOBAL, LS_REMOTE, WHOLE_COMMIT};
use super::git_paths::Selected;
use super::git_show::SHOWING;
use super::options::Parsed;
use super::sequence::Place;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::{self, Depth};
use crate::repository::Repository;

/// Secrets that are described for one command; the others have the same effect.
const MAX_SECRETS: usize = 64;

impl Shell<'_> {
    pub(super) fn git(&mut self, args: &[Arg]) {
        self.git_calls = self.git_calls.saturating_add(1);
        let Some((global, rest)) = self.leading_options("git", args, GLOBAL) else {
            // Whatever follows these options; what only shows something can be permitted.
            if !args.iter().filter_map(Arg::exact).any(|word| SHOWING.contains(&word)) {
                self.git_makes_commit();
                self.description.commits_index = true;
            }
            return;
        };
        // `git --version add` does not add.
        if !global.has_only(&["C", "P", "no-pager", "no-optional-locks"]) {
            self.place = Place::default();
        }
        let outer = self.state.folders.clone();
        for folder in global.values(&["C"]) {
            self.git_folder(&folder);
        }
        if let Some((command, args)) = rest.split_first() {
            match command.exact().map(str::to_owned) {
                Some(command) => self.git_command(&command, args),
                None => {
                    self.git_makes_commit();
                    self.description.commits_index = true;
                    self.opaque("a command of `git` that is not known");
                }
            }
        }
        self.state.folders = outer;
    }

    fn git_folder(&mut self, folder: &Arg) {
        let Some(text) = folder.exact() else {
            self.opaque("a folder of `git -C` that is not known");
            return;
        };
        let mut folders = Vec::new();
        for cwd in self.state.folders.clone() {
            if !self.description.charge(path::cost(&cwd, text)) {
                return;
            }
            match path::folder(self.workspace, &cwd, text) {
                Ok(folder) => folders.push(folder),
                Err(reason) => self.opaque(format!("folder of `git -C`: {reason}")),
            }
        }
        if !folders.is_empty() {
            self.state.folders = folders;
        }
    }

    fn git_command(&mut self, command: &str, args: &[Arg]) {
        self.git_uses_repository(false);
        if SHOWING.contains(&command) {
            self.git_show(command, args);
            return;
        }
        // It may change the index between the two commands that make a commit.
        if self.concurrent > 0 && !matches!(command, "commit" | "push" | "ls-remote") {
            self.description.commits_index = true;
        }
        match command {
            "add" | "stage" => self.git_add(args),
            "commit" => self.git_commit(args),
            "push" => {
                self.does("push");
                self.description.does.push = true;
                self.git_push(args);
                self.git_pushes(args);
            }
            "ls-remote" => {
                self.options("git ls-remote", args, LS_REMOTE);
                self.git_contacts(args);
            }
            "fetch" => self.git_fetch(args),
            "clone" => {
                self.git_contacts(args);
                self.git_changes_tree("clone");
            }
            "pull" | "merge" | "revert" | "cherry-pick" | "am" | "rebase" => {
                if command == "pull" {
                    self.git_contacts(args);
                }
                self.git_makes_commit();
                self.description.commits_index = true;
                self.git_changes_tree(command);
            }
            "checkout" => self.git_checkout(args),
            "switch" => self.git_switch(args),
            "restore" => self.git_restore(args),
            "reset" => self.git_reset(args),
            "stash" => self.git_stash(args),
            "apply" => self.git_changes_tree("apply"),
            "clean" => self.git_clean(args),
            "rm" => self.git_rm(args),
            "mv" => self.git_mv(args),
            "branch" | "tag" => self.git_names(command, args),
            "remote" | "config" | "notes" | "reflog" | "worktree" => self.git_settings(command, args),
            _ => self.git_other(command, args),
        }
    }

    /// Every command works on the repository of its folder, which may be outside.
    pub(super) fn git_uses_repository(&mut self, changes: bool) {
        for folder in self.state.folders.clone() {
            if !folder.starts_with(&self.workspace.root) {
                let usage = if changes { Usage::Write } else { Usage::Read };
                self.touch(&Arg::literal(&folder.to_string_lossy()), usage, Depth::One);
            }
            if self.links_changed && !is_top(&folder) {
                self.opaque("an earlier command may have changed which repository `git` finds here");
            }
            if below_top(&self.workspace.root, &folder).any(is_bare) {
                self.opaque("a folder that `git` takes for a repository, with settings of its own");
            }
            if !self.git_folders.contains(&folder) {
                self.git_folders.push(folder);
            }
        }
    }

    fn git_add(&mut self, args: &[Arg]) {
        self.does("stage");
        self.git_uses_repository(true);
        let Some(parsed) = self.options("git add", args, ADD) else { return };
        if self.adds_everything(&parsed) {
            self.all_added = Some(self.git_calls);
        }
        let force = parsed.has(&["f", "force"]);
        // Also what is ignored, so also secrets that are kept out of version control.
        let depth = if force { Depth::All } else { Depth::Tracked };
        // What is tracked is there already, and a command that prints it is seen.
        let nothing = parsed.positional.is_empty() && !parsed.has(&["A", "all"]);
        if nothing || parsed.has(&["u", "update"]) {
            return;
        }
        let paths = match self.selected(&parsed.positional) {
            Selected::Paths(paths) => paths,
            Selected::AllBut(_) => self.tops(),
        };
        for path in paths {
            self.touch(&Arg::literal(&path), Usage::Read, Depth::One);
            self.git_adds_secrets(&path, depth);
        }
    }

    /// Whether the index is certainly what the working files are after this `git add`.
    fn adds_everything(&self, parsed: &Parsed) -> bool {
        let root = &self.workspace.root;
        // Without a path it adds the whole repository, which may begin above the workspace.
        let is_all = |arg: &Arg| match arg.exact() {
            Some(":/") => true,
            Some(".") => Repository::of(root).is_some_and(|repository| repository.top == *root),
            _ => false,
        };
        self.place.leads
            && self.state.folders.iter().all(|folder| folder == root)
            && parsed.has_only(&["A", "all", "v", "verbose"])
            && parsed.positional.iter().all(is_all)
            && (parsed.has(&["A", "all"]) || !parsed.positional.is_empty())
    }

    /// The folders of the working files of each repository that the command may work on.
    fn tops(&self) -> Vec<String> {
        let top = |folder: &PathBuf| Repository::of(folder).map_or_else(|| folder.clone(), |repository| repository.top);
        self.state.folders.iter().map(|folder| top(folder).to_string_lossy().into_owned()).collect()
    }

    /// The secrets below a path that the index does not list yet.
    fn git_adds_secrets(&mut self, path: &str, depth: Depth) {
        for folder in self.state.folders.clone() {
            let Some(found) = path::secrets_below(self.description, self.workspace, &folder, path, depth) else {
                self.opaque("files of `git add` that are not certain");
                return;
            };
            for file in found.iter().map(|file| file.to_string_lossy()).take(MAX_SECRETS) {
                if !self.is_tracked_file(&file) {
                    self.touch(&Arg::literal(&file), Usage::Read, Depth::One);
                }
            }
        }
    }

    pub(super) fn git_makes_commit(&mut self) {
        self.does("commit");
        self.description.does.commit = true;
    }

    fn git_commit(&mut self, args: &[Arg]) {
        self.git_makes_commit();
        self.git_uses_repository(true);
        let Some(parsed) = self.options("git commit", args, COMMIT) else { return };
        self.touch_all(&parsed.values(&["F", "file", "t", "template"]), Usage::Read, Depth::One);
        let message = parsed.has(&["m", "message", "F", "file", "no-edit", "C", "reuse-message", "dry-run"]);
        if !message || parsed.has(&["e", "c", "fixup", "t", "template"]) && !parsed.has(&["no-edit"]) {
            self.opaque("`git commit` that starts an editor; pass the message with `-m`");
        }
        // With paths, the other changes stay out of the commit; with `-a` alone, new files do.
        let whole = parsed.positional.is_empty()
            && parsed.has_only(WHOLE_COMMIT)
            && self.place.follows
            && self.all_added.is_some_and(|before| before.checked_add(1) == Some(self.git_calls))
            && self.state.folders.iter().all(|folder| *folder == self.workspace.root);
        self.description.commits_index |= !whole;
        self.touch_all(&parsed.positional, Usage::Read, Depth::Tracked);
        if parsed.has(&["v", "verbose"]) && parsed.has(&["dry-run", "short", "porcelain"]) {
            self.git_prints(&Selected::AllBut(Vec::new()));
        }
    }
}
