//! What all requests share.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::http::StatusCode;
use charter_journal::RunInfo;
use charter_kernel::{Digest, Principal, Timestamp};
use charter_runtime::backend::Backend;
use charter_runtime::{Charter, RuntimeError, View};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::mcp::AgentSessions;
use super::problem::Problem;
use super::stream::Readers;
use crate::feed::Feed;
use crate::hooks::Hooks;
use crate::identity::{ADMIN, Caller, HOST_RUN, Logins, Office, READER, Sessions};
use crate::marks::Inbox;
use crate::metrics::Metrics;
use crate::options::{Clock, Options};
use crate::sites::Sites;
use crate::used::Used;

/// Charters of a server, and of runs that are kept compiled.
pub(crate) const MAX_CHARTERS: usize = 1_000;
/// Runs whose charters are remembered.
const MAX_RUNS: usize = 10_000;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

pub(crate) struct App {
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) office: Office,
    pub(crate) sessions: Sessions,
    pub(crate) logins: Logins,
    /// The sessions of agents that speak MCP.
    pub(crate) agents: AgentSessions,
    pub(crate) sites: Sites,
    #[cfg(feature = "oidc")]
    pub(crate) oidc: Option<Arc<crate::oidc::Provider>>,
    pub(crate) feed: Feed,
    pub(crate) metrics: Metrics,
    pub(crate) options: Options,
    /// The charters that runs can be started of, by id.
    pub(crate) charters: RwLock<BTreeMap<String, Arc<Charter>>>,
    /// Names of charters that are missing, and why.
    pub(crate) missing: RwLock<BTreeMap<String, String>>,
    /// Charters of runs: the host compiles one that was not added again with each look.
    pub(crate) of_runs: Mutex<HashMap<Digest, Arc<Charter>>>,
    /// The charters of runs that events were sent to.
    pub(crate) digests: Mutex<HashMap<String, Digest>>,
    pub(crate) hooks: Hooks,
    pub(crate) closing: AtomicBool,
    pub(crate) used: Used,
    pub(crate) inbox: Inbox,
    /// Open live streams, by the id of their reader.
    pub(crate) readers: Mutex<HashMap<String, Readers>>,
    /// Turns for work that takes long.
    pub(crate) heavy: Semaphore,
    /// Failed attempts to authenticate in a second, and which second.
    pub(crate) recent_failures: (AtomicU32, AtomicI64),
}

/// A run that the caller may change.
pub(crate) struct Own {
    pub(crate) charter: Arc<Charter>,
    /// Who the caller is in it.
    pub(crate) by: Principal,
}

/// A run that the caller may see.
pub(crate) struct Seen {
    pub(crate) info: RunInfo,
    pub(crate) charter: Arc<Charter>,
    /// Who the caller is in it.
    pub(crate) by: Principal,
}

impl App {
    pub(crate) fn now(&self) -> Timestamp {
        let Clock(clock) = &self.options.clock;
        clock.now()
    }

    /// The address of the server: the public one, if there is one.
    pub(crate) fn url(&self) -> String {
        match &self.options.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if self.address.ip().is_unspecified() => format!("http://localhost:{}", self.address.port()),
            None => format!("http://{}", self.address),
        }
    }

    /// Counts a failed attempt to authenticate; whether there are too many in this second.
    pub(crate) fn too_many_failures(&self) -> bool {
        self.failures(1) >= self.options.limits.failures_per_second
    }

    /// Whether there have been too many failed attempts to authenticate in this second.
    pub(crate) fn has_too_many_failures(&self) -> bool {
        self.failures(0) >= self.options.limits.failures_per_second
    }

    /// Returns the number of failed attempts in this second, and counts more.
    fn failures(&self, more: u32) -> u32 {
        let (count, second) = &self.recent_failures;
        let now = self.now().0.div_euclid(1_000);
        if second.swap(now, Ordering::Relaxed) != now {
            count.store(0, Ordering::Relaxed);
        }
        count.fetch_add(more, Ordering::Relaxed)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Refuses requests that change something once the server is closing.
    pub(crate) fn writable(&self) -> Result<(), Problem> {
        match self.is_closing() {
            true => Err(RuntimeError::Closing.into()),
            false => Ok(()),
        }
    }

    /// A turn for work that takes long, until it is dropped.
    pub(crate) fn heavy_turn(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.heavy.try_acquire().map_err(|_| Problem {
            retry_after: Some(2),
            ..Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many",
                "charters are being checked, or queries answered, for others; try again soon",
            )
        })
    }

    /// Looks up the charter of a run.
    pub(crate) async fn charter(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        let known = |app: &App| app.of_runs.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        if let Some(known) = known(self) {
            return Ok(known);
        }
        let charter = self.backend.charter(digest).await?;
        let mut of_runs = self.of_runs.lock().unwrap_or_else(PoisonError::into_inner);
        if of_runs.len() >= MAX_CHARTERS {
            of_runs.clear();
        }
        of_runs.insert(digest, charter.clone());
        Ok(charter)
    }

    /// The charter of a run, which stays the same as long as the run exists. Each event asks for
    /// it, so it is remembered; of a run that was deleted since, the host says so.
    async fn charter_of_run(&self, run: &str) -> Result<Arc<Charter>, Problem> {
        let known = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(run).copied();
        if let Some(digest) = known {
            return Ok(self.charter(digest).await?);
        }
        let info = self.backend.run(run.to_owned()).await?.ok_or_else(|| Problem::unknown_run(run))?;
        self.remember(run, info.charter);
        Ok(self.charter(info.charter).await?)
    }

    fn remember(&self, run: &str, charter: Digest) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if digests.len() >= MAX_RUNS {
            digests.clear();
        }
        digests.insert(run.to_owned(), charter);
    }

    /// Finds a run, if the caller may see it.
    pub(crate) async fn run(&self, caller: &Caller, run: &str) -> Result<Seen, Problem> {
        let info = self.backend.run(run.to_owned()).await?.ok_or_else(|| Problem::unknown_run(run))?;
        let charter = self.charter(info.charter).await?;
        let by = as_seen(caller, &charter, run)?;
        Ok(Seen { info, charter, by })
    }

    /// Finds a run that the caller may change. An event of somebody without a role in it is not
    /// recorded: its record would be the only thing that it could bring about.
    pub(crate) async fn own_run(&self, caller: &Caller, run: &str) -> Result<Own, Problem> {
        self.writable()?;
        let charter = self.charter_of_run(run).await?;
        let by = as_seen(caller, &charter, run)?;
        match takes_part(caller, &charter, Some(run)) {
            true => Ok(Own { charter, by }),
            false => Err(Problem::forbidden(format!("you have no role in run `{run}`, so you change nothing in it"))),
        }
    }

    /// The current state of a run, if the caller may see it.
    pub(crate) async fn view(&self, caller: &Caller, run: &str) -> Result<(Seen, View), Problem> {
        let seen = self.run(caller, run).await?;
        let view = self.backend.view(run.to_owned()).await?;
        Ok((seen, view))
    }
}

/// The roles that a charter declares.
fn declared(charter: &Charter) -> Vec<&str> {
    charter.machine().definition().roles.keys().map(String::as_str).collect()
}

/// The caller as the run sees it, if it may see the run.
fn as_seen(caller: &Caller, charter: &Charter, run: &str) -> Result<Principal, Problem> {
    if !may_see(caller, charter, run) {
        return Err(Problem::unknown_run(run));
    }
    let definition = charter.machine().definition();
    Ok(caller.principal(&definition.id, Some(run), definition.roles.keys()))
}

/// Whether a caller may see a run. The run with the keys is for administrators.
pub(crate) fn may_see(caller: &Caller, charter: &Charter, run: &str) -> bool {
    match run {
        HOST_RUN => caller.grants.is_none() || caller.has_role(ADMIN) || caller.has_role(READER),
        _ => caller.sees(&charter.machine().definition().id, Some(run), &declared(charter)),
    }
}

/// Whether a caller may start a run of a charter, or change one (`run`).
pub(crate) fn takes_part(caller: &Caller, charter: &Charter, run: Option<&str>) -> bool {
    match run {
        Some(HOST_RUN) => caller.grants.is_none() || caller.has_role(ADMIN),
        _ => caller.takes_part(&charter.machine().definition().id, run, &declared(charter)),
    }
}
