//! Commands of `git` that talk to other machines.

use super::expand::Arg;
use super::git_options::FETCHING;
use super::network::host;
use super::shell::Shell;

/// Options behind which no machine is named; others may have a value, or name one themselves.
const PLAIN: &[&str] = &[
    "--bare",
    "--ff-only",
    "--force",
    "--heads",
    "--mirror",
    "--no-progress",
    "--no-rebase",
    "--progress",
    "--rebase",
    "--refs",
    "--single-branch",
    "-f",
];

impl Shell<'_> {
    pub(super) fn git_fetch(&mut self, args: &[Arg]) {
        self.git_contacts(args);
        let is_option = |arg: &&Arg| arg.text.starts_with('-');
        let options = args.iter().filter(is_option).all(|arg| arg.exact().is_some_and(|text| FETCHING.contains(&text)));
        // `FROM:TO` and `+FROM` write references of this repository.
        let plain = |arg: &Arg| arg.exact().is_some_and(|text| !text.contains(':') && !text.starts_with('+'));
        if !options || !args.iter().filter(|arg| !is_option(arg)).skip(1).all(plain) {
            self.git_may_commit("fetch");
        }
    }

    /// A command that talks to a repository elsewhere, and is no push.
    pub(super) fn git_contacts(&mut self, args: &[Arg]) {
        for host in self.git_remote(args) {
            self.network(host.as_deref());
        }
    }

    /// A push, which says itself where it goes: a permit is for exactly that.
    pub(super) fn git_pushes(&mut self, args: &[Arg]) {
        for host in self.git_remote(args) {
            self.pushes_to(host.as_deref());
        }
    }

    /// The machines of a command, each nothing if it is not known.
    fn git_remote(&mut self, args: &[Arg]) -> Vec<Option<String>> {
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
        let words: Vec<&str> = args.iter().map(|arg| arg.exact().unwrap_or("-")).collect();
        let mut hosts: Vec<_> = words.iter().filter(|word| word.contains("://")).map(|word| host(word)).collect();
        let mut rest = words.iter();
        let mut repository = None;
        let mut certain = true;
        while let Some(word) = rest.next() {
            match *word {
                "--depth" => _ = rest.next(),
                option if option.starts_with('-') => certain &= PLAIN.contains(&option) || FETCHING.contains(&option),
                name => repository = repository.or(Some(name)),
            }
        }
        if !certain || repository.and_then(host).is_none() {
            hosts.push(None);
        }
        hosts
    }
}
