//! Programs with a small language of their own: `awk`, `find`, `xargs`.

use super::expand::Arg;
use super::options::Options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;
use crate::tool::changed_paths;

const AWK: Options = Options { flags: "", valued: "Fvf", long: "", long_valued: "field-separator assign file" };

const XARGS: Options = Options {
    flags: "0rtxp",
    valued: "nPLIdsE",
    long: "null no-run-if-empty verbose",
    long_valued: "max-args max-procs max-lines replace delimiter",
};

impl Shell<'_> {
    /// Follows one of these programs; `false` if it is another.
    pub(super) fn script(&mut self, program: &str, args: &[Arg]) -> bool {
        match program {
            "sed" | "gsed" => self.sed(args),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(args),
            "find" => self.find(args),
            "xargs" => self.xargs(args),
            "apply_patch" => self.apply_patch(args),
            _ => return false,
        }
        true
    }

    fn apply_patch(&mut self, args: &[Arg]) {
        let text = match args {
            [] => self.standard_input.take(),
            [only] => only.exact().map(str::to_owned),
            _ => None,
        };
        match text.as_deref().and_then(changed_paths) {
            Some(paths) => {
                for (given, usage) in paths {
                    self.touch(&Arg::literal(&given), usage, Depth::One);
                }
            }
            None => self.opaque("a patch that cannot be read"),
        }
    }

    fn awk(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("awk", args, AWK) else { return };
        if parsed.has(&["f", "file"]) {
            self.opaque("a program of `awk` in a file");
        }
        let Some((program, files)) = parsed.positional.split_first() else { return };
        let harmless = program.exact().is_some_and(|text| {
            !["system", "|", ">", "getline", "@", "ENVIRON", "ARG", "\\"].iter().any(|word| text.contains(word))
        });
        if !harmless {
            self.opaque("a program of `awk` that may do more than print");
        }
        // `gawk` takes these names for connections.
        if files.iter().any(|file| !file.known || file.text.starts_with("/inet")) {
            self.network(None);
            self.opaque("a file of `awk` that may be a connection");
        }
        self.touch_all(files, Usage::Read, Depth::One);
    }

    fn xargs(&mut self, args: &[Arg]) {
        let Some((parsed, command)) = self.leading_options("xargs", args, XARGS) else { return };
        let replace = parsed.values(&["I", "replace"]).pop().and_then(|arg| arg.exact().map(str::to_owned));
        let Some((program, rest)) = command.split_first() else { return };
        let mut command = vec![program.clone()];
        match replace {
            Some(mark) => {
                if program.text.contains(&mark) {
                    self.opaque("a program that standard input names");
                }
                command.extend(
                    rest.iter().map(
                        |arg| {
                            if arg.known && !arg.text.contains(&mark) { arg.clone() } else { Arg::unknown() }
                        },
                    ),
                );
            }
            None => {
                command.extend_from_slice(rest);
                command.push(Arg::unknown());
            }
        }
        self.other_process(&command);
    }

    /// Follows a program in a process of its own, which leaves the shell as it is.
    fn other_process(&mut self, command: &[Arg]) {
        let before = self.state.clone();
        self.state.functions.clear();
        self.nested(|shell| shell.program(command));
        self.state = before;
    }

    fn find(&mut self, args: &[Arg]) {
        let starts_expression = |arg: &Arg| arg.text.starts_with(['-', '(', ')', '!', ',']);
        let mut args = args.to_vec();
        while args.first().is_some_and(|arg| matches!(arg.exact(), Some("-H" | "-P"))) {
            args.remove(0);
        }
        if args.iter().any(|arg| !arg.known) {
            self.opaque("an argument of `find` that is not known");
            return;
        }
        let end = args.iter().position(starts_expression).unwrap_or(args.len());
        let (roots, expression) = args.split_at(end);
        let roots = if roots.is_empty() { vec![Arg::literal(".")] } else { roots.to_vec() };
        self.touch_all(&roots, Usage::Search, Depth::All);
        let mut rest = expression.iter();
        while let Some(arg) = rest.next() {
            match arg.text.as_str() {
                "-delete" => self.touch_all(&roots, Usage::Delete, Depth::All),
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let command: Vec<Arg> =
                        rest.by_ref().take_while(|arg| arg.text != ";" && arg.text != "+").cloned().collect();
                    if matches!(arg.text.as_str(), "-execdir" | "-okdir") {
                        self.opaque("a command of `find` that runs in other folders");
                    }
                    self.find_command(&roots, &command);
                }
                "-name" | "-iname" | "-path" | "-ipath" | "-type" | "-size" | "-mtime" | "-mmin" | "-newer"
                | "-maxdepth" | "-mindepth" | "-regex" | "-iregex" | "-perm" | "-user" | "-group" | "-atime"
                | "-ctime" | "-cmin" | "-amin" | "-printf" | "-wholename" | "-regextype" | "-links" | "-inum" => {
                    rest.next();
                }
                "-print" | "-print0" | "-ls" | "-prune" | "-empty" | "-not" | "-o" | "-or" | "-a" | "-and" | "("
                | ")" | "!" | "," | "-true" | "-false" | "-quit" | "-depth" | "-xdev" | "-mount" | "-executable"
                | "-readable" | "-writable" | "-daystart" | "-nouser" | "-nogroup" => {}
                text => {
                    let name: String = text.chars().take(40).collect();
                    self.opaque(format!("`{name}` of `find`"));
                    return;
                }
            }
        }
    }

    /// Follows the command of `-exec` for each folder that `find` starts from.
    fn find_command(&mut self, roots: &[Arg], command: &[Arg]) {
        let partly = |arg: &Arg| arg.text.contains("{}") && arg.text != "{}";
        if command.iter().any(partly) || command.first().is_none_or(|program| program.text == "{}") {
            self.opaque("`{}` in a word of `find`");
            return;
        }
        for root in roots {
            let words: Vec<Arg> = command
                .iter()
                .map(|arg| if arg.text == "{}" { Arg { below: true, ..root.clone() } } else { arg.clone() })
                .collect();
            self.other_process(&words);
        }
    }
}
