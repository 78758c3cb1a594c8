//! `FILE-head`: the head of the journal, beside the journal file. It is written after each commit
//! and before its records are acknowledged, so it says what a log that is damaged or missing after
//! a crash must have contained.
//!
//! Two slots of one disk sector each are written in turn, so that a power cut leaves at least one.
//! A write needs no sync of its own: it survives the end of the process, and after a power cut the
//! slots can only be behind the file.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};

use super::super::guest;
use crate::head::JournalHead;
use crate::private::{create_private, share_like};

/// Size of a slot in bytes: the smallest sector of a disk.
const SLOT: usize = 512;

/// Number of characters of the checksum at the start of a slot.
const CHECKSUM: usize = 16;

/// Maximum number of runs that a slot names.
pub(super) const MAX_LATEST: usize = 8;

/// Content of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slot {
    /// The journal to which it belongs.
    pub(super) journal: String,
    pub(super) head: JournalHead,
    /// The runs written last, latest first, each with the sequence number of its last record: as
    /// many as fit.
    pub(super) latest: Vec<(String, u64)>,
}

impl Slot {
    /// Writes a slot: a checksum, the content as JSON, spaces, and a line feed.
    fn bytes(&self) -> [u8; SLOT] {
        let mut slot = self.clone();
        let mut text = String::new();
        loop {
            // Serializing plain data cannot fail.
            let json = serde_json::to_string(&slot).unwrap_or_default();
            if json.len() <= SLOT.saturating_sub(CHECKSUM.saturating_add(2)) || slot.latest.pop().is_none() {
                text.push_str(&checksum(&json));
                text.push(' ');
                text.push_str(&json);
                break;
            }
        }
        let mut bytes = [b' '; SLOT];
        bytes.iter_mut().zip(text.as_bytes()).for_each(|(to, from)| *to = *from);
        if let Some(last) = bytes.last_mut() {
            *last = b'\n';
        }
        bytes
    }

    /// Reads a slot; `None` if it is damaged.
    fn read(bytes: &[u8]) -> Option<Slot> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.trim_end_matches(' ');
        let (sum, json) = text.split_once(' ')?;
        (checksum(json) == sum).then(|| serde_json::from_str(json).ok()).flatten()
    }
}

fn checksum(json: &str) -> String {
    let mut hex = Digest::of_bytes(json.as_bytes()).hex();
    hex.truncate(CHECKSUM);
    hex
}

/// What is found beside a journal file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no such file.
    Absent,
    /// No slot can be read; the reason, as a clause.
    Damaged(String),
    /// The newest slot.
    Newest(Slot),
}

/// The name of the file: `FILE-head`.
pub(super) fn name(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push("-head");
    name.into()
}

/// Reads the file beside a journal.
pub(super) fn read(journal: &Path) -> Found {
    let mut bytes = Vec::new();
    let limit = u64::try_from(SLOT.saturating_mul(2)).unwrap_or(u64::MAX);
    match File::open(name(journal)).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Found::Absent,
        Err(e) => return Found::Damaged(format!("it cannot be read: {e}")),
    }
    let newest = slots(&bytes).into_iter().flatten().max_by_key(|slot| slot.head.entries);
    newest.map_or_else(|| Found::Damaged("it is damaged".into()), Found::Newest)
}

fn slots(bytes: &[u8]) -> Vec<Option<Slot>> {
    bytes.chunks(SLOT).map(Slot::read).collect()
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: File,
    /// The slot to write next: 0 or 1.
    next: u8,
}

impl HeadFile {
    /// Opens the file; `None` if it is absent or no slot can be read.
    pub(super) fn open(journal: &Path) -> std::io::Result<Option<HeadFile>> {
        let mut file = match OpenOptions::new().read(true).write(true).open(name(journal)) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut bytes = Vec::new();
        let limit = u64::try_from(SLOT.saturating_mul(2)).unwrap_or(u64::MAX);
        std::io::Read::by_ref(&mut file).take(limit).read_to_end(&mut bytes)?;
        let entries = |slot: &Option<Slot>| slot.as_ref().map(|s| s.head.entries);
        let next = match slots(&bytes).as_slice() {
            [first, second] if entries(first) > entries(second) => 1,
            [_, Some(_)] | [Some(_), _] => 0,
            _ => return Ok(None),
        };
        Ok(Some(HeadFile { file, next }))
    }

    /// Creates or replaces the file, with the same content in both slots, and syncs it: later
    /// writes only overwrite.
    pub(super) fn create(journal: &Path, slot: &Slot) -> std::io::Result<HeadFile> {
        let name = name(journal);
        let mut new = name.clone().into_os_string();
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        let _ = std::fs::remove_file(&new);
        let written: std::io::Result<File> = (|| {
            let mut file = create_private(&new)?;
            guest::give_to_owner(&file, journal)?;
            share_like(&file, journal)?;
            let bytes = slot.bytes();
            file.write_all(&bytes)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&new, &name)?;
            sync_folder(&name)?;
            Ok(file)
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        Ok(HeadFile { file: written?, next: 0 })
    }

    /// Overwrites the older slot.
    pub(super) fn write(&mut self, slot: &Slot) -> std::io::Result<()> {
        write_at(&mut self.file, &slot.bytes(), u64::from(self.next).saturating_mul(SLOT as u64))?;
        self.next ^= 1;
        Ok(())
    }

    /// Syncs the slots.
    pub(super) fn sync(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }

    /// A second descriptor, to sync the slots on another thread.
    pub(super) fn handle(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}

#[cfg(unix)]
fn write_at(file: &mut File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(file: &mut File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    use std::io::{Seek as _, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// Makes a new name in a folder durable.
fn sync_folder(name: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = name.parent().filter(|f| !f.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = name;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(entries: u64) -> Slot {
        let head = JournalHead { runs: 1, records: entries, entries, hash: Digest::of_bytes(&entries.to_le_bytes()) };
        Slot { journal: "j".into(), head, latest: vec![("a".into(), entries)] }
    }

    #[test]
    fn one_torn_slot_leaves_the_other() {
        let folder = charter_test_support::Folder::new();
        let journal = folder.file("journal.db");
        assert_eq!(read(&journal), Found::Absent);
        let mut file = HeadFile::create(&journal, &slot(0)).unwrap();
        for n in 1..=4 {
            file.write(&slot(n)).unwrap();
            assert_eq!(read(&journal), Found::Newest(slot(n)));
        }
        let whole = std::fs::read(name(&journal)).unwrap();
        assert_eq!(whole.len(), 2 * SLOT);
        // Slot 1 is the newest. Every torn version of it leaves slot 0.
        for cut in SLOT..2 * SLOT {
            let mut torn = whole.clone();
            torn[cut] ^= 1;
            std::fs::write(name(&journal), &torn).unwrap();
            assert_eq!(read(&journal), Found::Newest(slot(3)), "{cut}");
        }
        let mut both = whole.clone();
        (both[20], both[SLOT + 20]) = (0, 0);
        std::fs::write(name(&journal), &both).unwrap();
        assert_eq!(read(&journal), Found::Damaged("it is damaged".into()));
        assert!(HeadFile::open(&journal).unwrap().is_none());
        // A reopened file continues with the older slot.
        std::fs::write(name(&journal), &whole).unwrap();
        let mut file = HeadFile::open(&journal).unwrap().unwrap();
        file.write(&slot(5)).unwrap();
        let bytes = std::fs::read(name(&journal)).unwrap();
        assert_eq!(slots(&bytes), [Some(slot(5)), Some(slot(4))]);
    }

    #[test]
    fn a_slot_names_as_many_runs_as_fit() {
        let mut long = slot(u64::MAX);
        long.latest = (0..MAX_LATEST).map(|n| (format!("{n}{}", "\u{1}".repeat(40)), 7)).collect();
        let read = Slot::read(&long.bytes()).unwrap();
        assert_eq!(read.head, long.head);
        assert!(!read.latest.is_empty() && read.latest.len() < MAX_LATEST);
        assert_eq!(read.latest, long.latest[..read.latest.len()]);
    }
}
