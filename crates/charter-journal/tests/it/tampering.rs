//! Verification of a file that another program has changed, or that is damaged.

use charter_journal::{SqliteStore, Store, verify};
use charter_kernel::Principal;
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::json;

use crate::common::*;

/// Changes a journal file with SQL from outside and returns the findings.
fn tamper(sql: &str) -> Vec<String> {
    let folder = Folder::new();
    let machine = machine(DESK);
    {
        let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
        store.put_charter(&stored(DESK)).unwrap();
        let ana = Principal::new("ana", &["clerk", "boss"]);
        for run in ["a", "b"] {
            let (mut driver, first) = Driver::start(&machine, run);
            store
                .append(vec![
                    first,
                    driver.send("ASK", json!({}), &ana),
                    driver.send("WORK", json!({}), &ana),
                    driver.send("FLAG", json!({}), &ana),
                ])
                .unwrap();
        }
        store.put_blob(b"blob").unwrap();
    }
    rusqlite::Connection::open(folder.file("journal.db")).unwrap().execute_batch(sql).unwrap();
    let store = SqliteStore::open_read_only(&folder.file("journal.db")).unwrap();
    verify(&store, None).unwrap().findings.iter().map(ToString::to_string).collect()
}

#[test]
fn changes_to_the_tables_are_reported() {
    assert_eq!(tamper(""), Vec::<String>::new());
    let check = |sql: &str, expected: &[&str]| {
        let found = tamper(sql);
        let short = |s: &String| {
            // Digests are abbreviated.
            let mut s = s.clone();
            while let Some(at) = s.find("sha256:").filter(|at| s.len() >= at + 71) {
                s.replace_range(at + 9..at + 71, "");
                s.replace_range(at..at + 7, "#");
            }
            s
        };
        assert_eq!(found.iter().map(short).collect::<Vec<_>>(), expected, "{sql}");
    };
    let first = |sql: &str, expected: &str| {
        let found = tamper(sql);
        assert!(found.iter().any(|f| f.contains(expected)), "{sql}: {found:?}");
    };
    check("DELETE FROM runs WHERE run = 'a'", &["run `a`: its row in `runs` is missing"]);
    check(
        "UPDATE runs SET status = 'done' WHERE run = 'b'",
        &["run `b`, record 3: column `status` of its row in `runs` is `done`, but the records give `active`"],
    );
    check(
        "UPDATE runs SET seq = 2 WHERE run = 'b'",
        &["run `b`, record 3: according to `runs`, the last record is 2, but this later one exists"],
    );
    check(
        "UPDATE runs SET seq = 9 WHERE run = 'b'",
        &["run `b`, record 4: this record and all later ones are missing; according to `runs`, the last one is 9"],
    );
    for column in ["hash", "charter", "started", "updated"] {
        first(
            &format!("UPDATE runs SET {column} = upper({column}) || 'x' WHERE run = 'b'"),
            &format!("run `b`, record 3: column `{column}` of its row in `runs` is"),
        );
    }
    first(
        "UPDATE runs SET hash = 'sha256:' || upper(substr(hash, 8)) WHERE run = 'b'",
        "run `b`, record 3: column `hash`",
    );
    first("UPDATE runs SET run = 'c' WHERE run = 'b'", "run `b`: its row in `runs` is missing");
    first(
        "UPDATE runs SET run = 'c' WHERE run = 'b'",
        "run `c`: all records are missing; according to `runs`, the last one is 3",
    );
    first("DELETE FROM records WHERE run = 'b'", "run `b`: all records are missing");
    first("DELETE FROM records WHERE run = 'b' AND seq = 3", "run `b`, record 3: the last record is missing");
    first(
        "DELETE FROM records WHERE run = 'b' AND seq = 0",
        "run `b`, record 0: the record is missing; the next stored one is 1",
    );
    first(
        "UPDATE records SET seq = 5 WHERE run = 'b' AND seq = 2",
        "run `b`, record 2: the record is missing; the next stored one is 3",
    );
    first(
        "UPDATE records SET seq = seq + 10 WHERE run = 'b' AND seq = 3",
        "run `b`, record 3: the record is stored in the row with `seq` 13",
    );
    first("UPDATE records SET run = 'c' WHERE run = 'b'", "run `c`, record 0: the stored text is record 0 of run `b`");
    first(
        "UPDATE records SET json = (SELECT json FROM records WHERE run = 'a' AND seq = 1) WHERE run = 'b' AND seq = 1",
        "run `b`, record 1: the stored text is record 1 of run `a`",
    );
    first(
        "UPDATE records SET json = replace(json, 'ana', 'eve') WHERE run = 'b' AND seq = 1",
        "run `b`, record 1: its content does not match its hash",
    );
    first(
        "UPDATE records SET n = n + 100 WHERE run = 'b' AND seq = 1",
        "run `b`, record 2: it is stored before its predecessor",
    );
    for column in ["id", "at", "type", "verdict", "hash"] {
        check_column(column);
    }
    first("DELETE FROM charters", "run `a`, record 0: charter sha256:");
    first("UPDATE charters SET core = replace(core, 'boss', 'bass')", "run `a`, record 0: charter sha256:");
    // Also of a charter that no run uses.
    let unused = "INSERT INTO charters SELECT substr(digest, 1, 70) || iif(substr(digest, 71) = '0', '1', '0'), id, version, name, core, source, check_digest FROM charters LIMIT 1";
    first(unused, "its text has the digest sha256:");
    first("UPDATE charters SET version = version || 'x'", "its id, version, name or source has been changed");
    first("UPDATE charters SET source = source || ' '", "its id, version, name or source has been changed");
    first(
        "UPDATE snapshots SET json = json || ' ' WHERE run = 'b'",
        "run `b`, record 0: the stored snapshot has the digest",
    );
    first(
        "UPDATE snapshots SET seq = 9 WHERE run = 'b'",
        "run `b`, record 9: a snapshot is stored for this record, but the record does not exist",
    );
    first("UPDATE blobs SET data = x'00'", "has the digest");
    check(
        "DROP INDEX runs_status; DROP VIEW events; CREATE VIEW events AS SELECT 1; CREATE INDEX mine ON records(at)",
        &[
            "the view `events` has an unexpected definition; run `charter rebuild`",
            "the index `runs_status` is missing; run `charter rebuild`",
            "the index `mine` does not belong to the journal",
        ],
    );
    for table in ["transitions", "refusals", "effects", "timers", "ledger"] {
        check(
            &format!("DELETE FROM {table} WHERE run = 'b'"),
            &[&format!("table `{table}` does not match the records; run `charter rebuild`")],
        );
    }
    check("UPDATE effects SET status = 'done'", &["table `effects` does not match the records; run `charter rebuild`"]);
}

/// Changes a file and rebuilds it. Returns the result of `rebuild`, the findings of a verification
/// afterwards, and whether the tables are restored.
fn rebuilt(sql: &str) -> (Result<(), String>, Vec<String>, bool) {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    store.put_charter(&stored(DESK)).unwrap();
    let machine = machine(DESK);
    let ana = Principal::new("ana", &["clerk", "boss"]);
    let (mut driver, first) = Driver::start(&machine, "a");
    let second = driver.send("ASK", json!({}), &ana);
    store.append(vec![first, second]).unwrap();
    let change = rusqlite::Connection::open(folder.file("journal.db")).unwrap();
    change.execute_batch(sql).unwrap();
    drop(change);
    let schema = |store: &SqliteStore| -> Vec<(String, Option<String>)> {
        let all = "SELECT name, sql FROM sqlite_schema ORDER BY name";
        let read = |c: &rusqlite::Connection| {
            let mut select = c.prepare(all)?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        store.query(read).unwrap()
    };
    let before = schema(&store);
    let said = store.rebuild().map_err(|e| e.to_string());
    let same = schema(&store) == before;
    if said.is_ok() {
        // The store stays usable.
        let third = driver.send("WORK", json!({}), &ana);
        store.append(vec![third]).unwrap();
    }
    let found = verify(&store, None).unwrap().findings;
    (said, found.iter().map(ToString::to_string).collect(), same)
}

#[test]
fn rebuild_restores_tables_indexes_and_views() {
    for sql in [
        "DROP INDEX blobs_digest",
        "DROP INDEX records_run; CREATE INDEX records_run ON records(run, seq)",
        "DROP INDEX runs_status; DROP INDEX effects_open; DROP INDEX snapshots_run; DROP INDEX blobs_digest",
        "DROP VIEW events",
        "DROP VIEW events; CREATE VIEW events AS SELECT 1",
        "DROP TABLE effects; DROP TABLE ledger",
        "DROP TABLE effects; CREATE VIEW effects AS SELECT 1",
        "ALTER TABLE effects ADD COLUMN mine TEXT; INSERT INTO refusals VALUES ('', 0, '', '', '', '', '')",
        "CREATE VIEW ours AS SELECT * FROM events; DROP INDEX effects_open",
        "CREATE TRIGGER mine AFTER INSERT ON records BEGIN DELETE FROM records; END",
    ] {
        let (said, found, _) = rebuilt(sql);
        assert_eq!(said, Ok(()), "{sql}");
        assert_eq!(found, Vec::<String>::new(), "{sql}");
    }
    for (sql, why) in [
        (
            "DROP VIEW events; DROP INDEX records_run; INSERT INTO records SELECT n + 10, run, seq, id, at, type, verdict, hash, json FROM records",
            "the index `records_run` cannot be recreated: existing rows violate it (UNIQUE constraint failed: records.run, records.seq)",
        ),
        ("DROP INDEX runs_status; DROP TABLE blobs", "the table `blobs` is missing, and its content cannot be rebuilt"),
        (
            "DROP INDEX effects_open; DROP VIEW events; CREATE TABLE events(mine)",
            "a table named `events` is in the place of the view `events`; rename it",
        ),
    ] {
        let (said, _, same) = rebuilt(sql);
        let said = said.unwrap_err();
        assert!(said.contains(why), "{sql}: {said}");
        assert!(same, "{sql}");
    }
}

fn check_column(column: &str) {
    let found = tamper(&format!("UPDATE records SET {column} = {column} || 'x' WHERE run = 'b' AND seq = 1"));
    assert!(found[0].starts_with(&format!("run `b`, record 1: column `{column}` is `")), "{found:?}");
    // Every character is compared, even where a parser would be lenient.
    let found = tamper(&format!(
        "UPDATE records SET {column} = upper({column}) || lower({column}) WHERE run = 'a' AND seq = 2"
    ));
    assert!(found[0].starts_with(&format!("run `a`, record 2: column `{column}` is `")), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(15, 150)))]

    /// Changes any byte of the file. Either the change is detected or no record has changed.
    #[test]
    fn no_change_of_a_byte_in_the_file_is_missed(at in any::<prop::sample::Index>(), mask in 1u8.., seed in 0u8..2) {
        let folder = Folder::new();
        let file = folder.file("journal.db");
        let rows = |store: &SqliteStore| {
            let mut rows = Vec::new();
            store.scan(None, 0, &mut |row| { rows.push(format!("{row:?}")); true }).map(|()| rows)
        };
        let before = {
            let store = SqliteStore::open(&file).unwrap();
            fill(&store, &some_acts(6 + seed as usize), "r");
            rows(&store).unwrap()
        };
        // The store is closed, so that all data is in one file.
        let mut bytes = std::fs::read(&file).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= mask;
        std::fs::write(&file, &bytes).unwrap();
        let Ok(store) = SqliteStore::open_read_only(&file) else { return Ok(()) };
        match verify(&store, None) {
            Err(_) => {}
            Ok(report) if !report.is_verified() => {}
            Ok(_) => prop_assert_eq!(rows(&store).unwrap(), before, "byte {} was changed without a finding", at),
        }
    }
}
