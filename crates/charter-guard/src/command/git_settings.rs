//! `git config` and `git remote`: what reads the settings of a repository, changes them, or talks
//! to the servers that they name.

use super::expand::Arg;
use super::git_options::{CONFIG, REMOTE, REMOTE_READ};
use super::options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;

impl Shell<'_> {
    /// Whether a `git config` certainly only reads; the file that it reads is noted.
    pub(super) fn git_reads_config(&mut self, args: &[Arg]) -> bool {
        let (named, rest) = match args.split_first().map(|(first, rest)| (first.exact(), rest)) {
            Some((Some("get" | "list"), rest)) => (true, rest),
            _ => (false, args),
        };
        let Ok((parsed, _)) = options::read("git config", rest, CONFIG, false) else { return false };
        // `git config get NAME VALUE` is a name and a value to older versions.
        let reads = named && parsed.positional.len() < 2 || parsed.has(&["l", "list", "get", "get-all", "get-regexp"]);
        if reads {
            self.touch_all(&parsed.values(&["f", "file"]), Usage::Read, Depth::One);
        }
        reads
    }

    /// A `git config` that does not only read, as far as is known.
    pub(super) fn git_writes_config(&mut self, args: &[Arg]) {
        self.git_uses_repository(true);
        self.touch(&Arg::literal(".git/config"), Usage::Write, Depth::One);
        let parsed = options::read("git config", args, CONFIG, false);
        if !parsed.is_ok_and(|(parsed, _)| parsed.has_only(&["local", "bool", "int", "path", "type"])) {
            self.opaque("settings of `git` in another file");
        }
    }

    /// `git remote`.
    pub(super) fn git_remotes(&mut self, args: &[Arg]) {
        self.git_uses_repository(false);
        let Some((_, command)) = self.leading_options("git remote", args, REMOTE) else {
            self.network(None);
            return;
        };
        let Some((command, args)) = command.split_first() else {
            self.does("read");
            self.description.does.read = true;
            return;
        };
        let names = args.iter().filter(|arg| !arg.text.starts_with('-')).count();
        match command.exact() {
            // With a second name, it is no command that is known.
            Some("get-url") if names > 1 => self.touch(&Arg::literal(".git/config"), Usage::Write, Depth::One),
            Some(command @ ("show" | "get-url" | "update" | "prune")) => {
                let names = self.options("git remote", args, REMOTE_READ).map(|parsed| parsed.positional);
                // Without a name, `show` lists them.
                let local =
                    names.as_ref().is_some_and(|names| command == "get-url" || command == "show" && names.is_empty());
                match local {
                    true => {
                        self.does("read");
                        self.description.does.read = true;
                    }
                    false => self.git_contacts(args),
                }
            }
            _ => {
                self.git_uses_repository(true);
                self.touch(&Arg::literal(".git/config"), Usage::Write, Depth::One);
                // `add -f` and `set-head -a` ask the server.
                if args.iter().any(|arg| arg.exact().is_none_or(|text| text.starts_with('-'))) {
                    self.network(None);
                }
            }
        }
    }
}
