//! `git`: what reads, what changes the working files, what commits, what talks to a server.

use std::path::Path;

use super::expand::Arg;
use super::git_options::{ADD, COMMIT, GLOBAL, SHOW};
use super::options::Options;
use super::shell::Shell;
use crate::data::{MAX_COMMANDS, Usage};
use crate::path::{self, Depth};

/// Commands that only show something.
const SHOWING: &[&str] = &[
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

impl Shell<'_> {
    pub(super) fn git(&mut self, args: &[Arg]) {
        let Some((global, rest)) = self.leading_options("git", args, GLOBAL) else { return };
        let outer = self.state.folders.clone();
        for folder in global.values(&["C"]) {
            self.git_folder(&folder);
        }
        if let Some((command, args)) = rest.split_first() {
            match command.exact().map(str::to_owned) {
                Some(command) => self.git_command(&command, args),
                None => self.opaque("a command of `git` that is not known"),
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
        if SHOWING.contains(&command) {
            self.git_show(command, args);
            return;
        }
        match command {
            "add" | "stage" => self.git_add(args),
            "commit" => self.git_commit(args),
            "push" => {
                self.does("push");
                self.description.does.push = true;
                self.git_push(args);
                self.git_remote(args);
            }
            "fetch" | "ls-remote" => self.git_remote(args),
            "pull" => {
                self.git_remote(args);
                self.git_makes_commit();
                self.description.commits_index = true;
                self.git_changes_files(args);
            }
            "clone" => {
                self.git_remote(args);
                self.git_changes_files(args);
                self.opaque("a copy of another repository");
            }
            "merge" | "revert" | "cherry-pick" | "am" | "rebase" => {
                self.git_makes_commit();
                self.description.commits_index = true;
                self.git_changes_files(args);
                let safe = args.iter().all(|arg| {
                    arg.exact().is_some_and(|text| {
                        !text.starts_with('-')
                            || matches!(text, "--abort" | "--no-edit" | "--ff-only" | "--no-ff" | "--quit")
                    })
                });
                if !safe {
                    self.opaque(format!("options of `git {command}`"));
                }
            }
            "checkout" | "switch" | "restore" | "reset" | "stash" | "apply" => {
                self.git_changes_files(args);
                if args
                    .iter()
                    .any(|arg| !arg.known || arg.text.starts_with("--directory") || arg.text.starts_with("--unsafe"))
                {
                    self.opaque(format!("options of `git {command}`"));
                }
                // The patch is a file or standard input; its paths are not looked at.
                if command == "apply" {
                    self.opaque("a patch of `git apply`");
                }
            }
            "clean" => {
                self.touch(&Arg::literal("."), Usage::Delete, Depth::All);
                if args.iter().any(|arg| !arg.known) {
                    self.opaque("an argument of `git clean` that is not known");
                }
            }
            "rm" => self.git_files("rm", args, "rfqn", "cached force quiet dry-run ignore-unmatch", Usage::Delete),
            "mv" => self.git_files("mv", args, "fknv", "force verbose dry-run", Usage::Write),
            "branch" | "tag" | "remote" | "config" | "notes" | "reflog" | "worktree" => {
                self.git_settings(command, args)
            }
            _ => {
                let name: String = command.chars().take(40).collect();
                self.opaque(format!("`git {name}` is not known to the guard"));
            }
        }
    }

    /// Notes a push as it is called: a permit is for exactly that.
    fn git_push(&mut self, args: &[Arg]) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:/+=^~%,".contains(c);
        let word = |text: &str| match !text.is_empty() && text.chars().all(plain) {
            true => text.to_owned(),
            false => format!("'{}'", text.replace('\'', "'\\''")),
        };
        let known: Option<Vec<String>> = args.iter().map(|arg| arg.exact().map(word)).collect();
        let call = match self.state.folders.as_slice() {
            [folder] if *folder == self.workspace.root => Some("git push".to_owned()),
            [folder] => Some(format!("git -C {} push", word(&folder.to_string_lossy()))),
            _ => None,
        };
        let text = call.zip(known).map(|(call, words)| [vec![call], words].concat().join(" "));
        if self.description.pushes.len() < MAX_COMMANDS {
            self.description.pushes.push(text);
        } else {
            self.description.opaque("too many pushes");
        }
    }

    /// Every command works on the repository of its folder, which may be outside.
    fn git_uses_repository(&mut self, changes: bool) {
        for folder in self.state.folders.clone() {
            if !folder.starts_with(&self.workspace.root) {
                let usage = if changes { Usage::Write } else { Usage::Read };
                self.touch(&Arg::literal(&folder.to_string_lossy()), usage, Depth::One);
            }
            // A folder that looks like a repository is one to `git`, which runs what its settings
            // name.
            let is_repository =
                |folder: &Path| ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
            let inside = folder.ancestors().take_while(|folder| *folder != self.workspace.root);
            if inside.take(64).any(is_repository) {
                self.opaque("a folder that `git` takes for a repository, with settings of its own");
            }
        }
    }

    fn git_show(&mut self, command: &str, args: &[Arg]) {
        self.does("read");
        self.description.does.read = true;
        self.git_uses_repository(false);
        let Some(parsed) = self.options("git", args, SHOW) else { return };
        // `-O` of `grep` starts a program; of the others it reads a file. It is not in the list.
        if command == "grep" && parsed.has(&["f", "open-files-in-pager"]) {
            self.opaque("`git grep` with a file or a program");
        }
        if command == "grep" {
            // Without a path it searches everything: only tracked files, or all of them.
            let depth = if parsed.has(&["no-index", "untracked"]) { Depth::All } else { Depth::Tracked };
            self.touch(&Arg::literal("."), Usage::Read, depth);
        }
        for arg in &parsed.positional {
            let Some(text) = arg.exact() else {
                self.touch(arg, Usage::Read, Depth::Tracked);
                continue;
            };
            // `main:path` and `:path` name a file of a commit, which may be a secret as well.
            let text = text.rsplit_once(':').map_or(text, |(_, path)| path);
            let exists = !text.is_empty()
                && (text.starts_with(['/', '.', '~'])
                    || parsed.has(&["no-index"])
                    || text != arg.text
                    || self.exists(text));
            if exists {
                self.touch(&Arg::literal(text), Usage::Read, Depth::Tracked);
            }
        }
    }

    fn exists(&self, text: &str) -> bool {
        self.state.folders.iter().any(|folder| folder.join(text).symlink_metadata().is_ok())
    }

    fn git_add(&mut self, args: &[Arg]) {
        self.does("stage");
        self.git_uses_repository(true);
        let Some(parsed) = self.options("git add", args, ADD) else { return };
        let in_root = self.state.folders.iter().all(|folder| *folder == self.workspace.root);
        let everything = parsed.positional.iter().all(|arg| matches!(arg.exact(), Some("." | ":/")));
        if !parsed.has(&["n", "dry-run", "N", "intent-to-add", "u", "update"])
            && everything
            && in_root
            && (parsed.has(&["A", "all"]) || !parsed.positional.is_empty())
        {
            self.all_added = true;
        }
        if parsed.has(&["f", "force"]) {
            // Also what is ignored, so also secrets that are kept out of version control.
            self.touch_all(&parsed.positional, Usage::Read, Depth::All);
        } else {
            self.touch_all(&parsed.positional, Usage::Read, Depth::Tracked);
        }
    }

    fn git_makes_commit(&mut self) {
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
        let whole = parsed.positional.is_empty() && self.all_added;
        self.description.commits_index |= !whole;
        self.touch_all(&parsed.positional, Usage::Read, Depth::Tracked);
    }

    fn git_remote(&mut self, args: &[Arg]) {
        self.git_uses_repository(true);
        for arg in args {
            match arg.exact() {
                Some(text)
                    if text.contains("::")
                        || text.contains("-pack")
                        || text.starts_with("--exec")
                        || text.starts_with("-c") =>
                {
                    self.opaque("a program that `git` would start");
                }
                Some(_) => {}
                None => self.opaque("an argument of `git` that is not known"),
            }
        }
        let host = args.iter().filter_map(Arg::exact).find_map(super::network::host);
        self.network(host.as_deref());
    }

    /// A command that replaces working files: those that it names, or any.
    fn git_changes_files(&mut self, args: &[Arg]) {
        self.git_uses_repository(true);
        self.links_after = true;
        let named: Vec<&Arg> = match args.iter().position(|arg| arg.text == "--") {
            Some(at) => args.iter().skip(at.saturating_add(1)).collect(),
            None => Vec::new(),
        };
        if named.is_empty() {
            self.does("write");
            self.description.does.write = true;
        }
        for arg in named {
            self.touch(arg, Usage::Write, Depth::One);
        }
    }

    fn git_files(&mut self, command: &str, args: &[Arg], flags: &'static str, long: &'static str, usage: Usage) {
        self.git_uses_repository(true);
        let spec = Options { flags, valued: "", long, long_valued: "" };
        let Some(parsed) = self.options(&format!("git {command}"), args, spec) else { return };
        self.touch_all(&parsed.positional, usage, Depth::All);
        if command == "mv"
            && let Some((target, sources)) = parsed.positional.split_last()
        {
            for source in sources {
                let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                self.touch(&Arg::literal(&format!("{}/{name}", target.text)), usage, Depth::All);
            }
            self.links_after = true;
        }
    }

    /// Commands that list settings without arguments and change them with some.
    fn git_settings(&mut self, command: &str, args: &[Arg]) {
        let reads = |text: &str| {
            matches!(
                text,
                "-v" | "-vv"
                    | "-a"
                    | "-r"
                    | "-l"
                    | "--list"
                    | "--all"
                    | "--get"
                    | "--get-all"
                    | "get"
                    | "list"
                    | "show"
                    | "-n"
                    | "--show-current"
                    | "--verbose"
                    | "--get-regexp"
                    | "get-url"
                    | "--local"
                    | "--global"
                    | "--remotes"
            )
        };
        let first = args.first().and_then(Arg::exact);
        let listing = match command {
            "config" => {
                first.is_some_and(reads)
                    && !args.iter().any(|arg| arg.exact().is_none_or(|text| text.starts_with("--") && !reads(text)))
                    && args.iter().any(|arg| {
                        matches!(
                            arg.exact(),
                            Some("--get" | "--get-all" | "--get-regexp" | "get" | "list" | "-l" | "--list")
                        )
                    })
            }
            "remote" | "reflog" | "worktree" | "notes" => {
                args.is_empty()
                    || matches!(first, Some("-v" | "--verbose" | "show" | "list" | "get-url")) && args.len() <= 2
            }
            _ => args.iter().all(|arg| arg.exact().is_some_and(reads)),
        };
        self.git_uses_repository(!listing);
        if listing {
            self.does("read");
            self.description.does.read = true;
            if command == "remote" && first == Some("show") {
                self.network(None);
            }
            return;
        }
        match command {
            // A branch or a tag by name is no more than a name for a commit.
            "branch" | "tag" if args.iter().all(|arg| arg.exact().is_some_and(|text| !text.starts_with('-'))) => {
                self.does("stage");
            }
            "branch" | "tag" => self.opaque(format!("options of `git {command}`")),
            "config" | "remote" => {
                self.touch(&Arg::literal(".git/config"), Usage::Write, Depth::One);
                if args.iter().any(|arg| matches!(arg.exact(), None | Some("--global" | "--system" | "-f" | "--file")))
                {
                    self.opaque("settings of `git` in another file");
                }
            }
            _ => self.opaque(format!("`git {command}` with arguments")),
        }
    }
}
