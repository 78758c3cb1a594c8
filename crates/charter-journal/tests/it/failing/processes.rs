//! Tests of processes that are killed, whose writes fail, or that find the file in use.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use charter_journal::{SqliteOptions, SqliteStore, Store};
use charter_test_support::cases;

use super::{EVENTS, kept, recovers, workload};
use crate::common::*;

/// Not a test, but the child process that is killed, or whose writes fail, in the tests below. It
/// prints the acknowledged events.
#[test]
#[ignore = "the child process of other tests"]
fn child() {
    let Some(file) = std::env::var_os("JOURNAL_OF_CHILD") else {
        return;
    };
    // Event ids are added to their table several times within the workload.
    let options = SqliteOptions { ids_at_once: 5, ..SqliteOptions::default() };
    let store = match SqliteStore::open_with(Path::new(&file), &options) {
        Ok(store) => store,
        Err(e) => return println!("\nfailed {e}"),
    };
    for source in [DESK, LOOSE] {
        if let Err(e) = store.put_charter(&stored(source)) {
            return println!("\nfailed {e}");
        }
    }
    let from = kept(&store);
    println!("\nready");
    for (i, append) in workload().into_iter().enumerate().skip(from) {
        if let Err(e) = store.append(vec![append.clone()]) {
            println!("\nfailed {e}");
            // The writer has stopped and also refuses smaller records.
            println!("again {}", store.append(vec![append]).unwrap_err());
            return;
        }
        println!("\nacknowledged {}", i + 1);
    }
    println!("\nend");
}

/// Starts [`child`]. `limit`: writes beyond this file size in KiB fail, possibly halfway.
pub(super) fn start_child(file: &Path, limit: Option<usize>) -> Child {
    let own = std::env::current_exe().unwrap();
    let arguments = ["--exact", "failing::processes::child", "--ignored", "--nocapture", "--test-threads=1"];
    let mut command = match limit {
        None => Command::new(own),
        Some(limit) => {
            let mut shell = Command::new("bash");
            shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"")]);
            shell.arg(own);
            shell
        }
    };
    command.args(arguments).env("JOURNAL_OF_CHILD", file).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for a child. Returns the number of acknowledged events and the other output.
pub(super) fn listen(child: &mut Child) -> (usize, Vec<String>) {
    let (mut acknowledged, mut words) = (0, Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(line) = line else { break };
        match line.strip_prefix("acknowledged ").map(str::parse) {
            Some(Ok(n)) => acknowledged = n,
            _ => words.push(line),
        }
    }
    child.wait().unwrap();
    (acknowledged, words)
}

#[test]
fn partial_writes_stop_the_writer_and_lose_nothing() {
    let works = Command::new("bash").args(["-c", "trap '' XFSZ; ulimit -f 100"]).status();
    if !works.is_ok_and(|s| s.success()) {
        eprintln!("skipped: bash with `ulimit -f` is not available");
        return;
    }
    let workload = workload();
    let (mut failed, mut ended) = (0, 0);
    for limit in [40, 90, 130, 131, 133, 150, 170, 190, 402, 747, 1_501, 2_222, 100_000] {
        let folder = Folder::new();
        let file = folder.file("journal.db");
        let (acknowledged, words) = listen(&mut start_child(&file, Some(limit)));
        let said = words.join("\n");
        if said.contains("\nend") {
            assert_eq!(acknowledged, EVENTS);
            ended += 1;
        } else if said.contains("ready") {
            // The write that failed may be one of event ids, after the reply.
            let whys = ["failed writing the journal failed: ", "failed the journal stopped accepting records"];
            assert!(whys.iter().any(|why| said.contains(why)), "{said}");
            assert!(said.contains("again the journal stopped accepting records after a failure"), "{said}");
            failed += 1;
        } else {
            assert!(said.contains("failed "), "{limit}: {said}");
        }
        recovers(&file, acknowledged, &workload);
    }
    assert!(failed >= 6 && ended >= 1, "{failed} failed, {ended} ended");
}

#[test]
fn a_second_process_is_refused_with_the_holder() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    let (_, words) = listen(&mut start_child(&file, None));
    let said = words.join("\n").replace(&file.display().to_string(), "FILE");
    let expected = format!(
        "failed `FILE` is in use by another process (process {}); only one process can write to a journal file at a time (others can read it)",
        std::process::id()
    );
    assert!(said.contains(&expected), "{said}");
    drop(store);
    let (acknowledged, _) = listen(&mut start_child(&file, None));
    assert_eq!(acknowledged, EVENTS);
}

#[test]
fn a_killed_process_loses_nothing() {
    let workload = workload();
    let mut killed = 0;
    let rounds = u64::from(cases(4, 12));
    for round in 0..rounds {
        let folder = Folder::new();
        let file = folder.file("journal.db");
        let mut acknowledged = 0;
        // Each process continues where the previous one was killed.
        for life in 0..3u64 {
            let mut child = start_child(&file, None);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut until = (round * 31 + life * 17) % 70;
            while until > 0
                && let Some(Ok(line)) = lines.next()
            {
                if let Some(Ok(n)) = line.strip_prefix("acknowledged ").map(str::parse) {
                    acknowledged = n;
                    until -= 1;
                }
            }
            std::thread::sleep(std::time::Duration::from_micros((round * 389) % 1_700));
            child.kill().unwrap();
            for line in lines.map_while(Result::ok) {
                if let Some(Ok(n)) = line.strip_prefix("acknowledged ").map(str::parse) {
                    acknowledged = n;
                }
            }
            child.wait().unwrap();
            killed += usize::from(acknowledged < EVENTS);
        }
        recovers(&file, acknowledged, &workload);
    }
    assert!(killed as u64 > 20 * rounds / 12, "{killed}");
}
