//! `turn_projection`, the view over the turns: one row per turn, and the same rows after a rebuild.

use std::path::PathBuf;
use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_automaton::host::add_executors;
use charter_journal::{SqliteOptions, SqliteStore};
use charter_kernel::Principal;
use charter_runtime::{Charter, Limits, Options, Runtime, SendEvent, Start};
use charter_test_support::cases;
use rusqlite::Connection;
use serde_json::{Value as Json, json};

/// Adds the executors of the automaton to the options of a host.
fn with_executors(mut options: Options) -> Options {
    add_executors(&mut options.executors);
    options
}

/// A journal file that is deleted with the test, in memory where possible, because durability is
/// not tested here.
struct File(PathBuf);

impl File {
    fn new() -> File {
        let memory = PathBuf::from("/dev/shm");
        let parent = match memory.is_dir() {
            true => memory,
            false => std::env::temp_dir(),
        };
        let folder = parent.join(format!("charter-projection-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        File(folder)
    }
    fn path(&self) -> PathBuf {
        self.0.join("charter.db")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns all rows of a table, as text.
fn rows(c: &Connection, sql: &str) -> Vec<String> {
    let mut select = c.prepare(sql).unwrap();
    let columns = select.column_count();
    let row = |row: &rusqlite::Row<'_>| Ok((0..columns).map(|i| format!("{:?} ", row.get_ref(i).unwrap())).collect());
    select.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Returns all projections and the definitions of the views.
fn projections(c: &Connection) -> Vec<String> {
    let mut all = rows(c, "SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY name");
    for table in ["turn_projection", "transitions", "refusals", "effects", "timers"] {
        all.extend(rows(c, &format!("SELECT * FROM {table}")));
    }
    all
}

/// Marsaglia's xorshift, which generates the same turns each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn random_turns_are_in_the_projection_also_after_a_rebuild() {
    let wanted = i64::from(cases(100, 1000));
    let file = File::new();
    let threads = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let turns: i64 = threads.block_on(async {
        let clock = VirtualClock::new(1_795_255_200_000);
        let store = Arc::new(SqliteStore::open(&file.path()).unwrap());
        let limits = Limits { events_per_second: 0, ..Limits::default() };
        let options = Options { limits, ..Options::default().clock(clock.clone()) };
        let (runtime, _) = Runtime::open(store, with_executors(options)).await.unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/automaton");
        let charter = Charter::load(&PathBuf::from(path).join("charter.yaml")).unwrap();
        let charter = runtime.add(charter).await.unwrap();
        let ana = Principal::new("ana", &["controller"]);
        let start = Start { charter: charter.digest(), run: Some("a".into()), input: json!({}), by: ana.clone() };
        runtime.start(start).await.unwrap();
        clock.settle().await;
        let mut random = Random(8);
        loop {
            let (kind, data) = match random.below(100) {
                0..70 => (
                    "WakeRequested",
                    json!({"reason": "by hand", "input": format!("it's \"{}\" \u{1f600}", random.below(9))}),
                ),
                70..75 => ("UpdateSoul", json!({"text": format!("soul {}", random.below(99))})),
                75..80 => {
                    let adapter = ["mock", "stub"][random.below(2) as usize];
                    ("SetConfig", json!({"key": "inference.adapter", "value": adapter}))
                }
                80..85 => ("EnableSkill", json!({"name": "greet", "enabled": random.below(2) == 0})),
                85..95 => ("ResetFault", json!({})),
                _ => {
                    // The loop wakes the automaton.
                    clock.advance(300_000).await;
                    continue;
                }
            };
            runtime.send(SendEvent::new("a", kind, data, ana.clone())).await.unwrap();
            clock.settle().await;
            let view = runtime.view("a").await.unwrap();
            let turns = view.snapshot.actor("root").unwrap().variable("turns").and_then(Json::as_i64);
            if turns.unwrap() >= wanted && view.working.is_empty() {
                runtime.shutdown(std::time::Duration::ZERO).await;
                return turns.unwrap();
            }
        }
    });
    let before = {
        let c = Connection::open(file.path()).unwrap();
        let count = |sql: &str| c.query_row(sql, [], |r| r.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM turn_projection"), turns);
        assert_eq!(count("SELECT count(DISTINCT id) FROM turn_projection"), turns);
        for outcome in ["completed", "failed"] {
            let sql = format!("SELECT count(*) FROM turn_projection WHERE outcome = '{outcome}'");
            assert!(count(&sql) > wanted / 20, "{outcome}: {}", count(&sql));
        }
        // Count the replies of the mock.
        let said = "SELECT count(*) FROM turn_projection WHERE reply = '(mock) I heard: ' || input";
        assert!(count(said) > wanted / 20);
        let before = projections(&c);
        // Projections can be rebuilt, so they may be lost.
        c.execute_batch("DELETE FROM effects; DELETE FROM transitions WHERE seq % 2; DROP VIEW turn_projection")
            .unwrap();
        before
    };
    let repair = SqliteOptions { repair: true, ..SqliteOptions::default() };
    SqliteStore::open_with(&file.path(), &repair).unwrap().rebuild().unwrap();
    let c = Connection::open(file.path()).unwrap();
    assert_eq!(projections(&c), before);
    let report = charter_journal::verify(&SqliteStore::open(&file.path()).unwrap(), None).unwrap();
    assert!(report.is_verified(), "{report:?}");
}
