//! Files that are no ordinary ones: pipes, and names that are not UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::processes::Site;

const CHART: &str = "{charter: 1, id: c, events: {E: {}}, states: {a: {on: {E: {}}}}}";

fn site(name: &str) -> Site {
    let site = Site::new(name, &[("c.yaml", CHART.to_owned())]);
    site.run("run c.yaml --run r");
    site
}

#[test]
fn a_pipe_that_nobody_writes_to_does_not_hang_a_command() {
    let site = site("pipes");
    assert!(Command::new("mkfifo").arg(site.path("p")).status().unwrap().success());
    let begin = Instant::now();
    let commands = [
        "verify p",
        "import p",
        "check p",
        "run p",
        "run c.yaml --input @p",
        "step c.yaml --events p",
        "eval --batch p",
    ];
    let started = commands.map(|args| (args, site.start(args)));
    for (args, process) in started {
        let (code, _, err) = process.end();
        assert_eq!(code, 2, "{args}: {err}");
        assert!(err.contains("cannot read `p`: it is a pipe, and no process writes to it"), "{args}: {err}");
    }
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    let (code, _, err) = site.any("runs --db p");
    assert!(code == 2 && err.contains("not a file but a device or a pipe"), "{err}");
}

#[test]
fn a_pipe_that_a_process_writes_to_is_read() {
    let site = site("pipes-written");
    let program = env!("CARGO_BIN_EXE_charter");
    // The holder of the journal cannot read the pipe of another process.
    let _host = site.start("host --db other.db");
    let script = format!(
        "{program} import <(sleep 0.3; {program} export r) --db new.db && {program} verify <({program} export r) && {program} import <({program} export r) --db other.db"
    );
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(&site.0.0).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(site.run("runs --db other.db").contains("active"));
}

#[test]
fn a_name_that_is_not_utf_8_is_a_name_or_an_error() {
    let site = site("names");
    let name = OsStr::from_bytes(b"bad\xff.db");
    let any = |args: &str, after: &str| {
        let mut command = site.command(args);
        let output = command.arg(name).args(after.split_whitespace()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked") && output.status.code().is_some_and(|code| code <= 2), "{args}: {said}");
        (output.status.code().unwrap(), said)
    };
    // Journals and files to write.
    for (args, after) in [
        ("run c.yaml --run r --db", ""),
        ("runs --db", ""),
        ("send r E --db", ""),
        ("show r --db", ""),
        ("rebuild", ""),
        ("sql", "SELECT(1)"),
        ("export r -o", ""),
    ] {
        // The last one overwrites a journal.
        let code = if args.starts_with("export") { 2 } else { 0 };
        let (found, said) = any(args, after);
        assert_eq!(found, code, "{args}: {said}");
    }
    // Charters, events and other texts.
    for args in [
        "check",
        "step",
        "run",
        "test",
        "graph",
        "conform c.yaml",
        "diff c.yaml",
        "step c.yaml --events",
        "import",
        "verify",
        "eval --batch",
        "new",
        "run c.yaml --input",
        "run c.yaml --replay-models",
        "trust r --charter",
        "serve --charters",
    ] {
        let (code, said) = any(args, "");
        assert!(code == 2 && said.starts_with("error: "), "{args}: {said}");
    }
    let output = site.command("runs").env("CHARTER_DB", OsString::from(name)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn results_are_not_written_over_the_files_of_a_journal() {
    let site = site("beside");
    let holder = charter_journal::SqliteStore::open(&site.path("charter.db")).unwrap();
    std::os::unix::fs::symlink("charter.db-wal", site.path("link")).unwrap();
    for name in ["charter.db", "charter.db-wal", "./charter.db-head", "charter.db-lock", "charter.db-socket", "link"] {
        let before = std::fs::read(site.path("charter.db-wal")).unwrap();
        for args in ["export r -o", "graph c.yaml -o"] {
            let output = site.command(args).arg(name).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(2) && said.contains("cannot overwrite"), "{args} {name}: {said}");
        }
        assert_eq!(std::fs::read(site.path("charter.db-wal")).unwrap(), before, "{name}");
    }
    drop(holder);
    site.run("export r -o other-wal");
    assert_eq!(site.records("r").len(), 1);
}
