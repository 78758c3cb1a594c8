//! The listener: connections in number and time limited, and an end in order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use axum::Extension;
use charter_journal::{Record, Verdict};
use charter_runtime::Charter;
use charter_runtime::backend::Backend;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::feed::Feed;
use crate::hooks::{Hooks, supervise};
use crate::http::{AgentSessions, App, Peer, router};
use crate::identity::{HOST_RUN, HostError, Logins, Office, Sessions};
use crate::marks::Inbox;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::patient::Patient;
use crate::sites::{BadSite, Sites};
use crate::used::{EVERY, Used};

/// Bytes of the head of a request.
const MAX_HEAD: usize = 64 << 10;
/// How long to wait when a connection cannot be accepted, for want of descriptors for example.
const PAUSE: Duration = Duration::from_millis(50);
/// Charters that are checked or stepped at once.
const HEAVY: usize = 2;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It cannot listen.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// It would let everybody in.
    #[error(
        "{0} can be reached from other machines, but there is no key: add one with `charter key add`, or listen at 127.0.0.1"
    )]
    NoKeys(SocketAddr),
    /// An address in its options is none.
    #[error(transparent)]
    Site(#[from] BadSite),
    /// The provider of tokens cannot be used.
    #[error("{0}")]
    Oidc(String),
    /// The run that holds the keys cannot be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host of the journal reports an error.
    #[error(transparent)]
    Runtime(#[from] charter_runtime::RuntimeError),
}

/// A running server. Dropping it ends it at once.
pub struct Server {
    address: SocketAddr,
    app: Arc<App>,
    stop: watch::Sender<bool>,
    tasks: Mutex<Option<[JoinHandle<()>; 4]>>,
}

impl Server {
    /// Starts a server for the runs of a host. `charters` can be started over HTTP. Must be called
    /// within a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(
        backend: Arc<dyn Backend>,
        charters: Vec<Charter>,
        options: Options,
    ) -> Result<Server, StartError> {
        let wanted = options.listen;
        let listen = |error| StartError::Listen { address: wanted, error };
        let listener = TcpListener::bind(wanted).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let sites = Sites::new(address, options.public_url.as_deref(), &options.origins)?;
        #[cfg(feature = "oidc")]
        let oidc = options.oidc.clone().map(crate::oidc::Provider::new).transpose().map_err(StartError::Oidc)?;
        #[cfg(not(feature = "oidc"))]
        if options.oidc.is_some() {
            return Err(StartError::Oidc(
                "this program was built without OIDC: build it with `--features oidc`".to_owned(),
            ));
        }
        let office = Office::open(backend.clone(), &options.owner).await?;
        if !address.ip().is_loopback() && !office.directory().has_keys() && options.oidc.is_none() {
            return Err(StartError::NoKeys(address));
        }
        let mut known = BTreeMap::new();
        for charter in charters {
            let charter = backend.add(charter).await?;
            known.insert(charter.machine().definition().id.clone(), charter);
        }
        let feed = Feed::new(backend.last_position().await?);
        let app = Arc::new(App {
            address,
            backend: backend.clone(),
            office,
            sessions: Sessions::default(),
            logins: Logins::default(),
            agents: AgentSessions::default(),
            sites,
            #[cfg(feature = "oidc")]
            oidc,
            feed: feed.clone(),
            metrics: Metrics::default(),
            charters: RwLock::new(known),
            missing: RwLock::default(),
            of_runs: Mutex::default(),
            digests: Mutex::default(),
            hooks: Hooks::new(),
            closing: AtomicBool::new(false),
            used: Used::read(backend.as_ref()).await?,
            inbox: Inbox::read(backend.as_ref()).await?,
            readers: Mutex::default(),
            heavy: Semaphore::new(HEAVY),
            recent_failures: (AtomicU32::new(0), AtomicI64::new(0)),
            options,
        });
        app.office.note(Some((&format!("http://{address}"), &app.options.version)), &app.options.owner).await?;
        let seen = {
            let app = app.clone();
            async move |record: &Record| {
                app.metrics.records.fetch_add(1, Ordering::Relaxed);
                if record.verdict == Verdict::Refused {
                    app.metrics.refused.fetch_add(1, Ordering::Relaxed);
                }
                if &*record.run == HOST_RUN {
                    // A key may have been added or revoked at the command line.
                    app.office.refresh_soon().await;
                }
            }
        };
        let following = tokio::spawn(feed.follow(backend, seen));
        let (stop, stopping) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, app.clone(), stopping));
        let telling = tokio::spawn(supervise(app.clone()));
        let remembering = tokio::spawn(remember(app.clone()));
        Ok(Server { address, app, stop, tasks: Mutex::new(Some([accepting, following, telling, remembering])) })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of its page for people: the public one, if there is one.
    #[must_use]
    pub fn url(&self) -> String {
        self.app.url()
    }

    /// An address of the page with a code that logs the owner of the journal in: once, and within
    /// ten minutes. Only who may act as the owner on this machine should see it.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn login_link(&self) -> Result<String, getrandom::Error> {
        Ok(format!("{}/#login={}", self.url(), self.app.logins.issue(self.app.now())?))
    }

    /// Whether anybody has a key. Without keys, names are claimed and not authenticated.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.app.office.directory().has_keys()
    }

    /// Replaces a charter that runs can be started of, or adds one. Runs keep the charter that they
    /// began with.
    ///
    /// # Errors
    /// The host does not accept the charter; the earlier one stays.
    pub async fn put_charter(&self, charter: Charter) -> Result<(), charter_runtime::RuntimeError> {
        let charter = self.app.backend.add(charter).await?;
        let id = charter.machine().definition().id.clone();
        self.app.charters.write().unwrap_or_else(PoisonError::into_inner).insert(id, charter);
        Ok(())
    }

    /// Names the charters that are missing, and why (`its file is broken: ...`): who asks for one
    /// is told. Replaces what was named before.
    pub fn set_missing(&self, missing: BTreeMap<String, String>) {
        *self.app.missing.write().unwrap_or_else(PoisonError::into_inner) = missing;
    }

    /// Ends the server in order: refuses what would change something, ends live streams, and waits
    /// for requests that are being answered, at most for `grace`.
    pub async fn close(&self, grace: Duration) {
        self.app.closing.store(true, Ordering::SeqCst);
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some([mut accepting, following, telling, remembering]) = tasks else { return };
        telling.abort();
        // The journal may be what has failed.
        let _ = self.app.office.note(None, &self.app.options.owner).await;
        let _ = self.stop.send(true);
        if tokio::time::timeout(grace, &mut accepting).await.is_err() {
            accepting.abort();
        }
        following.abort();
        remembering.abort();
        self.app.used.write(self.app.backend.as_ref()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).take().into_iter().flatten() {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({})", self.address)
    }
}

/// Writes from time to time when keys were last used.
async fn remember(app: Arc<App>) {
    loop {
        tokio::time::sleep(EVERY).await;
        app.used.write(app.backend.as_ref()).await;
    }
}

async fn accept(listener: TcpListener, app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    let routes = router(app.clone());
    let connections = Arc::new(Semaphore::new(app.options.limits.connections));
    let graceful = GracefulShutdown::new();
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else { break };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, peer)) = stream else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let served = connection(stream, &app, routes.clone().layer(Extension(Peer(peer))));
        let served = graceful.watch(served);
        let app = app.clone();
        tokio::spawn(async move {
            app.metrics.connections.fetch_add(1, Ordering::Relaxed);
            // Errors are those of the peer.
            let _ = served.await;
            app.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(permit);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

type Served = hyper::server::conn::http1::Connection<TokioIo<Patient<TcpStream>>, TowerToHyperService<axum::Router>>;

fn connection(stream: TcpStream, app: &App, routes: axum::Router) -> Served {
    // Answers are small; without this, each waits for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let limits = &app.options.limits;
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream, limits.write_time)), TowerToHyperService::new(routes))
}
