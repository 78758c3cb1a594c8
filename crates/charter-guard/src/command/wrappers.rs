//! Programs that run others: shells, `env`, `timeout` and their like.

use super::environment;
use super::expand::Arg;
use super::options::Options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;

const NONE: Options = Options { flags: "", valued: "", long: "", long_valued: "" };

impl Shell<'_> {
    /// Follows a shell that is started with `-c`, or that reads a text of the command line.
    pub(super) fn shell(&mut self, program: &str, args: &[Arg]) {
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
    pub(super) fn wrapper(&mut self, program: &str, args: &[Arg]) -> bool {
        let options = match program {
            "env" => Options { flags: "i0", valued: "u", long: "ignore-environment null", long_valued: "unset" },
            "sudo" | "doas" => {
                Options { flags: "nEHSkb", valued: "ugC", long: "non-interactive", long_valued: "user group" }
            }
            "timeout" | "gtimeout" => Options {
                flags: "v",
                valued: "ks",
                long: "preserve-status foreground verbose",
                long_valued: "kill-after signal",
            },
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
            "timeout" | "gtimeout" if !command.is_empty() => {
                command.remove(0);
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
