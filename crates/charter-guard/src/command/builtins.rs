//! Commands of the shell itself, and programs without effects on files.

use std::rc::Rc;

use super::environment;
use super::expand::Arg;
use super::shell::{MAX_VARIABLES, Shell, Value};
use super::syntax::Command;
use crate::data::Usage;
use crate::path::{self, Depth};

/// What only prints or waits, whatever its arguments are.
const HARMLESS: &[&str] = &[
    "echo", "true", "false", ":", "sleep", "pwd", "basename", "dirname", "seq", "uname", "whoami", "id", "nproc",
    "arch", "tty", "uptime", "which", "clear", "expr", "yes", "cal", "umask", "times", "factor", "groups", "logname",
];

/// Commands that reveal the environment, where keys are.
const REVEALING: &[&str] = &["printenv", "declare", "typeset", "local", "readonly", "export"];

/// Whether this module has a model of a command.
pub(super) fn knows(program: &str) -> bool {
    HARMLESS.contains(&program)
        || REVEALING.contains(&program)
        || matches!(
            program,
            "jobs"
                | "wait"
                | "test"
                | "["
                | "shift"
                | "return"
                | "break"
                | "continue"
                | "printf"
                | "date"
                | "cd"
                | "chdir"
                | "pushd"
                | "popd"
                | "set"
                | "unset"
                | "alias"
                | "unalias"
                | "eval"
                | "source"
                | "."
                | "exit"
                | "read"
                | "trap"
                | "type"
                | "hash"
                | "command"
                | "builtin"
                | "exec"
                | "env"
                | "sudo"
                | "doas"
                | "nohup"
                | "timeout"
                | "gtimeout"
                | "nice"
                | "ionice"
                | "time"
                | "setsid"
                | "stdbuf"
                | "sh"
                | "bash"
                | "zsh"
                | "dash"
                | "ksh"
                | "ash"
                | "busybox"
                | "toybox"
                | "kill"
                | "pkill"
                | "killall"
                | "mktemp"
                | "mapfile"
                | "readarray"
                | "getopts"
                | "let"
                | "enable"
                | "shopt"
                | "setopt"
                | "bind"
                | "complete"
                | "fc"
                | "history"
                | "logout"
                | "disown"
                | "bg"
                | "fg"
                | "suspend"
        )
}

impl Shell<'_> {
    /// A function that a command line defines.
    pub(super) fn define(&mut self, name: &str, body: &Rc<Command>) {
        if super::simple::is_known_program(name) || self.is_trusted_program(name) {
            self.opaque(format!("a function `{name}` instead of the program"));
        }
        if self.state.functions.len() >= MAX_VARIABLES {
            self.opaque("too many functions");
            return;
        }
        self.state.functions.insert(name.to_owned(), Some(Rc::clone(body)));
    }

    /// Follows one of these; `false` if it is another program.
    pub(super) fn builtin(&mut self, program: &str, args: &[Arg]) -> bool {
        if HARMLESS.contains(&program) {
            return true;
        }
        if REVEALING.contains(&program) {
            self.declare(program, args);
            return true;
        }
        match program {
            "test" | "[" => self.test(args),
            // `jobs -x` runs a command, and `wait -p` sets a variable, whose index is evaluated.
            "jobs" | "wait" => {
                let plain = |text: &str| {
                    matches!(text, "-l" | "-n" | "-r" | "-s" | "-f")
                        || text.trim_start_matches('%').bytes().all(|byte| byte.is_ascii_digit())
                };
                if !args.iter().all(|arg| arg.exact().is_some_and(plain)) {
                    self.opaque(format!("an argument of `{program}`"));
                }
            }
            "shift" | "return" | "break" | "continue" => {
                let number = |arg: &Arg| arg.exact().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                if !args.iter().all(number) {
                    self.opaque(format!("an argument of `{program}` that is not a number"));
                }
            }
            "printf" => {
                let unsafe_format = args.first().is_none_or(|arg| !arg.known || arg.text.starts_with('-'));
                // In some shells a number is an expression, and an index in it may run a command.
                if unsafe_format || args.iter().any(|arg| arg.text.contains("[")) {
                    self.opaque("`printf` that may set a variable or evaluate an expression");
                }
            }
            "date" => {
                let plain = |arg: &Arg| {
                    arg.exact().is_some_and(|text| text.starts_with('+') || matches!(text, "-u" | "-I" | "-R"))
                };
                if !args.iter().all(plain) {
                    self.opaque("options of `date`");
                }
            }
            "cd" | "chdir" => self.change_folder(args),
            "set" => self.set_options(args),
            "unset" => {
                for arg in args {
                    match arg.exact() {
                        Some(name) if !name.starts_with('-') => self.set(name, Value::Unknown),
                        _ => self.opaque("an argument of `unset`"),
                    }
                }
            }
            "eval" => {
                let texts: Option<Vec<&str>> = args.iter().map(Arg::exact).collect();
                match texts {
                    Some(texts) => self.text(&texts.join(" ")),
                    None => self.opaque("`eval` of something that is not known"),
                }
            }
            "exit" => {
                if args.iter().all(|arg| !arg.many) {
                    self.state.folders.clear();
                }
            }
            "read" => {
                for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
                    match arg.exact() {
                        Some(name) => self.set(name, Value::Unknown),
                        None => self.opaque("a variable of `read` that is not known"),
                    }
                }
            }
            "trap" => match args.first().and_then(Arg::exact).map(str::to_owned) {
                Some(text) if args.len() > 1 && text != "-" => {
                    let before = self.state.clone();
                    self.text(&text);
                    self.state = before;
                    // It runs later, in whatever folder the shell is then.
                    if !text.is_empty() {
                        self.opaque("a command of `trap`");
                    }
                }
                Some(_) | None => self.opaque("`trap`"),
            },
            "type" | "hash" => {
                if args.iter().any(|arg| !arg.known || arg.text.starts_with('-')) {
                    self.opaque(format!("options of `{program}`"));
                }
            }
            "mktemp" => {
                let is = |arg: &Arg, names: &[&str]| arg.exact().is_some_and(|text| names.contains(&text));
                if !args.iter().all(|arg| is(arg, &["-d", "-u", "--directory", "--dry-run"])) {
                    self.opaque("a template of `mktemp`");
                }
                if !args.iter().any(|arg| is(arg, &["-u", "--dry-run"])) {
                    self.touch(&Arg::literal("/tmp/tmp.XXXXXXXXXX"), Usage::Write, Depth::One);
                }
            }
            "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" => self.shell(program, args),
            "source" | "." | "alias" | "unalias" | "pushd" | "popd" | "kill" | "pkill" | "killall" | "mapfile"
            | "readarray" | "getopts" | "let" | "enable" | "shopt" | "setopt" | "bind" | "complete" | "fc"
            | "history" | "logout" | "disown" | "bg" | "fg" | "suspend" => {
                self.opaque(format!("`{program}` is not followed"))
            }
            _ => return self.wrapper(program, args),
        }
        true
    }

    /// Follows the arguments of `test`, `[` and `[[`. Arithmetic in them is evaluated, and an
    /// index in it may run a command.
    pub(super) fn test(&mut self, args: &[Arg]) {
        let arithmetic = args
            .iter()
            .any(|arg| matches!(arg.text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R" | "-t"));
        let plain = |arg: &Arg| {
            arg.exact().is_some_and(|text| {
                text == "]" || !text.contains(|c: char| c.is_ascii_alphabetic() || c == '[') || text.starts_with('-')
            })
        };
        if arithmetic && !args.iter().all(plain) {
            self.opaque("a test that evaluates an expression");
        }
        if args.iter().any(|arg| arg.many) {
            self.opaque("a test of something that is not known");
        }
    }

    fn change_folder(&mut self, args: &[Arg]) {
        let folder = match args {
            [] => Arg::literal("~"),
            [only] => only.clone(),
            [dashes, only] if dashes.exact() == Some("--") => only.clone(),
            _ => {
                self.opaque("arguments of `cd`");
                return;
            }
        };
        let Some(text) = folder.exact().filter(|text| !text.starts_with('-') && !text.is_empty()) else {
            self.opaque("a folder of `cd` that is not known");
            return;
        };
        if self.links_changed {
            self.opaque("an earlier command may have changed where paths lead");
        }
        let mut folders = Vec::new();
        for cwd in self.state.folders.clone() {
            if !self.description.charge(path::cost(&cwd, text)) {
                return;
            }
            match path::folder(self.workspace, &cwd, text) {
                Ok(folder) if !folders.contains(&folder) => folders.push(folder),
                Ok(_) => {}
                Err(reason) => self.opaque(format!("folder of `cd`: {reason}")),
            }
        }
        if folders.is_empty() {
            return;
        }
        self.state.folders = folders;
        self.touch(&Arg::literal("."), Usage::Search, Depth::One);
    }

    fn set_options(&mut self, args: &[Arg]) {
        if args.is_empty() {
            self.reveal();
        }
        let plain = |arg: &Arg| {
            matches!(
                arg.exact(),
                Some(
                    "-e" | "-u"
                        | "-x"
                        | "-eu"
                        | "-ex"
                        | "-eux"
                        | "-euo"
                        | "-exo"
                        | "-euxo"
                        | "-o"
                        | "+e"
                        | "+x"
                        | "pipefail"
                        | "errexit"
                        | "nounset"
                        | "xtrace"
                )
            )
        };
        if !args.iter().all(plain) {
            self.opaque("options of `set`");
        }
    }

    /// The environment is printed, and with it the keys that are in it.
    pub(super) fn reveal(&mut self) {
        self.does("secret");
        self.description.does.read = true;
        self.description.does.secret = true;
        self.description.does.environment = true;
    }

    fn declare(&mut self, program: &str, args: &[Arg]) {
        if args.is_empty() || program == "printenv" {
            self.reveal();
            return;
        }
        for arg in args {
            let Some(text) = arg.exact() else {
                self.opaque(format!("an argument of `{program}` that is not known"));
                continue;
            };
            match text.split_once('=') {
                Some((name, value)) => {
                    if program == "export" && !environment::is_harmless(name) {
                        self.opaque(format!("variable `{name}` may change what is run"));
                    }
                    self.set(name, Value::Known(value.to_owned()));
                }
                None if text.starts_with('-') => self.opaque(format!("options of `{program}`")),
                None => {
                    if program == "export" && !environment::is_harmless(text) {
                        self.opaque(format!("variable `{text}` may change what is run"));
                    }
                }
            }
        }
    }
}
