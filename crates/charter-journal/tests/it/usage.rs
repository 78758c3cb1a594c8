//! What models were asked, and what that cost.

use charter_journal::{LastModel, SqliteStore, Store, UsageFilter, UsageRow, UsageTotals, verify};
use charter_kernel::Timestamp;

use crate::common::*;
use crate::operator::{deletion, finished};
use crate::stores::on_each_store;

fn asked(run: &str, actor: &str, at: i64, model: &str, cost: Option<u64>) -> UsageRow {
    UsageRow {
        run: run.into(),
        effect: format!("{run}/0/0"),
        actor: actor.into(),
        attempt: 1,
        at: Timestamp(at),
        model: model.into(),
        address: "http://127.0.0.1:1/v1".into(),
        requests: 2,
        input: 1_000,
        output: 10,
        cached: 4,
        millis: 5,
        cost,
        outcome: "answered".into(),
        ..UsageRow::default()
    }
}

#[test]
fn questions_are_added_up_beside_the_records() {
    on_each_store(|store| {
        fill(store, &some_acts(4), "r");
        let before = (store.head().unwrap(), store.last_position().unwrap());
        assert_eq!(store.usage(&UsageFilter::default()).unwrap(), UsageTotals::default());
        store.put_usage(vec![asked("r", "a", 1_000, "x:1", Some(7)), asked("r", "b", 2_000, "x:1", None)]).unwrap();
        store
            .put_usage(vec![asked("r", "a", 2_000, "y:2", Some(u64::MAX)), asked("s", "a", 3_000, "x:1", Some(1))])
            .unwrap();
        let all = store.usage(&UsageFilter::default()).unwrap();
        assert_eq!((all.questions, all.unpriced, all.requests, all.tokens(), all.cached), (4, 1, 8, 4_040, 16));
        assert!(all.cost > 1 << 60, "an absurd cost is neither lost nor an error: {}", all.cost);
        let of = |filter: UsageFilter| store.usage(&filter).unwrap().questions;
        assert_eq!(of(UsageFilter::run("r")), 3);
        assert_eq!(of(UsageFilter { actor: Some("a".into()), ..UsageFilter::run("r") }), 2);
        assert_eq!(of(UsageFilter { since: Some(Timestamp(2_000)), ..UsageFilter::default() }), 3);
        assert_eq!(of(UsageFilter::run("unknown")), 0);
        let last: Vec<(String, String)> =
            store.last_models("r").unwrap().into_iter().map(|LastModel { actor, model, .. }| (actor, model)).collect();
        assert_eq!(last, [("a".into(), "y:2".into()), ("b".to_owned(), "x:1".to_owned())]);
        assert_eq!((store.head().unwrap(), store.last_position().unwrap()), before);
        assert_eq!(verify(store, None).unwrap().findings, []);
    });
}

#[test]
fn a_deletion_removes_the_exchanges_of_a_run() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    store.put_charter(&stored(DESK)).unwrap();
    let part = store.put_blob(b"a record names it").unwrap();
    store.append(finished("a", part)).unwrap();
    let exchange = store.put_blob(b"what was asked and said").unwrap();
    let other = store.put_blob(b"of another run").unwrap();
    store.put_usage(vec![UsageRow { exchange: Some(exchange), ..asked("a", "a", 1, "x:1", None) }]).unwrap();
    store.put_usage(vec![UsageRow { exchange: Some(other), ..asked("b", "a", 1, "x:1", None) }]).unwrap();
    store.delete(deletion("a")).unwrap();
    let there = [part, exchange, other].map(|blob| store.blob(blob).unwrap().is_some());
    assert_eq!(there, [false, false, true]);
    assert_eq!(store.usage(&UsageFilter::default()).unwrap().questions, 1);
    assert_eq!(verify(&store, None).unwrap().findings, []);
}

#[test]
fn a_file_from_before_the_table_is_read_and_gets_it() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop(SqliteStore::open(&file).unwrap());
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("DROP TABLE usage").unwrap();
    drop(connection);
    let reader = SqliteStore::open_read_only(&file).unwrap();
    assert_eq!(reader.usage(&UsageFilter::default()).unwrap(), UsageTotals::default());
    assert_eq!(reader.last_models("r").unwrap(), []);
    assert_eq!(verify(&reader, None).unwrap().findings, []);
    drop(reader);
    let store = SqliteStore::open(&file).unwrap();
    store.put_usage(vec![asked("r", "a", 1, "x:1", None)]).unwrap();
    assert_eq!(store.usage(&UsageFilter::run("r")).unwrap().questions, 1);
}
