//! Integration tests in one binary, because each binary is linked separately.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use charter_test_disk::{Disk, Ended, Fault, Image, Kind, Plan};
use charter_test_support::Folder;
use rusqlite::Connection;

/// Rows that are committed one by one, until a call fails. Returns how many were acknowledged.
fn fill(disk: &Disk, rows: i64) -> i64 {
    let filled = || -> rusqlite::Result<i64> {
        let file = Connection::open(disk.folder().join("a.db"))?;
        file.pragma_update(None, "journal_mode", "WAL")?;
        file.pragma_update(None, "synchronous", "FULL")?;
        file.execute_batch("CREATE TABLE IF NOT EXISTS t(x)")?;
        let mut done = 0;
        for x in 0..rows {
            if file.execute("INSERT INTO t VALUES (?1)", [x]).is_err() {
                break;
            }
            done = x + 1;
        }
        Ok(done)
    };
    filled().unwrap_or_default()
}

fn rows(image: &Image) -> rusqlite::Result<i64> {
    let folder = Folder::new();
    image.write(folder.path()).unwrap();
    let file = Connection::open(folder.file("a.db"))?;
    file.query_row("SELECT count(*) FROM t", [], |row| row.get(0))
}

#[test]
fn without_faults_a_disk_is_like_any_other() {
    let folder = Folder::new();
    let disk = Disk::new(folder.path(), &[], Plan::faultless(1));
    assert_eq!(fill(&disk, 50), 50);
    assert!(disk.calls() > 200 && disk.schedule().is_empty() && !disk.has_lied());
    drop(disk);
    assert_eq!(rows(&Image::read(folder.path()).unwrap()), Ok(50));
}

#[test]
fn what_was_synced_survives_a_power_cut_at_any_call() {
    let (mut lost, mut cut) = (0, 0);
    for n in (0..200).step_by(3) {
        let folder = Folder::new();
        let disk = Disk::new(folder.path(), &[], Plan::at(n, n, Fault::PowerCut));
        let done = fill(&disk, 15);
        cut += u32::from(disk.ended() == Some(Ended::PowerCut));
        let kept = rows(&disk.power_cut());
        match kept {
            Ok(kept) => assert!(kept == done || kept == done + 1, "call {n}: {done} acknowledged, {kept} kept"),
            Err(e) => assert!(done == 0, "call {n}: {done} acknowledged: {e}"),
        }
        lost += u32::from(done < 15);
    }
    assert!(lost > 20 && cut > 20, "{lost} cut short, {cut} ended");
}

#[test]
fn a_lying_sync_loses_what_was_acknowledged() {
    let lost = (0..20).filter(|seed| {
        let folder = Folder::new();
        let disk = Disk::new(folder.path(), &[], Plan::lying_syncs(*seed));
        assert_eq!(fill(&disk, 5), 5);
        assert!(disk.has_lied());
        rows(&disk.power_cut()) != Ok(5)
    });
    assert!(lost.count() > 5);
}

#[test]
fn the_same_seed_gives_the_same_faults_and_the_same_disk() {
    let mut faults = 0;
    for seed in 0..40 {
        let run = || {
            let folder = Folder::new();
            let disk = Disk::new(folder.path(), &[], Plan::random(seed, Kind::Liar, 120));
            let done = fill(&disk, 10);
            (done, disk.calls(), disk.schedule(), disk.power_cut())
        };
        let (first, second) = (run(), run());
        assert_eq!(first.2, second.2);
        // Random bytes of SQLite, such as the salts of a log, differ; names and sizes do not.
        let sizes = |image: &Image| image.files.iter().map(|(n, c)| (n.clone(), c.len())).collect::<Vec<_>>();
        assert_eq!((first.0, first.1, sizes(&first.3)), (second.0, second.1, sizes(&second.3)));
        faults += first.2.len();
    }
    assert!(faults > 20, "{faults}");
}
