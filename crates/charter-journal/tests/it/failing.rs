//! Acknowledged records survive and nothing is written twice: on a full disk, after partial writes,
//! while another program locks the file, and when a process dies between any two writes.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::*;
use charter_journal::{
    Append, MemoryStore, RunFilter, SqliteOptions, SqliteStore, Store, StoreError, StoredSnapshot, load, verify,
};
use charter_kernel::{Digest, Machine, Principal};
use serde_json::json;

/// Continues a run from its state in the store.
fn resume<'m>(store: &SqliteStore, machine: &'m Machine, run: &str) -> Driver<'m> {
    let loaded = load(store, machine, run).unwrap();
    Driver { machine, chain: loaded.chain, snapshot: loaded.snapshot, now: T0 + 1_000_000 }
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let folder = Folder::new("full");
    let file = folder.file();
    let machine = machine(LOOSE);
    let by = Principal::default();
    let mut acknowledged = 0;
    {
        let (mut driver, first) = Driver::start(&machine, "a");
        let options = SqliteOptions { max_bytes: 400_000 };
        let store = SqliteStore::open_with(&file, &options).unwrap();
        store.put_charter(&stored(LOOSE)).unwrap();
        store.append(vec![first]).unwrap();
        let text = "x".repeat(50_000);
        store.put_snapshot("a", &StoredSnapshot { seq: 0, text }).unwrap();
        let refused = loop {
            let append = driver.send("SET", json!("x".repeat(3_000)), &by);
            match store.append(vec![append.clone()]) {
                Ok(()) => acknowledged += 1,
                Err(e) => {
                    assert_eq!(
                        e.to_string(),
                        "nothing was written: the disk is full, or the file has reached its size limit; fix the cause and try again"
                    );
                    break append;
                }
            }
        };
        assert!(acknowledged > 20, "{acknowledged}");
        // The same error every time; reading still works.
        assert!(matches!(store.append(vec![refused.clone()]), Err(StoreError::NotWritten { .. })));
        assert_eq!(store.run("a").unwrap().unwrap().seq, acknowledged);
        assert_eq!(store.stopped(), None);
        // With space again, the same record is accepted.
        store.forget_snapshots().unwrap();
        store.append(vec![refused]).unwrap();
        acknowledged += 1;
        assert_eq!(store.container_problems().unwrap(), Vec::<String>::new());
    }
    let store = SqliteStore::open(&file).unwrap();
    let mut driver = resume(&store, &machine, "a");
    assert_eq!(driver.chain.next_seq(), acknowledged + 1);
    let append = driver.send("SET", json!("x".repeat(3_000)), &by);
    store.append(vec![append]).unwrap();
    assert_eq!(verify(&store, None).unwrap().findings, []);
}

#[test]
fn a_lock_held_by_another_program_loses_nothing() {
    let folder = Folder::new("busy");
    let file = folder.file();
    let store = SqliteStore::open(&file).unwrap();
    store.put_charter(&stored(LOOSE)).unwrap();
    let machine = machine(LOOSE);
    let (mut driver, first) = Driver::start(&machine, "a");
    store.append(vec![first]).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = driver.send("GO", json!({}), &Principal::default());
    assert_eq!(
        store.append(vec![append.clone()]).unwrap_err().to_string(),
        "nothing was written: another program is writing to the file; fix the cause and try again"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.append(vec![append]).unwrap();
    assert_eq!(store.run("a").unwrap().unwrap().seq, 1);
}

/// Number of events of the workload.
const EVENTS: usize = 200;

/// A fixed workload of two interleaved runs, with snapshots, effects, timers and refusals.
fn workload() -> Vec<Append> {
    let (desk, loose) = (machine(DESK), machine(LOOSE));
    let acts = some_acts(EVENTS / 2 - 1);
    let runs = [drive(&desk, "a", &acts), drive(&loose, "b", &acts)];
    let [a, b] = runs.map(Vec::into_iter);
    let all: Vec<_> = a.zip(b).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(all.len(), EVENTS);
    all
}

fn put_charters(store: &SqliteStore) {
    for source in [DESK, LOOSE] {
        store.put_charter(&stored(source)).unwrap();
    }
}

/// Number of events of the workload in a store: a prefix, in order and without gaps.
fn kept(store: &SqliteStore) -> usize {
    let seqs = ["a", "b"].map(|run| store.run(run).unwrap().map(|r| r.seq as usize + 1));
    let [a, b] = seqs.map(Option::unwrap_or_default);
    assert!(a == b || a == b + 1, "{a} of one run, {b} of the other");
    a + b
}

/// Reopens a store after a crash: all acknowledged events are there, and at most one more; it
/// verifies, and continues to the same end.
fn recovers(file: &Path, acknowledged: usize, workload: &[Append]) {
    let store = SqliteStore::open(file).unwrap();
    let kept = kept(&store);
    assert!(kept == acknowledged || kept == acknowledged + 1, "{acknowledged} acknowledged, {kept} stored");
    if kept == 0 {
        // The charters are part of the workload.
        put_charters(&store);
    }
    for append in workload.iter().skip(kept) {
        store.append(vec![append.clone()]).unwrap();
    }
    assert_eq!(verify(&store, None).unwrap().findings, []);
    for last in workload.iter().rev().take(2) {
        let info = store.run(&last.record.run).unwrap().unwrap();
        assert_eq!((info.seq, info.hash), (last.record.seq, last.record.hash));
    }
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// A copy of the file and its WAL.
struct Image {
    file: Vec<u8>,
    wal: Vec<u8>,
}

impl Image {
    fn of(file: &Path) -> Image {
        Image { file: fs::read(file).unwrap(), wal: fs::read(beside(file, "-wal")).unwrap() }
    }
}

/// A disk after a power cut, on which the last write is incomplete.
struct Disk {
    folder: Folder,
}

impl Disk {
    fn new(image: &Image) -> Disk {
        let disk = Disk { folder: Folder::new("disk") };
        fs::write(disk.file(), &image.file).unwrap();
        fs::write(beside(&disk.file(), "-wal"), &image.wal).unwrap();
        disk
    }

    fn file(&self) -> PathBuf {
        self.folder.file()
    }

    /// Writes into the WAL.
    fn wal(&self, at: usize, bytes: &[u8], len: Option<usize>) {
        let mut wal = OpenOptions::new().write(true).open(beside(&self.file(), "-wal")).unwrap();
        wal.seek(SeekFrom::Start(at as u64)).unwrap();
        wal.write_all(bytes).unwrap();
        if let Some(len) = len {
            wal.set_len(len as u64).unwrap();
        }
    }

    /// Reads it without changing it.
    fn kept(&self) -> usize {
        let _ = fs::remove_file(beside(&self.file(), "-shm"));
        let store = SqliteStore::open_read_only(&self.file()).unwrap();
        kept(&store)
    }

    /// Recovers from a copy.
    fn recovers(&self, acknowledged: usize, workload: &[Append]) {
        let copy = Folder::new("copy");
        for end in ["", "-wal"] {
            fs::copy(beside(&self.file(), end), beside(&copy.file(), end)).unwrap();
        }
        recovers(&copy.file(), acknowledged, workload);
    }
}

const FRAME: usize = 24 + 4096;

/// Every write of the workload, complete or torn, is once the last one that reached the disk: first
/// in a new WAL, then in one that is reused after a checkpoint (old frames follow the last write),
/// then in the checkpoint itself.
#[test]
fn a_power_cut_at_any_write_loses_nothing() {
    let workload = workload();
    let (first, second) = workload.split_at(EVENTS / 2);
    let folder = Folder::new("power");
    let file = folder.file();
    let store = SqliteStore::open(&file).unwrap();
    put_charters(&store);
    let checkpoint = || {
        let other = rusqlite::Connection::open(&file).unwrap();
        let busy: i64 = other.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0);
    };
    checkpoint();
    let start = Image::of(&file);
    // The length of the WAL when an event was acknowledged: the frames with the salt of its header.
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
    let run = |events: &[Append]| -> Vec<usize> {
        let one = |append: &Append| {
            store.append(vec![append.clone()]).unwrap();
            written()
        };
        events.iter().map(one).collect()
    };
    let first_ends = run(first);
    let middle = Image::of(&file);
    checkpoint();
    let checked = Image::of(&file);
    let second_ends = run(second);
    let end = Image::of(&file);
    assert!(end.wal.len() >= middle.wal.len() && second_ends[0] < middle.wal.len());

    let phases = [(&start, &middle, &first_ends, 0), (&checked, &end, &second_ends, first.len())];
    let mut looked = 0;
    for (before, after, ends, already) in phases {
        let last = *ends.last().unwrap();
        // Backwards: each step removes what was written after it.
        let disk = Disk::new(&Image { file: before.file.clone(), wal: after.wal.clone() });
        let mut top = after.wal.len();
        for frame in (0..=(last - 32) / FRAME).rev() {
            let from = 32 + frame * FRAME;
            for cut in [from + 2_000, from + 24, from + 7, from] {
                if cut > last {
                    continue;
                }
                // After the cut is the old content, or nothing.
                let old = before.wal.get(cut..top.min(before.wal.len()).max(cut));
                disk.wal(cut, old.unwrap_or_default(), Some(cut.max(before.wal.len())));
                top = cut;
                let acknowledged = already + ends.iter().filter(|end| **end <= cut).count();
                assert_eq!(disk.kept(), acknowledged, "cut at {cut}");
                looked += 1;
                if looked % 211 == 0 {
                    disk.recovers(acknowledged, &workload);
                }
            }
        }
    }
    assert!(looked > 4 * EVENTS, "{looked}");

    // The checkpoint writes page by page into the file; the WAL still has all pages.
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

/// Not a test, but the child process that is killed, or whose writes fail, in the tests below. It
/// prints what is acknowledged.
#[test]
#[ignore = "the child process of other tests"]
fn child() {
    let Some(file) = std::env::var_os("JOURNAL_OF_CHILD") else {
        return;
    };
    let store = match SqliteStore::open(Path::new(&file)) {
        Ok(store) => store,
        Err(e) => return println!("\nfailed {e}"),
    };
    for source in [DESK, LOOSE] {
        if let Err(e) = store.put_charter(&stored(source)) {
            return println!("\nfailed {e}");
        }
    }
    let from = kept(&store);
    println!("\nready");
    for (i, append) in workload().into_iter().enumerate().skip(from) {
        if let Err(e) = store.append(vec![append.clone()]) {
            println!("\nfailed {e}");
            // The writer has stopped, also for smaller records.
            println!("again {}", store.append(vec![append]).unwrap_err());
            return;
        }
        println!("\nacknowledged {}", i + 1);
    }
    println!("\nend");
}

/// Starts [`child`]. `limit`: writes beyond this file size in KiB fail, possibly halfway.
fn start_child(file: &Path, limit: Option<usize>) -> Child {
    let own = std::env::current_exe().unwrap();
    let arguments = ["--exact", "failing::child", "--ignored", "--nocapture", "--test-threads=1"];
    let mut command = match limit {
        None => Command::new(own),
        Some(limit) => {
            let mut shell = Command::new("bash");
            shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"")]);
            shell.arg(own);
            shell
        }
    };
    command.args(arguments).env("JOURNAL_OF_CHILD", file).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for a child. Returns the number of acknowledged events and the other output.
fn listen(child: &mut Child) -> (usize, Vec<String>) {
    let (mut acknowledged, mut words) = (0, Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(line) = line else { break };
        match line.strip_prefix("acknowledged ").map(str::parse) {
            Some(Ok(n)) => acknowledged = n,
            _ => words.push(line),
        }
    }
    child.wait().unwrap();
    (acknowledged, words)
}

#[test]
fn partial_writes_stop_the_writer_and_lose_nothing() {
    let works = Command::new("bash").args(["-c", "trap '' XFSZ; ulimit -f 100"]).status();
    if !works.is_ok_and(|s| s.success()) {
        eprintln!("skipped: bash with `ulimit -f` is not available");
        return;
    }
    let workload = workload();
    let (mut failed, mut ended) = (0, 0);
    for limit in [40, 90, 130, 131, 133, 190, 402, 747, 1_501, 2_222, 100_000] {
        let folder = Folder::new("half");
        let file = folder.file();
        let (acknowledged, words) = listen(&mut start_child(&file, Some(limit)));
        let said = words.join("\n");
        if said.contains("\nend") {
            assert_eq!(acknowledged, EVENTS);
            ended += 1;
        } else if said.contains("ready") {
            assert!(said.contains("failed writing the journal failed: "), "{said}");
            assert!(said.contains("again the journal stopped accepting records after a failure"), "{said}");
            failed += 1;
        } else {
            assert!(said.contains("failed "), "{limit}: {said}");
        }
        recovers(&file, acknowledged, &workload);
    }
    assert!(failed >= 6 && ended >= 1, "{failed} failed, {ended} ended");
}

#[test]
fn a_second_process_is_refused_with_the_holder() {
    let folder = Folder::new("second");
    let file = folder.file();
    let store = SqliteStore::open(&file).unwrap();
    let (_, words) = listen(&mut start_child(&file, None));
    let said = words.join("\n").replace(&file.display().to_string(), "FILE");
    let expected = format!(
        "failed `FILE` is in use by another process (process {}); only one process can write to a journal at a time (others can read it)",
        std::process::id()
    );
    assert!(said.contains(&expected), "{said}");
    drop(store);
    let (acknowledged, _) = listen(&mut start_child(&file, None));
    assert_eq!(acknowledged, EVENTS);
}

#[test]
fn a_killed_process_loses_nothing() {
    let workload = workload();
    let mut killed = 0;
    for round in 0..12u64 {
        let folder = Folder::new("kill");
        let file = folder.file();
        let mut acknowledged = 0;
        // The next process continues where this one was killed.
        for life in 0..3u64 {
            let mut child = start_child(&file, None);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut until = (round * 31 + life * 17) % 70;
            while until > 0
                && let Some(Ok(line)) = lines.next()
            {
                if let Some(Ok(n)) = line.strip_prefix("acknowledged ").map(str::parse) {
                    acknowledged = n;
                    until -= 1;
                }
            }
            std::thread::sleep(std::time::Duration::from_micros((round * 389) % 1_700));
            child.kill().unwrap();
            for line in lines.map_while(Result::ok) {
                if let Some(Ok(n)) = line.strip_prefix("acknowledged ").map(str::parse) {
                    acknowledged = n;
                }
            }
            child.wait().unwrap();
            killed += usize::from(acknowledged < EVENTS);
        }
        recovers(&file, acknowledged, &workload);
    }
    assert!(killed > 20, "{killed}");
}

#[test]
fn the_same_events_give_the_same_heads_in_memory_and_in_a_file() {
    let workload = workload();
    let folder = Folder::new("heads");
    let memory = MemoryStore::new();
    let file = SqliteStore::open(&folder.file()).unwrap();
    // In one batch or in many, the records are the same.
    let heads = [(&memory as &dyn Store, EVENTS), (&file, 1)].map(|(store, batch)| {
        for source in [DESK, LOOSE] {
            store.put_charter(&stored(source)).unwrap();
        }
        for batch in workload.chunks(batch) {
            store.append(batch.to_vec()).unwrap();
        }
        let runs = store.runs(&RunFilter::default()).unwrap();
        runs.into_iter().map(|r| r.hash).collect::<Vec<Digest>>()
    });
    assert_eq!(heads[0], heads[1]);
    assert_eq!(heads[0].len(), 2);
}
