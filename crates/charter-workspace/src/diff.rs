//! Shows a reviewer what a changeset does: one unified diff per file, in which no character can
//! hide or disguise text.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::changeset::{Change, Operation};
use crate::path::misleading;

/// Maximum size of either side, in bytes; larger contents are not compared.
const MAX_COMPARED: usize = 8 << 20;
/// Time after which a coarser diff is accepted. A diff is for display; no decision depends on it.
const TIME: Duration = Duration::from_millis(500);
/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The kind of a line of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineKind {
    /// A file name, before or after.
    File,
    /// A hunk header: the position of the lines that follow.
    Place,
    /// Unchanged.
    Same,
    /// Removed.
    Removed,
    /// Added.
    Added,
    /// A note, not part of the file.
    Note,
}

/// A line of a diff, ready for display: control characters and direction marks are escaped, such as
/// `\u{1b}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// The kind of the line.
    pub kind: LineKind,
    /// The text, with the prefix of a unified diff (`+`, `-`, space) and without the line feed.
    pub text: String,
}

/// The unified diff of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The operation.
    pub operation: Operation,
    /// The file.
    pub path: String,
    /// Number of added lines.
    pub added: usize,
    /// Number of removed lines.
    pub removed: usize,
    /// The diff.
    pub lines: Vec<DiffLine>,
}

impl FileDiff {
    /// Compares a change with the file's content `old` (`None` if the file is created, or its
    /// content is unknown).
    #[must_use]
    pub fn of(change: &Change, old: Option<&[u8]>) -> FileDiff {
        let path = change.path.as_str();
        let mut diff =
            FileDiff { operation: change.operation, path: path.to_owned(), added: 0, removed: 0, lines: Vec::new() };
        let side = |there: bool, sign: &str| {
            if there { format!("{sign}/{path}") } else { "/dev/null".to_owned() }
        };
        diff.push(LineKind::File, format!("--- {}", side(change.operation != Operation::Create, "a")));
        diff.push(LineKind::File, format!("+++ {}", side(change.operation != Operation::Delete, "b")));
        if let Some(executable) = change.executable {
            let note = if executable {
                "(the file is executable afterwards)"
            } else {
                "(the file is not executable afterwards)"
            };
            diff.push(LineKind::Note, note.to_owned());
        }
        let new = change.content.as_deref().unwrap_or_default();
        match (change.operation, old) {
            (Operation::Create, _) => diff.compare(&[], new),
            (_, Some(old)) => diff.compare(old, new),
            (_, None) => diff.push(LineKind::Note, "(old content unknown)".to_owned()),
        }
        diff
    }

    /// Returns a diff that states why a change is not compared.
    pub(crate) fn noted(change: &Change, note: &str) -> FileDiff {
        let mut diff = FileDiff::of(change, None);
        diff.lines.retain(|line| line.kind == LineKind::File);
        (diff.added, diff.removed) = (0, 0);
        diff.with_note(note)
    }

    /// Appends a note.
    pub(crate) fn with_note(mut self, note: &str) -> FileDiff {
        self.push(LineKind::Note, visible(note));
        self
    }

    /// Renders all lines, each followed by a line feed.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.lines.iter().fold(String::new(), |out, line| out + &line.text + "\n")
    }

    fn push(&mut self, kind: LineKind, text: String) {
        self.lines.push(DiffLine { kind, text });
    }

    fn compare(&mut self, old: &[u8], new: &[u8]) {
        let texts = (std::str::from_utf8(old), std::str::from_utf8(new));
        let (Ok(before), Ok(after)) = texts else {
            let sizes = format!("(binary: {} bytes before, {} after)", old.len(), new.len());
            return self.push(LineKind::Note, sizes);
        };
        if old.len().max(new.len()) > MAX_COMPARED {
            let sizes = format!("(too large to compare: {} bytes before, {} after)", old.len(), new.len());
            return self.push(LineKind::Note, sizes);
        }
        if before.is_empty() && after.is_empty() {
            return self.push(LineKind::Note, "(empty file)".to_owned());
        }
        let (before, after): (Vec<&str>, Vec<&str>) =
            (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
        let diff = TextDiff::configure().timeout(TIME).diff_slices(&before, &after);
        for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
            self.push(LineKind::Place, hunk.header().to_string());
            for change in hunk.iter_changes() {
                let (kind, sign) = match change.tag() {
                    ChangeTag::Equal => (LineKind::Same, ' '),
                    ChangeTag::Delete => (LineKind::Removed, '-'),
                    ChangeTag::Insert => (LineKind::Added, '+'),
                };
                match kind {
                    LineKind::Added => self.added = self.added.saturating_add(1),
                    LineKind::Removed => self.removed = self.removed.saturating_add(1),
                    _ => {}
                }
                let line = change.value();
                let body = line.strip_suffix('\n');
                self.push(kind, format!("{sign}{}", visible(body.unwrap_or(line))));
                if body.is_none() {
                    self.push(LineKind::Note, "\\ No newline at end of file".to_owned());
                }
            }
        }
    }
}

/// Escapes control characters (except tabs) and direction marks, so that they cannot hide text.
#[must_use]
pub fn visible(text: &str) -> String {
    if !text.chars().any(|c| c != '\t' && misleading(c)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            '\r' => out.push_str("\\r"),
            c if misleading(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use charter_kernel::Digest;

    use super::*;
    use crate::path::RelPath;

    fn modify(old: &str, new: &str) -> FileDiff {
        let path = RelPath::parse("a.txt").unwrap();
        FileDiff::of(&Change::modify(path, Digest::of_bytes(old.as_bytes()), new), Some(old.as_bytes()))
    }

    #[test]
    fn a_unified_diff() {
        let diff = modify("one\ntwo\nthree\n", "one\n2\nthree\nfour");
        assert_eq!((diff.added, diff.removed), (2, 1));
        assert_eq!(
            diff.to_text(),
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn hidden_characters_are_escaped() {
        let text = modify("", "a\u{1b}[2Jb\u{202e}c\td\r\n").to_text();
        assert!(text.contains("+a\\u{1b}[2Jb\\u{202e}c\td\\r\n"), "{text}");
        let path = RelPath::parse("x").unwrap();
        let binary = FileDiff::of(&Change::create(path.clone(), vec![0xff]), None);
        assert_eq!(binary.to_text(), "--- /dev/null\n+++ b/x\n(binary: 0 bytes before, 1 after)\n");
        let empty = FileDiff::of(&Change::create(path.clone(), ""), None);
        assert_eq!(empty.to_text(), "--- /dev/null\n+++ b/x\n(empty file)\n");
        let gone = FileDiff::of(&Change::delete(path, None), Some(b"x\n"));
        assert_eq!(gone.to_text(), "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }
}
