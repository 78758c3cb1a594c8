//! A run stays in the folder in which it was started, whatever is started elsewhere.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_journal::{Deletion, MemoryStore, SqliteStore, Store, export, import, place, verify};
use charter_kernel::Digest;
use charter_runtime::{Charter, Runtime, SendEvent, Start};
use serde_json::{Value as Json, json};

use crate::common::{BEGIN, options, who};

const SOURCE: &str = "
charter: 1
id: folders
roles: {boss: {}}
events: {GO: {by: boss}}
context: {error: null}
actors: {work: {kind: exec, command: [sh, work.sh]}}
initial: idle
states:
  idle: {on: {GO: working}}
  working:
    invoke:
      src: work
      timeout: 1h
      input: = run.id
      onDone: done
      onError: {target: failed, actions: {assign: {error: '= event.error'}}}
  done: {type: final}
  failed: {type: final}
";

/// A store, and two folders with copies of the charter, whose actor leaves a file with the name of
/// the run.
struct Site {
    all: tempfile::TempDir,
    store: Arc<dyn Store>,
    clock: VirtualClock,
}

impl Site {
    fn new(in_file: bool) -> Site {
        let all = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            let folder = all.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("charter.yaml"), SOURCE).unwrap();
            fs::write(folder.join("work.sh"), "touch ran-$(tr -d '\"'); echo 1").unwrap();
        }
        let store: Arc<dyn Store> = match in_file {
            true => Arc::new(SqliteStore::open(&all.path().join("journal.db")).unwrap()),
            false => Arc::new(MemoryStore::new()),
        };
        Site { all, store, clock: VirtualClock::new(BEGIN) }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.all.path().canonicalize().unwrap().join(name)
    }

    fn name(&self, folder: &str) -> String {
        self.folder(folder).join("charter.yaml").display().to_string()
    }

    async fn host(&self) -> Runtime {
        Runtime::open(self.store.clone(), options(&self.clock)).await.unwrap().0
    }

    async fn add(&self, host: &Runtime, folder: &str) -> Digest {
        host.add(Charter::load(&self.folder(folder)).unwrap()).await.unwrap().digest()
    }

    async fn start(&self, host: &Runtime, folder: &str, run: &str) {
        let charter = self.add(host, folder).await;
        host.start(start(charter, run)).await.unwrap();
    }

    /// Sends GO, waits for the end, and returns the folders in which the actor has worked.
    async fn worked(&self, host: &Runtime, run: &str) -> Vec<&'static str> {
        host.send(go(run)).await.unwrap();
        let view = host.ended(run).await.unwrap();
        let error: Json = view.snapshot.actor("root").unwrap().context()["error"].clone();
        let ran = |folder: &&str| self.folder(folder).join(format!("ran-{run}")).exists();
        let folders: Vec<_> = ["a", "b"].into_iter().filter(ran).collect();
        assert_eq!(error.is_null(), !folders.is_empty(), "{error}");
        folders
    }

    fn verify(&self) {
        assert_eq!(verify(self.store.as_ref(), None).unwrap().findings, []);
    }
}

fn start(charter: Digest, run: &str) -> Start {
    Start { charter, run: Some(run.into()), input: json!({}), by: who("starter", &[]) }
}

fn go(run: &str) -> SendEvent {
    SendEvent::new(run, "GO", json!({}), who("ann", &["boss"]))
}

/// Runs a test with a store in memory, and with one in a file.
fn test<F: Future<Output = ()>>(work: impl Fn(Site) -> F) {
    for in_file in [false, true] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work(Site::new(in_file)));
    }
}

#[test]
fn a_run_stays_where_it_was_started() {
    test(|site| async move {
        let host = site.host().await;
        for run in ["a1", "a2", "a3"] {
            site.start(&host, "a", run).await;
        }
        site.start(&host, "b", "b1").await;
        host.fork("a1", 0, "f1", false).await.unwrap();
        assert_eq!(site.worked(&host, "a1").await, ["a"]);
        assert_eq!(site.worked(&host, "f1").await, ["a"], "a fork is where its origin is");
        drop(host);
        // After a restart, also if only the other copy is added.
        let host = site.host().await;
        assert_eq!(site.worked(&host, "a2").await, ["a"]);
        site.add(&host, "b").await;
        assert_eq!(site.worked(&host, "a3").await, ["a"]);
        host.fork("a2", 0, "f2", false).await.unwrap();
        host.fork("f2", 0, "f3", false).await.unwrap();
        site.add(&host, "a").await;
        assert_eq!(site.worked(&host, "b1").await, ["b"]);
        assert_eq!(site.worked(&host, "f3").await, ["a"]);
        site.verify();
    });
}

#[test]
fn a_run_starts_in_the_copy_that_is_named() {
    test(|site| async move {
        let host = site.host().await;
        let charter = site.add(&host, "a").await;
        site.add(&host, "b").await;
        host.start_in(start(charter, "x"), Some(&site.name("a"))).await.unwrap();
        host.start(start(charter, "y")).await.unwrap();
        assert_eq!(site.worked(&host, "x").await, ["a"]);
        assert_eq!(site.worked(&host, "y").await, ["b"]);
    });
}

#[test]
fn a_run_whose_folder_is_gone_moves_only_if_somebody_says_so() {
    test(|site| async move {
        let host = site.host().await;
        for run in ["x", "y", "z"] {
            site.start(&host, "a", run).await;
        }
        drop(host);
        fs::rename(site.folder("a"), site.folder("gone")).unwrap();
        let host = site.host().await;
        site.add(&host, "b").await;
        assert_eq!(site.worked(&host, "x").await, [""; 0]);
        host.move_run("y", &site.name("b")).await.unwrap();
        assert_eq!(site.worked(&host, "y").await, ["b"]);
        // It is in memory already.
        host.view("z").await.unwrap();
        host.send(SendEvent::new("z", "charter.pause", json!({}), who("op", &["operator"]))).await.unwrap();
        host.send(SendEvent::new("z", "charter.resume", json!({}), who("op", &["operator"]))).await.unwrap();
        host.move_run("z", &site.name("b")).await.unwrap();
        fs::write(site.folder("b").join("work.sh"), "touch ran-z; echo 2").unwrap();
        assert_eq!(site.worked(&host, "z").await, [""; 0], "its program has changed");
        site.verify();
    });
}

#[test]
fn an_import_brings_no_folder_and_keeps_the_one_that_was_allowed() {
    test(|site| async move {
        let host = site.host().await;
        site.start(&host, "a", "x").await;
        let mut exported = Vec::new();
        export(site.store.as_ref(), "x", &mut exported).unwrap();
        let other = Site::new(true);
        import(other.store.as_ref(), &mut exported.as_slice()).unwrap();
        assert_eq!(place(other.store.as_ref(), "x").unwrap(), None);
        let host = other.host().await;
        host.noticed("x").await.unwrap();
        host.fork("x", 0, "f", false).await.unwrap();
        other.add(&host, "a").await;
        assert_eq!(place(other.store.as_ref(), "x").unwrap(), None);
        let view = host.view("x").await.unwrap();
        let manifest = view.charter.manifest().digest(view.charter.digest()).to_string();
        let trust = SendEvent::new("x", "charter.trust", json!({"manifest": manifest}), who("op", &["operator"]));
        assert!(!host.send(trust).await.unwrap().is_refused());
        assert_eq!(place(other.store.as_ref(), "x").unwrap(), Some(other.name("a")));
        drop(host);
        let host = other.host().await;
        other.add(&host, "b").await;
        assert_eq!(place(other.store.as_ref(), "f").unwrap(), None);
        assert_eq!(other.worked(&host, "x").await, ["a"]);
        other.verify();
    });
}

#[test]
fn a_deleted_run_leaves_no_folder() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let site = Site::new(true);
        let host = site.host().await;
        site.start(&host, "a", "x").await;
        assert_eq!(place(site.store.as_ref(), "x").unwrap(), Some(site.name("a")));
        site.worked(&host, "x").await;
        drop(host);
        let path = site.all.path().join("journal.db");
        drop(site.store);
        let store = SqliteStore::open(&path).unwrap();
        store
            .delete(Deletion {
                run: "x".into(),
                reason: "test".into(),
                by: "ann".into(),
                at: charter_kernel::Timestamp(BEGIN),
            })
            .unwrap();
        assert_eq!(place(&store, "x").unwrap(), None);
    });
}

/// What an earlier version has left: no places.
fn forget(site: &Site, run: &str) {
    let change = charter_journal::StateChange { value: None, ..charter_journal::move_run(run, "") };
    site.store.put_host_state(vec![change]).unwrap();
}

#[test]
fn a_run_of_an_earlier_version_is_where_its_charter_was_read_last() {
    test(|site| async move {
        let host = site.host().await;
        site.start(&host, "a", "x").await;
        drop(host);
        forget(&site, "x");
        let host = site.host().await;
        assert_eq!(site.worked(&host, "x").await, ["a"]);
    });
}

#[test]
fn a_run_of_an_earlier_version_stays_there_from_now_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let site = Site::new(true);
        let host = site.host().await;
        site.start(&host, "a", "x").await;
        drop(host);
        forget(&site, "x");
        let host = site.host().await;
        site.start(&host, "b", "y").await;
        assert_eq!(place(site.store.as_ref(), "x").unwrap(), Some(site.name("a")));
        assert_eq!(site.worked(&host, "x").await, ["a"]);
    });
}
