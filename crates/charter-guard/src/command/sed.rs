//! `sed`: what its scripts do, and where `-i` writes.

use super::expand::Arg;
use super::options::Options;
use super::shell::Shell;
use crate::data::Usage;
use crate::path::Depth;

const SED: Options = Options {
    flags: "nErsuzib",
    valued: "efl",
    long: "quiet silent regexp-extended separate null-data in-place debug",
    long_valued: "expression file",
};

impl Shell<'_> {
    pub(super) fn sed(&mut self, args: &[Arg]) {
        // `-i` takes a suffix in the same word, for the files with the old content.
        let mut suffixes = Vec::new();
        let args: Vec<Arg> = args
            .iter()
            .map(|arg| match arg.exact().and_then(in_place) {
                Some((letters, suffix)) => {
                    suffixes.push(suffix.to_owned());
                    Arg::literal(&format!("-{letters}i"))
                }
                None => arg.clone(),
            })
            .collect();
        let Some(parsed) = self.options("sed", &args, SED) else { return };
        let in_place = parsed.has(&["i", "in-place"]);
        if parsed.has(&["f", "file"]) {
            self.opaque("a script of `sed` in a file");
        }
        let mut files = parsed.positional.as_slice();
        // The other `sed` has the suffix as a word of its own.
        if in_place
            && let Some((first, rest)) = files.split_first()
            && first.exact() == Some("")
        {
            files = rest;
        }
        let mut scripts = parsed.values(&["e", "expression"]);
        if scripts.is_empty()
            && !parsed.has(&["f", "file"])
            && let Some((script, rest)) = files.split_first()
        {
            scripts.push(script.clone());
            files = rest;
        }
        let script: Option<Vec<&str>> = scripts.iter().map(Arg::exact).collect();
        if !script.is_some_and(|parts| is_harmless_sed(&parts.join("\n"))) {
            self.opaque("a script of `sed` that may do more than edit text");
        }
        self.touch_all(files, Usage::Read, Depth::One);
        if in_place {
            self.touch_all(files, Usage::Write, Depth::One);
        }
        for suffix in suffixes.iter().filter(|suffix| !suffix.is_empty()) {
            self.backups(files, suffix);
        }
    }

    /// The files with the old content of those that `sed -i` changes.
    fn backups(&mut self, files: &[Arg], suffix: &str) {
        // `*` stands for the name of the file, and with `/` it is in another folder.
        if suffix.contains(['/', '*']) {
            self.opaque("a suffix of `sed -i` that puts files elsewhere");
            return;
        }
        for file in files.iter().cloned().flat_map(|file| self.matches(file)).collect::<Vec<_>>() {
            match file.exact() {
                Some(file) => self.touch(&Arg::literal(&format!("{file}{suffix}")), Usage::Write, Depth::One),
                None => self.opaque("files of `sed -i` with a suffix, whose names are not certain"),
            }
        }
    }
}

/// The letters in front of `-i` and the suffix behind it, if a word is that option of `sed`.
fn in_place(word: &str) -> Option<(&str, &str)> {
    if let Some(rest) = word.strip_prefix("--in-place") {
        return if rest.is_empty() { Some(("", "")) } else { Some(("", rest.strip_prefix('=')?)) };
    }
    let (letters, suffix) = word.strip_prefix('-')?.split_once('i')?;
    letters.chars().all(|c| "nErsuzb".contains(c)).then_some((letters, suffix))
}

/// Whether a script of `sed` only edits and prints text.
fn is_harmless_sed(script: &str) -> bool {
    let mut rest = Script { text: script.chars().collect(), at: 0 };
    while rest.command() {
        if rest.at >= rest.text.len() {
            return true;
        }
    }
    false
}

struct Script {
    text: Vec<char>,
    at: usize,
}

impl Script {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&skipped) {
            self.at = self.at.saturating_add(1);
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(c)
    }

    /// Reads one command; `false` if it is not known to be harmless.
    fn command(&mut self) -> bool {
        self.skip(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        if self.peek().is_none() {
            return true;
        }
        if !self.address() {
            return false;
        }
        if self.peek() == Some(',') {
            self.at = self.at.saturating_add(1);
            self.skip(|c| c == ' ' || matches!(c, '+' | '~'));
            if !self.address() {
                return false;
            }
        }
        self.skip(|c| matches!(c, ' ' | '!'));
        let ended = match self.next() {
            Some('{') => return true,
            Some('p' | 'd' | 'D' | 'P' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x') => true,
            Some('q' | 'Q' | 'l') => {
                self.skip(|c| c == ' ' || c.is_ascii_digit());
                true
            }
            Some('s') => {
                self.sections(2) && {
                    self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit());
                    true
                }
            }
            Some('y') => self.sections(2),
            Some('a' | 'i' | 'c') => {
                self.skip(|c| c != '\n');
                true
            }
            _ => false,
        };
        if !ended {
            return false;
        }
        self.skip(|c| c == ' ');
        matches!(self.peek(), None | Some(';' | '\n' | '}'))
    }

    /// Reads an address, if there is one.
    fn address(&mut self) -> bool {
        match self.peek() {
            Some('0'..='9' | '$') => {
                self.skip(|c| c.is_ascii_digit() || matches!(c, '$' | '~'));
                true
            }
            Some('/') => {
                let read = self.sections(1);
                self.skip(|c| c == 'I');
                self.skip(|c| c == ' ');
                read
            }
            Some('\\') => false,
            _ => true,
        }
    }

    /// Reads parts that end with the character in front of them.
    fn sections(&mut self, count: usize) -> bool {
        let Some(end) = self.next().filter(|c| !c.is_alphanumeric() && !matches!(c, '\\' | '\n' | ' ')) else {
            return false;
        };
        for _ in 0..count {
            let mut bracket = false;
            loop {
                match self.next() {
                    // In brackets, one `sed` ends here and another goes on.
                    Some(c) if c == end && bracket => return false,
                    Some(c) if c == end => break,
                    Some('\\') => {
                        if self.next().is_none() {
                            return false;
                        }
                    }
                    Some('[') => bracket = true,
                    Some(']') => bracket = false,
                    Some('\n') | None => return false,
                    Some(_) => {}
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::is_harmless_sed;

    #[test]
    fn scripts_that_edit_text_are_harmless_and_others_are_not() {
        for script in
            ["s/a/b/", "s|a|b|g", "1,5p", "$d", "/x/d", "/a/,/b/s/x/y/gi; p", "2q", "s/[0-9]+/n/", "/x/!d", "a text"]
        {
            assert!(is_harmless_sed(script), "{script}");
        }
        for script in [
            "s/a/b/e",
            "s/a/b/w out",
            "w out",
            "r /etc/passwd",
            "e rm x",
            "1e",
            "s/a/b/gw x",
            "R x",
            "W x",
            "s/[/]e/x/",
            "p;w x",
            "/x/{w y\n}",
            "$!w x",
            "\\,x,w y",
            "b;w x",
            ": a",
            "s/a/b/;e",
            "0~3w x",
            "y/a/b/w",
            "q;e",
            "s\na\nb\ne",
        ] {
            assert!(!is_harmless_sed(script), "{script}");
        }
    }
}
