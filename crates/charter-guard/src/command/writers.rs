//! Programs that create, change, move and delete the files they name.

use super::expand::Arg;
use super::options::{Options, Parsed};
use super::shell::Shell;
use crate::data::Usage;
use crate::path::{self, Depth};

const fn options(flags: &'static str, valued: &'static str, long: &'static str, long_valued: &'static str) -> Options {
    Options { flags, valued, long, long_valued }
}

const RM: Options = options("rRfidvI", "", "recursive force verbose dir interactive one-file-system preserve-root", "");
// `-S` and `-b` also move the old files to names that are put together: they are not in the lists.
const MV: Options =
    options("fivnTu", "t", "force verbose no-clobber interactive no-target-directory update", "target-directory");
const CP: Options = options(
    "rRfivnTupadPHLxl",
    "t",
    "recursive force verbose no-clobber archive no-target-directory update preserve no-dereference dereference",
    "target-directory",
);
const LN: Options =
    options("sfvnTirLP", "t", "symbolic force verbose no-dereference relative no-target-directory", "target-directory");
const INSTALL: Options =
    options("cCDpTvd", "gmot", "verbose directory compare no-target-directory", "mode owner group target-directory");
const CHMOD: Options = options("Rvcf", "", "recursive verbose changes quiet silent", "reference");
const TOUCH: Options = options("acmfh", "dtr", "no-create", "date reference time");

/// Whether this module has a model of a program.
pub(super) fn knows(program: &str) -> bool {
    matches!(
        program,
        "rm" | "rmdir"
            | "unlink"
            | "mv"
            | "cp"
            | "ln"
            | "link"
            | "install"
            | "chmod"
            | "chown"
            | "chgrp"
            | "mkdir"
            | "touch"
            | "tee"
            | "truncate"
            | "dd"
            | "shred"
            | "mkfifo"
    )
}

impl Shell<'_> {
    /// Follows a program that writes; `false` if it is none.
    pub(super) fn writer(&mut self, program: &str, args: &[Arg]) -> bool {
        match program {
            "rm" => {
                if let Some(parsed) = self.options(program, args, RM) {
                    let depth = if parsed.has(&["r", "R", "recursive"]) { Depth::All } else { Depth::One };
                    self.touch_all(&parsed.positional, Usage::Delete, depth);
                }
            }
            "rmdir" | "unlink" => self.plain(program, args, options("pv", "", "parents verbose", ""), Usage::Delete),
            "shred" => self.plain(
                program,
                args,
                options("fuvxz", "ns", "remove zero verbose", "iterations size"),
                Usage::Delete,
            ),
            "mkdir" | "mkfifo" => {
                self.plain(program, args, options("pv", "m", "parents verbose", "mode"), Usage::Write)
            }
            "tee" => self.plain(program, args, options("aip", "", "append ignore-interrupts", ""), Usage::Write),
            "truncate" => self.plain(program, args, options("co", "s", "no-create", "size"), Usage::Write),
            "touch" => {
                if let Some(parsed) = self.options(program, args, TOUCH) {
                    self.touch_all(&parsed.values(&["r", "reference"]), Usage::Read, Depth::One);
                    self.touch_all(&parsed.positional, Usage::Write, Depth::One);
                }
            }
            "chmod" | "chown" | "chgrp" => self.change_mode(program, args),
            "mv" => self.transfer(program, args, MV),
            "cp" => self.transfer(program, args, CP),
            "ln" | "link" => self.transfer(program, args, LN),
            "install" => self.install(args),
            "dd" => self.dd(args),
            _ => return false,
        }
        true
    }

    fn plain(&mut self, program: &str, args: &[Arg], spec: Options, usage: Usage) {
        if let Some(parsed) = self.options(program, args, spec) {
            self.touch_all(&parsed.positional, usage, Depth::One);
            if parsed.has(&["p", "parents"]) && usage == Usage::Delete {
                self.opaque("folders above those that it names");
            }
        }
    }

    fn change_mode(&mut self, program: &str, args: &[Arg]) {
        // `-x` and `-w` are modes, not options.
        let args: Vec<Arg> = args
            .iter()
            .map(|arg| match arg.exact() {
                Some(text)
                    if text.starts_with('-') && text.len() > 1 && text.chars().skip(1).all(|c| "rwxst".contains(c)) =>
                {
                    Arg::literal("mode")
                }
                _ => arg.clone(),
            })
            .collect();
        let Some(parsed) = self.options(program, &args, CHMOD) else { return };
        let depth = if parsed.has(&["R", "recursive"]) { Depth::All } else { Depth::One };
        let skip = usize::from(!parsed.has(&["reference"]));
        self.touch_all(parsed.positional.get(skip..).unwrap_or_default(), Usage::Write, depth);
    }

    /// Where the files go: the option for it, or the last argument.
    fn target(&mut self, program: &str, parsed: &Parsed) -> Option<(Vec<Arg>, Arg)> {
        if let Some(target) = parsed.values(&["t", "target-directory"]).pop() {
            return Some((parsed.positional.clone(), target));
        }
        match parsed.positional.split_last() {
            Some((target, sources)) if !sources.is_empty() => Some((sources.to_vec(), target.clone())),
            Some((only, _)) if program == "ln" => Some((vec![only.clone()], Arg::literal("."))),
            _ => {
                self.opaque(format!("`{program}` without a target"));
                None
            }
        }
    }

    fn transfer(&mut self, program: &str, args: &[Arg], spec: Options) {
        let Some(parsed) = self.options(program, args, spec) else { return };
        let Some((sources, target)) = self.target(program, &parsed) else { return };
        if target.glob {
            self.opaque(format!("a pattern as the target of `{program}`"));
        }
        let recursive = program == "mv" || parsed.has(&["r", "R", "recursive", "a", "archive"]);
        let depth = if recursive { Depth::All } else { Depth::One };
        for source in &sources {
            if program == "ln" || parsed.has(&["l"]) {
                // Who can write the link can write its target, which starts from its folder.
                self.touch(source, Usage::Write, Depth::One);
                let beside = format!("{}/../{}", target.text, source.text);
                if !source.text.starts_with('/') && target.known {
                    self.touch_spelled(&beside);
                    self.touch_spelled(&format!("{}/{}", target.text, source.text));
                }
                self.links_after = true;
            } else {
                let usage = if program == "mv" { Usage::Delete } else { Usage::Read };
                self.touch(source, usage, depth);
                self.links_after |= source.glob || self.source_has_links(source);
            }
            self.touch_target(source, &target, recursive);
        }
    }

    /// A path that is put together from two is resolved as it is spelled, without following `..`.
    fn touch_spelled(&mut self, text: &str) {
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" if !parts.is_empty() => {}
                "." => {}
                ".." if parts.last().is_some_and(|last| *last != ".." && !last.is_empty()) => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let text = parts.join("/");
        if !text.is_empty() {
            self.touch(&Arg::literal(&text), Usage::Write, Depth::One);
        }
    }

    /// Whatever is moved or copied arrives as the target, or in it with its own name.
    fn touch_target(&mut self, source: &Arg, target: &Arg, recursive: bool) {
        self.touch(target, Usage::Write, Depth::One);
        let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let merges = matches!(name, "" | "." | "..") || source.text.ends_with('/');
        if recursive && merges {
            self.touch(target, Usage::Write, Depth::All);
        }
        if !source.known || !target.known || target.glob {
            return;
        }
        if source.glob {
            self.opaque("a pattern whose matches get new places");
        } else if !matches!(name, "" | "." | "..") {
            let inside = format!("{}/{name}", target.text.trim_end_matches('/'));
            let depth = if recursive { Depth::All } else { Depth::One };
            self.touch(&Arg::literal(&inside), Usage::Write, depth);
        }
        if recursive && self.holds_control(source) {
            self.opaque("a folder with names that mean something to the guard");
        }
    }

    fn source_has_links(&mut self, source: &Arg) -> bool {
        let folders = self.state.folders.clone();
        folders.iter().any(|folder| path::has_links(self.description, self.workspace, folder, &source.text))
    }

    /// Whether a folder that is copied has names below it that are protected or the guard's.
    fn holds_control(&mut self, source: &Arg) -> bool {
        let folders = self.state.folders.clone();
        folders.iter().any(|folder| path::has_control(self.description, self.workspace, folder, &source.text))
    }

    fn install(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("install", args, INSTALL) else { return };
        if parsed.has(&["d", "directory"]) {
            self.touch_all(&parsed.positional, Usage::Write, Depth::One);
            return;
        }
        let Some((sources, target)) = self.target("install", &parsed) else { return };
        for source in &sources {
            self.touch(source, Usage::Read, Depth::One);
            self.touch_target(source, &target, false);
        }
    }

    fn dd(&mut self, args: &[Arg]) {
        for arg in args {
            let Some((key, value)) = arg.exact().and_then(|text| text.split_once('=')) else {
                self.opaque("an argument of `dd` that is not known");
                continue;
            };
            match key {
                "if" => self.touch(&Arg::literal(value), Usage::Read, Depth::One),
                "of" => self.touch(&Arg::literal(value), Usage::Write, Depth::One),
                "bs" | "ibs" | "obs" | "count" | "skip" | "seek" | "conv" | "status" | "iflag" | "oflag" | "cbs" => {}
                _ => self.opaque("an argument of `dd` that is not known"),
            }
        }
    }
}
