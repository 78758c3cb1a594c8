//! One schedule: a few processes one after the other that write to the same file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use charter_test_disk::{Disk, Ended, Image, Kind, Plan, Random};
use charter_test_support::Folder;

use super::model::{Counts, Model, WORK, is_bug, reopen, stored};
use crate::error::StoreError;
use crate::sqlite::checkpoint::checkpoint;
use crate::sqlite::jobs::Jobs;
use crate::sqlite::write::Writing;
use crate::sqlite::writer::commit;
use crate::sqlite::{SqliteOptions, SqliteStore};
use crate::store::Store;

const NAME: &str = "journal.db";

/// About how many calls of the disk a session makes.
const CALLS: usize = 500;

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
        Schedule { seed, kind, random, folder, disk, model, cut: false, said, seen: [0; 3] }
    }

    /// Runs a schedule and checks the disk afterwards. Returns how many batches were acknowledged
    /// and how many failed, the number of faults and of crashes, and whether a loss was named.
    pub(super) fn run(seed: u64, kind: Kind) -> [u64; 5] {
        let mut schedule = Schedule::new(seed, kind);
        schedule.sessions();
        let named = schedule.end();
        let [acknowledged, failed, crashes] = schedule.seen;
        let faults = schedule.said.iter().filter(|line| line.starts_with("call ")).count() as u64;
        [acknowledged, failed, faults, crashes, u64::from(named)]
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
        let due =
            Arc::new(Due { disk: self.disk.clone(), checkpoint: AtomicBool::new(false), end: AtomicBool::new(false) });
        let options = SqliteOptions { ids_at_once: self.random.pick(&[0, 3]), ..SqliteOptions::default() };
        let store = match SqliteStore::open_committing(&self.file(), &options, committing(&self.file(), &due)) {
            Ok(store) => store,
            Err(e) => {
                let said = e.to_string().replace(&self.folder.path().display().to_string(), "");
                self.said.push(format!("not opened: {said}"));
                self.expected(&e);
                return;
            }
        };
        let steps = 1 + self.random.below(16);
        for _ in 0..steps {
            if self.random.one_in(10) {
                self.said.push("checkpoint".into());
                due.checkpoint.store(true, Ordering::SeqCst);
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
            _ => {
                let runs: Vec<usize> = (0..=self.random.below(3)).map(|_| self.random.below(3)).collect();
                let (batch, runs) = self.model.batch(&runs);
                let result = self.result(&format!("records of {runs:?}"), store.append(batch));
                match result {
                    Some(true) => {
                        self.model.acknowledged(&runs);
                        self.seen[0] += 1;
                    }
                    Some(false) => {}
                    None => {
                        self.seen[1] += 1;
                        self.model.uncertain(&runs);
                    }
                }
                result
            }
        };
        result.is_some()
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
        match reopen(&copy.file(NAME), anchor, self.random.one_in(4)) {
            Ok(counts) => {
                let possible = self.model.possible();
                assert!(possible.contains(&counts), "verified, but there are {counts:?}, not one of {possible:?}");
                false
            }
            Err(e) => {
                assert!(self.disk.has_lied(), "on a disk that does not lie: {e}");
                self.said.push(format!("named: {e}"));
                true
            }
        }
    }
}

/// What is to happen before the next commit, on the thread of the writer: elsewhere, other calls
/// could come before it or after it.
struct Due {
    disk: Arc<Disk>,
    /// Another connection moves the log into the file.
    checkpoint: AtomicBool,
    /// The process dies.
    end: AtomicBool,
}

fn committing(
    file: &Path,
    due: &Arc<Due>,
) -> impl FnMut(&mut Writing<'_>, &mut Jobs<'_>) -> rusqlite::Result<Vec<Result<(), StoreError>>> + Send + 'static {
    let (file, due) = (file.to_owned(), due.clone());
    move |writing, jobs| {
        if due.checkpoint.swap(false, Ordering::SeqCst) {
            let _ = checkpoint(&file);
        }
        if due.end.load(Ordering::SeqCst) {
            due.disk.kill();
        }
        commit(writing, jobs)
    }
}
