//! Who decides: the process that has the journal open, a server, or this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_guard::client::{Decision, Request};
use charter_guard::gate::{self, GateError, Here, Place, ROLE};
use charter_journal::{Holder, SqliteStore, StoreError, holder};
use charter_kernel::Principal;
use charter_local::{Asker, ConnectError};
use charter_models::Models;
use charter_remote::Remote;
use charter_runtime::{Options, ResumeRuns, Runtime, RuntimeError, new_run_id};

use super::Args;
use crate::io::Failure;
use crate::journal::access::threads;
use crate::models;
use crate::network;
use crate::run::background::Background;
use crate::run::setup;

/// Pause between two attempts to reach or open the journal.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the host of this process may take to close.
const GRACE: Duration = Duration::from_secs(1);

impl From<GateError> for Failure {
    fn from(error: GateError) -> Failure {
        match error {
            GateError::Runtime(error) => error.into(),
            other => Failure::new(other.to_string()),
        }
    }
}

/// Asks the run of a hook.
pub(super) fn decide(args: &Args, request: &Request, deadline: Instant) -> Result<Decision, Failure> {
    let run = args.run.as_deref().unwrap_or_default();
    let roles = match args.roles.is_empty() {
        true => vec![ROLE.to_owned()],
        false => args.roles.clone(),
    };
    let ask = Ask { args, run, request, by: gate::principal(request, &roles) };
    match args.db.remote()? {
        Some(remote) => ask.server(remote),
        None => ask.journal(deadline),
    }
}

/// A request, and where it goes.
struct Ask<'a> {
    args: &'a Args,
    run: &'a str,
    request: &'a Request,
    by: Principal,
}

impl Ask<'_> {
    /// What this machine is like.
    fn here(&self) -> Here {
        Here {
            cwd: std::env::current_dir().ok(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            guarded: gate::guarded(&self.args.db.db),
        }
    }

    /// Asks a server.
    fn server(&self, remote: Remote) -> Result<Decision, Failure> {
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let place = Place::Page(remote.url().to_owned());
        let decided = gate::decide(&remote, self.run, self.request, self.here(), self.by.clone(), &place);
        Ok(threads.block_on(decided)?)
    }

    /// Asks the process that has the journal file open; if there is none, opens it.
    fn journal(&self, deadline: Instant) -> Result<Decision, Failure> {
        let path = &self.args.db.db;
        if !path.exists() {
            return Err(Failure::with_help(
                format!("journal file `{}` not found", path.display()),
                "`charter guard init CLIENT` creates it with the run; another one: `--db FILE`",
            ));
        }
        self.args.db.check()?;
        crate::journal::opened(path, charter_journal::check_owner(path))?;
        let mut last;
        loop {
            let held = holder(path)?;
            match held {
                Some(held @ Holder { address: Some(_), .. }) => match self.socket(&held, deadline) {
                    Ok(decision) => return Ok(decision),
                    Err(Unasked::Gone(why)) => last = why,
                    Err(Unasked::Failed(failure)) => return Err(failure),
                },
                Some(held) => last = format!("{held} has it open and accepts no requests"),
                None => match SqliteStore::open(path) {
                    Ok(store) => match self.own(store)? {
                        Some(decision) => return Ok(decision),
                        None => last = "a process in the background does not open it".to_owned(),
                    },
                    Err(StoreError::InUse { .. }) => last = "another process has opened it".to_owned(),
                    Err(e) => return Err(e.into()),
                },
            }
            if Instant::now() + PAUSE > deadline {
                return Err(Failure::new(format!("the journal `{}` cannot be reached: {last}", path.display())));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks the process that has the journal open.
    fn socket(&self, held: &Holder, deadline: Instant) -> Result<Decision, Unasked> {
        let mut asker = Asker::connect(held, deadline).map_err(|e| match e {
            ConnectError::Gone { .. } => Unasked::Gone(e.to_string()),
            e => Unasked::Failed(Failure::new(e.to_string())),
        })?;
        let lost = |e: RuntimeError| match e {
            // It is asked again: events have ids.
            RuntimeError::Lost { .. } => Unasked::Gone(e.to_string()),
            e => Unasked::Failed(e.into()),
        };
        let input = asker.input(self.run).map_err(lost)?;
        let made = gate::question(self.run, self.request, &input, &self.here(), self.by.clone(), &new_run_id());
        asker.ask(made.map_err(|e| Unasked::Failed(e.into()))?).map_err(lost)
    }

    /// Decides in this process, which ends at once. `None` if the actors of the charter need one
    /// that stays: it has been started, and has the journal open soon.
    fn own(&self, store: SqliteStore) -> Result<Option<Decision>, Failure> {
        // It ends soon, so others wait.
        store.announce(None, true)?;
        let threads = threads(1)?;
        let network = network::of(&setup::variable, false)?;
        let options = setup::options(Models::offline(), &network, setup::secrets());
        let options = Options { resume: ResumeRuns::OnRequest, ..options };
        let store = Arc::new(store);
        let decided: Result<Option<Decision>, Failure> = threads.block_on(async {
            let (runtime, _) = Runtime::open(store.clone(), options).await?;
            let decided = self.alone(&runtime).await;
            runtime.shutdown(GRACE).await;
            decided
        });
        drop(store);
        threads.shutdown_timeout(GRACE);
        match decided? {
            Some(decision) => Ok(Some(decision)),
            None => {
                Background::start(&self.args.db, &models::Args::default())?;
                Ok(None)
            }
        }
    }

    async fn alone(&self, runtime: &Runtime) -> Result<Option<Decision>, Failure> {
        let view = runtime.view(self.run).await?;
        let actors = &view.charter.machine().definition().actors;
        let works = actors.values().any(|actor| actor.kind != "human");
        let input = gate::input(runtime, self.run).await?;
        let question = gate::question(self.run, self.request, &input, &self.here(), self.by.clone(), &new_run_id())?;
        if works && gate::starts_actor(&view, &question, crate::run::follow::now()) {
            return Ok(None);
        }
        Ok(Some(gate::ask(runtime, question, &Place::Command(self.args.db.option())).await?))
    }
}

/// Why a process was not asked.
enum Unasked {
    /// It is ending; another one, or nobody, has the journal then.
    Gone(String),
    Failed(Failure),
}
