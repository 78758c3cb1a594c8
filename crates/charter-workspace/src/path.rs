//! Paths that a changeset may name, checked before any file is accessed.

use std::fmt;

use charter_kernel::visible::{is_invisible, is_joiner};

/// The folder inside a workspace in which an apply stages its files. No change may name it.
pub(crate) const STAGE: &str = ".charter-apply";

/// Maximum size of a path and of each name in it, in bytes, as in common file systems.
const MAX_PATH_BYTES: usize = 1_024;
const MAX_NAME_BYTES: usize = 255;

/// A path relative to a workspace: names separated by `/`, none of them empty, `.` or `..`. It is
/// UTF-8 without characters that could disguise it on a screen.
///
/// ```
/// use charter_workspace::RelPath;
/// assert!(RelPath::parse("src/main.rs").is_ok());
/// for bad in ["", "/etc/passwd", "a/../b", "a//b", "C:\\x", ".git/hooks/pre-commit"] {
///     assert!(RelPath::parse(bad).is_err());
/// }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(String);

/// Why a path is invalid, as a clause that follows "the path `...`".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPath(pub &'static str);

impl RelPath {
    /// Parses a path.
    ///
    /// # Errors
    /// The path could leave the workspace, or could look like another path.
    pub fn parse(text: &str) -> Result<RelPath, InvalidPath> {
        let fault = |why| Err(InvalidPath(why));
        if text.is_empty() {
            return fault("is empty: name a file such as `src/main.rs`");
        }
        if text.len() > MAX_PATH_BYTES {
            return fault("is longer than 1,024 bytes");
        }
        if text.starts_with('/') {
            return fault("is absolute: write it relative to the workspace, without the leading `/`");
        }
        if text.contains('\\') {
            return fault("contains a backslash: separate names with `/`");
        }
        if text.chars().any(misleading) {
            return fault("contains a control character or one that changes the text direction");
        }
        for (i, name) in text.split('/').enumerate() {
            match name {
                "" => return fault("contains an empty name: `//`, or a trailing `/`"),
                "." => return fault("contains `.`: remove it"),
                ".." => return fault("contains `..`: changes must stay inside the workspace"),
                _ => {}
            }
            if name.len() > MAX_NAME_BYTES {
                return fault("contains a name longer than 255 bytes");
            }
            if name.starts_with(' ') || name.ends_with(' ') {
                return fault("contains a name that starts or ends with a space");
            }
            if name.eq_ignore_ascii_case(".git") {
                return fault("leads into `.git`, where hooks would run as programs");
            }
            if i == 0 && name.eq_ignore_ascii_case(STAGE) {
                return fault("leads into `.charter-apply`, where an apply stages its files");
            }
        }
        if text.get(1..2) == Some(":") && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return fault("starts with a drive letter: write it relative to the workspace");
        }
        Ok(RelPath(text.to_owned()))
    }

    /// The path as text, with `/` between names.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Splits the path into its parent folders and its last name.
    #[must_use]
    pub(crate) fn split(&self) -> (Vec<&str>, &str) {
        match self.0.rsplit_once('/') {
            Some((folders, name)) => (folders.split('/').collect(), name),
            None => (Vec::new(), &self.0),
        }
    }

    /// Returns the parent folders, each as a path from the workspace: `a`, `a/b` for `a/b/c`.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| self.0.get(..at).unwrap_or_default())
    }
}

/// Whether a character can disguise text: control characters, those that are not seen, and those
/// that change the direction of others.
pub(crate) fn misleading(c: char) -> bool {
    c.is_control() || is_invisible(c) || is_joiner(c)
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

impl fmt::Display for InvalidPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_and_cannot_be_disguised() {
        for good in ["a", "a/b.c", "ä/ö", "...", "a/..b", ".gitignore", "a b/c", "xy:y/z", "src/.charter-apply"] {
            assert_eq!(RelPath::parse(good).map(|p| p.0), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/..",
            "../a",
            "./a",
            "a/./b",
            "a\\b",
            "a\0b",
            "a\nb",
            "a\u{202e}b",
            ".git",
            "x/.GIT/y",
            " a",
            "a /b",
            ".charter-apply/0",
            "c:/x",
        ] {
            assert!(RelPath::parse(bad).is_err(), "{bad:?}");
        }
        assert!(RelPath::parse(&"a".repeat(256)).is_err());
        assert!(RelPath::parse(&"a/".repeat(600)).is_err());
    }

    #[test]
    fn parent_folders() {
        let path = RelPath::parse("a/b/c").unwrap();
        assert_eq!(path.folders().collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(path.split(), (vec!["a", "b"], "c"));
    }
}
