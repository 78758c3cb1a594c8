//! CurateOptions and bundle: which files there are, and what the approved ones hold.

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
use crate::workspace::{PathState, Workspace};

/// What is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurateOptions {
    /// Patterns as in a `.gitignore`: what matches one is listed (all, if there is none); with `!` in front: not listed.
    pub patterns: Vec<String>,
    /// Files at most; more is an error, not a part of them.
    pub max_files: usize,
    /// Bytes of a file; larger ones are passed over.
    pub max_file_bytes: u64,
}

impl Default for CurateOptions {
    fn default() -> CurateOptions {
        CurateOptions { patterns: Vec::new(), max_files: 2_000, max_file_bytes: 1 << 20 }
    }
}

/// What a listed file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// UTF-8 without zero bytes.
    Text,
    /// Anything else.
    Binary,
}

/// A file that an agent may ask to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFile {
    /// Where it is.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// SHA-256 of its content, 64 hex digits.
    pub sha256: String,
    /// What it holds.
    pub kind: FileKind,
}

/// A list of files, sorted by path, and what was passed over (the path, and why).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The files.
    pub files: Vec<ListedFile>,
    /// What is there and not listed, unless an ignore rule or pattern said so.
    pub passed_over: BTreeMap<String, String>,
}

/// The contents of approved files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Each file and what it holds.
    pub files: BTreeMap<RelPath, Vec<u8>>,
}

impl Bundle {
    /// The digest of each file, for [`Changeset::bind`](crate::Changeset::bind).
    #[must_use]
    pub fn digests(&self) -> BTreeMap<RelPath, Digest> {
        self.files.iter().map(|(path, bytes)| (path.clone(), Digest::of_bytes(bytes))).collect()
    }

    /// Paths, sizes and digests, sorted by path: what its digest is taken over.
    #[must_use]
    pub fn manifest(&self) -> Json {
        let one = |(path, bytes): (&RelPath, &Vec<u8>)| json!({"path": path.as_str(), "size": bytes.len(), "sha256": Digest::of_bytes(bytes).hex()});
        json!({"files": self.files.iter().map(one).collect::<Vec<_>>()})
    }

    /// SHA-256 over the canonical JSON of the [`manifest`](Bundle::manifest).
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of_json(&self.manifest())
    }
}

impl Workspace {
    /// Lists the files. `.git` is left out, and so is what the workspace's own `.gitignore` files say.
    ///
    /// # Errors
    /// When the workspace is dirty, a pattern cannot be read, there are too many files, or something cannot be read.
    pub fn curate(&self, what: &CurateOptions) -> Result<Listing, Error> {
        self.clean()?;
        let mut patterns = OverrideBuilder::new("");
        for pattern in &what.patterns {
            patterns.add(pattern).map_err(|e| Error::Usage(format!("the pattern `{pattern}`: {e}")))?;
        }
        let patterns = patterns.build().map_err(|e| Error::Usage(format!("the patterns: {e}")))?;
        let mut walk = Walk { what, patterns, rules: Vec::new(), listing: Listing::default() };
        walk.folder(&self.root, "", 0)?;
        walk.listing.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walk.listing)
    }

    /// Reads the approved files. Each must still be what was approved.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a file has changed or gone: the approval was of something else.
    pub fn bundle(&self, approved: &[(RelPath, Digest)]) -> Result<Bundle, Error> {
        self.clean()?;
        let mut files = BTreeMap::new();
        for (path, digest) in approved {
            let shown = path.as_str();
            let conflict = |why: &str| Err(Error::Conflict { path: shown.to_owned(), why: why.to_owned() });
            let Some((dir, name)) = self.root.parent(path)? else {
                return conflict("is not there any more");
            };
            match dir.node(name, shown)? {
                Node::File { .. } => {}
                Node::Absent => return conflict("is not there any more"),
                other => {
                    return Err(crate::dir::escape(shown, &format!("is {} now, which is not read", other.words())));
                }
            }
            let (bytes, _) = dir.read(name, shown, crate::workspace::MAX_FILE_BYTES)?;
            if Digest::of_bytes(&bytes) != *digest {
                return conflict("was changed since the context was approved");
            }
            files.insert(path.clone(), bytes);
        }
        Ok(Bundle { files })
    }

    /// The content of a file as it is now, for showing a difference; nothing if there is none.
    ///
    /// # Errors
    /// When the path leads outside, or it cannot be read.
    pub fn content(&self, path: &RelPath) -> Result<Option<Vec<u8>>, Error> {
        match (self.look(path)?, self.root.parent(path)?) {
            (PathState::File { .. }, Some((dir, name))) => {
                dir.read(name, path.as_str(), crate::workspace::MAX_FILE_BYTES).map(|(bytes, _)| Some(bytes))
            }
            _ => Ok(None),
        }
    }
}

/// Folders inside each other.
const MAX_DEPTH: usize = 128;
/// Bytes of a `.gitignore`.
const MAX_RULES: u64 = 1 << 20;

struct Walk<'a> {
    what: &'a CurateOptions,
    patterns: Override,
    /// The `.gitignore` of each folder on the way.
    rules: Vec<Gitignore>,
    listing: Listing,
}

impl Walk<'_> {
    fn folder(&mut self, dir: &Dir, at: &str, depth: usize) -> Result<(), Error> {
        let (names, odd) = dir.names(at)?;
        for name in odd {
            self.pass(&join(at, &name), "its name is not UTF-8");
        }
        if depth > MAX_DEPTH {
            self.pass(at, "too many folders inside each other");
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
                self.pass(path, &format!("it has {size} bytes, more than {}", self.what.max_file_bytes));
                Ok(())
            }
            Node::File { .. } => self.file(dir, name, path),
            Node::Link { .. } => {
                self.pass(path, "a symbolic link, which is not followed");
                Ok(())
            }
            other => {
                self.pass(path, other.words());
                Ok(())
            }
        }
    }

    fn file(&mut self, dir: &Dir, name: &str, path: &str) -> Result<(), Error> {
        if let Err(fault) = RelPath::parse(path) {
            self.pass(path, &format!("its path {fault}"));
            return Ok(());
        }
        let (bytes, _) = match dir.read(name, path, self.what.max_file_bytes) {
            Ok(read) => read,
            // Nobody is stopped by a file that may not be read; it is only not part of the context.
            Err(error) => {
                self.pass(path, &error.to_string());
                return Ok(());
            }
        };
        if self.listing.files.len() >= self.what.max_files {
            let why = format!("more than {} files; choose some with patterns, like `src/**`", self.what.max_files);
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

    /// The patterns first, then the rules of the innermost folder that says something.
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

    fn pass(&mut self, path: &str, why: &str) {
        self.listing.passed_over.insert(path.to_owned(), why.to_owned());
    }
}

/// The `.gitignore` of a folder; a line that cannot be read is no rule, as in git.
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
