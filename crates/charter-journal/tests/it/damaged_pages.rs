//! Verification of a file in which pages are damaged.

use std::collections::BTreeSet;

use charter_journal::{SqliteStore, Store, StoredSnapshot, verify};
use charter_kernel::Principal;
use serde_json::json;

use crate::common::*;

/// Bits in every byte of the header of the file, except counters that may have any value, and of
/// the head of the list of free pages. An entry of that list that names a page in use is not found.
#[test]
fn damage_in_the_header_and_the_free_list_is_named() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop({
        let store = SqliteStore::open(&file).unwrap();
        fill(&store, &some_acts(12), "r");
        store.put_snapshot("r0", &StoredSnapshot { seq: 0, text: "x".repeat(30_000) }).unwrap();
        store.forget_snapshots().unwrap();
        store
    });
    let intact = std::fs::read(&file).unwrap();
    let number = |at: usize| u32::from_be_bytes(intact[at..at + 4].try_into().unwrap()) as usize;
    let (trunk, free) = (number(32), number(36));
    assert!(free > 3, "{free}");
    // The schema cookie may have any value, and the low bits of the version of SQLite.
    let header = (0..40).chain(44..97);
    let trunk = (trunk - 1) * 4_096;
    let list = trunk..trunk + 8;
    let mut silent = Vec::new();
    for (at, bit) in header.chain(list).flat_map(|at| [0, 3, 7].map(|bit| (at, bit))) {
        let mut bytes = intact.clone();
        bytes[at] ^= 1 << bit;
        std::fs::write(&file, &bytes).unwrap();
        let Ok(store) = SqliteStore::open_read_only(&file) else { continue };
        if verify(&store, None).is_ok_and(|report| report.is_verified()) {
            silent.push((at, bit));
        }
    }
    assert_eq!(silent, []);
}

/// Zeroed, random and exchanged pages, and truncated files. Either the damage is detected or no
/// record has changed.
#[test]
fn damaged_pages_are_found() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let rows = |store: &SqliteStore| {
        let mut rows = Vec::new();
        store
            .scan(None, 0, &mut |row| {
                rows.push(format!("{row:?}"));
                true
            })
            .map(|()| rows)
    };
    let before = {
        let store = SqliteStore::open(&file).unwrap();
        fill(&store, &some_acts(12), "r");
        store.put_blob(b"blob").unwrap();
        rows(&store).unwrap()
    };
    let intact = std::fs::read(&file).unwrap();
    let page = 4096;
    let pages = intact.len() / page;
    let mut said = BTreeSet::new();
    let mut check = |bytes: &[u8], how: &str| {
        std::fs::write(&file, bytes).unwrap();
        let store = match SqliteStore::open_read_only(&file) {
            Ok(store) => store,
            Err(e) => {
                said.insert(e.to_string());
                return;
            }
        };
        match verify(&store, None) {
            Err(e) => drop(said.insert(e.to_string())),
            Ok(report) if report.is_verified() => {
                assert_eq!(rows(&store).unwrap(), before, "{how}: no finding");
            }
            Ok(report) => said.extend(report.findings.iter().map(ToString::to_string)),
        }
    };
    for n in 0..pages {
        let (from, to) = (n * page, (n + 1) * page);
        let mut bytes = intact.clone();
        bytes[from..to].fill(0);
        check(&bytes, &format!("page {n} zeroed"));
        bytes[from..to].iter_mut().zip(0u32..).for_each(|(b, i)| {
            *b = (i.wrapping_mul(2_654_435_761) >> 13) as u8;
        });
        check(&bytes, &format!("page {n} noise"));
        let other = (n * 7 + 3) % pages;
        let mut bytes = intact.clone();
        bytes.copy_within(other * page..(other + 1) * page, from);
        check(&bytes, &format!("page {n} is page {other}"));
        check(&intact[..from], &format!("cut to {n} pages"));
        check(&intact[..from + 700], &format!("cut in page {n}"));
    }
    let said: Vec<_> = said.into_iter().collect();
    let some = |words: &str| {
        assert!(said.iter().any(|s| s.contains(words)), "{words}: {said:#?}");
    };
    some("SQLite integrity check");
    some("the records from here on are unreadable: the file is damaged");
    some("is not a journal file");
    // Records after an unreadable page are still verified.
    assert!(said.iter().all(|s| !s.contains("for details")), "{said:#?}");
}

/// The root of each index and table in turn is an empty page of each type. SQLite's integrity check
/// does not look at an index with a condition that should be empty. What is verified can be
/// continued.
#[test]
fn a_root_that_is_an_empty_page_of_another_type_is_found() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(DESK);
    let ana = Principal::new("ana", &["clerk", "boss"]);
    let (mut driver, first) = Driver::start(&machine, "a");
    {
        let store = SqliteStore::open(&file).unwrap();
        store.put_charter(&stored(DESK)).unwrap();
        store.append(vec![first, driver.send("VOTE", json!({}), &ana)]).unwrap();
    }
    // It opens an effect, and this one waits for a decision.
    let next = [driver.send("ASK", json!({}), &ana)];
    let head = folder.file("journal.db-head");
    let (intact, intact_head) = (std::fs::read(&file).unwrap(), std::fs::read(&head).unwrap());
    let roots: Vec<(String, usize)> = rusqlite::Connection::open(&file)
        .unwrap()
        .prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 1 ORDER BY rootpage")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut found_partial = BTreeSet::new();
    for (name, root) in roots {
        for kind in [2, 5, 10, 13] {
            let mut bytes = intact.clone();
            let page = &mut bytes[(root - 1) * 4_096..root * 4_096];
            page.fill(0);
            page[0] = kind;
            page[5] = 16;
            std::fs::write(&file, &bytes).unwrap();
            std::fs::write(&head, &intact_head).unwrap();
            let Ok(store) = SqliteStore::open(&file) else { continue };
            let found = verify(&store, None).map_or(vec!["unreadable".to_owned()], |report| {
                report.findings.iter().map(ToString::to_string).collect()
            });
            let works = |store: &SqliteStore| {
                store.append(next.to_vec()).unwrap_or_else(|e| panic!("{name}, {kind}: {e}"));
                let report = verify(store, None).unwrap();
                assert!(report.is_verified(), "{name}, {kind}: {:?}", report.findings);
            };
            if found.is_empty() {
                works(&store);
            } else if found.iter().all(|why| why.ends_with("`charter rebuild` may recreate it")) {
                // One that should have children, and has none, cannot be removed.
                match store.rebuild() {
                    Ok(()) => works(&store),
                    Err(e) => assert!([2, 5].contains(&kind), "{name}, {kind}: {e}"),
                }
                found_partial.insert(name.clone());
            }
        }
    }
    let expected = ["decisions_waiting", "effects_emitted", "effects_open"].map(str::to_owned);
    assert_eq!(found_partial, BTreeSet::from(expected));
}
