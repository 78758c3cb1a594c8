//! Tests a power cut at any write of a workload: the last write is missing or incomplete on the
//! disk.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use charter_journal::{Append, SqliteStore, Store};

use charter_test_support::full;

use super::{EVENTS, kept, put_charters, recovers, workload};
use crate::common::*;
use crate::heads::beside;

/// A copy of the file, its WAL and its head.
struct Image {
    file: Vec<u8>,
    wal: Vec<u8>,
    head: Vec<u8>,
}

impl Image {
    fn of(file: &Path) -> Image {
        let [file, wal, head] = ["", "-wal", "-head"].map(|end| fs::read(beside(file, end)).unwrap());
        Image { file, wal, head }
    }
}

/// A disk after a power cut, on which the last write is incomplete.
struct Disk {
    folder: Folder,
}

impl Disk {
    fn new(image: &Image) -> Disk {
        let disk = Disk { folder: Folder::new() };
        fs::write(disk.file(), &image.file).unwrap();
        fs::write(beside(&disk.file(), "-wal"), &image.wal).unwrap();
        disk.head(&image.head);
        disk
    }

    fn file(&self) -> PathBuf {
        self.folder.file("journal.db")
    }

    /// Writes to the WAL.
    fn wal(&self, at: usize, bytes: &[u8], len: Option<usize>) {
        let mut wal = OpenOptions::new().write(true).open(beside(&self.file(), "-wal")).unwrap();
        wal.seek(SeekFrom::Start(at as u64)).unwrap();
        wal.write_all(bytes).unwrap();
        if let Some(len) = len {
            wal.set_len(len as u64).unwrap();
        }
    }

    /// Replaces the head: any version since its last sync can be on the disk.
    fn head(&self, bytes: &[u8]) {
        fs::write(beside(&self.file(), "-head"), bytes).unwrap();
    }

    /// Returns the number of events on the disk without changing it.
    fn kept(&self) -> usize {
        let _ = fs::remove_file(beside(&self.file(), "-shm"));
        let store = SqliteStore::open_read_only(&self.file()).unwrap();
        kept(&store)
    }

    /// Checks the recovery of a copy of the disk.
    fn recovers(&self, acknowledged: usize, workload: &[Append]) {
        let copy = Folder::new();
        for end in ["", "-wal", "-head"] {
            fs::copy(beside(&self.file(), end), beside(&copy.file("journal.db"), end)).unwrap();
        }
        recovers(&copy.file("journal.db"), acknowledged, workload);
    }
}

const FRAME: usize = 24 + 4096;

/// Cuts the power after every write of the workload, complete or torn: first in a new WAL, then in
/// a WAL that is reused after a checkpoint (old frames follow the last write), then during the
/// checkpoint itself.
#[test]
fn a_power_cut_at_any_write_loses_nothing() {
    let workload = workload();
    let (first, second) = workload.split_at(EVENTS / 2);
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    put_charters(&store);
    let checkpoint = || {
        let other = rusqlite::Connection::open(&file).unwrap();
        let busy: i64 = other.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0);
    };
    checkpoint();
    let start = Image::of(&file);
    // The length of the WAL when an event is acknowledged: only frames with the salt of its header
    // count.
    let written = || {
        let mut wal = fs::File::open(beside(&file, "-wal")).unwrap();
        let mut head = [0; 32];
        wal.read_exact(&mut head).unwrap();
        let mut end = 32;
        let mut frame = [0; 24];
        while wal.seek(SeekFrom::Start(end)).is_ok() && wal.read_exact(&mut frame).is_ok() {
            if frame[8..16] != head[16..24] {
                break;
            }
            end += FRAME as u64;
        }
        end as usize
    };
    let run = |events: &[Append]| -> (Vec<usize>, Vec<Vec<u8>>) {
        let one = |append: &Append| {
            store.append(vec![append.clone()]).unwrap();
            (written(), fs::read(beside(&file, "-head")).unwrap())
        };
        events.iter().map(one).unzip()
    };
    let (first_ends, first_heads) = run(first);
    let middle = Image::of(&file);
    checkpoint();
    let checked = Image::of(&file);
    let (second_ends, second_heads) = run(second);
    let end = Image::of(&file);
    assert!(end.wal.len() >= middle.wal.len() && second_ends[0] < middle.wal.len());

    let phases =
        [(&start, &middle, &first_ends, &first_heads, 0), (&checked, &end, &second_ends, &second_heads, first.len())];
    let mut looked = 0;
    for (before, after, ends, heads, already) in phases {
        let last = *ends.last().unwrap();
        // Go backwards: each step removes the bytes that were written after it.
        let disk = Disk::new(&Image { file: before.file.clone(), wal: after.wal.clone(), head: before.head.clone() });
        let mut top = after.wal.len();
        for frame in (0..=(last - 32) / FRAME).rev() {
            let from = 32 + frame * FRAME;
            let cuts = [from + 2_000, from + 24, from + 7, from];
            for (n, cut) in cuts.into_iter().enumerate() {
                // One cut in each frame, at another place in each, unless CI asks for all.
                if cut > last || !full() && n != frame % cuts.len() {
                    continue;
                }
                // The old content follows the cut, if there is any.
                let old = before.wal.get(cut..top.min(before.wal.len()).max(cut));
                disk.wal(cut, old.unwrap_or_default(), Some(cut.max(before.wal.len())));
                top = cut;
                let acknowledged = already + ends.iter().filter(|end| **end <= cut).count();
                assert_eq!(disk.kept(), acknowledged, "cut at {cut}");
                looked += 1;
                if looked % 53 == 0 {
                    // The newest head that can be on the disk, every other time the oldest.
                    let newest = ends.iter().filter(|end| **end <= cut).count().checked_sub(1);
                    let newest = newest.filter(|_| looked % 2 == 0).map(|n| &heads[n]);
                    disk.head(newest.unwrap_or(&before.head));
                    disk.recovers(acknowledged, &workload);
                }
            }
        }
    }
    assert!(looked > if full() { 4 * EVENTS } else { EVENTS }, "{looked}");

    // The checkpoint writes the pages to the file one by one; the WAL still has all pages.
    let disk = Disk::new(&middle);
    let pages = checked.file.len() / 4096;
    for page in 0..=pages {
        let mut file = checked.file[..page * 4096].to_vec();
        if page < pages {
            file.extend(&checked.file[page * 4096..][..1_500]);
        }
        if let Some(rest) = middle.file.get(file.len()..) {
            file.extend(rest);
        }
        fs::write(disk.file(), &file).unwrap();
        assert_eq!(disk.kept(), first.len(), "{page} pages");
        if page % 23 == 0 {
            disk.recovers(first.len(), &workload);
        }
    }
}
