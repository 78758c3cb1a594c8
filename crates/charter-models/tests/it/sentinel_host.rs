//! sentinel on the embedded host, offline, in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use charter_actors::Workspaces;
use charter_journal::{MemoryStore, Store};
use charter_kernel::{Digest, Principal};
use charter_models::Models;
use charter_runtime::{Charter, Options, Receipt, Runtime, SendEvent, Start, View};
use serde_json::{Value as Json, json};

pub(crate) struct Host {
    pub(crate) runtime: Runtime,
    pub(crate) charter: Digest,
    pub(crate) journal: Arc<dyn Store>,
    pub(crate) root: PathBuf,
    _temporary: Option<Arc<tempfile::TempDir>>,
}

pub(crate) async fn open(root: &Path, journal: Arc<dyn Store>, charter: Charter, models: Models) -> Host {
    let options =
        Options::default().executor("workspace", Workspaces::new(root.join("store"))).executor("model", models);
    let (runtime, _) = Runtime::open(journal.clone(), options).await.unwrap();
    let charter = runtime.add(charter).await.unwrap().digest();
    Host { runtime, charter, journal, root: root.to_owned(), _temporary: None }
}

pub(crate) async fn sentinel() -> Host {
    with(sentinel_charter()).await
}

/// sentinel with another text.
pub(crate) async fn edited(edit: impl FnOnce(String) -> String, models: Models) -> Host {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters/sentinel");
    let source = edit(fs::read_to_string(folder.join("charter.yaml")).unwrap());
    let document = charter_format::read(&source, "charter.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    with_models(Charter::new(&document, charter_actors::Folder::Dir(folder)).unwrap(), models).await
}

pub(crate) fn sentinel_charter() -> Charter {
    Charter::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters/sentinel")).unwrap()
}

pub(crate) async fn with(charter: Charter) -> Host {
    with_models(charter, Models::offline()).await
}

async fn with_models(charter: Charter, models: Models) -> Host {
    let temporary = tempfile::tempdir().unwrap();
    fs::create_dir(temporary.path().join("w")).unwrap();
    fs::write(temporary.path().join("w/greeting.txt"), "Hello, world\n").unwrap();
    fs::write(temporary.path().join("w/other.txt"), "other\n").unwrap();
    let mut host = open(temporary.path(), Arc::new(MemoryStore::new()), charter, models).await;
    host._temporary = Some(Arc::new(temporary));
    host
}

/// Drops the host at once and opens its journal again.
pub(crate) async fn again(host: Host) -> Host {
    let (journal, root, kept) = (host.journal.clone(), host.root.clone(), host._temporary.clone());
    host.runtime.shutdown(Duration::ZERO).await;
    drop(host);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut host = open(&root, journal, sentinel_charter(), Models::offline()).await;
    host._temporary = kept;
    host
}

impl Host {
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.root.join("w").join(name)).unwrap_or_else(|_| "(none)".into())
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.root.join("w"))
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Whether a `verify` command has made the file `began` in its copy.
    pub(crate) fn began(&self) -> bool {
        let workspaces = fs::read_dir(self.root.join("store/workspaces")).unwrap();
        workspaces.into_iter().any(|known| known.unwrap().path().join("scratch/tree/began").exists())
    }

    pub(crate) async fn start(&self, run: &str, more: Json) {
        let mut input = json!({"workspace": self.root.join("w"), "goal": "Greet in German"});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        let by = Principal::new("ana", &["operator"]);
        let start = Start { charter: self.charter, run: Some(run.into()), input, by };
        self.runtime.start(start).await.unwrap();
    }

    pub(crate) async fn until(&self, run: &str, state: &str) -> View {
        let reached = self.runtime.until(run, |snapshot| snapshot.actor("root").unwrap().state().any(|s| s == state));
        match tokio::time::timeout(Duration::from_secs(30), reached).await {
            Ok(view) => view.unwrap(),
            Err(_) => {
                let view = self.runtime.view(run).await.unwrap();
                panic!("{state} was not reached: {:#}", view.charter.machine().snapshot_json(&view.snapshot));
            }
        }
    }

    pub(crate) async fn var(&self, run: &str, name: &str) -> Json {
        let view = self.runtime.view(run).await.unwrap();
        view.snapshot.actor("root").unwrap().variable(name).cloned().unwrap_or_default()
    }

    pub(crate) async fn send(&self, run: &str, r#type: &str, data: Json) -> Receipt {
        let by = Principal::new("ana", &["operator", "approver"]);
        let receipt = self.runtime.send(SendEvent::new(run, r#type, data, by)).await.unwrap();
        assert!(!receipt.is_refused(), "{type} was refused: {:?}", receipt.refusal());
        receipt
    }

    /// Approves the context and waits for the proposal.
    pub(crate) async fn to_proposal(&self, run: &str) -> Json {
        self.until(run, "AWAITING_CONTEXT_APPROVAL").await;
        let digest = Digest::of_json(&self.var(run, "bundle").await).hex();
        self.send(run, "APPROVE_CONTEXT", json!({"digest": digest})).await;
        self.until(run, "AWAITING_PROPOSAL_APPROVAL").await;
        self.var(run, "proposal").await
    }

    pub(crate) async fn approve(&self, run: &str, changeset: &Json, accepted: Option<Json>) {
        let mut data = json!({"digest": Digest::of_json(changeset).hex()});
        if let Some(accepted) = accepted {
            data["accepted"] = accepted;
        }
        self.send(run, "APPROVE_PROPOSAL", data).await;
    }

    pub(crate) async fn error(&self, run: &str) -> Json {
        self.until(run, "ERROR").await;
        self.var(run, "error").await
    }

    /// Waits until no invocation is open.
    pub(crate) async fn settled(&self, run: &str) -> Json {
        let done = self.runtime.until(run, |snapshot| !snapshot.invocations().any(|_| true));
        tokio::time::timeout(Duration::from_secs(30), done).await.unwrap().unwrap();
        self.var(run, "rollback").await
    }
}
