//! The sessions of agents: in memory, limited in number, of one caller and one run each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderValue, StatusCode};
use charter_kernel::{Auth, Timestamp};
use charter_mcp::{Connection, Version};
use tokio::sync::watch;

use super::super::problem::Problem;
use crate::identity::{Caller, random_text};

/// Sessions at the same time, and those of one caller; then the one that was not used for longest
/// ends.
const MAX: usize = 1_000;
const MAX_OF_ONE: usize = 64;
/// How long a session lives that is not used, in milliseconds.
const IDLE_MS: i64 = 30 * 60 * 1_000;

/// A session.
pub(super) struct Session {
    id: String,
    owner: Owner,
    run: String,
    version: Version,
    connection: tokio::sync::Mutex<Connection>,
    used: AtomicI64,
    ended: watch::Sender<bool>,
}

/// Whose a session is: an id, and the key that it was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    id: String,
    auth: Auth,
    key: Option<String>,
}

impl Owner {
    fn of(caller: &Caller) -> Owner {
        Owner { id: caller.id.clone(), auth: caller.auth, key: caller.key.clone() }
    }
}

impl Session {
    /// What `initialize` has agreed on.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) async fn connection(&self) -> tokio::sync::MutexGuard<'_, Connection> {
        self.connection.lock().await
    }

    /// Takes note that the session is used.
    pub(super) fn touch(&self, now: Timestamp) {
        self.used.store(now.0, Ordering::Relaxed);
    }

    /// Tells when the session ends.
    pub(super) fn end(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    fn is_open(&self, now: Timestamp) -> bool {
        now.0.saturating_sub(self.used.load(Ordering::Relaxed)) < IDLE_MS
    }
}

/// The sessions of agents.
#[derive(Default)]
pub(crate) struct AgentSessions(Mutex<BTreeMap<String, Arc<Session>>>);

impl AgentSessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session; returns its id.
    pub(super) fn begin(
        &self,
        caller: &Caller,
        run: &str,
        connection: Connection,
        now: Timestamp,
    ) -> Result<HeaderValue, Problem> {
        let id = random_text().map_err(|_| Problem::internal("the system has no random numbers"))?;
        let header = HeaderValue::from_str(&id).map_err(|_| Problem::internal("the id of a session is no header"))?;
        let owner = Owner::of(caller);
        let version = connection.version().unwrap_or(Version::NEWEST_WITH_SESSIONS);
        let mut all = self.all();
        all.retain(|_, session| {
            let open = session.is_open(now);
            if !open {
                session.ended.send_replace(true);
            }
            open
        });
        let own = all.values().filter(|session| session.owner == owner);
        let oldest = own.clone().min_by_key(|session| session.used.load(Ordering::Relaxed)).map(|s| s.id.clone());
        let is_full = own.count() >= MAX_OF_ONE || all.len() >= MAX;
        match oldest.filter(|_| is_full) {
            Some(oldest) => {
                if let Some(session) = all.remove(&oldest) {
                    session.ended.send_replace(true);
                }
            }
            None if is_full => {
                let full = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many", "too many sessions are open");
                return Err(Problem { retry_after: Some(60), ..full });
            }
            None => {}
        }
        let session = Session {
            id: id.clone(),
            owner,
            run: run.to_owned(),
            version,
            connection: tokio::sync::Mutex::new(connection),
            used: AtomicI64::new(now.0),
            ended: watch::Sender::new(false),
        };
        all.insert(id, Arc::new(session));
        Ok(header)
    }

    /// Finds a session of a caller in a run.
    pub(super) fn find(&self, id: &str, caller: &Caller, run: &str, now: Timestamp) -> Option<Arc<Session>> {
        let session = self.all().get(id).cloned()?;
        let own = session.owner == Owner::of(caller) && session.run == run && session.is_open(now);
        own.then(|| {
            session.touch(now);
            session
        })
    }

    /// Ends a session.
    pub(super) fn end(&self, session: &Session) {
        self.all().remove(&session.id);
        session.ended.send_replace(true);
    }
}
