//! Follows a simple command: its variables, its redirections, and the program that it names.

use super::environment;
use super::expand::Arg;
use super::shell::{Shell, Value};
use super::syntax::{Assignment, Operator, Piece, Redirection, Word};
use super::{builtins, network, readers, writers};
use crate::data::Usage;
use crate::path::Depth;

/// Folders whose programs are those that the models are about.
const SYSTEM_FOLDERS: &[&str] =
    &["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];

/// Programs that run code from a file, an argument or standard input.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "osascript",
    "Rscript",
    "java",
    "groovy",
    "scala",
    "swift",
    "guile",
    "racket",
    "ghci",
    "irb",
    "ipython",
    "tsx",
    "ts-node",
    "expect",
    "gdb",
    "vi",
    "vim",
    "nvim",
    "ed",
    "ex",
    "emacs",
    "nano",
    "pwsh",
    "powershell",
    "cmd",
    "fish",
    "csh",
    "tcsh",
    "elvish",
    "nu",
    "xonsh",
    "make",
    "gmake",
    "just",
    "task",
    "cmake",
    "ninja",
    "m4",
    "bc",
];

/// Programs that only print their version if `--version` is their one argument. Others read a
/// script (`tclsh`), a file of the folder (`yarn`, `source` of zsh), standard input (`nslookup`),
/// or ask a server.
const VERSIONED: &[&str] = &[
    "bash", "zsh", "python", "python2", "python3", "node", "deno", "perl", "ruby", "php", "java", "make", "gmake",
    "cmake", "ninja", "just", "sed", "gsed", "awk", "gawk", "grep", "egrep", "fgrep", "rg", "jq", "curl", "wget",
    "rsync", "tree", "diff", "ls", "cat", "sort", "head", "tail", "docker", "podman", "npm", "npx", "pip", "pip3",
    "uv",
];

/// Whether the guard has a model of a program, or knows what kind of program it is.
pub(super) fn is_known_program(name: &str) -> bool {
    builtins::knows(name)
        || readers::knows(name)
        || writers::knows(name)
        || network::knows(name)
        || INTERPRETERS.contains(&name)
        || matches!(name, "git" | "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "find" | "xargs")
}

impl Shell<'_> {
    pub(super) fn simple(&mut self, assignments: &[Assignment], words: &[Word], redirections: &[Redirection]) {
        let args: Vec<Arg> = words.iter().flat_map(|word| self.expand(word)).collect();
        if words.is_empty() {
            for assignment in assignments {
                self.assign(assignment);
            }
            for redirection in redirections {
                self.redirect(redirection);
            }
            return;
        }
        let outer = std::mem::take(&mut self.current);
        for assignment in assignments {
            self.scan(&assignment.value);
            if !environment::is_harmless(&assignment.name) {
                self.opaque(format!("variable `{}` may change what is run", assignment.name));
            }
            if self.state.variables.contains_key(&assignment.name) {
                self.set(&assignment.name, Value::Unknown);
            }
        }
        for redirection in redirections {
            self.redirect(redirection);
        }
        self.current.program = args.first().map(Arg::shown).unwrap_or_default();
        self.current.arguments = args.iter().skip(1).map(Arg::shown).collect();
        self.current.cwd = match self.state.folders.as_slice() {
            [only] => Some(only.to_string_lossy().into_owned()),
            _ => None,
        };
        self.standard_input = text_of(redirections);
        self.program(&args);
        self.standard_input = None;
        self.links_changed |= std::mem::take(&mut self.links_after);
        let done = std::mem::replace(&mut self.current, outer);
        self.current.opaque |= done.opaque;
        self.description.command(done);
    }

    pub(super) fn redirect(&mut self, redirection: &Redirection) {
        let word = redirection.target.borrow().clone();
        if redirection.operator == Operator::Text {
            self.scan(&word);
            return;
        }
        // What a target becomes is what an argument would become: one rule for all words. One shell
        // refuses several targets, another writes them all.
        let targets = self.expand(&word);
        if targets.is_empty() {
            self.opaque("a redirection to nothing");
        }
        for target in targets {
            self.redirect_to(redirection.operator, &target);
        }
    }

    fn redirect_to(&mut self, operator: Operator, target: &Arg) {
        let stream = |text: &str| text == "-" || text.bytes().all(|byte| byte.is_ascii_digit());
        if operator == Operator::Duplicate && target.exact().is_some_and(stream) {
            return;
        }
        self.current.redirections.push(target.shown());
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            let host = target.exact().and_then(|text| text.split('/').nth(3)).and_then(network::machine);
            self.network(host.as_deref());
            return;
        }
        if matches!(operator, Operator::Read | Operator::ReadWrite) {
            self.touch(target, Usage::Read, Depth::One);
        }
        if operator != Operator::Read {
            self.touch(target, Usage::Write, Depth::One);
        }
    }

    /// Follows a program with its arguments.
    pub(super) fn program(&mut self, args: &[Arg]) {
        let Some((first, rest)) = args.split_first() else {
            self.opaque("a program that is not known");
            return;
        };
        let Some(given) = first.exact() else {
            self.opaque("a program that is not known");
            return;
        };
        if !given.contains('/') {
            match self.state.functions.get(given).cloned() {
                Some(Some(body)) => {
                    self.nested(|shell| shell.command(&body));
                    return;
                }
                Some(None) => {
                    self.opaque(format!("a function `{given}` that is not certain"));
                    return;
                }
                None => {}
            }
        }
        if self.is_allowed(args) {
            self.does("run");
            self.description.does.run = true;
            return;
        }
        let name = SYSTEM_FOLDERS
            .iter()
            .find_map(|folder| given.strip_prefix(folder))
            .filter(|name| !name.contains('/'))
            .unwrap_or(given)
            .to_owned();
        let version = matches!(rest, [only] if matches!(only.exact(), Some("--version")));
        if version && VERSIONED.contains(&name.as_str()) {
            return;
        }
        if name == "git" {
            self.git(rest);
            return;
        }
        let followed = self.builtin(&name, rest)
            || self.reader(&name, rest)
            || self.writer(&name, rest)
            || self.script(&name, rest)
            || self.networking(&name, rest);
        if !followed {
            let shown: String = name.chars().take(60).collect();
            let reason = if INTERPRETERS.contains(&name.as_str()) {
                format!("`{shown}` runs code that is not looked at")
            } else {
                format!("program `{shown}` is not known to the guard")
            };
            self.opaque(reason);
        }
    }

    /// Whether the project allows commands that start with this program.
    pub(super) fn is_trusted_program(&self, name: &str) -> bool {
        let test = self.workspace.test.as_deref().unwrap_or_default();
        test.split_whitespace().any(|word| word == name)
            || self.workspace.commands.iter().any(|words| words.first().is_some_and(|word| word == name))
    }

    /// Whether the project allows a command: by its first words in `commands`, or as the test
    /// command word for word. Both run what the workspace holds, so they run in it.
    fn is_allowed(&self, args: &[Arg]) -> bool {
        let test: Vec<String> =
            self.workspace.test.iter().flat_map(|test| test.split_whitespace()).map(str::to_owned).collect();
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:=@+,%".contains(c));
        let begins =
            |words: &[String]| words.len() <= args.len() && words.iter().zip(args).all(|(word, arg)| *word == arg.text);
        let (root, folders) = (&self.workspace.root, &self.state.folders);
        let is_test = test.len() == args.len() && test.iter().all(|word| plain(word)) && begins(&test);
        args.iter().all(|arg| arg.exact().is_some())
            && (is_test && folders.iter().all(|folder| folder == root)
                || folders.iter().all(|folder| folder.starts_with(root))
                    && self.workspace.commands.iter().any(|words| begins(words)))
    }
}

/// The text that a here-document or a here-string gives a command as its standard input, if it is
/// all known and nothing else does.
fn text_of(redirections: &[Redirection]) -> Option<String> {
    let (texts, others): (Vec<&Redirection>, Vec<&Redirection>) =
        redirections.iter().partition(|redirection| redirection.operator == Operator::Text);
    let [text] = texts.as_slice() else { return None };
    let output = |redirection: &&Redirection| match redirection.operator {
        Operator::Write => redirection.stream != "0",
        Operator::Duplicate => matches!(redirection.stream.as_str(), "1" | "2"),
        _ => false,
    };
    if !matches!(text.stream.as_str(), "" | "0") || !others.iter().all(output) {
        return None;
    }
    let target = text.target.borrow();
    let characters: Option<Vec<Option<char>>> = target
        .iter()
        .map(|piece| match piece {
            Piece::Char(c, _) => Some(Some(*c)),
            Piece::Variable(name, _) if name.is_empty() => Some(None),
            _ => None,
        })
        .collect();
    characters.map(|characters| characters.into_iter().flatten().collect())
}
