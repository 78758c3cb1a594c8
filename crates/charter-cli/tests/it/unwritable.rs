//! What the program does when the journal cannot be written: it ends in seconds, with exit code 2
//! and a message, and releases the lock; and what was acknowledged is there.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Scratch, charter};

/// Calls a program whose answers fill the disk, forever.
const FILLS: &str = r#"
charter: 1
id: fills
context: {last: ""}
actors:
  more: {kind: exec, command: [sh, -c, "head -c 30000 /dev/zero | tr '\\0' x | sed 's/.*/\"&\"/'"], idempotent: true, timeout: 1m}
initial: asking
states:
  asking: {invoke: {src: more, onDone: again, onError: again}}
  again: {after: {1ms: asking}}
"#;

/// Runs a shell script with the charter `fills.yaml` in the current folder; fails if it takes a
/// minute.
fn shell(scratch: &Scratch, program: &[&str], script: &str) -> Option<Output> {
    std::fs::write(scratch.0.join("fills.yaml"), FILLS).unwrap();
    let (program, args) = program.split_first().unwrap();
    let mut child = Command::new(program)
        .args(args)
        .args(["bash", "-c", script])
        .env("CHARTER", env!("CARGO_BIN_EXE_charter"))
        .current_dir(&scratch.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(child.wait_with_output().unwrap())
}

#[test]
fn a_full_disk_ends_the_program() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: `unshare -m` is not available or not permitted");
        return;
    }
    // The disk is full at the answer of an actor, or at a timer.
    for size in ["560k", "580k", "600k"] {
        disk_is_full(size);
    }
}

fn disk_is_full(size: &str) {
    let scratch = Scratch::new(&format!("full-{size}"));
    let script = r#"
        mkdir small && mount -t tmpfs -o size=SIZE none small || exit 99
        "$CHARTER" run fills.yaml --run a --wait --db small/charter.db; echo "exit $?"
        # The lock is free, and what was acknowledged is there.
        "$CHARTER" verify small/charter.db; echo "exit $?"
        cp small/* . ; "$CHARTER" send a charter.cancel --role operator --db charter.db; echo "exit $?"
        "$CHARTER" verify charter.db > /dev/null; echo "exit $?"
    "#;
    let output = shell(&scratch, &["unshare", "-m"], &script.replace("SIZE", size)).unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let exits: Vec<&str> = out.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(exits, ["exit 2", "exit 0", "exit 0", "exit 0"], "{out}\n{err}");
    assert!(err.contains("cannot be written (the disk is full"), "{err}");
    assert!(out.contains("verified: "), "{out}");
}

#[test]
fn a_failed_write_ends_the_program() {
    let scratch = Scratch::new("failed-write");
    // Writes beyond this size fail, as on a broken disk; SQLite cannot know what is written.
    let script = r#"
        (trap '' XFSZ; ulimit -f 400; exec "$CHARTER" run fills.yaml --run a --wait --db charter.db); echo "exit $?"
        "$CHARTER" verify charter.db; echo "exit $?"
        "$CHARTER" send a charter.cancel --role operator --db charter.db; echo "exit $?"
    "#;
    let output = shell(&scratch, &["env"], script).unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let exits: Vec<&str> = out.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(exits, ["exit 2", "exit 0", "exit 0"], "{out}\n{err}");
    assert!(err.contains("error: ") && err.contains("charter run --resume RUN"), "{err}");
}

#[test]
fn commands_that_read_work_on_a_read_only_medium() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: `unshare -m` is not available or not permitted");
        return;
    }
    let scratch = Scratch::new("medium");
    let script = r#"
        mkdir disk && mount -t tmpfs none disk || exit 99
        "$CHARTER" run fred --run a --db disk/charter.db --input '{"userId":"u1","message":"Should we raise prices?"}' > /dev/null 2>&1
        mount -o remount,ro none disk || exit 99
        for command in "verify disk/charter.db" "runs --db disk/charter.db" "show a --db disk/charter.db" \
            "log a --db disk/charter.db" "export a --db disk/charter.db" "explain a 0 --db disk/charter.db" \
            "replay a --to 0 --db disk/charter.db"; do
            "$CHARTER" $command > out.txt; echo "exit $?"
            [ -s out.txt ] || echo "nothing: $command"
        done
        "$CHARTER" sql disk/charter.db "SELECT count(*) FROM runs" > /dev/null; echo "exit $?"
        "$CHARTER" send a charter.cancel --role operator --db disk/charter.db; echo "exit $?"
    "#;
    let output = shell(&scratch, &["unshare", "-m"], script).unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut expected = vec!["exit 0"; 8];
    expected.push("exit 2");
    assert_eq!(out.lines().collect::<Vec<_>>(), expected, "{err}");
    assert!(err.contains("Read-only file system"), "{err}");
}

#[test]
fn a_run_is_deleted_after_it_has_ended() {
    let scratch = Scratch::new("delete");
    let place = |name: &str| scratch.0.join(name).to_str().unwrap().to_owned();
    let (db, lamp) = (place("charter.db"), place("lamp.yaml"));
    let source = "charter: 1\nid: lamp\nevents: {FLIP: {}}\nstates: {off: {on: {FLIP: on}}, on: {type: final}}\n";
    std::fs::write(&lamp, source).unwrap();
    assert_eq!(charter(&["run", &lamp, "--run", "a", "--db", &db]).code, 0);
    let ran = charter(&["delete", "a", "--db", &db, "--yes"]);
    assert!(ran.code == 2 && ran.err.contains("run `a` has not ended"), "{}", ran.err);
    assert_eq!(charter(&["send", "a", "FLIP", "--db", &db]).code, 0);
    let ran = charter(&["delete", "a", "--db", &db]);
    assert!(
        ran.code == 2 && ran.err.contains("run `a` with 2 records is deleted only after a confirmation"),
        "{}",
        ran.err
    );
    let ran = charter(&["delete", "a", "--db", &db, "--yes", "--reason", "a test", "--json"]);
    assert!(ran.code == 0 && ran.out.contains(r#""deleted":"a""#) && ran.out.contains(r#""entries":3"#), "{}", ran.out);
    assert_eq!(charter(&["show", "a", "--db", &db]).code, 2);
    let ran = charter(&["verify", &db]);
    assert!(ran.code == 0 && ran.out.contains(": a test"), "{}", ran.out);
    // A fork gets an id that no run had.
    assert_eq!(charter(&["run", &lamp, "--run", "b", "--db", &db]).code, 0);
    for fork in ["b.fork1", "b.fork2"] {
        let ran = charter(&["fork", "b", "--at", "0", "--db", &db]);
        assert!(ran.code == 0 && format!("{}{}", ran.out, ran.err).contains(fork), "{}{}", ran.out, ran.err);
        assert_eq!(charter(&["send", fork, "FLIP", "--db", &db]).code, 0);
        assert_eq!(charter(&["delete", fork, "--db", &db, "--yes"]).code, 0);
    }
}
