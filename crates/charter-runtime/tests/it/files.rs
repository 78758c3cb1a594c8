//! The files of a charter: a run uses those with which it started.

use std::path::Path;
use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, Store, export, import, verify};
use charter_kernel::Digest;
use charter_runtime::{Charter, Runtime, SendEvent};
use serde_json::{Value as Json, json};

use crate::common::{BEGIN, Host, open, options, who};

const SOURCE: &str = "
charter: 1
id: files
roles: {boss: {}}
events: {GO: {by: boss}}
context: {answer: null, error: null}
actors:
  read: {kind: scripted, answers: answers.yaml}
  work: {kind: exec, command: [sh, ./work.sh, --with=data.txt]}
initial: idle
states:
  idle: {on: {GO: reading}}
  reading: {invoke: {src: read, timeout: 1h, onDone: {target: working, actions: {assign: {answer: '= event.output'}}}, onError: failed}}
  working:
    invoke:
      src: work
      timeout: 1h
      onDone: {target: done, actions: {assign: {answer: '= [context.answer, event.output]'}}}
      onError: {target: failed, actions: {assign: {error: '= event.error'}}}
  done: {type: final}
  failed: {type: final}
";

fn write(folder: &Path, answer: &str, work: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("charter.yaml"), SOURCE).unwrap();
    std::fs::write(folder.join("answers.yaml"), format!("[{{output: {answer}}}]")).unwrap();
    std::fs::write(folder.join("work.sh"), format!("echo '\"{work}\"'; cat data.txt >&2")).unwrap();
    std::fs::write(folder.join("data.txt"), "data").unwrap();
}

async fn host(store: &Arc<dyn Store>, folder: &Path) -> Host {
    let clock = VirtualClock::new(BEGIN);
    open(store.clone(), clock.clone(), Charter::load(folder).unwrap(), options(&clock)).await
}

/// Sends GO, waits for the end and returns the context.
async fn go(runtime: &Runtime, run: &str) -> Json {
    runtime.send(SendEvent::new(run, "GO", json!({}), who("ann", &["boss"]))).await.unwrap();
    let view = runtime.ended(run).await.unwrap();
    view.snapshot.actor("root").unwrap().context()
}

fn test(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

fn digest(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).to_string()
}

#[test]
fn a_run_reads_the_files_with_which_it_started() {
    test(async {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "1", "old");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = host(&store, folder.path()).await;
        first.start("a", json!({})).await;
        let record = &store.records("a", 0, 1).unwrap()[0];
        let manifest: Json = serde_json::from_str(record.text()).unwrap();
        let work = "echo '\"old\"'; cat data.txt >&2";
        assert_eq!(
            manifest["manifest"],
            json!({"files": {"answers.yaml": digest("[{output: 1}]")}, "programs": {"work.sh": digest(work), "data.txt": digest("data")}})
        );
        // Another answer, but the same program: the run does not notice.
        std::fs::write(folder.path().join("answers.yaml"), "[{output: 2}]").unwrap();
        drop(first);
        let second = host(&store, folder.path()).await;
        second.start("b", json!({})).await;
        assert_eq!(go(&second.runtime, "a").await["answer"], json!([1, "old"]));
        assert_eq!(go(&second.runtime, "b").await["answer"], json!([2, "old"]));
        assert_eq!(verify(store.as_ref(), None).unwrap().findings, []);
        // The export has the files; another journal verifies them, too.
        let mut file = Vec::new();
        export(store.as_ref(), "a", &mut file).unwrap();
        let other = MemoryStore::new();
        import(&other, &mut file.as_slice()).unwrap();
        assert_eq!(other.blob(Digest::of_bytes(b"[{output: 1}]")).unwrap().unwrap(), b"[{output: 1}]");
        // The place of the folder stays here.
        let text = String::from_utf8(file).unwrap();
        assert!(!text.contains(&folder.path().display().to_string()), "{text}");
        // Without a file, or with another one, the run does not verify.
        let changed = text.replace("[{output: 1}]", "[{output: 3}]");
        let error = import(&MemoryStore::new(), &mut changed.as_bytes()).unwrap_err().to_string();
        assert!(
            error.contains("the manifest names `answers.yaml`") && error.contains("the blob is missing"),
            "{error}"
        );
    });
}

#[test]
fn a_program_runs_only_as_it_was_when_the_run_started() {
    test(async {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "1", "old");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let host = host(&store, folder.path()).await;
        for run in ["changed", "data", "missing"] {
            host.start(run, json!({})).await;
        }
        let old = "echo '\"old\"'; cat data.txt >&2";
        std::fs::write(folder.path().join("work.sh"), "echo x > seen").unwrap();
        let error = go(&host.runtime, "changed").await["error"].clone();
        assert_eq!(
            (&error["code"], &error["file"], &error["expected"], &error["found"], &error["retryable"]),
            (
                &json!("actor-changed"),
                &json!("work.sh"),
                &json!(digest(old)),
                &json!(digest("echo x > seen")),
                &json!(false)
            )
        );
        assert!(!folder.path().join("seen").exists());
        std::fs::write(folder.path().join("work.sh"), old).unwrap();
        std::fs::write(folder.path().join("data.txt"), "other").unwrap();
        let error = go(&host.runtime, "data").await["error"].clone();
        assert_eq!((&error["code"], &error["file"]), (&json!("actor-changed"), &json!("data.txt")));
        std::fs::remove_file(folder.path().join("data.txt")).unwrap();
        let error = go(&host.runtime, "missing").await["error"].clone();
        assert_eq!((&error["code"], &error["found"]), (&json!("actor-changed"), &json!("none")));
    });
}

#[test]
fn the_folder_is_resolved_once() {
    test(async {
        let folders = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folders.path().join("ours"), folders.path().join("theirs"));
        write(&ours, "1", "ours");
        write(&theirs, "2", "theirs");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = host(&store, &ours).await;
        first.start("a", json!({})).await;
        let stored = store.charter(first.charter).unwrap().unwrap();
        assert_eq!(Path::new(&stored.name), ours.canonicalize().unwrap().join("charter.yaml"));
        // The same charter, read from another folder, does not move the run there.
        drop(first);
        let second = host(&store, &theirs).await;
        assert_eq!(go(&second.runtime, "a").await["answer"], json!([1, "ours"]));
    });
}

#[test]
fn a_program_must_be_in_the_folder() {
    test(async {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for (command, why) in [
            ("[./missing.sh]", "no file `missing.sh` beside the charter"),
            ("[../x.sh]", "`../x.sh` is not a path inside the charter's folder"),
        ] {
            write(folder.path(), "1", "x");
            let source = SOURCE.replace("[sh, ./work.sh, --with=data.txt]", command);
            std::fs::write(folder.path().join("charter.yaml"), source).unwrap();
            let clock = VirtualClock::new(BEGIN);
            let (runtime, _) = Runtime::open(store.clone(), options(&clock)).await.unwrap();
            let error = runtime.add(Charter::load(folder.path()).unwrap()).await.unwrap_err().to_string();
            assert!(error.contains("actor `work`") && error.contains(why), "{error}");
        }
    });
}
