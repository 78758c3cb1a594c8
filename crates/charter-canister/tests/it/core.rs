//! The core without a canister: turns, upgrades, the projection, and the same records as on the
//! embedded host.

use std::sync::Arc;

use crate::support::{BEGIN, Host, Random, add_executors, ana};
use charter_actors::VirtualClock;
use charter_canister::{Bounds, PORTION, Projection, SEGMENTS, built_in, lines};
use charter_journal::{MemoryStore, SqliteStore, Store, verify_export};
use charter_runtime::{Charter, Limits, Options, Runtime, SendEvent, Start};
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value as Json, json};

fn folder() -> String {
    format!("{}/../../charters/automaton", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_charter_equals_that_of_the_embedded_host() {
    let charter = Charter::load(format!("{}/charter.yaml", folder()).as_ref()).unwrap();
    assert_eq!(built_in().digest, charter.digest());
    assert_eq!(built_in().core, charter.stored().core);
}

#[test]
fn a_turn_commits_each_record_before_its_effects() {
    let mut host = Host::start(Bounds::default(), json!({}));
    assert_eq!(host.state(), "Idle");
    assert_eq!(host.automaton.stable.skills().len(), 2);
    host.now += 1_000;
    host.only_send("WakeRequested", json!({"reason": "by hand", "input": "Sign this"}));
    let mut states = vec![host.state()];
    while host.automaton.has_request(host.now) {
        // The request is in stable memory before it is answered.
        assert_eq!(host.reopened().run().open(), host.automaton.run().open());
        host.work_once();
        states.push(host.state());
    }
    assert_eq!(states, ["LoadingContext", "Inferring", "ExecutingActions", "Persisting", "Sleeping"]);
    let last = host.automaton.stable.view().last_turn.clone().unwrap();
    assert_eq!((last.number, last.outcome.as_str()), (1, "completed"));
    assert_eq!(last.reply.as_deref(), Some("(mock) I heard: Sign this"));
    // The loop starts the next turn.
    host.advance(300_000);
    assert_eq!(host.automaton.stable.view().turns, 2);
}

#[test]
fn one_turn_at_a_time_and_the_lease_ends_a_lost_one() {
    let mut host = Host::start(Bounds::default(), json!({}));
    host.only_send("WakeRequested", json!({"reason": "by hand"}));
    let second = host.only_send("WakeRequested", json!({"reason": "again"}));
    assert_eq!(second.refusal.as_deref().unwrap().code.word(), "unhandled");
    // The host that drives the turn is lost.
    let lost = host.automaton.take_request(host.now).unwrap();
    host.advance(29_999);
    assert_eq!(host.state(), "LoadingContext");
    host.advance(1);
    assert_eq!(host.state(), "Faulted");
    let error = host.automaton.stable.view().last_error.clone().unwrap();
    assert!(error.reason.starts_with("timeout"), "{error:?}");
    // Its answer comes too late, and the invocation is no longer open.
    assert!(host.automaton.perform(lost.effect).is_none());
    host.send("ResetFault", json!({}));
    host.send("WakeRequested", json!({"reason": "by hand"}));
    assert_eq!(host.state(), "Sleeping");
}

#[test]
fn an_upgrade_in_the_middle_of_a_turn_fails_it() {
    for steps in 0..4 {
        let mut host = Host::start(Bounds::default(), json!({}));
        host.only_send("WakeRequested", json!({"reason": "by hand"}));
        for _ in 0..steps {
            host.work_once();
        }
        host.restart();
        assert_eq!(host.state(), "Faulted", "after {steps} steps");
        let error = host.automaton.stable.view().last_error.clone().unwrap();
        assert!(error.reason.starts_with("unknown: the host stopped during"), "{error:?}");
        assert!(host.automaton.stable.view().turn.is_none());
    }
    // Skills are read again, because reading them is idempotent.
    let mut host = Host::start(Bounds::default(), json!({}));
    host.restart();
    assert_eq!(host.state(), "Idle");
}

#[test]
fn settings_soul_and_skills_are_stored_and_guarded() {
    let mut host = Host::start(Bounds::default(), json!({}));
    host.send("UpdateSoul", json!({"text": "Be brief."}));
    host.send("SetConfig", json!({"key": "mine", "value": "1"}));
    for key in ["soul", "soul.text", "system.run"] {
        let record = host.send("SetConfig", json!({"key": key, "value": "x"}));
        assert_eq!(record.refusal.as_deref().unwrap().code.word(), "guard", "{key}");
    }
    host.send("EnableSkill", json!({"name": "greet", "enabled": false}));
    host.send("InstallSkill", json!({"name": "sing", "description": "d", "instructions": "i"}));
    let stable = &host.automaton.stable;
    assert_eq!(stable.setting("soul.text").as_deref(), Some("Be brief."));
    assert_eq!(stable.setting("soul.version").as_deref(), Some("2"));
    assert_eq!(stable.setting("mine").as_deref(), Some("1"));
    assert_eq!(stable.setting("system.run").as_deref(), Some("a"));
    let skills = stable.skills();
    assert_eq!(skills.keys().collect::<Vec<_>>(), ["greet", "note", "sing"]);
    assert!(skills["greet"].contains("\"enabled\":false"));
    assert!(stable.differences(host.automaton.snapshot().unwrap()).is_empty());
}

/// An action that is performed on an automaton and on the embedded host.
#[derive(Debug, Clone)]
enum Act {
    Send(&'static str, Json),
    Advance(i64),
}

fn act(random: &mut Random) -> Act {
    let n = random.below(50);
    match random.below(100) {
        0..30 => {
            Act::Send("WakeRequested", json!({"reason": "by hand", "input": format!("it's \"{n}\" \u{1f600} sign")}))
        }
        30..35 => Act::Send("WakeRequested", json!({"reason": ""})),
        35..42 => Act::Send("UpdateSoul", json!({"text": format!("soul {n}")})),
        42..47 => Act::Send("UpdateSoul", json!({"text": " "})),
        47..53 => Act::Send(
            "SetConfig",
            json!({"key": "inference.adapter", "value": (["mock", "stub", "model"][n as usize % 3])}),
        ),
        53..57 => Act::Send("SetConfig", json!({"key": "soul.text", "value": "x"})),
        57..60 => Act::Send("SetConfig", json!({"key": "loop.interval", "value": "60s"})),
        60..65 => Act::Send("EnableSkill", json!({"name": "greet", "enabled": n.is_multiple_of(2)})),
        65..68 => Act::Send("InstallSkill", json!({"name": format!("s{n}"), "description": "d", "instructions": "i"})),
        68..80 => Act::Send("ResetFault", json!({})),
        80..84 => Act::Send("SleepRequested", json!({})),
        84..88 => Act::Send("SetLoop", json!({"enabled": n.is_multiple_of(2)})),
        88..90 => Act::Send("PersistCompleted", json!({})),
        90..91 => Act::Send("Nonsense", json!({"n": 1.5})),
        _ => Act::Advance(n as i64 * 9_000),
    }
}

fn acts(seed: u64, count: usize) -> Vec<Act> {
    let mut random = Random(seed | 1);
    (0..count).map(|_| act(&mut random)).collect()
}

impl Host {
    fn act(&mut self, act: &Act) {
        match act {
            Act::Send(r#type, data) => drop(self.send(r#type, data.clone())),
            Act::Advance(ms) => self.advance(*ms),
        }
    }
}

/// Performs the same actions on the embedded host.
async fn embedded(acts: &[Act], store: Arc<dyn Store>) {
    let clock = VirtualClock::new(BEGIN);
    let limits = Limits { events_per_second: 0, ..Limits::default() };
    let mut options = Options { limits, ..Options::default().clock(clock.clone()) };
    add_executors(&mut options.executors);
    let (runtime, _) = Runtime::open(store, options).await.unwrap();
    let charter = Charter::load(format!("{}/charter.yaml", folder()).as_ref()).unwrap();
    let charter = runtime.add(charter).await.unwrap();
    let start = Start { charter: charter.digest(), run: Some("a".into()), input: json!({}), by: ana() };
    runtime.start(start).await.unwrap();
    clock.settle().await;
    for act in acts {
        match act {
            Act::Send(r#type, data) => {
                let send = SendEvent::new("a", r#type, data.clone(), ana());
                runtime.send(send).await.unwrap();
            }
            Act::Advance(ms) => clock.advance(*ms).await,
        }
        clock.settle().await;
    }
    runtime.shutdown(std::time::Duration::ZERO).await;
}

fn tokio() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().unwrap()
}

#[test]
fn the_same_events_give_the_same_records_as_on_the_embedded_host() {
    for seed in 1..=6 {
        let acts = acts(seed * 7_919, 120);
        let mut host = Host::start(Bounds::default(), json!({}));
        acts.iter().for_each(|a| host.act(a));
        let store = Arc::new(MemoryStore::new());
        tokio().block_on(embedded(&acts, store.clone()));
        let theirs = store.records("a", 0, usize::MAX).unwrap();
        for (ours, theirs) in host.records.iter().zip(&theirs) {
            assert_eq!(ours.text(), theirs.text(), "seed {seed}");
        }
        assert_eq!(host.records.len(), theirs.len(), "seed {seed}");
        assert!(host.automaton.stable.view().turns > 10);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// After any actions, stable memory holds the run, record for record, and a host that is
    /// stopped anywhere restores it.
    #[test]
    fn stable_memory_equals_the_run(seed in any::<u64>(), stop in 0usize..60) {
        let bounds = Bounds { records: 40, bytes: 1 << 20 };
        let mut host = Host::start(bounds, json!({}));
        for (i, act) in acts(seed, 60).iter().enumerate() {
            match act {
                Act::Send(r#type, data) if i == stop => {
                    // Stop in the middle of the resulting invocations.
                    host.only_send(r#type, data.clone());
                    for _ in 0..seed % 3 {
                        host.work_once();
                    }
                    host.restart();
                }
                act => host.act(act),
            }
            if i % 12 != 11 && i != stop {
                continue;
            }
            let again = host.reopened();
            prop_assert_eq!(again.snapshot(), host.automaton.snapshot());
            prop_assert_eq!(again.run().chain().hash(), host.automaton.run().chain().hash());
            prop_assert_eq!(again.stable.view(), host.automaton.stable.view());
            prop_assert!(again.stable.differences(again.snapshot().unwrap()).is_empty());
        }
        let log = &host.automaton.stable.log;
        for seq in log.first()..log.end() {
            let kept = log.text(seq).unwrap();
            prop_assert_eq!(kept.as_str(), host.records[seq as usize].text());
        }
        prop_assert_eq!(log.end() as usize, host.records.len());
        // Verification recomputes each record with the kernel.
        let report = verify_export(&mut exported(&host).as_bytes(), &[]).unwrap();
        prop_assert!(report.is_verified(), "{:?}", report.findings);
    }
}

fn exported(host: &Host) -> String {
    let mut args = charter_canister::api::ExportArgs::default();
    let mut file = String::new();
    loop {
        let part = charter_canister::export(&host.automaton, &args).unwrap();
        file.push_str(&part.text);
        args.to = Some(part.to);
        match part.next {
            Some(next) => args.from = Some(next),
            None => return file,
        }
    }
}

#[test]
fn old_segments_are_dropped_and_the_rest_verifies() {
    let bounds = Bounds { records: 50, bytes: 1 << 20 };
    let mut host = Host::start(bounds, json!({}));
    for _ in 0..100 {
        host.now += 1_000;
        host.send("WakeRequested", json!({"reason": "by hand", "input": "note this"}));
    }
    let log = &host.automaton.stable.log;
    let kept = log.end() - log.first();
    assert!((150..=200).contains(&kept), "{kept} of {}", log.end());
    assert_eq!(log.first() % 50, 0);
    assert!(log.text(log.first() - 1).is_none());
    assert_eq!(SEGMENTS, 4);
    let file = exported(&host);
    let report = verify_export(&mut file.as_bytes(), &[]).unwrap();
    assert!(report.is_verified(), "{:?}", report.findings);
    assert_eq!((report.runs[0].first, report.runs[0].records), (log.first(), kept));
    assert_eq!(report.runs[0].hash, host.automaton.run().chain().hash());
    // The file cannot be imported, and the error says why.
    let refused = charter_journal::import(&MemoryStore::new(), &mut file.as_bytes());
    assert!(refused.unwrap_err().to_string().contains("lacks the first records of the run"));
    // Change a letter of a reply.
    let wrong = file.replacen("I heard: note", "I heard: Note", 1);
    let report = verify_export(&mut wrong.as_bytes(), &[]).unwrap();
    assert!(!report.is_verified());
    // The run continues, also after a restart.
    host.restart();
    host.send("WakeRequested", json!({"reason": "by hand"}));
    assert_eq!(host.state(), "Sleeping");
}

#[test]
fn a_complete_export_can_be_imported() {
    let mut host = Host::start(Bounds::default(), json!({}));
    host.send("WakeRequested", json!({"reason": "by hand"}));
    let store = MemoryStore::new();
    let info = charter_journal::import(&store, &mut exported(&host).as_bytes()).unwrap();
    assert_eq!(info.hash, host.automaton.run().chain().hash());
}

fn caught_up(host: &mut Host, projection: &mut Projection, sql: &mut Connection) {
    while projection.catch_up(sql, &mut host.automaton).unwrap() {}
}

#[test]
fn the_projection_equals_the_view_of_the_embedded_host() {
    let mut host = Host::start(Bounds::default(), json!({}));
    let mut sql = Connection::open_in_memory().unwrap();
    let mut projection = Projection::open(&host.automaton).unwrap();
    projection.prepare(&mut sql, &mut host.automaton).unwrap();
    for act in acts(4_711, 500) {
        host.act(&act);
        projection.catch_up(&mut sql, &mut host.automaton).unwrap();
    }
    assert!(host.records.len() as u64 > 2 * PORTION);
    let file = std::env::temp_dir().join(format!("charter-canister-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&file);
    {
        let store = SqliteStore::open(&file).unwrap();
        charter_journal::import(&store, &mut exported(&host).as_bytes()).unwrap();
    }
    let theirs = Connection::open(&file).unwrap();
    for table in ["turn_projection", "transitions", "refusals"] {
        let select = format!("SELECT * FROM {table} ORDER BY seq");
        let ours = lines(&sql, &select).unwrap();
        assert!(ours.len() > 20, "{table}: {}", ours.len());
        assert_eq!(ours, lines(&theirs, &select).unwrap(), "{table}");
        let columns = |c: &Connection| -> Vec<String> {
            let select = c.prepare(&select).unwrap();
            select.column_names().iter().map(ToString::to_string).collect()
        };
        assert_eq!(columns(&sql), columns(&theirs), "{table}");
    }
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    let before = projection.rows(&sql).unwrap();
    assert!(before.1.is_some());
    projection.anew(&mut sql, &mut host.automaton).unwrap();
    assert_eq!(projection.rows(&sql).unwrap().0, [0, 0, 0]);
    // The projection is built in portions.
    assert!(projection.catch_up(&mut sql, &mut host.automaton).unwrap());
    assert_eq!(projection.progress().to, PORTION);
    caught_up(&mut host, &mut projection, &mut sql);
    assert_eq!(projection.rows(&sql).unwrap(), before);
    assert_eq!(projection.progress().replays, 1);
    // Another host opens the projection unchanged.
    let again = Projection::open(&host.reopened()).unwrap();
    assert_eq!(again.progress(), projection.progress());
}

#[test]
fn tables_with_another_definition_are_rebuilt() {
    let mut host = Host::start(Bounds::default(), json!({}));
    host.send("WakeRequested", json!({"reason": "by hand"}));
    let mut sql = Connection::open_in_memory().unwrap();
    sql.execute_batch("CREATE TABLE turn_projection(old); CREATE TABLE gone(x)").unwrap();
    let old = r#"{"schema":"sha256:old","from":0,"to":7,"replays":3,"error":"it was full"}"#;
    host.automaton.stable.put_projection(old.into());
    let mut projection = Projection::open(&host.automaton).unwrap();
    projection.prepare(&mut sql, &mut host.automaton).unwrap();
    caught_up(&mut host, &mut projection, &mut sql);
    let (rows, _) = projection.rows(&sql).unwrap();
    assert_eq!(rows[0], 1);
    assert_eq!((projection.progress().replays, &projection.progress().error), (4, &None));
    let tables = lines(&sql, "SELECT name FROM sqlite_schema WHERE name = 'gone'").unwrap();
    assert!(tables.is_empty());
}

#[test]
fn the_projection_drops_what_the_log_has_dropped() {
    let bounds = Bounds { records: 50, bytes: 1 << 20 };
    let mut host = Host::start(bounds, json!({}));
    let mut sql = Connection::open_in_memory().unwrap();
    let mut projection = Projection::open(&host.automaton).unwrap();
    projection.prepare(&mut sql, &mut host.automaton).unwrap();
    for _ in 0..100 {
        host.send("WakeRequested", json!({"reason": "by hand"}));
        projection.catch_up(&mut sql, &mut host.automaton).unwrap();
    }
    caught_up(&mut host, &mut projection, &mut sql);
    let kept = projection.rows(&sql).unwrap();
    assert_eq!(projection.progress().from, host.automaton.stable.log.first());
    projection.anew(&mut sql, &mut host.automaton).unwrap();
    caught_up(&mut host, &mut projection, &mut sql);
    assert_eq!(projection.rows(&sql).unwrap(), kept);
}
