//! A reader of the output that leaves (`| head -1`) does not change how a command ends.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::support::processes::Site;

const DOOR: &str = "charter: 1\nid: door\nevents: {OPEN: {}, SHUT: {}}\ninitial: shut\nstates:\n  \
    shut: {on: {OPEN: open}}\n  open: {on: {SHUT: shut}}\n";

/// The exit code and standard error of a command whose standard output is closed.
fn unread(site: &Site, args: &[&str], both: bool) -> (i32, String) {
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    let mut command = site.command("");
    command.args(args).stdout(closed());
    if both {
        command.stderr(closed());
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_command_whose_output_is_closed_ends_as_with_a_reader() {
    let broken = DOOR.replace("shut: {on: {OPEN: open}}", "shut: {on: {OPEN: nowhere}}");
    let site = Site::new("closed", &[("door.yaml", DOOR.to_owned()), ("broken.yaml", broken)]);
    site.run("run door.yaml --run r");
    for (args, code) in [
        (&["send", "r", "SHUT"][..], 1),
        (&["send", "r", "SHUT", "--json"], 1),
        (&["send", "r", "OPEN"], 0),
        (&["send", "r", "{"], 1),
        (&["send", "nobody", "OPEN"], 2),
        (&["check", "broken.yaml"], 1),
        (&["check", "door.yaml"], 0),
        (&["verify", "charter.db"], 0),
        (&["log", "r"], 0),
        (&["export", "r"], 0),
        (&["sql", "charter.db", "SELECT nothing"], 2),
        // This one has no end.
        (
            &[
                "sql",
                "charter.db",
                "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
                "--json",
            ],
            0,
        ),
    ] {
        assert_eq!(unread(&site, args, true).0, code, "{args:?}");
    }
    // What was refused is recorded, and said.
    let (code, said) = unread(&site, &["send", "r", "OPEN"], false);
    assert!(code == 1 && said.contains("OPEN"), "{said}");
    let log = site.records("r");
    assert_eq!(log.iter().filter(|record| record["verdict"] == "refused").count(), 4, "{log:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_an_error() {
    let site = Site::new("closed-help", &[]);
    for args in ["--help", "--version", "help", "run --help"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = site.command(args).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert!(said.starts_with("error: ") && said.contains("No space left on device"), "{said}");
        assert_eq!(unread(&site, &args.split(' ').collect::<Vec<_>>(), true).0, 0, "{args}");
    }
}

/// The events have no end.
#[test]
fn steps_that_nobody_reads_are_not_taken() {
    let site = Site::new("closed-steps", &[("door.yaml", DOOR.to_owned())]);
    let line = r#"{"type": "SHUT", "by": {"id": "ana"}}"#;
    let mut steps = site.command("step door.yaml --events -");
    let mut child = steps.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut events, mut out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    writeln!(events, "{line}").unwrap();
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    while writeln!(events, "{line}").is_ok() {}
    // The event is refused.
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
