//! Programs that read the files they name and write nothing but their output.

use super::expand::Arg;
use super::options::Options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::{self, Depth};

/// A program and its options.
struct Reader {
    names: &'static [&'static str],
    options: Options,
    /// Arguments in front of the files, such as a pattern.
    skip: usize,
    /// More files than this make it opaque: the next one is written.
    most: usize,
    usage: Usage,
}

const fn reader(
    names: &'static [&'static str],
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
    long_valued: &'static str,
) -> Reader {
    Reader {
        names,
        options: Options { flags, valued, long, long_valued },
        skip: 0,
        most: usize::MAX,
        usage: Usage::Read,
    }
}

const READERS: &[Reader] = &[
    reader(&["cat"], "AbeEnstTuv", "", "number number-nonblank show-all squeeze-blank", ""),
    reader(&["head"], "qvz0123456789", "nc", "quiet silent verbose", "lines bytes"),
    reader(&["tail"], "fFqvz0123456789r", "ncs", "quiet silent verbose follow retry", "lines bytes"),
    reader(&["wc"], "clmwL", "", "lines words bytes chars max-line-length", ""),
    reader(&["nl"], "p", "bdfhilnsvw", "", "body-numbering"),
    reader(&["tac"], "br", "s", "", ""),
    reader(&["rev"], "", "", "", ""),
    reader(
        &["sort"],
        "bdfghinrMVcCmsuz",
        "kt",
        "reverse unique numeric-sort stable version-sort human-numeric-sort ignore-case",
        "key field-separator",
    ),
    Reader { most: 1, ..reader(&["uniq"], "cdDiuz", "fsw", "count repeated unique ignore-case", "") },
    reader(&["cut"], "nsz", "bcdf", "complement only-delimited", "bytes characters delimiter fields output-delimiter"),
    Reader { skip: usize::MAX, ..reader(&["tr"], "cCdst", "", "delete squeeze-repeats complement", "") },
    reader(&["paste"], "sz", "d", "serial", "delimiters"),
    reader(&["join"], "i", "12aejotv", "", ""),
    reader(&["comm"], "123z", "", "", ""),
    reader(&["cmp"], "bls", "in", "silent quiet", ""),
    reader(
        &["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "shasum"],
        "btz",
        "a",
        "",
        "algorithm",
    ),
    Reader { usage: Usage::Search, ..reader(&["stat"], "Lxtl", "cf", "", "format printf") },
    reader(&["file"], "bhikLNprsz0", "F", "brief mime mime-type mime-encoding", ""),
    reader(&["strings"], "a", "n", "all", "bytes"),
    reader(&["hexdump", "hd"], "bcCdovx", "ns", "", ""),
    reader(&["od"], "abcdfhiloxv", "AjNtw", "", ""),
    Reader { most: 1, ..reader(&["xxd"], "abeiup", "cglos", "", "") },
    reader(&["base64", "base32"], "dDi", "w", "decode ignore-garbage", "wrap"),
    reader(&["fold"], "bs", "w", "", "width"),
    reader(&["expand", "unexpand"], "ai", "t", "", ""),
    reader(&["column"], "tnxe", "csoN", "table", ""),
    reader(&["zcat", "gzcat"], "", "", "", ""),
    Reader {
        usage: Usage::Search,
        ..reader(&["realpath", "readlink"], "efmnqsz", "", "canonicalize", "relative-to relative-base")
    },
];

const GREP: Options = Options {
    flags: "abcEFGhHiIlLnoPqrsTuUvVwxyzZ0123456789",
    valued: "eABCmdDf",
    long: "recursive ignore-case line-number color count files-with-matches files-without-match only-matching \
           invert-match word-regexp line-regexp extended-regexp fixed-strings perl-regexp basic-regexp quiet silent no-messages \
           with-filename no-filename null text",
    long_valued: "include exclude exclude-dir regexp file context after-context before-context max-count binary-files",
};

const RG: Options = Options {
    flags: "abcFHIiLlNnPopqSsUuvwx0V.",
    valued: "ABCEefgjmMTtrd",
    long: "hidden no-ignore no-ignore-vcs files files-with-matches files-without-match ignore-case case-sensitive smart-case \
           line-number no-line-number no-heading heading json stats multiline pcre2 fixed-strings invert-match word-regexp \
           only-matching count count-matches with-filename no-filename unrestricted trim vimgrep text no-messages type-list \
           version color quiet column null sort multiline-dotall no-config crlf",
    long_valued: "type type-not glob iglob max-count max-depth max-columns context after-context before-context regexp replace \
                  sortr encoding file threads max-filesize",
};

const LS: Options = Options {
    flags: "1aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ",
    valued: "wIT",
    long: "all almost-all color recursive human-readable group-directories-first full-time reverse size classify directory inode",
    long_valued: "sort time time-style ignore hide width",
};

const DU: Options = Options {
    flags: "abchklmsxSHLD0",
    valued: "dBt",
    long: "summarize human-readable apparent-size total all bytes",
    long_valued: "max-depth exclude threshold",
};

const TREE: Options = Options {
    flags: "adfilpqrstuvxACDFghnNJ",
    valued: "LPI",
    long: "gitignore dirsfirst noreport du prune ignore-case",
    long_valued: "filelimit charset",
};

const DIFF: Options = Options {
    flags: "abBdiqrsuNptTwyEcZln0123456789",
    valued: "CUIxFLW",
    long: "unified brief recursive color side-by-side ignore-all-space ignore-space-change ignore-blank-lines ignore-case \
           new-file text suppress-common-lines report-identical-files",
    long_valued: "label exclude width",
};

const JQ: Options = Options {
    flags: "cnrRsSejCM",
    valued: "",
    long: "raw-output slurp compact-output null-input exit-status sort-keys raw-input join-output tab color-output",
    long_valued: "indent",
};

/// Whether this module has a model of a program.
pub(super) fn knows(program: &str) -> bool {
    matches!(program, "grep" | "egrep" | "fgrep" | "rg" | "ls" | "dir" | "du" | "tree" | "diff" | "jq")
        || READERS.iter().any(|reader| reader.names.contains(&program))
}

impl Shell<'_> {
    /// Follows a program that reads; `false` if it is none.
    pub(super) fn reader(&mut self, program: &str, args: &[Arg]) -> bool {
        match program {
            "grep" | "egrep" | "fgrep" => self.grep(program, args),
            "rg" => self.ripgrep(args),
            "ls" | "dir" => self.listing(program, args, LS),
            "du" => self.listing(program, args, DU),
            "tree" => self.listing(program, args, TREE),
            "diff" => {
                if let Some(parsed) = self.options(program, args, DIFF) {
                    // Two folders are compared file by file, also without `-r`.
                    self.touch_all(&parsed.positional, Usage::Read, Depth::All);
                }
            }
            "jq" => self.jq(args),
            _ => {
                let Some(reader) = READERS.iter().find(|reader| reader.names.contains(&program)) else { return false };
                if let Some(parsed) = self.options(program, args, reader.options) {
                    let files = parsed.positional.get(reader.skip..).unwrap_or_default();
                    if files.len() > reader.most {
                        self.opaque(format!("`{program}` with a second file"));
                    }
                    self.touch_all(files, reader.usage, Depth::One);
                    if program == "readlink" || program == "realpath" || program == "stat" {
                        self.does("search");
                    }
                }
            }
        }
        true
    }

    /// Adds uses of files; `-` is a standard stream.
    pub(super) fn touch_all(&mut self, files: &[Arg], usage: Usage, depth: Depth) {
        for file in files.iter().filter(|file| file.text != "-" || !file.known) {
            self.touch(file, usage, depth);
        }
    }

    fn grep(&mut self, program: &str, args: &[Arg]) {
        let Some(parsed) = self.options(program, args, GREP) else { return };
        self.touch_all(&parsed.values(&["f", "file"]), Usage::Read, Depth::One);
        let pattern = parsed.has(&["e", "f", "regexp", "file"]);
        let files = parsed.positional.get(usize::from(!pattern)..).unwrap_or_default();
        // In the shell of a client, `grep` may be another program that searches folders without
        // `-r`, as in Claude Code.
        if files.is_empty() && (parsed.has(&["r", "recursive", "d"]) || !self.fed) {
            self.touch(&Arg::literal("."), Usage::Read, Depth::All);
        }
        self.touch_all(files, Usage::Read, Depth::All);
    }

    fn ripgrep(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("rg", args, RG) else { return };
        if parsed.has(&["L"]) {
            self.opaque("`rg` that follows links");
        }
        self.touch_all(&parsed.values(&["f", "file"]), Usage::Read, Depth::One);
        let names_only = parsed.has(&["files", "type-list", "version", "V"]);
        let pattern = names_only || parsed.has(&["e", "f", "regexp", "file"]);
        let files = parsed.positional.get(usize::from(!pattern)..).unwrap_or_default();
        let everything = parsed.has(&["u", "unrestricted", "no-ignore", "no-ignore-vcs"]);
        let depth = if everything { Depth::All } else { Depth::Tracked };
        let usage = if names_only { Usage::Search } else { Usage::Read };
        let here = [Arg::literal(".")];
        let files = if files.is_empty() { &here[..] } else { files };
        self.touch_all(files, usage, depth);
        let globs = parsed.values(&["g", "glob", "iglob"]);
        if !names_only && !globs.is_empty() {
            self.brings_back(files, &globs);
        }
    }

    /// A pattern for names brings back what is ignored.
    fn brings_back(&mut self, files: &[Arg], globs: &[Arg]) {
        let patterns: Option<Vec<&str>> = globs.iter().map(Arg::exact).collect();
        let Some(patterns) = patterns else {
            self.opaque("a pattern of `rg` that is not known");
            return;
        };
        for file in files {
            let Some(file) = file.exact() else {
                self.opaque("a folder of `rg` that is not known");
                continue;
            };
            for folder in self.state.folders.clone() {
                path::add_ignored_secrets(self.description, self.workspace, &folder, file, &patterns);
            }
        }
    }

    fn listing(&mut self, program: &str, args: &[Arg], options: Options) {
        let Some(parsed) = self.options(program, args, options) else { return };
        if parsed.positional.is_empty() {
            self.touch(&Arg::literal("."), Usage::Search, Depth::One);
        }
        self.touch_all(&parsed.positional, Usage::Search, Depth::One);
    }

    fn jq(&mut self, args: &[Arg]) {
        let Some(parsed) = self.options("jq", args, JQ) else { return };
        let Some((filter, files)) = parsed.positional.split_first() else { return };
        let Some(text) = filter.exact() else {
            // A filter often has brackets; unquoted they are a pattern of the shell.
            self.opaque("a filter of `jq` that is not known");
            return;
        };
        if ["env", "ENV", "import", "include", "input_filename", "$__"].iter().any(|word| text.contains(word)) {
            self.opaque("a filter of `jq` that reads more than its files");
        }
        self.touch_all(files, Usage::Read, Depth::One);
    }
}
