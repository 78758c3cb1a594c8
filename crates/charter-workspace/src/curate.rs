//! Lists files for an agent (curate), and reads the approved ones (bundle).

use std::collections::BTreeMap;
use std::path::Path;

use charter_kernel::Digest;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::dir::{Dir, Node};
use crate::error::Error;
use crate::path::{RelPath, STAGE};
use crate::secrets::Secrets;
use crate::store::Within;
use crate::workspace::{PathState, Workspace};

/// Which files to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurateOptions {
    /// Patterns as in a `.gitignore`: files that match one are listed (all files if there are no
    /// patterns); a leading `!` excludes files.
    pub patterns: Vec<String>,
    /// Maximum number of files. Exceeding it is an error; the list is never truncated.
    pub max_files: usize,
    /// Maximum size of a file, in bytes. Larger files are skipped.
    pub max_file_bytes: u64,
}

impl Default for CurateOptions {
    fn default() -> CurateOptions {
        CurateOptions { patterns: Vec::new(), max_files: 2_000, max_file_bytes: 1 << 20 }
    }
}

/// The kind of content of a listed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileKind {
    /// UTF-8 without NUL bytes.
    Text,
    /// Anything else.
    Binary,
}

/// A file that an agent may request to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFile {
    /// The path of the file.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the content, 64 hex digits.
    pub sha256: String,
    /// The kind of content.
    pub kind: FileKind,
}

/// A list of files sorted by path, and the files that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The files.
    pub files: Vec<ListedFile>,
    /// Paths of skipped files, with the reason. Files that an ignore rule or pattern excludes are
    /// not included.
    pub skipped: BTreeMap<String, String>,
}

/// The contents of approved files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Path and content of each file.
    pub files: BTreeMap<RelPath, Vec<u8>>,
}

impl Bundle {
    /// Returns the digest of each file, for [`Changeset::bind`](crate::Changeset::bind).
    #[must_use]
    pub fn digests(&self) -> BTreeMap<RelPath, Digest> {
        self.files.iter().map(|(path, bytes)| (path.clone(), Digest::of_bytes(bytes))).collect()
    }

    /// Returns paths, sizes and digests, sorted by path: the value that [`digest`](Bundle::digest)
    /// covers.
    #[must_use]
    pub fn manifest(&self) -> Json {
        let one = |(path, bytes): (&RelPath, &Vec<u8>)| json!({"path": path.as_str(), "size": bytes.len(), "sha256": Digest::of_bytes(bytes).hex()});
        json!({"files": self.files.iter().map(one).collect::<Vec<_>>()})
    }

    /// Computes the SHA-256 of the canonical JSON of the [`manifest`](Bundle::manifest).
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of_json(&self.manifest())
    }
}

impl Workspace {
    /// Lists the files, except `.git`, the files that the workspace's `.gitignore` files exclude,
    /// and those that probably hold secrets, unless a pattern names them.
    ///
    /// # Errors
    /// The workspace is dirty, a pattern is invalid, there are too many files, or a folder cannot
    /// be read.
    pub fn curate(&self, what: &CurateOptions) -> Result<Listing, Error> {
        self.ensure_clean()?;
        let mut patterns = OverrideBuilder::new("");
        for pattern in &what.patterns {
            patterns.add(pattern).map_err(|e| Error::Usage(format!("invalid pattern `{pattern}`: {e}")))?;
        }
        let patterns = patterns.build().map_err(|e| Error::Usage(format!("invalid patterns: {e}")))?;
        let journal = self.journal.as_ref();
        let secrets = Secrets::new();
        let mut walk = Walk { what, patterns, journal, secrets, rules: Vec::new(), listing: Listing::default() };
        walk.folder(&self.root, "", 0)?;
        walk.listing.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walk.listing)
    }

    /// Reads the approved files. Each must still have the approved content.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a file has changed or is missing: the approval does not cover it.
    pub fn bundle(&self, approved: &[(RelPath, Digest)]) -> Result<Bundle, Error> {
        self.ensure_clean()?;
        let mut files = BTreeMap::new();
        for (path, digest) in approved {
            self.is_content(path)?;
            let shown = path.as_str();
            let conflict = |why: &str| Err(Error::Conflict { path: shown.to_owned(), why: why.to_owned() });
            let Some((dir, name)) = self.root.parent(path)? else {
                return conflict("no longer exists");
            };
            match dir.node(name, shown)? {
                Node::File { .. } => {}
                Node::Absent => return conflict("no longer exists"),
                other => {
                    return Err(crate::dir::escape(
                        shown,
                        &format!("is now {}; only regular files are read", other.describe()),
                    ));
                }
            }
            let (bytes, _) = dir.read(name, shown, crate::workspace::MAX_FILE_BYTES)?;
            if Digest::of_bytes(&bytes) != *digest {
                return conflict("has changed since the context was approved");
            }
            files.insert(path.clone(), bytes);
        }
        Ok(Bundle { files })
    }

    /// Returns the current content of a file, to show a diff; `None` if the file does not exist.
    ///
    /// # Errors
    /// The path leads out of the workspace, or the file cannot be read.
    pub fn content(&self, path: &RelPath) -> Result<Option<Vec<u8>>, Error> {
        match (self.look(path)?, self.root.parent(path)?) {
            (PathState::File { .. }, Some((dir, name))) => {
                dir.read(name, path.as_str(), crate::workspace::MAX_FILE_BYTES).map(|(bytes, _)| Some(bytes))
            }
            _ => Ok(None),
        }
    }
}

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 128;
/// Maximum size of a `.gitignore`, in bytes.
const MAX_RULES: u64 = 1 << 20;

struct Walk<'a> {
    what: &'a CurateOptions,
    patterns: Override,
    journal: Option<&'a Within>,
    secrets: Secrets,
    /// The `.gitignore` rules of each enclosing folder.
    rules: Vec<Gitignore>,
    listing: Listing,
}

impl Walk<'_> {
    fn folder(&mut self, dir: &Dir, at: &str, depth: usize) -> Result<(), Error> {
        let (names, invalid) = dir.names(at)?;
        for name in invalid {
            self.skip(&join(at, &name), "its name is not UTF-8");
        }
        if depth > MAX_DEPTH {
            self.skip(at, "folders are nested too deeply");
            return Ok(());
        }
        let own = rules(dir, at);
        let ours = own.is_some();
        self.rules.extend(own);
        for name in names {
            if depth == 0 && name == STAGE || name == ".git" {
                continue;
            }
            self.entry(dir, &name, &join(at, &name), depth)?;
        }
        if ours {
            self.rules.pop();
        }
        Ok(())
    }

    fn entry(&mut self, dir: &Dir, name: &str, path: &str, depth: usize) -> Result<(), Error> {
        if self.journal.is_some_and(|journal| journal.has(path)) {
            self.skip(path, "belongs to the journal of the run");
            return Ok(());
        }
        let node = dir.node(name, path)?;
        if self.ignored(path, node == Node::Folder) {
            return Ok(());
        }
        match node {
            Node::Folder => match dir.enter(name, path)? {
                Some(below) => self.folder(&below, path, depth.saturating_add(1)),
                None => Ok(()),
            },
            Node::File { size, .. } if size > self.what.max_file_bytes => {
                self.skip(path, &format!("{size} bytes; the limit is {}", self.what.max_file_bytes));
                Ok(())
            }
            Node::File { .. } => self.file(dir, name, path),
            Node::Link { .. } => {
                self.skip(path, "symbolic link, not followed");
                Ok(())
            }
            other => {
                self.skip(path, other.describe());
                Ok(())
            }
        }
    }

    fn file(&mut self, dir: &Dir, name: &str, path: &str) -> Result<(), Error> {
        if let Err(fault) = RelPath::parse(path) {
            self.skip(path, &format!("its path {fault}"));
            return Ok(());
        }
        if self.secrets.has(path) && !self.is_named(path) {
            self.skip(path, "may hold a secret; a pattern that is its name or path includes it");
            return Ok(());
        }
        let (bytes, _) = match dir.read(name, path, self.what.max_file_bytes) {
            Ok(read) => read,
            // A file that cannot be read does not fail the listing; it is skipped.
            Err(error) => {
                self.skip(path, &error.to_string());
                return Ok(());
            }
        };
        if self.listing.files.len() >= self.what.max_files {
            let why =
                format!("more than {} files; narrow the selection with patterns such as `src/**`", self.what.max_files);
            return Err(Error::TooLarge(why));
        }
        let text = std::str::from_utf8(&bytes).is_ok() && !bytes.contains(&0);
        self.listing.files.push(ListedFile {
            path: path.to_owned(),
            size: bytes.len() as u64,
            sha256: Digest::of_bytes(&bytes).hex(),
            kind: if text { FileKind::Text } else { FileKind::Binary },
        });
        Ok(())
    }

    /// Whether a path is ignored. Patterns decide first, then the innermost `.gitignore` with a
    /// matching rule.
    fn ignored(&self, path: &str, folder: bool) -> bool {
        match self.patterns.matched(path, folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) | Match::None => {}
        }
        for rules in self.rules.iter().rev() {
            match rules.matched(path, folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    /// Whether a pattern is the name or the path of a file, without wildcards.
    fn is_named(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.what.patterns.iter().any(|pattern| {
            let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
            pattern == path || pattern == name
        })
    }

    fn skip(&mut self, path: &str, why: &str) {
        self.listing.skipped.insert(path.to_owned(), why.to_owned());
    }
}

/// Reads the `.gitignore` rules of a folder. Invalid lines are ignored, as in git.
fn rules(dir: &Dir, at: &str) -> Option<Gitignore> {
    let (bytes, _) = dir.read(".gitignore", ".gitignore", MAX_RULES).ok()?;
    let mut builder = GitignoreBuilder::new(Path::new(at));
    for line in String::from_utf8_lossy(&bytes).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") }
}
