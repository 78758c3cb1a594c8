//! One schedule: a few processes one after the other that write to the same file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use charter_test_disk::{Disk, Ended, Image, Kind, Plan, Random, pause_at};
use charter_test_support::Folder;

use super::model::{Counts, Entry, LASTING, Model, RUNS, WORK, accepting, deletion, is_bug, reopen, stored};
use crate::error::StoreError;
use crate::sqlite::checkpoint::checkpoint;
use crate::sqlite::jobs::Jobs;
use crate::sqlite::write::Writing;
use crate::sqlite::writer::commit;
use crate::sqlite::{SqliteOptions, SqliteStore};
use crate::store::Store;
use crate::verify::verify;

const NAME: &str = "journal.db";

/// About how many calls of the disk a session makes.
const CALLS: usize = 500;

/// About how many calls of the disk a checkpoint makes.
const CHECKPOINT_CALLS: usize = 60;

/// A schedule.
pub(super) struct Schedule {
    seed: u64,
    kind: Kind,
    random: Random,
    folder: Folder,
    disk: Arc<Disk>,
    model: Model,
    /// Whether the power has failed.
    cut: bool,
    /// Whether a process has accepted what is missing, or tried to.
    accepting: bool,
    /// What happened, for the message of a failure.
    pub(super) said: Vec<String>,
    /// Batches acknowledged, batches failed, crashes.
    seen: [u64; 3],
}

impl Drop for Schedule {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.said.iter().map(|line| format!("  {line}\n")).collect::<String>();
            eprintln!("schedule of seed {} (FAULTY_DISK_SEED={}), {:?}:\n{said}", self.seed, self.seed, self.kind);
            for line in self.disk.schedule() {
                eprintln!("  {line}");
            }
        }
    }
}

impl Schedule {
    pub(super) fn new(seed: u64, kind: Kind) -> Schedule {
        let random = Random::new(seed ^ 0x5ca1_ab1e);
        let folder = Folder::in_memory();
        let disk = Arc::new(Disk::new(folder.path(), &[&format!("{NAME}-head")], Plan::faultless(seed)));
        let (said, model) = (Vec::new(), Model::default());
        Schedule { seed, kind, random, folder, disk, model, cut: false, accepting: false, said, seen: [0; 3] }
    }

    /// Runs a schedule and checks the disk afterwards. Returns how many batches were acknowledged
    /// and how many failed, the number of faults and of crashes, whether a loss was named, how many
    /// runs were deleted, and how often a loss was accepted.
    pub(super) fn run(seed: u64, kind: Kind) -> [u64; 7] {
        let mut schedule = Schedule::new(seed, kind);
        schedule.sessions();
        let named = schedule.end();
        let [acknowledged, failed, crashes] = schedule.seen;
        let lines = |is: &dyn Fn(&String) -> bool| schedule.said.iter().filter(|line| is(line)).count() as u64;
        let faults = lines(&|line| line.starts_with("call "));
        let deleted = lines(&|line| line.ends_with(" deleted: written"));
        let accepted = lines(&|line| line == "accepted: written");
        [acknowledged, failed, faults, crashes, u64::from(named), deleted, accepted]
    }

    fn file(&self) -> PathBuf {
        self.folder.file(NAME)
    }

    /// The processes of the schedule.
    pub(super) fn sessions(&mut self) {
        let sessions = 1 + self.random.below(4);
        for session in 0..sessions {
            // Some files are created without faults.
            let plan = match session == 0 && self.random.one_in(2) {
                true => Plan::faultless(self.random.number()),
                false => Plan::random(self.random.number(), self.kind, CALLS),
            };
            self.disk.restart(plan);
            let before = self.disk.schedule().len();
            self.session();
            self.said.extend(self.disk.schedule().into_iter().skip(before));
            self.said.push(format!("{} calls", self.disk.calls()));
            assert_ne!(self.disk.ended(), Some(Ended::Endless), "the store tries something for ever");
            // The power also fails after the end of a process.
            let cut = self.disk.ended() == Some(Ended::PowerCut) || self.random.one_in(4);
            if self.disk.ended().is_some() || cut {
                self.seen[2] += 1;
            }
            if cut {
                self.power_cut();
            }
            if self.accepting {
                return;
            }
            // If all results are known, the next process or the end finds what is missing.
            if session + 1 < sessions && self.model.is_uncertain() && !self.look() {
                return;
            }
        }
    }

    /// Puts what is left on a disk in a new folder.
    fn power_cut(&mut self) {
        self.cut = true;
        let image = self.disk.power_cut();
        let sizes: Vec<_> = image.files.iter().map(|(name, content)| format!("{name} {}", content.len())).collect();
        self.said.push(format!("power cut: {}", sizes.join(", ")));
        let folder = Folder::in_memory();
        image.write(folder.path()).unwrap();
        let disk = Disk::new(folder.path(), &[&format!("{NAME}-head")], Plan::faultless(self.seed));
        if self.disk.has_lied() {
            disk.set_lied();
        }
        self.disk = Arc::new(disk);
        self.folder = folder;
    }

    /// Finds out what the disk has, in a copy, as the next process does. Returns whether there is
    /// something to continue.
    fn look(&mut self) -> bool {
        let copy = self.copy();
        let found = match SqliteStore::open_read_only(&copy.file(NAME)) {
            Ok(store) => stored(&store),
            // It was not created yet.
            Err(StoreError::NotAJournal { .. }) if self.model.may_be_empty() => Ok(Counts::default()),
            Err(e) => Err(e),
        };
        let lied = self.disk.has_lied();
        match found {
            Ok(counts) => {
                let possible = self.model.possible();
                let found = self.model.found(counts);
                assert!(lied || found, "there are {counts:?}, but should be one of {possible:?}");
                found
            }
            Err(e) => {
                assert!(lied || self.model.may_be_empty(), "there should be {:?}, but: {e}", self.model.possible());
                !lied
            }
        }
    }

    /// A copy of the disk, in which nothing fails.
    fn copy(&self) -> Folder {
        let copy = Folder::in_memory();
        let mut image = Image::read(self.disk.folder()).unwrap();
        image.files.remove(&format!("{NAME}-shm"));
        image.write(copy.path()).unwrap();
        copy
    }

    /// One process: opens the file, writes, and ends.
    fn session(&mut self) {
        let due = Arc::new(Due::new(&self.disk));
        let options = SqliteOptions { ids_at_once: self.random.pick(&[0, 3]), ..SqliteOptions::default() };
        let store = match SqliteStore::open_committing(&self.file(), &options, committing(&self.file(), &due)) {
            Ok(store) => store,
            Err(e) => {
                let said = e.to_string().replace(&self.folder.path().display().to_string(), "");
                self.said.push(format!("not opened: {said}"));
                self.expected(&e);
                if matches!(e, StoreError::Head { .. }) && !self.random.one_in(4) {
                    self.accept();
                }
                return;
            }
        };
        let steps = 1 + self.random.below(16);
        for _ in 0..steps {
            if self.random.one_in(10) {
                let call = if self.random.one_in(3) { u64::MAX } else { self.random.below(CHECKPOINT_CALLS) as u64 };
                self.said.push(format!("checkpoint, with a commit before its call {call}"));
                *due.checkpoint.lock().unwrap() = Some(call);
            }
            if !self.step(&store) {
                break;
            }
        }
        if self.random.one_in(4) {
            due.end.store(true, Ordering::SeqCst);
            self.result("killed", store.forget_snapshots());
        }
    }

    /// A process that accepts what is missing, and may fail.
    fn accept(&mut self) {
        self.accepting = true;
        self.disk.restart(Plan::random(self.random.number(), Kind::Honest, CALLS / 4));
        let result = SqliteStore::open_with(&self.file(), &accepting()).map(drop);
        self.result("accepted", result);
    }

    /// One change. Returns false after a failure of the store.
    fn step(&mut self, store: &SqliteStore) -> bool {
        if !self.model.has_charter || self.random.one_in(16) {
            let stored = self.result("charter", store.put_charter(&WORK.0));
            self.model.has_charter |= stored == Some(true);
            return stored.is_some();
        }
        let result = match self.random.below(24) {
            0 => {
                let blob = self.random.number().to_le_bytes().repeat(500);
                self.result("blob", store.put_blob(&blob).map(drop))
            }
            1 => self.result("forget snapshots", store.forget_snapshots()),
            2 => self.result("rebuild", store.rebuild()),
            3 | 4 => return self.delete(store),
            _ => {
                let runs: Vec<usize> =
                    (0..=self.random.below(3)).map(|_| self.random.pick(&[0, 1, 2, 3, 3, 4, 4])).collect();
                let (batch, runs) = self.model.batch(&runs);
                let result = self.result(&format!("records of {runs:?}"), store.append(batch));
                let entries: Vec<Entry> = runs.into_iter().map(Entry::Record).collect();
                self.entries(&entries, result);
                result
            }
        };
        result.is_some()
    }

    /// Notes entries that were sent, with their result.
    fn entries(&mut self, entries: &[Entry], result: Option<bool>) {
        match result {
            Some(true) => {
                self.model.acknowledged(entries);
                self.seen[0] += 1;
            }
            Some(false) => {}
            None => {
                self.seen[1] += 1;
                self.model.uncertain(entries);
            }
        }
    }

    /// Deletes a run, or tries to. Returns false after a failure of the store.
    fn delete(&mut self, store: &SqliteStore) -> bool {
        let any = self.random.below(RUNS.len());
        // One that has ended, if there is one.
        let run = (LASTING..RUNS.len()).find(|run| self.model.has_ended(*run)).unwrap_or(any);
        let ended = self.model.has_ended(run);
        match store.delete(deletion(run)) {
            Err(StoreError::NotFinished { .. } | StoreError::UnknownRun(_)) => {
                assert!(!ended || self.disk.has_lied(), "run {run} has ended, and is not deleted");
                true
            }
            deleted => {
                let result = self.result(&format!("run {run} deleted"), deleted);
                assert!(ended || result != Some(true) || self.disk.has_lied(), "run {run} has not ended");
                if ended {
                    self.entries(&[Entry::Deleted(run)], result);
                }
                result.is_some()
            }
        }
    }

    /// Whether something was written; `None` if the store has stopped, and nobody knows.
    fn result(&mut self, what: &str, result: Result<(), StoreError>) -> Option<bool> {
        match result {
            Ok(()) => {
                self.said.push(format!("{what}: written"));
                Some(true)
            }
            Err(e) => {
                let said = e.to_string().replace(&self.folder.path().display().to_string(), "");
                self.said.push(format!("{what}: {said}"));
                self.expected(&e);
                matches!(e, StoreError::NotWritten { .. }).then_some(false)
            }
        }
    }

    /// Checks that an error can come from the disk.
    fn expected(&self, e: &StoreError) {
        let disk = matches!(e, StoreError::Failed { .. } | StoreError::Stopped { .. } | StoreError::NotWritten { .. });
        assert!(!is_bug(e) && (disk || self.disk.has_lied()), "on a disk that does not lie: {e}");
    }

    /// Checks the disk after all processes. Returns whether a loss was named.
    fn end(&mut self) -> bool {
        let copy = self.copy();
        // Without an anchor, the head beside the file tells; it may be an older one after a power
        // cut.
        let anchor = self.model.anchor.filter(|_| self.cut || self.random.one_in(2));
        match reopen(&copy.file(NAME), anchor.filter(|_| !self.accepting), self.random.one_in(4)) {
            Ok(_) if self.accepting => true,
            Ok(counts) => {
                let possible = self.model.possible();
                assert!(possible.contains(&counts), "verified, but there are {counts:?}, not one of {possible:?}");
                false
            }
            Err(e) => {
                assert!(self.disk.has_lied(), "on a disk that does not lie: {e}");
                self.said.push(format!("named: {e}"));
                self.acceptable();
                true
            }
        }
    }

    /// Checks that what is missing can be accepted, unless more is damaged.
    fn acceptable(&self) {
        let copy = self.copy();
        let file = copy.file(NAME);
        let findings = |store: &SqliteStore| verify(store, None).map_or(1, |report| report.findings.len());
        match SqliteStore::open_with(&file, &accepting()) {
            // A damaged record, for example.
            Ok(store) if findings(&store) > 0 => {}
            Ok(store) => {
                let counts = stored(&store).unwrap_or_else(|e| panic!("accepted and verified, but: {e}"));
                drop(store);
                assert_eq!(reopen(&file, None, true), Ok(counts), "accepted, but not afterwards");
            }
            Err(e) => assert!(!matches!(e, StoreError::Head { .. }) && !is_bug(&e), "not accepted: {e}"),
        }
    }
}

/// What is to happen at the next commit. One thread at a time uses the disk: otherwise a seed would
/// not give the same schedule again.
struct Due {
    disk: Arc<Disk>,
    /// Another connection moves the log into the file, on a thread of its own, which waits for the
    /// commit before this call of the disk.
    checkpoint: Mutex<Option<u64>>,
    /// The process dies.
    end: AtomicBool,
}

impl Due {
    fn new(disk: &Arc<Disk>) -> Due {
        Due { disk: disk.clone(), checkpoint: Mutex::new(None), end: AtomicBool::new(false) }
    }
}

fn committing(
    file: &Path,
    due: &Arc<Due>,
) -> impl FnMut(&mut Writing<'_>, &mut Jobs<'_>) -> rusqlite::Result<Vec<Result<(), StoreError>>> + Send + 'static {
    let (file, due) = (file.to_owned(), due.clone());
    move |writing, jobs| {
        let call = due.checkpoint.lock().unwrap().take();
        let running = call.map(|call| until_call(call, &file));
        if due.end.load(Ordering::SeqCst) {
            due.disk.kill();
        }
        let result = commit(writing, jobs);
        if let Some((go_on, thread)) = running {
            drop(go_on);
            thread.join().unwrap();
        }
        result
    }
}

/// Starts a checkpoint that waits before one of its calls until the sender is dropped. Returns when
/// it waits, or has ended.
fn until_call(call: u64, file: &Path) -> (Sender<()>, JoinHandle<()>) {
    let (go_on, end) = channel::<()>();
    let (waits, begun) = channel::<()>();
    let file = file.to_owned();
    let thread = std::thread::spawn(move || {
        pause_at(call, move || {
            drop(waits);
            let _ = end.recv();
        });
        let _ = checkpoint(&file);
    });
    let _ = begun.recv();
    (go_on, thread)
}
