//! What is on a disk, and what a power cut leaves of it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::random::Random;

/// Size of a sector in bytes: a sector that is not synced is on the disk or is not.
const SECTOR: usize = 512;

/// The files of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// The content of each file.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// Writes the files into a folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        self.files.iter().try_for_each(|(name, content)| std::fs::write(folder.join(name), content))
    }

    /// Reads the files of a folder.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(folder: &Path) -> std::io::Result<Image> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
        }
        Ok(Image { files })
    }
}

/// A change of a file that is not synced.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// A file, as SQLite has written it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    /// Whether the name is durable.
    pub(crate) named: bool,
    /// What is certainly on the disk.
    pub(crate) durable: Vec<u8>,
    /// What was written since.
    pub(crate) pending: Vec<Change>,
    /// How many of these no sync writes any more: an earlier one has failed.
    pub(crate) given_up: usize,
}

impl Written {
    /// Makes everything durable that a sync can make durable.
    pub(crate) fn sync(&mut self) {
        self.named = true;
        let mut given_up: Vec<Change> = self.pending.drain(..self.given_up).collect();
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
            // What was not written before is not written over what is durable now.
            given_up = given_up.into_iter().flat_map(|old| without(old, &change)).collect();
        }
        self.given_up = given_up.len();
        self.pending = given_up;
    }

    /// Notes that a sync has failed.
    pub(crate) fn give_up(&mut self) {
        self.given_up = self.pending.len();
    }

    /// The content after a power cut.
    pub(crate) fn survivor(&self, random: &mut Random) -> Vec<u8> {
        let mut content = self.durable.clone();
        // All, none, the first ones, or any: each change, or each sector of it.
        let how = random.below(5);
        let first = random.below(self.pending.len() + 1);
        for (n, change) in self.pending.iter().enumerate() {
            match (how, change) {
                (0, _) => apply(&mut content, change),
                (1, _) => {}
                (2, _) if n < first => apply(&mut content, change),
                (2, Change::Write(at, bytes)) if n == first => {
                    // The last write is torn.
                    let cut = random.below(bytes.len() + 1);
                    apply(&mut content, &Change::Write(*at, bytes[..cut].to_vec()));
                }
                (3, Change::Write(at, bytes)) => {
                    let mut from = 0;
                    while from < bytes.len() {
                        let to = ((at + from) / SECTOR * SECTOR + SECTOR - at).min(bytes.len());
                        if random.one_in(2) {
                            apply(&mut content, &Change::Write(at + from, bytes[from..to].to_vec()));
                        }
                        from = to;
                    }
                }
                (3 | 4, _) if random.one_in(2) => apply(&mut content, change),
                _ => {}
            }
        }
        content
    }
}

pub(crate) fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, bytes) => {
            if content.len() < at + bytes.len() {
                content.resize(at + bytes.len(), 0);
            }
            content[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        Change::Truncate(len) => content.resize(*len, 0),
    }
}

/// What is left of an older change that a newer one does not touch.
fn without(old: Change, new: &Change) -> Vec<Change> {
    let (at, bytes) = match old {
        Change::Write(at, bytes) => (at, bytes),
        Change::Truncate(_) => return Vec::new(),
    };
    let end = at + bytes.len();
    let (from, to) = match new {
        Change::Write(from, bytes) => (*from, *from + bytes.len()),
        Change::Truncate(len) => (*len, usize::MAX),
    };
    let mut left = Vec::new();
    if at < from.min(end) {
        left.push(Change::Write(at, bytes[..from.min(end) - at].to_vec()));
    }
    if to.max(at) < end {
        left.push(Change::Write(to.max(at), bytes[to.max(at) - at..].to_vec()));
    }
    left
}
