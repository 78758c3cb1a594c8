//! The run `host`, where keys are added and revoked.

use std::sync::Arc;
use std::time::Duration;

use charter_actors::Folder;
use charter_format::ReadOptions;
use charter_kernel::{Auth, Code, InvalidName, Principal, PrincipalKind, Snapshot, check_name};
use charter_runtime::backend::{Acknowledged, Backend};
use charter_runtime::{Charter, HOST_RUN, RuntimeError, SendEvent, Start};
use serde_json::{Value as Json, json};
use tokio::sync::watch;

use super::{Directory, Grant, Secret};
use crate::hooks::BadUrl;

/// How often the keys are read again if the journal cannot be read, and the pause in between.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum length of the id and of a role of a key, in characters, as the charter `host` says it.
const MAX_NAME: usize = 200;

/// The text of the charter `host`.
pub const HOST_CHARTER: &str = include_str!("../../../../charters/host/charter.yaml");

/// Why the run `host` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The host of the journal reports an error.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The journal has a run with this id that has nothing to do with keys.
    #[error(
        "this journal has a run `host` of the charter `{0}`, but that id belongs to the run that holds the keys; serve another journal"
    )]
    Taken(String),
    /// The run has been cancelled or has failed.
    #[error("the run `host`, which holds the keys of this journal, has ended ({0}); serve another journal")]
    Ended(&'static str),
    /// The data of the run cannot be read.
    #[error("the keys in the run `host` cannot be read: {0}")]
    Unreadable(String),
    /// The run refuses the change.
    #[error("{why}")]
    Refused {
        /// The code of the refusal.
        code: Code,
        /// Why, in words.
        why: String,
    },
    /// The run was started by an earlier version.
    #[error(
        "the run `host` of this journal was started by an earlier version, whose charter has no event `{0}`; runs keep their charter, so begin a new journal"
    )]
    Earlier(String),
    /// The URL cannot be that of a hook.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The operating system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A key to add.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The id of its principal.
    pub id: String,
    /// What the principal is.
    pub kind: PrincipalKind,
    /// Its roles.
    pub grants: Vec<Grant>,
    /// When it ends, as RFC 3339 text.
    pub expires: Option<String>,
    /// A remark.
    pub note: Option<String>,
}

/// Compiles the charter `host`.
///
/// # Errors
/// It is invalid, which a test excludes.
pub fn host_charter() -> Result<Charter, RuntimeError> {
    let document = charter_format::read(HOST_CHARTER, "host", &ReadOptions::default());
    let document = document.map_err(|e| RuntimeError::Charter { charter: "host".into(), why: e.to_string() })?;
    Charter::new(&document, Folder::None)
}

/// The run `host`, and what it says of keys.
pub struct Office {
    backend: Arc<dyn Backend>,
    directory: watch::Sender<Arc<Directory>>,
}

impl Office {
    /// Opens the run, and starts it if there is none: `owner` is then the user of the machine who
    /// may always add keys.
    ///
    /// # Errors
    /// The id is taken, the run has ended, or the journal failed.
    pub async fn open(backend: Arc<dyn Backend>, owner: &str) -> Result<Office, HostError> {
        let office = Office { backend, directory: watch::Sender::default() };
        if office.backend.run(HOST_RUN.into()).await?.is_none() {
            let charter = office.backend.add(host_charter()?).await?.digest();
            let (input, by) = (json!({"owner": owner}), Self::owner(owner));
            let start = Start { charter, run: Some(HOST_RUN.into()), input, by };
            let started = office.backend.start(start).await?;
            if started.is_refused() {
                return Err(refused(&started));
            }
        }
        office.refresh().await?;
        Ok(office)
    }

    /// The principal of the user of the machine who owns the run.
    #[must_use]
    pub fn owner(id: &str) -> Principal {
        Principal::new(id, &["owner"]).of_kind(PrincipalKind::Person).authenticated(Auth::Local)
    }

    /// Reads the keys again, as they are after the last record of the run.
    ///
    /// # Errors
    /// See [`Office::open`].
    pub async fn refresh(&self) -> Result<(), HostError> {
        let view = self.backend.view(HOST_RUN.into()).await?;
        let id = &view.charter.machine().definition().id;
        if id != HOST_RUN {
            return Err(HostError::Taken(id.clone()));
        }
        if view.snapshot.status().is_finished() {
            return Err(HostError::Ended(view.snapshot.status().word()));
        }
        let seq = view.snapshot.seq();
        if self.directory.borrow().is_after(seq) {
            return Ok(());
        }
        let context = context_of(&view.snapshot);
        let read = Directory::read(&context, seq).map_err(|e| HostError::Unreadable(e.to_string()))?;
        self.directory.send_if_modified(|known| {
            // Somebody else may have read a later state meanwhile.
            if known.is_after(seq) {
                return false;
            }
            let changed = !read.says_the_same(known);
            *known = Arc::new(read);
            changed
        });
        Ok(())
    }

    /// Reads the keys again; if the journal cannot be read now, several times. Then they are read
    /// with the next record: the run itself refuses what a revoked key would change there.
    pub(crate) async fn refresh_soon(&self) {
        for _ in 0..TRIES {
            match self.refresh().await {
                Err(HostError::Runtime(_)) => tokio::time::sleep(PAUSE).await,
                // The run has ended or holds something else, which stays so.
                _ => return,
            }
        }
    }

    /// The keys.
    #[must_use]
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.borrow().clone()
    }

    /// The keys and hooks, and their changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Directory>> {
        self.directory.subscribe()
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    /// Checks that the run knows an event: one that an earlier version has started does not know
    /// the later ones.
    pub(crate) async fn knows(&self, event: &str) -> Result<(), HostError> {
        let view = self.backend.view(HOST_RUN.into()).await?;
        match view.charter.machine().definition().events.contains_key(event) {
            true => Ok(()),
            false => Err(HostError::Earlier(event.to_owned())),
        }
    }

    /// Adds a key. The secret is returned and kept nowhere.
    ///
    /// # Errors
    /// The run refuses it, or the journal failed.
    pub async fn add(&self, key: NewKey, by: Principal) -> Result<Secret, HostError> {
        let secret = Secret::random().map_err(HostError::Random)?;
        let NewKey { id, kind, grants, expires, note } = key;
        for name in grants.iter().map(|grant| &grant.role).chain([&id]) {
            let invalid = |e: InvalidName| HostError::Refused { code: Code::Schema, why: e.to_string() };
            check_name(name).map_err(invalid)?;
            let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/';
            if name.contains(bad) || !(1..=MAX_NAME).contains(&name.chars().count()) {
                let name: String = name.escape_debug().take(80).collect();
                let why = format!(
                    "`{name}` cannot be the id or a role of a key: such a name has 1 to {MAX_NAME} characters, and no spaces, control characters or `/`"
                );
                return Err(HostError::Refused { code: Code::Schema, why });
            }
        }
        let mut data = json!({
            "key": secret.key(), "sha256": secret.sha256(), "id": id, "kind": kind.word(), "grants": grants,
        });
        if let Json::Object(data) = &mut data {
            data.extend(expires.map(|at| ("expires".to_owned(), at.into())));
            data.extend(note.map(|note| ("note".to_owned(), note.into())));
        }
        self.send("KEY_ADDED", data, by).await?;
        Ok(secret)
    }

    /// Revokes a key. From then on, nobody is let in with it.
    ///
    /// # Errors
    /// The run refuses it, or the journal failed.
    pub async fn revoke(&self, key: &str, reason: Option<&str>, by: Principal) -> Result<(), HostError> {
        let data = match reason {
            Some(reason) => json!({"key": key, "reason": reason}),
            None => json!({"key": key}),
        };
        self.send("KEY_REVOKED", data, by).await
    }

    /// Records that a server accepts connections, or that it has ended in order.
    ///
    /// # Errors
    /// The run refuses it, or the journal failed.
    pub async fn note(&self, opened: Option<(&str, &str)>, owner: &str) -> Result<(), HostError> {
        let (event, data) = match opened {
            Some((address, version)) => ("SERVER_OPENED", json!({"address": address, "version": version})),
            None => ("SERVER_CLOSED", json!({})),
        };
        self.send(event, data, Self::owner(owner)).await
    }

    pub(crate) async fn send(&self, event: &str, data: Json, by: Principal) -> Result<(), HostError> {
        let done = self.backend.send(SendEvent::new(HOST_RUN, event, data, by)).await?;
        if done.is_refused() {
            return Err(refused(&done));
        }
        self.refresh().await
    }
}

fn context_of(snapshot: &Snapshot) -> Json {
    snapshot.actor("root").map(|root| root.context()).unwrap_or_default()
}

/// Why the event was refused.
fn refused(done: &Acknowledged) -> HostError {
    let machine = host_charter().ok();
    let explanation = done.record.explanation(machine.as_ref().map(|c| c.machine().as_ref()));
    let (code, why) = explanation.map_or((Code::Unhandled, String::new()), |e| (e.code, e.message));
    HostError::Refused { code, why }
}

#[cfg(test)]
mod tests {
    use charter_journal::MemoryStore;
    use charter_runtime::Runtime;

    use super::*;

    #[test]
    fn readers_of_keys_are_woken_by_changes_only() {
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        threads.block_on(async {
            let (host, _) = Runtime::open(Arc::new(MemoryStore::new()), Default::default()).await.unwrap();
            let office = Office::open(Arc::new(host), "uid:1").await.unwrap();
            let mut changes = office.changes();
            office.refresh().await.unwrap();
            assert!(!changes.has_changed().unwrap());
            office.note(Some(("http://127.0.0.1:1", "1")), "uid:1").await.unwrap();
            assert!(!changes.has_changed().unwrap());
            let key =
                NewKey { id: "ana".into(), kind: PrincipalKind::Person, grants: Vec::new(), expires: None, note: None };
            office.add(key, Office::owner("uid:1")).await.unwrap();
            assert!(changes.has_changed().unwrap() && changes.borrow_and_update().has_keys());
            // What was read before does not come back.
            office.directory.send_modify(|known| *known = Arc::new(Directory::read(&json!({"keys": {}}), 99).unwrap()));
            office.refresh().await.unwrap();
            assert!(!office.directory().has_keys());
        });
    }
}
