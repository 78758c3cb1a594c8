//! Where the runs of a command are hosted: in this process, which then shares the journal with
//! others, or in the process that already has it open.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use charter_actors::BoxFuture;
use charter_journal::{Record, RunFilter, RunInfo, SqliteStore};
use charter_kernel::{EffectId, Principal};
use charter_local::{Client, Server, Service};
use charter_remote::Remote;
use charter_runtime::backend::{Acknowledged, Answer, Backend, TaskAnswer};
use charter_runtime::{Limits, Options, ResumeRuns, Runtime, RuntimeError, SendEvent, View, new_run_id};
use serde_json::Value as Json;
use tokio::runtime::Runtime as Threads;

use super::background::Background;
use super::resumed::{self, Before};
use super::{setup, size};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::access::{self, Access, MAX_LOST};
use crate::models::{self, Recording};

/// Who opens the journal if no process has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opener {
    /// This process.
    Here,
    /// A process in the background, which stays while there is something to do.
    Background,
    /// Nobody: the operation fails with [`Failure::Lost`].
    Nobody,
}

/// The place where runs are hosted.
pub(crate) struct Host {
    // Dropped before the threads.
    pub(super) place: RefCell<Place>,
    pub(crate) threads: Threads,
    pub(super) db: Db,
    pub(super) models: models::Args,
    opener: Opener,
    /// What another host has to resume if the present one ends.
    pub(super) resumed: Arc<Mutex<BTreeSet<String>>>,
    /// The process that hosts the runs; 0 if it is this one.
    pub(super) elsewhere: Arc<AtomicU32>,
    timers: RefCell<bool>,
    /// Whether this process stays for others: a signal ends it with what they have left to it.
    pub(super) stays: bool,
    /// Whether a signal ends the program, which does nothing more than that signal asks for.
    /// What the user should know about where the journal is open.
    notice: RefCell<Option<String>>,
    pub(super) interrupted: Arc<AtomicBool>,
    /// Whether this process has started the one that hosts the runs.
    pub(super) started: Cell<bool>,
    /// What is done first when a signal ends the program; then its exit code is 0.
    pub(super) ending: Arc<Mutex<Option<Ending>>>,
    /// Whether that has been done.
    pub(super) ended: Arc<AtomicBool>,
    /// The workspaces, for previews of changes.
    #[cfg(unix)]
    pub(crate) workspaces: charter_actors::Workspaces,
}

/// Ends in order what a program does besides hosting runs.
pub(crate) type Ending = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

pub(super) enum Place {
    Own(Box<Own>),
    Other(Arc<Client>),
    /// A server.
    Remote(Remote),
    Closed,
}

/// The host in this process, and what it shares.
pub(super) struct Own {
    pub(super) runtime: Runtime,
    pub(super) store: Arc<SqliteStore>,
    pub(super) service: Arc<Service>,
    pub(super) server: Option<Server>,
    pub(super) about: Json,
}

impl Own {
    /// Opens the socket. Without one, other processes are told that the journal is in use. Must be
    /// called within the threads of the host.
    pub(super) fn share(&mut self) {
        let path = self.store.path();
        let journal = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let service = self.service.clone();
        self.server = Server::open(&journal, &setup::socket_folders(), service, self.about.clone()).ok();
        let _ = self.store.announce(self.server.as_ref().map(Server::address), false);
    }
}

impl Host {
    /// Opens a journal file, or reaches the process that has it open. Resumes nothing.
    pub(crate) fn open(db: &Db, models: &models::Args, opener: Opener) -> Result<Host, Failure> {
        let host = Host::nowhere(db, models, opener, false)?;
        host.find_place(ResumeRuns::OnRequest)?;
        Ok(host)
    }

    /// Opens an existing journal file, or reaches the process that has it open, for the time of
    /// `work`.
    pub(crate) fn with(
        db: &Db,
        models: &models::Args,
        opener: Opener,
        io: &mut Io<'_>,
        work: impl FnOnce(&Host, &mut Io<'_>) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        db.check()?;
        let host = Host::open(db, models, opener)?;
        host.tell(io)?;
        resumed::tell(&host, io)?;
        let exit = work(&host, io);
        host.close(io);
        exit
    }

    /// Prints what the user should know about where the journal is open.
    pub(crate) fn tell(&self, io: &mut Io<'_>) -> Result<(), Failure> {
        let Some(notice) = self.notice.take() else { return Ok(()) };
        Ok(writeln!(io.err, "{} {notice}", Paint(io.color_err).warning("warning:"))?)
    }

    /// Opens a journal file in this process and resumes all of its runs; `None` if another process
    /// has the file open.
    pub(crate) fn open_to_stay(db: &Db, models: &models::Args) -> Result<Option<Host>, Failure> {
        let host = Host::nowhere(db, models, Opener::Here, true)?;
        host.find_place(ResumeRuns::All)?;
        Ok(host.other().is_none().then_some(host))
    }

    pub(super) fn nowhere(db: &Db, models: &models::Args, opener: Opener, stays: bool) -> Result<Host, Failure> {
        #[cfg(unix)]
        let workspaces = crate::journal::backup::workspaces(&db.db);
        Ok(Host {
            place: RefCell::new(Place::Closed),
            threads: access::threads(2)?,
            db: db.clone(),
            models: models.clone(),
            opener,
            resumed: Arc::default(),
            elsewhere: Arc::default(),
            timers: RefCell::new(false),
            stays,
            notice: RefCell::default(),
            interrupted: Arc::default(),
            started: Cell::default(),
            ending: Arc::default(),
            ended: Arc::default(),
            #[cfg(unix)]
            workspaces,
        })
    }

    pub(super) fn find_place(&self, resume: ResumeRuns) -> Result<(), Failure> {
        if let Some(remote) = self.db.remote()? {
            if self.models.is_given() {
                return Err(Failure::with_help(
                    format!("the server {} calls the models of its runs", remote.url()),
                    "leave out the options about models",
                ));
            }
            *self.place.borrow_mut() = Place::Remote(remote);
            return Ok(());
        }
        let path = &self.db.db;
        let mut background = None;
        let found = access::access(path, &self.threads, || match self.opener {
            Opener::Here => access::open(path).map(Some),
            Opener::Nobody => Err(Failure::Lost(0)),
            Opener::Background => {
                let started = match background.take() {
                    Some(started) => started,
                    None => Background::start(&self.db, &self.models)?,
                };
                background = started.check()?;
                Ok(None)
            }
        })?;
        let place = match found {
            Access::Own(store) => Place::Own(Box::new(self.own(*store, resume)?)),
            Access::Other(client) => {
                let started = background.as_ref().is_some_and(|b| b.is(client.pid()));
                self.started.set(started);
                if !started && !self.stays {
                    self.notice.replace(self.models.elsewhere(client.pid())?);
                }
                Place::Other(client)
            }
        };
        let pid = if let Place::Other(client) = &place { client.pid() } else { 0 };
        self.elsewhere.store(pid, Ordering::SeqCst);
        *self.place.borrow_mut() = place;
        Ok(())
    }

    fn own(&self, store: SqliteStore, resume: ResumeRuns) -> Result<Own, Failure> {
        store.announce(None, true)?;
        let chosen = models::choose(&self.models, &setup::variable, Recording::Create)?;
        let mut about = chosen.about();
        let options = setup::options(chosen.models, &chosen.network, setup::secrets());
        #[cfg(unix)]
        let options = options.executor("workspace", self.workspaces.clone());
        let options = Options { resume, accept_clock: self.models.accept_clock, ..options };
        let store = Arc::new(store);
        let before = if resume == ResumeRuns::All { Some(Before::read(&store)?) } else { None };
        let (runtime, _) = self.threads.block_on(Runtime::open(store.clone(), options))?;
        if let (Some(before), Some(about)) = (before, about.as_object_mut()) {
            about.insert("another".into(), self.threads.block_on(before.compare(&runtime, &store))?);
        }
        let service = Arc::new(Service::new(runtime.clone(), store.clone()));
        self.end_on_signal(runtime.clone(), store.clone(), service.clone());
        self.end_on_failure(runtime.clone(), store.clone());
        let mut own = Own { runtime, store, service, server: None, about };
        let _entered = self.threads.enter();
        own.share();
        Ok(own)
    }

    /// The process that hosts the runs, if it is another one.
    pub(crate) fn other(&self) -> Option<Arc<Client>> {
        match &*self.place.borrow() {
            Place::Other(client) => Some(client.clone()),
            _ => None,
        }
    }

    /// Whether the runs are hosted in this process.
    pub(super) fn is_here(&self) -> bool {
        matches!(&*self.place.borrow(), Place::Own(_))
    }

    /// Does nothing more if a signal ends the program.
    pub(super) fn unless_interrupted(&self) {
        while self.interrupted.load(Ordering::SeqCst) {
            std::thread::park();
        }
    }

    /// Where the runs are hosted now.
    pub(crate) fn backend(&self) -> Result<Arc<dyn Backend>, Failure> {
        self.unless_interrupted();
        match &*self.place.borrow() {
            Place::Own(own) => Ok(Arc::new(own.runtime.clone())),
            Place::Other(client) => Ok(client.clone()),
            Place::Remote(remote) => Ok(Arc::new(remote.clone())),
            Place::Closed => Err(Failure::new("the journal is closed")),
        }
    }

    /// Carries out an operation. If the process that hosts the runs ends meanwhile, continues where
    /// they are hosted then; so the operation must be one that can be repeated.
    pub(crate) fn call<T>(&self, work: impl for<'b> Fn(&'b dyn Backend) -> Answer<'b, T>) -> Result<T, Failure> {
        Ok(self.try_call(work)??)
    }

    /// Like [`Host::call`], but leaves errors of the host to the caller.
    pub(crate) fn try_call<T>(
        &self,
        work: impl for<'b> Fn(&'b dyn Backend) -> Answer<'b, T>,
    ) -> Result<Result<T, RuntimeError>, Failure> {
        let mut lost = 0;
        loop {
            let backend = self.backend()?;
            match self.threads.block_on(work(backend.as_ref())) {
                Err(RuntimeError::Lost { .. }) if lost < MAX_LOST => lost += 1,
                result => return Ok(result),
            }
            drop(backend);
            self.move_on()?;
        }
    }

    /// Returns the current state of a run.
    pub(crate) fn view(&self, run: &str) -> Result<View, Failure> {
        self.call(|b| b.view(run.to_owned()))
    }

    /// Sends an event. An event to another process gets an id, so that it is recorded once even if
    /// that process ends before it answers.
    pub(crate) fn send(&self, mut send: SendEvent) -> Result<Acknowledged, Failure> {
        if self.other().is_some() || matches!(&*self.place.borrow(), Place::Remote(_)) {
            // A request to another process has a limit, too, which must not be the answer.
            let limit = Limits::default().data_bytes;
            if size(&send.data) > limit {
                let what = format!("the data of `{}` is too large", send.r#type);
                return Err(RuntimeError::Limit { limit: "data_bytes", value: limit, what }.into());
            }
            send.id.get_or_insert_with(new_run_id);
        }
        if let Place::Own(_) = &*self.place.borrow() {
            // Not a copy: data takes many times the memory of its text.
            return Ok(self.threads.block_on(self.backend()?.send(send))?);
        }
        self.call(|b| b.send(send.clone()))
    }

    /// Answers a task.
    pub(crate) fn answer(
        &self,
        task: &str,
        answer: TaskAnswer,
        by: &Principal,
    ) -> Result<Result<Acknowledged, RuntimeError>, Failure> {
        let place = self.other();
        let done = self.try_call(|b| b.answer(task.to_owned(), answer.clone(), by.clone()))?;
        let same_place = match (&place, self.other()) {
            (Some(before), Some(now)) => before.pid() == now.pid(),
            (before, now) => before.is_none() && now.is_none(),
        };
        match (done, EffectId::parse(task), task.rsplitn(3, '/').nth(2)) {
            // The process that had the journal may have recorded the answer before it ended.
            (Err(RuntimeError::NoTask { .. } | RuntimeError::NotAwaited(_)), Some(effect), Some(run))
                if !same_place =>
            {
                let mut from = effect.seq;
                loop {
                    let records = self.call(|b| b.records(run.to_owned(), from, 1_000))?;
                    let Some(last) = records.last() else {
                        return Ok(Err(RuntimeError::NotAwaited(run.to_owned())));
                    };
                    from = last.seq.saturating_add(1);
                    let own = |r: &Record| r.source.effect.as_deref() == Some(task) && r.by.id == by.id;
                    if let Some(record) = records.into_iter().find(own) {
                        return Ok(Ok(Acknowledged { record, repeated: false }));
                    }
                }
            }
            (done, ..) => Ok(done),
        }
    }

    /// Finds the new place after the process that hosted the runs has ended.
    pub(super) fn move_on(&self) -> Result<(), Failure> {
        self.find_place(ResumeRuns::OnRequest)?;
        let backend = self.backend()?;
        let resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for run in resumed {
            // An error is reported by the next operation on the run.
            let _ = self.threads.block_on(backend.resume(run));
        }
        match *self.timers.borrow() {
            true => self.arm_timers(),
            false => Ok(()),
        }
    }

    /// Resumes the open invocations of a run.
    pub(crate) fn resume(&self, run: &str) -> Result<Result<(), RuntimeError>, Failure> {
        let first = {
            let mut resumed = self.resumed.lock().unwrap_or_else(PoisonError::into_inner);
            resumed.insert(run.to_owned()) && resumed.len() == 1
        };
        if first && self.other().is_some() {
            self.part_on_signal();
        }
        self.try_call(|b| b.resume(run.to_owned()))
    }

    /// From now on, this process fires the timers of all runs, if it hosts them: it waits for
    /// something.
    pub(crate) fn stay(&self) -> Result<(), Failure> {
        match self.timers.replace(true) {
            true => Ok(()),
            false => self.arm_timers(),
        }
    }

    fn arm_timers(&self) -> Result<(), Failure> {
        match &*self.place.borrow() {
            Place::Own(own) => Ok(self.threads.block_on(own.runtime.resume_timers())?),
            _ => Ok(()),
        }
    }

    /// Finds a run by its id, or by a unique prefix of it.
    pub(crate) fn find(&self, name: &str) -> Result<RunInfo, Failure> {
        match self.call(|b| b.run(name.to_owned()))? {
            Some(run) => Ok(run),
            None => self.db.find_among(&self.call(|b| b.runs(RunFilter::default()))?, name),
        }
    }

    /// Waits for a future, at most for `time`.
    pub(crate) fn wait_at_most<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        self.unless_interrupted();
        self.threads.block_on(async { tokio::time::timeout(time, work).await.ok() })
    }
}
