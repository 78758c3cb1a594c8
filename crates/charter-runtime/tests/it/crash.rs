//! The process is killed at random points under load and restarted: no acknowledged event is lost,
//! no event or effect is applied twice, every run ends.
//!
//! The test is short by default; `CHARTER_KILLS=500 cargo test -p charter-runtime --release
//! crash::` runs it longer, and `CHARTER_SEED` repeats a sequence of kills.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_journal::{SqliteStore, Store, StoreError, Verdict, replay, verify};
use charter_kernel::{Principal, Snapshot, Status};
use charter_runtime::{Charter, Limits, Options, Runtime, SendEvent, Start};
use charter_test_support::cases;
use serde_json::{Value as Json, json};

const RUNS: usize = 5;
const EVENTS: usize = 12;

const CHARTER: &str = "
charter: 1
id: load
input: {type: object, required: [events]}
events: {ADD: {data: {type: object, required: [k]}}}
context: {seen: [], done: []}
output: = context
actors:
  work: {kind: exec, command: [sh, work.sh], idempotent: true, retry: {attempts: 5, backoff: 5ms}, timeout: 1m}
states:
  idle:
    on: {ADD: {target: working, actions: {assign: {seen: '= context.seen + [event.k]'}}}}
  working:
    invoke:
      src: work
      input: {k: '= context.seen[size(context.seen) - 1]'}
      onDone: {target: resting, actions: {assign: {done: '= context.done + [event.output.k]'}}}
  resting:
    after:
      3ms:
        - {when: size(context.done) == input.events, target: over}
        - {target: idle}
  over: {type: final}
";

/// A command that takes effect once per key, however often it is called. Sometimes it fails before
/// it has an effect.
const WORK: &str = r#"
key=$(echo "$CHARTER_EFFECT" | tr / _)
case $key in *3_0) [ "$CHARTER_ATTEMPT" = 1 ] && exit 1;; esac
mkdir "effects/$key" 2>/dev/null && echo "$key" >> effects.log
cat
"#;

fn sender() -> Principal {
    Principal::new("load", &[])
}

fn seen(snapshot: &Snapshot) -> usize {
    snapshot.actor("root").and_then(|a| a.variable("seen")).and_then(Json::as_array).map_or(0, Vec::len)
}

/// The child process: runs until all runs have ended. Not a separate test.
#[test]
fn child() {
    let Some(folder) = std::env::var_os("CHARTER_CRASH_FOLDER").map(PathBuf::from) else {
        return;
    };
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(async {
        let store = Arc::new(SqliteStore::open(&folder.join("journal.db")).unwrap());
        let options = Options { limits: Limits { events_per_second: 0, ..Limits::default() }, ..Options::default() };
        let (runtime, recovery) = Runtime::open(store, options).await.unwrap();
        assert!(recovery.failed.is_empty() && recovery.unknown.is_empty(), "{recovery:?}");
        let charter = runtime.add(Charter::load(&folder).unwrap()).await.unwrap().digest();
        let tasks: Vec<_> = (0..RUNS)
            .map(|n| {
                let (runtime, folder) = (runtime.clone(), folder.clone());
                tokio::spawn(async move {
                    let run = format!("run-{n}");
                    let start =
                        Start { charter, run: Some(run.clone()), input: json!({"events": EVENTS}), by: sender() };
                    runtime.start(start).await.unwrap();
                    loop {
                        let waits = |s: &Snapshot| {
                            s.status() != Status::Active || s.actor("root").unwrap().state().eq(["idle"])
                        };
                        let view = runtime.until(&run, waits).await.unwrap();
                        if view.snapshot.status() != Status::Active {
                            break;
                        }
                        let next = seen(&view.snapshot);
                        let add =
                            |k: usize| SendEvent::new(&run, "ADD", json!({"k": k}), sender()).id(&format!("add-{k}"));
                        if let Some(last) = next.checked_sub(1) {
                            // Send the last event again, as after a lost reply: the host must
                            // recognize it.
                            assert!(runtime.send(add(last)).await.unwrap().repeated);
                        }
                        let receipt = runtime.send(add(next)).await.unwrap();
                        let line = format!("{run} {next} {} {}\n", receipt.record.seq, receipt.record.hash);
                        // A single write, so that a line is complete or missing.
                        let mut acks =
                            std::fs::OpenOptions::new().append(true).create(true).open(folder.join("acks")).unwrap();
                        acks.write_all(line.as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        runtime.shutdown(Duration::from_secs(5)).await;
    });
    std::fs::write(folder.join("finished"), "").unwrap();
}

/// Writes the snapshots of all runs, restored from the records alone. Not a separate test.
#[test]
fn replayed() {
    let Some(folder) = std::env::var_os("CHARTER_REPLAY_FOLDER").map(PathBuf::from) else {
        return;
    };
    std::fs::write(folder.join(std::env::var("CHARTER_REPLAY_TO").unwrap()), snapshots(&folder)).unwrap();
}

fn snapshots(folder: &Path) -> String {
    let store = SqliteStore::open_read_only(&folder.join("journal.db")).unwrap();
    let mut out = String::new();
    for info in store.runs(&Default::default()).unwrap() {
        let machine = charter_journal::machine(&store, info.charter).unwrap();
        for seq in 0..=info.seq {
            let snapshot = replay(&store, &machine, &info.run, Some(seq)).unwrap().unwrap();
            out.push_str(&machine.snapshot_text(&snapshot));
            out.push('\n');
        }
    }
    out
}

fn spawn(test: &str, variables: &[(&str, &std::ffi::OsStr)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("crash::{test}"), "--nocapture", "--test-threads=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command.envs(variables.iter().copied());
    command.spawn().unwrap()
}

/// A small seeded generator for the times of kills.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Kills the process of one folder until its work is done. Returns the number of kills.
fn round(chance: &mut Chance) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("charter.yaml"), CHARTER).unwrap();
    std::fs::write(path.join("work.sh"), WORK).unwrap();
    std::fs::create_dir(path.join("effects")).unwrap();
    let journal = path.join("journal.db");
    let mut kills = 0;
    while !path.join("finished").exists() {
        let mut child = spawn("child", &[("CHARTER_CRASH_FOLDER", path.as_os_str())]);
        let begin = Instant::now();
        let lives = Duration::from_micros(20_000 + chance.below(500_000));
        let mut ended = None;
        while ended.is_none() && (kills >= 40 || begin.elapsed() < lives) {
            std::thread::sleep(Duration::from_millis(2));
            ended = child.try_wait().unwrap();
            assert!(begin.elapsed() < Duration::from_secs(60), "the work does not come to its end");
        }
        match ended {
            Some(status) => assert!(status.success(), "the child failed"),
            None => {
                if kills == 1 && journal.exists() {
                    second_process(&journal);
                }
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                if journal.exists() {
                    sound(&journal);
                }
            }
        }
    }
    // Commands of killed hosts may still be running.
    std::thread::sleep(Duration::from_millis(50));
    laws(path);
    kills
}

/// Checks that a second process can read the journal but cannot open it for writing.
fn second_process(journal: &Path) {
    match SqliteStore::open(journal) {
        Err(StoreError::InUse { holder, .. }) => assert!(holder.is_some_and(|h| h.pid > 0)),
        // The child has not opened it yet.
        Ok(_) => {}
        Err(e) => panic!("{e}"),
    }
}

/// Checks that the journal is intact after a kill.
fn sound(journal: &Path) {
    let Ok(store) = SqliteStore::open_read_only(journal) else {
        return;
    };
    let report = verify(&store, None).unwrap();
    assert!(report.is_verified(), "{report:?}");
}

fn laws(folder: &Path) {
    let store = SqliteStore::open(&folder.join("journal.db")).unwrap();
    assert!(verify(&store, None).unwrap().is_verified());
    // No acknowledged event is lost.
    let acks = std::fs::read_to_string(folder.join("acks")).unwrap();
    for line in acks.lines() {
        let mut parts = line.split(' ');
        let (run, k) = (parts.next().unwrap(), parts.next().unwrap());
        let (seq, hash) = (parts.next().unwrap().parse().unwrap(), parts.next().unwrap());
        let record = store.records(run, seq, 1).unwrap().remove(0);
        assert_eq!((record.id.as_ref(), record.hash.to_string().as_str()), (format!("add-{k}").as_str(), hash));
        assert_eq!(record.verdict, Verdict::Accepted);
    }
    // Every run has ended, each event was applied once, each effect took place once.
    let mut asked = Vec::new();
    for n in 0..RUNS {
        let run = format!("run-{n}");
        let info = store.run(&run).unwrap().unwrap();
        assert_eq!(info.status, Some(Status::Done));
        let machine = charter_journal::machine(&store, info.charter).unwrap();
        let snapshot = replay(&store, &machine, &run, None).unwrap().unwrap();
        let all: Vec<usize> = (0..EVENTS).collect();
        assert_eq!(snapshot.output().unwrap(), &json!({"seen": all, "done": all}));
        for record in store.records(&run, 0, 100_000).unwrap() {
            let invokes = record.effects.iter().filter(|e| e["kind"] == "invoke");
            asked.extend(invokes.map(|e| e["id"].as_str().unwrap().replace('/', "_")));
        }
    }
    let log = std::fs::read_to_string(folder.join("effects.log")).unwrap();
    let mut happened: Vec<&str> = log.lines().collect();
    happened.sort_unstable();
    asked.sort_unstable();
    assert_eq!(happened, asked);
    drop(store);
    // The runs are restored with another clock and in other time zones: the snapshots are equal
    // byte by byte.
    let here = snapshots(folder);
    for zone in ["Asia/Kathmandu", "America/St_Johns"] {
        let mut child = spawn(
            "replayed",
            &[
                ("CHARTER_REPLAY_FOLDER", folder.as_os_str()),
                ("CHARTER_REPLAY_TO", "replayed".as_ref()),
                ("TZ", zone.as_ref()),
            ],
        );
        assert!(child.wait().unwrap().success());
        assert!(std::fs::read_to_string(folder.join("replayed")).unwrap() == here);
    }
}

#[test]
fn kills_at_random_points_lose_nothing_and_repeat_nothing() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let wanted = number("CHARTER_KILLS").unwrap_or_else(|| cases(3, 10).into()) as usize;
    let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("CHARTER_SEED").unwrap_or_else(clock) | 1;
    println!("CHARTER_SEED={seed}");
    let mut chance = Chance(seed);
    let (mut kills, mut rounds) = (0, 0);
    while kills < wanted {
        kills += round(&mut chance);
        rounds += 1;
    }
    println!("{kills} kills in {rounds} rounds");
}
