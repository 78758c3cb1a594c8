//! A host with its socket.

use std::path::PathBuf;
use std::sync::Arc;

use charter_actors::Folder;
use charter_journal::{Holder, SqliteStore};
use charter_kernel::Principal;
use charter_local::{Client, Server, Service};
use charter_runtime::backend::Backend as _;
use charter_runtime::{Charter, Options, Runtime, Start};
use serde_json::json;

pub(crate) const DESK: &str = "
charter: 1
id: desk
roles: {boss: {}}
events: {GO: {by: boss}, ASK: {by: boss}, SAY: {by: boss}}
context: {n: 0}
actors:
  review: {kind: human, title: Read it, by: [boss]}
initial: open
states:
  open:
    on:
      GO: {actions: {assign: {n: '= context.n + 1'}}}
      SAY: {actions: [{emit: {type: SAID, data: {n: '= context.n'}}}]}
      ASK: asked
    after: {1h: done}
  asked: {invoke: {src: review, timeout: 1h, onDone: open, onError: open}}
  done: {type: final}
";

/// A host in this process that shares its journal.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) service: Arc<Service>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) server: Option<Server>,
}

impl Site {
    pub(crate) async fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        let (runtime, _) = Runtime::open(store.clone(), Options::default()).await.unwrap();
        let service = Arc::new(Service::new(runtime.clone(), store.clone()));
        let server = Server::open(&path, &[], service.clone(), json!({"models": "none"})).unwrap();
        store.announce(Some(server.address()), false).unwrap();
        Site { folder, runtime, service, store, server: Some(server) }
    }

    pub(crate) fn address(&self) -> PathBuf {
        self.server.as_ref().unwrap().address().to_owned()
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder { pid: std::process::id(), address: Some(self.address()), starting: false }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.holder()).await.unwrap()
    }
}

pub(crate) fn boss() -> Principal {
    Principal::new("ana", &["boss", "operator"])
}

pub(crate) fn desk() -> Charter {
    let document = charter_format::read(DESK, "desk.yaml", &Default::default()).unwrap();
    Charter::new(&document, Folder::None).unwrap()
}

/// Starts a run of the charter.
pub(crate) async fn start(client: &Client, run: &str) {
    let charter = client.add(desk()).await.unwrap();
    let start = Start { charter: charter.digest(), run: Some(run.into()), input: json!({}), by: boss() };
    assert!(!client.start(start).await.unwrap().is_refused());
}
