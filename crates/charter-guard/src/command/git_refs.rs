//! Branches, tags and other names of commits. Who gives a branch a commit that none has yet commits
//! it, however the command is called.

use super::expand::Arg;
use super::git_options::{PUSH, TAG};
use super::shell::Shell;
use crate::data::MAX_COMMANDS;
use crate::repository::Repository;

/// Commands that the guard does not follow, and that give no branch a commit.
const UNFOLLOWED: &[&str] = &[
    "archive",
    "bugreport",
    "bundle",
    "checkout-index",
    "diagnose",
    "difftool",
    "format-patch",
    "fsck",
    "gc",
    "hash-object",
    "init",
    "lfs",
    "maintenance",
    "mergetool",
    "prune",
    "repack",
    "sparse-checkout",
    "submodule",
    "update-index",
    "verify-commit",
    "verify-tag",
];

/// Options of `git branch` and `git tag` that create nothing, and those that make them only list.
const LISTING: &[&str] = &[
    "-a",
    "-r",
    "-v",
    "-vv",
    "-l",
    "-n",
    "-i",
    "--all",
    "--color",
    "--column",
    "--contains",
    "--format",
    "--list",
    "--merged",
    "--no-color",
    "--no-column",
    "--no-contains",
    "--no-merged",
    "--points-at",
    "--remotes",
    "--show-current",
    "--sort",
    "--verbose",
];
const LISTS: &[&str] =
    &["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--show-current"];

/// Options of both with which no branch gets a commit that none has.
const NO_START: &[&str] = &[
    "-c",
    "-C",
    "-d",
    "-D",
    "-m",
    "-M",
    "-q",
    "-r",
    "-u",
    "--copy",
    "--delete",
    "--edit-description",
    "--move",
    "--quiet",
    "--set-upstream-to",
    "--unset-upstream",
];

impl Shell<'_> {
    /// A command that may give a branch any commit, and whose files and arguments are not followed.
    pub(super) fn git_may_commit(&mut self, command: &str) {
        let name: String = command.chars().take(40).collect();
        self.git_makes_commit();
        self.description.commits_index = true;
        self.git_uses_repository(true);
        self.opaque(format!("`git {name}` with these arguments may make a commit, and is not known to the guard"));
    }

    /// Commands that are not on any list.
    pub(super) fn git_other(&mut self, command: &str, args: &[Arg]) {
        let reads_head = |arg: &Arg| matches!(arg.exact(), Some("HEAD" | "--short" | "-q" | "--quiet"));
        if command == "symbolic-ref" && args.iter().all(reads_head) {
            let names = args.iter().filter(|arg| arg.exact() == Some("HEAD")).count();
            if names == 1 {
                self.git_uses_repository(false);
                self.does("read");
                return;
            }
        }
        if UNFOLLOWED.contains(&command) {
            self.git_uses_repository(true);
            self.opaque(format!("`git {command}` is not known to the guard"));
        } else {
            self.git_may_commit(command);
        }
    }

    /// Whether a name is certainly that of a commit that a branch or a tag has.
    pub(super) fn is_known_commit(&self, name: &str) -> bool {
        let base = name.find(['~', '^']).map_or(name, |at| name.get(..at).unwrap_or_default());
        let steps = name.get(base.len()..).unwrap_or_default();
        if !steps.chars().all(|c| matches!(c, '~' | '^') || c.is_ascii_digit()) {
            return false;
        }
        matches!(base, "HEAD" | "@")
            || self
                .state
                .folders
                .iter()
                .all(|folder| Repository::of(folder).is_some_and(|repository| repository.is_named(base)))
    }

    /// `git branch` and `git tag`.
    pub(super) fn git_names(&mut self, command: &str, args: &[Arg]) {
        let words: Option<Vec<&str>> = args.iter().map(Arg::exact).collect();
        let Some(words) = words else {
            self.git_may_commit(command);
            return;
        };
        let (options, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        let option = |option: &&str| option.split_once('=').map_or(*option, |(name, _)| name).to_owned();
        let only_lists = options.iter().all(|given| LISTING.contains(&option(given).as_str()));
        let lists = options
            .iter()
            .any(|given| LISTS.contains(&option(given).as_str()) || command == "tag" && matches!(*given, "-l" | "-n"));
        self.git_uses_repository(!only_lists || !names.is_empty());
        if only_lists && (names.is_empty() || lists) {
            self.does("read");
            self.description.does.read = true;
            return;
        }
        // A branch or a tag by name is no more than a name for a commit.
        self.does("stage");
        self.names_changed = true;
        if options.is_empty() {
            self.git_takes(args.iter().skip(1));
            return;
        }
        self.opaque(format!("options of `git {command}`"));
        if command == "branch" && options.iter().all(|given| NO_START.contains(&option(given).as_str()))
            || command == "tag" && options.iter().all(|given| matches!(*given, "-d" | "--delete"))
        {
            return;
        }
        match command {
            "tag" => match self.options("git tag", args, TAG) {
                Some(parsed) => self.git_takes(parsed.positional.iter().skip(1)),
                None => self.git_may_commit(command),
            },
            _ => self.git_may_commit(command),
        }
    }

    /// Commands that list settings without arguments and change them with some.
    pub(super) fn git_settings(&mut self, command: &str, args: &[Arg]) {
        let first = args.first().and_then(Arg::exact);
        let listing = match command {
            "config" => names_one_setting(args) || self.git_reads_config(args),
            "remote" => {
                self.git_remotes(args);
                return;
            }
            _ => {
                let plain = |arg: &Arg| arg.exact().is_some_and(|text| !text.starts_with('-'));
                args.is_empty()
                    || matches!(first, Some("show" | "list")) && args.len() <= 2 && args.iter().skip(1).all(plain)
            }
        };
        if listing {
            self.git_uses_repository(false);
            self.does("read");
            self.description.does.read = true;
            return;
        }
        match command {
            "config" => self.git_writes_config(args),
            _ => self.git_may_commit(command),
        }
    }

    /// Notes a push as it is called: a permit is for exactly that.
    pub(super) fn git_push(&mut self, args: &[Arg]) {
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
        // A push to a folder changes its branches: those of this repository, if it is this one.
        let here = |text: &str| text.starts_with(['.', '/', '~']) || text.starts_with("file:");
        let parsed = self.options("git push", args, PUSH);
        let first = parsed.as_ref().and_then(|parsed| parsed.positional.first());
        let folder = first.and_then(Arg::exact).is_some_and(|text| self.exists(text));
        let elsewhere = parsed.as_ref().is_none_or(|parsed| parsed.has(&["repo"]));
        if folder || elsewhere || args.iter().any(|arg| arg.exact().is_some_and(here)) {
            self.git_makes_commit();
            self.description.commits_index = true;
        }
    }
}

/// Whether `git config` has only the name of a setting: then it prints it. Older versions know no
/// commands, and take a lone word for such a name.
fn names_one_setting(args: &[Arg]) -> bool {
    const PLACES: [&str; 8] =
        ["--local", "--global", "--system", "--worktree", "--show-origin", "--show-scope", "--name-only", "--includes"];
    let words: Option<Vec<&str>> = args.iter().map(Arg::exact).collect();
    let names: Vec<&str> = words.into_iter().flatten().filter(|word| !PLACES.contains(word)).collect();
    matches!(names.as_slice(), [name] if name.contains('.') && !name.starts_with('-'))
}
