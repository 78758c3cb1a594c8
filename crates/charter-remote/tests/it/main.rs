//! A server in this process, and its client: what a backend in the process answers, too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;
use std::time::Duration;

use charter_actors::Folder;
use charter_journal::{MemoryStore, RunFilter, Store as _};
use charter_kernel::{Principal, PrincipalKind, Status};
use charter_remote::{Remote, RemoteStore};
use charter_runtime::backend::{Backend, TaskAnswer, Update};
use charter_runtime::{Charter, Runtime, RuntimeError, SendEvent, Start};
use charter_server::identity::{NewKey, Office};
use charter_server::{Options, Server};
use serde_json::json;

const SOURCE: &str = "
charter: 1
id: greeting
roles: {writer: {}, boss: {}}
events: {NOTE: {by: writer, data: {type: object, required: [n], properties: {n: {type: integer}}}}, STOP: {by: boss}}
actors: {person: {kind: human, by: writer, output: {type: object, required: [text], properties: {text: {type: string}}}}}
context: {sum: 0, text: ''}
initial: asking
states:
  asking:
    invoke: {id: ask, src: person, onDone: {target: done, actions: {assign: {text: '= event.output.text'}}}, onError: done}
    on: {NOTE: {actions: {assign: {sum: '= context.sum + event.n'}}}, STOP: done}
  done: {type: final}
";

fn charter() -> Charter {
    let document = charter_format::read(SOURCE, "greeting.yaml", &Default::default()).unwrap();
    Charter::new(&document, Folder::None).unwrap()
}

/// Runs a test with a server and the client of somebody with a role.
fn with<F: Future<Output = ()>>(roles: &[&str], test: impl FnOnce(Runtime, Remote) -> F) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    threads.block_on(async {
        let (host, _) = Runtime::open(Arc::new(MemoryStore::new()), Default::default()).await.unwrap();
        let options = Options::local("127.0.0.1:0".parse().unwrap(), "uid:1");
        let server = Server::start(Arc::new(host.clone()), vec![charter()], options).await.unwrap();
        let office = Office::open(Arc::new(host.clone()), "uid:1").await.unwrap();
        let grants = roles.iter().map(|role| role.parse().unwrap()).collect();
        let key = NewKey { id: "ana".into(), kind: PrincipalKind::Person, grants, expires: None, note: None };
        let secret = office.add(key, Office::owner("uid:1")).await.unwrap();
        let remote = Remote::new(&server.url(), Some(secret.reveal())).unwrap();
        let me = remote.clone();
        let known = move || {
            tokio::task::spawn_blocking({
                let me = me.clone();
                move || me.me()
            })
        };
        while known().await.unwrap().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        test(host, remote).await;
        server.close(Duration::from_secs(2)).await;
    });
}

#[test]
fn a_server_is_a_backend_like_the_host_itself() {
    with(&["greeting/writer"], |host, remote| async move {
        let charter = remote.add(charter()).await.unwrap();
        let by = Principal::new("somebody else", &["boss"]);
        let start = Start { charter: charter.digest(), run: Some("g/1 ü".into()), input: json!({}), by: by.clone() };
        assert!(remote.start(start.clone()).await.is_err(), "an id that no run may have");
        let start = Start { run: Some("g1".into()), ..start };
        let started = remote.start(start.clone()).await.unwrap();
        assert_eq!((started.record.by.id.as_str(), started.repeated), ("ana", false), "the key says who it is");
        assert!(remote.start(start).await.unwrap().repeated);
        let mut updates = remote.updates(Some("g1".into())).await.unwrap();
        let mut note = SendEvent::new("g1", "NOTE", json!({"n": 3}), by.clone()).id("e1");
        let sent = remote.send(note.clone()).await.unwrap();
        assert_eq!(sent.record.hash, host.store().records("g1", sent.record.seq, 1).unwrap()[0].hash);
        assert!(remote.send(note.clone()).await.unwrap().repeated);
        match updates.next().await.unwrap() {
            Update::Recorded(record) => assert_eq!(record.text(), sent.record.text()),
            other => panic!("{other:?}"),
        }
        // A refusal is the record of the refused event, here and there.
        let refused = remote.send(SendEvent::new("g1", "STOP", json!(null), by.clone())).await.unwrap();
        assert!(refused.is_refused());
        assert_eq!(refused.record.text(), host.store().records("g1", refused.record.seq, 1).unwrap()[0].text());
        note.id = None;
        note.expected_seq = Some(0);
        assert!(remote.send(note).await.unwrap().is_refused(), "stale");

        let (there, here) = (remote.view("g1".into()).await.unwrap(), Backend::view(&host, "g1".into()).await.unwrap());
        let text = |view: &charter_runtime::View| view.charter.machine().snapshot_text(&view.snapshot);
        assert_eq!((text(&there), there.tasks.clone(), there.next_due), (text(&here), here.tasks, here.next_due));
        let then = remote.at("g1".into(), 0).await.unwrap();
        assert_eq!(then.snapshot.actor("root").unwrap().variable("sum"), Some(&json!(0)));
        let legal: Vec<String> =
            remote.legal("g1".into(), by.clone()).await.unwrap().into_iter().map(|l| l.r#type).collect();
        assert_eq!(legal, ["NOTE"]);
        let tasks = remote.tasks(by.clone(), 10).await.unwrap();
        assert_eq!(tasks, here_tasks(&host).await);
        remote.fork("g1".into(), 0, "g2".into(), true).await.unwrap();
        assert!(remote.fork("g1".into(), 0, "g2".into(), true).await.is_err());
        let answer = TaskAnswer::Output(json!({"text": "hello"}));
        let answered = remote.answer(tasks[0].effect.clone(), answer.clone(), by.clone()).await.unwrap();
        assert_eq!(answered.record.status, Some(Status::Done));
        let late = remote.answer(tasks[0].effect.clone(), answer, by.clone()).await.unwrap_err();
        assert!(matches!(late, RuntimeError::NoTask { .. } | RuntimeError::NotAwaited(_)), "{late:?}");
        assert_eq!(remote.view("none".into()).await.unwrap_err(), RuntimeError::UnknownRun("none".into()));
        assert_eq!(remote.run("none".into()).await.unwrap(), None);
        let runs = remote.runs(RunFilter::default()).await.unwrap();
        assert_eq!(
            runs,
            Backend::runs(&host, RunFilter::default())
                .await
                .unwrap()
                .into_iter()
                .filter(|r| r.run != "host")
                .collect::<Vec<_>>()
        );
    });
}

async fn here_tasks(host: &Runtime) -> Vec<charter_runtime::Task> {
    Backend::tasks(host, Principal::new("ana", &["writer"]), 10).await.unwrap()
}

#[test]
fn a_server_is_a_store_to_read() {
    with(&["greeting/writer"], |host, remote| async move {
        let by = Principal::default();
        let charter = remote.add(charter()).await.unwrap();
        let start = Start { charter: charter.digest(), run: Some("g1".into()), input: json!({}), by: by.clone() };
        remote.start(start).await.unwrap();
        for n in 0..5 {
            remote.send(SendEvent::new("g1", "NOTE", json!({"n": n}), by.clone())).await.unwrap();
        }
        let work = move || {
            let (there, here) = (RemoteStore(remote), host.store().clone());
            let texts =
                |records: Vec<charter_journal::Record>| records.iter().map(|r| r.text().to_owned()).collect::<Vec<_>>();
            assert_eq!(texts(there.records("g1", 2, 3).unwrap()), texts(here.records("g1", 2, 3).unwrap()));
            let machine = charter_journal::machine(&there, charter.digest()).unwrap();
            let state = charter_journal::replay(&there, &machine, "g1", None).unwrap().unwrap();
            assert_eq!(state.actor("root").unwrap().variable("sum"), Some(&json!(10)));
            assert_eq!(there.run("g1").unwrap(), here.run("g1").unwrap());
            assert!(there.forget_snapshots().is_err(), "it is not written");
        };
        tokio::task::spawn_blocking(work).await.unwrap();
    });
}

#[test]
fn what_is_no_server_gives_a_clear_error() {
    with(&["greeting/writer"], |_, remote| async move {
        let other = Remote::new(remote.url(), Some("chk_nothing")).unwrap();
        let error = other.view("g1".into()).await.unwrap_err().to_string();
        assert!(error.contains("this is not a key"), "{error}");
        let nobody = Remote::new("http://127.0.0.1:9", None).unwrap();
        let error = nobody.view("g1".into()).await.unwrap_err().to_string();
        assert!(error.starts_with("no answer from the server `http://127.0.0.1:9`: "), "{error}");
    });
}
