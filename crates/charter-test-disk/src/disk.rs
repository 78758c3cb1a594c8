//! A folder whose files SQLite reads and writes on a disk that fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::image::{Change, Image, Written};
use crate::plan::{Call, Fault, Op, Plan};
use crate::vfs;

/// After this many calls, SQLite or its caller tries something for ever.
const MAX_CALLS: u64 = 1_000_000;

/// Maximum number of lines of a schedule.
const MAX_LINES: usize = 200;

/// How the process of a disk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It died: what it had written is there.
    Killed,
    /// The power failed.
    PowerCut,
    /// It made calls without end.
    Endless,
}

/// A disk that fails. SQLite uses it for the files in its folder, as long as it exists.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    shared: Arc<Shared>,
}

/// What the callbacks of the VFS use.
#[derive(Debug)]
pub(crate) struct Shared(Mutex<State>);

#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    plan: Plan,
    calls: u64,
    ended: Option<Ended>,
    lied: bool,
    files: BTreeMap<String, Written>,
    /// Files that were deleted, whose names are not durably gone.
    deleted: BTreeMap<String, Written>,
    /// Files that others write, without SQLite, and all their contents so far.
    others: BTreeMap<String, Vec<Option<Vec<u8>>>>,
    schedule: Vec<String>,
}

impl Disk {
    /// Puts a folder on the disk; what it contains is durable. `others` are names of files that
    /// are written without SQLite, and not synced once they exist: a power cut may leave an earlier
    /// content of them.
    ///
    /// # Panics
    /// The folder or SQLite's own VFS cannot be used.
    #[must_use]
    pub fn new(folder: &Path, others: &[&str], plan: Plan) -> Disk {
        let folder = folder.canonicalize().unwrap();
        let mut files = BTreeMap::new();
        let mut known = BTreeMap::new();
        for (name, content) in Image::read(&folder).unwrap().files {
            match others.contains(&name.as_str()) {
                true => drop(known.insert(name, vec![Some(content)])),
                false => drop(files.insert(name, Written { named: true, durable: content, ..Written::default() })),
            }
        }
        for name in others {
            known.entry((*name).to_owned()).or_insert_with(|| vec![None]);
        }
        let state = State {
            folder: folder.clone(),
            plan,
            calls: 0,
            ended: None,
            lied: false,
            files,
            deleted: BTreeMap::new(),
            others: known,
            schedule: Vec::new(),
        };
        let shared = Arc::new(Shared(Mutex::new(state)));
        vfs::mount(&folder, &shared);
        Disk { folder, shared }
    }

    /// The folder, without links.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a new process on the disk: the earlier one has ended, and must have closed its files.
    pub fn restart(&self, plan: Plan) {
        let mut state = self.shared.lock();
        state.plan = plan;
        state.calls = 0;
        state.ended = None;
        state.schedule.push("a new process".into());
    }

    /// How the process has ended; `None` if it has not.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.shared.lock().ended
    }

    /// Whether a call has lied, so that acknowledged data may be lost.
    #[must_use]
    pub fn has_lied(&self) -> bool {
        self.shared.lock().lied
    }

    /// Notes that the content of the disk comes from one that has lied.
    pub fn set_lied(&self) {
        self.shared.lock().lied = true;
    }

    /// Number of calls of the process.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.shared.lock().calls
    }

    /// Ends the process now.
    pub fn kill(&self) {
        self.shared.lock().end(Ended::Killed);
    }

    /// The content of the disk after a power cut. The process must not use the disk any more.
    #[must_use]
    pub fn power_cut(&self) -> Image {
        let mut state = self.shared.lock();
        let state = &mut *state;
        state.note_others();
        state.end(Ended::PowerCut);
        let mut random = state.plan.random.clone();
        let mut files = BTreeMap::new();
        for (name, written) in &state.deleted {
            if random.one_in(2) {
                files.insert(name.clone(), written.survivor(&mut random));
            }
        }
        for (name, written) in &state.files {
            if written.named || random.one_in(2) {
                files.insert(name.clone(), written.survivor(&mut random));
            }
        }
        for (name, contents) in &state.others {
            if let Some(content) = &contents[random.pick(&[random.clone().below(contents.len()), contents.len() - 1])] {
                files.insert(name.clone(), content.clone());
            }
        }
        Image { files }
    }

    /// Like [`Disk::power_cut`], but nothing survives that was not synced.
    #[must_use]
    pub fn power_cut_losing_all(&self) -> Image {
        {
            let mut state = self.shared.lock();
            state.files.retain(|_, written| written.named);
            state.files.values_mut().for_each(|written| written.pending.clear());
        }
        self.power_cut()
    }

    /// Each fault so far, with its call.
    #[must_use]
    pub fn schedule(&self) -> Vec<String> {
        self.shared.lock().schedule.clone()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        vfs::unmount(&self.shared);
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call and decides how it fails; `Err`: the process has ended.
    pub(crate) fn call(&mut self, op: Op, file: &str, len: usize) -> Result<Option<Fault>, ()> {
        if self.ended.is_some() {
            return Err(());
        }
        let call = Call { n: self.calls, op, file, len };
        self.calls += 1;
        if self.calls > MAX_CALLS {
            self.end(Ended::Endless);
            return Err(());
        }
        if op == Op::Sync {
            self.note_others();
        }
        let fault = self.plan.decide(&call);
        if let Some(fault) = fault
            && self.schedule.len() < MAX_LINES
        {
            self.schedule.push(format!("call {}: {op:?} {file}, {len} bytes: {fault:?}", call.n));
        }
        match fault {
            Some(Fault::Killed) => self.end(Ended::Killed),
            Some(Fault::PowerCut) if op != Op::Write => self.end(Ended::PowerCut),
            Some(Fault::Lost | Fault::Flipped(_) | Fault::Misplaced(_) | Fault::Torn(_, 0)) => self.lied = true,
            _ => {}
        }
        if self.ended.is_some() { Err(()) } else { Ok(fault) }
    }

    pub(crate) fn end(&mut self, how: Ended) {
        self.ended.get_or_insert(how);
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Notes the contents of files that others write.
    fn note_others(&mut self) {
        for (name, contents) in &mut self.others {
            let now = std::fs::read(self.folder.join(name)).ok();
            if contents.last() != Some(&now) {
                // They make a new file durable.
                contents.retain(Option::is_some);
                contents.push(now);
            }
        }
    }

    pub(crate) fn opened(&mut self, file: &str) {
        self.files.entry(file.to_owned()).or_default();
    }

    pub(crate) fn wrote(&mut self, file: &str, at: usize, bytes: Vec<u8>) {
        self.changed(file, Change::Write(at, bytes));
    }

    pub(crate) fn truncated(&mut self, file: &str, len: usize) {
        self.changed(file, Change::Truncate(len));
    }

    fn changed(&mut self, file: &str, change: Change) {
        self.files.entry(file.to_owned()).or_default().pending.push(change);
    }

    /// Makes a file durable, and with `folder`, all names.
    pub(crate) fn synced(&mut self, file: &str, folder: bool) {
        self.files.entry(file.to_owned()).or_default().sync();
        if folder {
            self.deleted.clear();
            self.files.values_mut().for_each(|written| written.named = true);
        }
    }

    /// Makes all names durable, and a file with what no other sync would write.
    pub(crate) fn written_again(&mut self, file: &str) {
        if self.ended() {
            return;
        }
        self.files.entry(file.to_owned()).or_default().given_up = 0;
        self.synced(file, true);
    }

    pub(crate) fn not_synced(&mut self, file: &str) {
        self.files.entry(file.to_owned()).or_default().give_up();
    }

    pub(crate) fn deleted(&mut self, file: &str, synced: bool) {
        let Some(written) = self.files.remove(file) else {
            return;
        };
        match synced {
            true => self.deleted.clear(),
            false if written.named => drop(self.deleted.insert(file.to_owned(), written)),
            false => {}
        }
    }
}
