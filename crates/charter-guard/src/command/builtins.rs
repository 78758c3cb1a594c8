//! Commands of the shell itself, programs without effects on files, and programs that run others.

use super::environment;
use super::expand::Arg;
use super::options::Options;
use super::shell::{Shell, Value};
use crate::data::Usage;
use crate::path::{self, Depth};

/// What only prints or waits, whatever its arguments are.
const HARMLESS: &[&str] = &[
    "echo", "true", "false", ":", "sleep", "pwd", "basename", "dirname", "seq", "uname", "whoami", "id", "nproc", "arch", "tty",
    "uptime", "which", "clear", "wait", "expr", "yes", "cal", "umask", "times", "jobs", "factor", "groups", "logname",
];

/// Commands that reveal the environment, where keys are.
const REVEALING: &[&str] = &["printenv", "declare", "typeset", "local", "readonly", "export"];

const NONE: Options = Options { flags: "", valued: "", long: "", long_valued: "" };

/// Whether this module has a model of a command.
pub(super) fn knows(program: &str) -> bool {
    HARMLESS.contains(&program)
        || REVEALING.contains(&program)
        || matches!(
            program,
            "test" | "[" | "shift" | "return" | "break" | "continue" | "printf" | "date" | "cd" | "chdir" | "pushd" | "popd" | "set" | "unset" | "alias" | "unalias" | "eval" | "source" | "."
                | "exit" | "read" | "trap" | "type" | "hash" | "command" | "builtin" | "exec" | "env" | "sudo" | "doas" | "nohup"
                | "timeout" | "gtimeout" | "nice" | "ionice" | "time" | "setsid" | "stdbuf" | "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash"
                | "busybox" | "toybox" | "kill" | "pkill" | "killall" | "mktemp" | "mapfile" | "readarray" | "getopts" | "let" | "enable"
                | "shopt" | "setopt" | "bind" | "complete" | "fc" | "history" | "logout" | "disown" | "bg" | "fg" | "suspend"
        )
}

impl Shell<'_> {
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
                let plain = |arg: &Arg| arg.exact().is_some_and(|text| text.starts_with('+') || matches!(text, "-u" | "-I" | "-R"));
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
                if !args.iter().all(|arg| matches!(arg.exact(), Some("-d" | "-u" | "--directory"))) {
                    self.opaque("a template of `mktemp`");
                }
            }
            "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" => self.shell(program, args),
            "source" | "." | "alias" | "unalias" | "pushd" | "popd" | "kill" | "pkill" | "killall" | "mapfile" | "readarray"
            | "getopts" | "let" | "enable" | "shopt" | "setopt" | "bind" | "complete" | "fc" | "history" | "logout" | "disown"
            | "bg" | "fg" | "suspend" => self.opaque(format!("`{program}` is not followed")),
            _ => return self.wrapper(program, args),
        }
        true
    }

    /// Follows the arguments of `test`, `[` and `[[`. Arithmetic in them is evaluated, and an index in
    /// it may run a command.
    pub(super) fn test(&mut self, args: &[Arg]) {
        let arithmetic = args.iter().any(|arg| {
            matches!(arg.text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R" | "-t")
        });
        let plain = |arg: &Arg| arg.exact().is_some_and(|text| text == "]" || !text.contains(|c: char| c.is_ascii_alphabetic() || c == '[') || text.starts_with('-'));
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
            matches!(arg.exact(), Some("-e" | "-u" | "-x" | "-eu" | "-ex" | "-eux" | "-euo" | "-exo" | "-euxo" | "-o" | "+e" | "+x" | "pipefail" | "errexit" | "nounset" | "xtrace"))
        };
        if !args.iter().all(plain) {
            self.opaque("options of `set`");
        }
    }

    /// The environment is printed, and with it the keys that are in it.
    fn reveal(&mut self) {
        self.does("secret");
        self.description.does.read = true;
        self.description.does.secret = true;
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

    /// Follows a shell that is started with `-c`, or that reads a text of the command line.
    fn shell(&mut self, program: &str, args: &[Arg]) {
        let mut command = false;
        let mut rest = args.iter();
        let mut script = None;
        while let Some(arg) = rest.next() {
            let Some(text) = arg.exact() else {
                // After `-c` it may still be the text.
                script = Some(None);
                break;
            };
            match text {
                "--login" | "--norc" | "--noprofile" | "--posix" | "--" => {}
                "-o" | "+o" => {
                    if rest.next().and_then(Arg::exact) != Some("pipefail") {
                        self.opaque(format!("options of `{program}`"));
                    }
                }
                text if text.starts_with('-') && text.len() > 1 => {
                    if !text.chars().skip(1).all(|c| "ceulx".contains(c)) {
                        self.opaque(format!("options of `{program}`"));
                        return;
                    }
                    command |= text.contains('c');
                }
                text => {
                    script = Some(Some(text.to_owned()));
                    break;
                }
            }
        }
        match script {
            Some(Some(text)) if command => self.inner_shell(&text),
            Some(_) => self.opaque(format!("a script of `{program}` that is not looked at")),
            None => match self.standard_input.take() {
                Some(text) if !command => self.inner_shell(&text),
                _ => self.opaque(format!("`{program}` runs what it reads from standard input")),
            },
        }
    }

    fn inner_shell(&mut self, text: &str) {
        let before = self.state.clone();
        self.state.variables.clear();
        self.state.functions.clear();
        self.text(text);
        self.state = before;
    }

    /// Follows a program that runs the program in its arguments.
    fn wrapper(&mut self, program: &str, args: &[Arg]) -> bool {
        let options = match program {
            "env" => Options { flags: "i0", valued: "u", long: "ignore-environment null", long_valued: "unset" },
            "sudo" | "doas" => Options { flags: "nEHSkb", valued: "ugC", long: "non-interactive", long_valued: "user group" },
            "timeout" | "gtimeout" => Options { flags: "v", valued: "ks", long: "preserve-status foreground verbose", long_valued: "kill-after signal" },
            "nice" => Options { flags: "", valued: "n", long: "", long_valued: "adjustment" },
            "ionice" => Options { flags: "t", valued: "cn", long: "ignore", long_valued: "class classdata" },
            "stdbuf" => Options { flags: "", valued: "ioe", long: "", long_valued: "input output error" },
            "time" => Options { flags: "pvl", valued: "", long: "", long_valued: "" },
            "setsid" => Options { flags: "cfw", valued: "", long: "", long_valued: "" },
            "command" => Options { flags: "pvV", valued: "", long: "", long_valued: "" },
            "exec" => Options { flags: "cl", valued: "a", long: "", long_valued: "" },
            "nohup" | "builtin" | "busybox" | "toybox" => NONE,
            _ => return false,
        };
        let Some((parsed, mut command)) = self.leading_options(program, args, options) else { return true };
        match program {
            "env" => {
                while let Some(assignment) = command.first().filter(|arg| arg.text.contains('=')).cloned() {
                    let name = assignment.text.split('=').next().unwrap_or_default();
                    if !environment::is_harmless(name) {
                        self.opaque(format!("variable `{name}` may change what is run"));
                    }
                    command.remove(0);
                }
                if command.is_empty() {
                    self.reveal();
                    return true;
                }
            }
            "sudo" | "doas" => self.opaque(format!("`{program}` runs as another user")),
            "timeout" | "gtimeout" => {
                if command.first().is_some_and(|arg| arg.exact().is_some()) {
                    command.remove(0);
                }
            }
            "command" if parsed.has(&["v", "V"]) => return true,
            "exec" if command.is_empty() => return true,
            "nohup" => {
                // Its output, if it goes to a terminal.
                self.touch(&Arg::literal("nohup.out"), Usage::Write, Depth::One);
            }
            _ => {}
        }
        // A function is not a program: these start the program of that name.
        let before = self.state.clone();
        self.state.functions.clear();
        let input = self.standard_input.take();
        self.nested(|shell| {
            shell.standard_input = input;
            shell.program(&command);
        });
        if matches!(program, "command" | "builtin") {
            self.state.functions = before.functions;
        } else if program == "time" {
            // A word of the shell, or a program.
            let after = std::mem::replace(&mut self.state, before.clone());
            self.state = before.join(after);
        } else {
            // What a program does to its folder and its variables ends with it.
            self.state = before;
        }
        true
    }
}
