//! What the guard reads of a Git repository without running `git`: which files the index lists, and
//! which names are those of branches and tags.

use std::fs;
use std::path::{Path, PathBuf};

/// The largest index, and the largest list of packed references, that is read.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of an entry in front of its name, and of its part with the flags.
const ENTRY_BYTES: usize = 62;
const HASH_BYTES: usize = 20;

/// A repository.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// The folder of the working files.
    pub(crate) top: PathBuf,
    /// The folder with the index, and the one with the references.
    own: PathBuf,
    common: PathBuf,
}

impl Repository {
    /// The repository that a folder is in, as `git` finds it.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let top = folder.ancestors().take(256).find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
        let marker = top.join(".git");
        let own = if marker.is_dir() {
            marker
        } else {
            top.join(
                read(&marker)?
                    .strip_prefix(b"gitdir:".as_slice())
                    .and_then(|text| std::str::from_utf8(text).ok())?
                    .trim(),
            )
        };
        let common = match read(&own.join("commondir")) {
            Some(text) => own.join(std::str::from_utf8(&text).ok()?.trim()),
            None => own.clone(),
        };
        Some(Self { top: top.to_path_buf(), own, common })
    }

    /// The files that the index lists, relative to the top; nothing if it cannot be read.
    pub(crate) fn tracked(&self) -> Option<Vec<String>> {
        let index = self.own.join("index");
        match index.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
            _ => names(&read(&index)?),
        }
    }

    /// Whether a name is that of a branch or a tag, here or of a remote, and can mean nothing else.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let parts_plain =
            name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with('.'));
        if name.is_empty() || name.starts_with('-') || !is_plain(name) || !parts_plain {
            return false;
        }
        let packed = self.packed();
        let is_packed =
            |full: &str| packed.lines().any(|line| line.split_once(' ').is_some_and(|(_, name)| name == full));
        let exists =
            |full: &str| [&self.own, &self.common].iter().any(|folder| folder.join(full).is_file()) || is_packed(full);
        !exists(name)
            && !exists(&format!("refs/{name}"))
            && ["heads", "tags", "remotes"].iter().any(|kind| exists(&format!("refs/{kind}/{name}")))
    }

    /// Whether a word may be a revision to `git`, or a branch of a remote that it would take for
    /// one.
    pub(crate) fn may_name(&self, word: &str) -> bool {
        let hex = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        // `v1-3-g0123abc` is the commit 0123abc.
        let described = word.rsplit_once("-g").is_some_and(|(_, id)| hex(id));
        if !is_plain(word) || hex(word) || described {
            return true;
        }
        let packed = self.packed();
        let end = format!("/{word}");
        let is_packed = packed.lines().any(|line| line.ends_with(&end) || line.contains(&format!("/{word}/")));
        let remotes = self.common.join("refs/remotes").read_dir().into_iter().flatten().flatten();
        let own = ["", "refs", "refs/heads", "refs/tags", "refs/remotes"].map(PathBuf::from);
        let mut folders =
            own.into_iter().chain(remotes.map(|remote| Path::new("refs/remotes").join(remote.file_name())));
        let exists = |folder: PathBuf| {
            [&self.own, &self.common].iter().any(|own| own.join(&folder).join(word).symlink_metadata().is_ok())
        };
        is_packed || self.common.join("reftable").exists() || folders.any(exists)
    }

    /// The list of packed references: a line for each.
    fn packed(&self) -> String {
        let list = read(&self.common.join("packed-refs")).unwrap_or_default();
        String::from_utf8_lossy(&list).into_owned()
    }
}

/// Whether a name has only characters that mean nothing to `git`.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c)) && !name.contains("..")
}

/// The content of a regular file that is not too large.
fn read(file: &Path) -> Option<Vec<u8>> {
    fs::metadata(file).ok().filter(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE_BYTES)?;
    fs::read(file).ok().filter(|content| content.len() as u64 <= MAX_FILE_BYTES)
}

/// The names in an index of version 2, 3 or 4 with SHA-1; nothing if it is split, sparse or other.
fn names(index: &[u8]) -> Option<Vec<String>> {
    if index.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(index, 4)?;
    let count = usize::try_from(number(index, 8)?).ok()?;
    if !(2..=4).contains(&version) || count > index.len() {
        return None;
    }
    let (mut at, mut names, mut last) = (12_usize, Vec::new(), Vec::new());
    for _ in 0..count {
        let flags = u16::from_be_bytes(index.get(at.checked_add(60)?..at.checked_add(62)?)?.try_into().ok()?);
        let extended = if version >= 3 && flags & 0x4000 != 0 { 2 } else { 0 };
        let mut start = at.checked_add(ENTRY_BYTES)?.checked_add(extended)?;
        if version == 4 {
            let (removed, length) = prefix(index.get(start..)?)?;
            start = start.checked_add(length)?;
            last.truncate(last.len().checked_sub(removed)?);
        } else {
            last.clear();
        }
        let length = index.get(start..)?.iter().position(|byte| *byte == 0)?;
        let end = start.checked_add(length)?;
        last.extend_from_slice(index.get(start..end)?);
        at = match version {
            4 => end.checked_add(1)?,
            // Entries end with one to eight zeros, so that their length is a multiple of eight.
            _ => at.checked_add(end.checked_sub(at)?.checked_add(8)? & !7)?,
        };
        // Only the length of a name that is not too long is in the flags; with SHA-256 it differs.
        let short = usize::from(flags & 0x0fff);
        if short != last.len().min(0x0fff) {
            return None;
        }
        names.push(String::from_utf8_lossy(&last).into_owned());
    }
    // Extensions follow. Two of them say that entries are elsewhere.
    let end = index.len().checked_sub(HASH_BYTES)?;
    while at < end {
        let kind = index.get(at..at.checked_add(4)?)?;
        if kind == b"link" || kind == b"sdir" {
            return None;
        }
        let length = usize::try_from(number(index, at.checked_add(4)?)?).ok()?;
        at = at.checked_add(8)?.checked_add(length)?;
    }
    (at == end).then_some(names)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// How many bytes of the name before a name does not have, and how many bytes say so.
fn prefix(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value = value.checked_shl(7)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some((value, at.checked_add(1)?));
        }
        value = value.checked_add(1)?;
    }
    None
}
