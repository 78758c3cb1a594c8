//! Characters that nobody sees, and names that look like something else.

use std::process::Command;
use std::time::Duration;

use crate::support::{Scratch, charter, charter_typed};

const REVIEW: &str = "
charter: 1
id: review
roles: {boss: {}}
events:
  YES: {by: boss}
context: {payment: \"pay 100 to \\u202ebob\\u202c\\u200b \\u2066z\"}
initial: open
states:
  open: {on: {YES: {target: done, approves: context.payment}}}
  done: {type: final}
";

const ASK: &str = "
charter: 1
id: ask
roles: {clerk: {}}
actors:
  look: {kind: human, title: Look, by: clerk, output: {type: object, required: [n], properties: {n: {type: integer}}}}
initial: open
states:
  open: {invoke: {src: look, onDone: done}}
  done: {type: final}
";

#[test]
fn what_is_approved_shows_its_invisible_characters() {
    let folder = Scratch::new("invisible");
    let (file, db) = (folder.file("review.yaml", REVIEW), folder.0.join("c.db").display().to_string());
    let asked = charter_typed(&["run", &file, "--run", "r", "--db", &db, "--as", "ana", "--role", "boss"], "", None);
    let shown = charter(&["show", "r", "--db", &db]);
    for ran in [&asked, &shown] {
        let all = ran.out.clone() + &ran.err;
        assert!(all.contains(r"pay 100 to \u202ebob\u202c\u200b \u2066z"), "{all}");
        assert!(!all.contains(['\u{202e}', '\u{202c}', '\u{200b}', '\u{2066}']), "{all}");
    }
    // What programs read is not changed in meaning, and an export not at all.
    let json: serde_json::Value = serde_json::from_str(&charter(&["show", "r", "--db", &db, "--json"]).out).unwrap();
    assert_eq!(json["actors"][0]["context"]["payment"], "pay 100 to \u{202e}bob\u{202c}\u{200b} \u{2066}z");
    assert!(charter(&["export", "r", "--db", &db]).out.contains("pay 100 to \u{202e}bob"));
}

#[test]
fn errors_of_the_command_line_show_invisible_characters() {
    for json in [&[][..], &["--json"]] {
        for args in [&["run", "c.yaml", "--port\u{202e}"][..], &["check", "c.yaml", "--effort", "1\u{200b}0"]] {
            let ran = charter(&[args, json].concat());
            assert_eq!(ran.code, 2);
            assert!(ran.err.contains(r"\u20"), "{}", ran.err);
            assert!(!ran.err.contains(['\u{202e}', '\u{200b}']), "{}", ran.err);
        }
    }
    let ran = charter(&["hook", "r", "--client", "x\u{202e}y"]);
    assert!(ran.err.contains(r"x\u202ey") && !ran.err.contains('\u{202e}'), "{}{}", ran.out, ran.err);
}

/// Somebody who pastes a name from a page has it in errors; colors are forced, as on a terminal.
#[test]
fn no_argument_or_file_controls_the_terminal() {
    let folder = Scratch::new("control");
    let name = folder.file("e\u{1b}[2Jvil.yaml", "charter: 1\nid: \"a\\e[2Jb\"\n");
    let wrong = "\u{1b}]0;t\u{7}\u{1b}[8mx\u{9b}2J\r";
    for args in [&[wrong][..], &["runs", "--db", wrong, wrong], &["check", wrong], &["check", &name], &["graph", &name]]
    {
        for (json, color) in [(&[][..], "NO_COLOR"), (&[], "CLICOLOR_FORCE"), (&["--json"], "CLICOLOR_FORCE")] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
            let ran = command.args(args).args(json).env(color, "1").output().unwrap();
            assert_ne!(ran.status.code(), Some(0));
            let all = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
            assert!(all.contains(r"\u001b["), "{all}");
            let codes = all.split('\u{1b}').skip(1).map(|rest| rest.split('m').next().unwrap());
            let known = "0 1 2 4 31 32 33 91 94 1;31 1;36".split(' ');
            for code in codes {
                let is_known = known.clone().any(|known| code.strip_prefix('[') == Some(known));
                assert!(color == "CLICOLOR_FORCE" && is_known, "{all:?}");
            }
            assert!(!all.contains(['\u{7}', '\u{9b}', '\r']), "{all:?}");
        }
    }
}

#[test]
fn a_printed_command_names_a_hidden_character_as_it_is() {
    let folder = Scratch::new("hidden");
    let (file, db) = (folder.file("ask.yaml", ASK), folder.0.join("a\nb'\u{202e}\\").display().to_string());
    let ran = charter(&["run", &file, "--run", "r", "--db", &db, "--role", "clerk"]);
    let all = ran.out + &ran.err;
    let line = all.lines().find(|line| line.contains("charter answer")).unwrap_or_else(|| panic!("{all}"));
    let (_, rest) = line.split_once("--db ").unwrap();
    let quoted = &rest[..=rest.rfind('\'').unwrap()];
    let said = Command::new("bash").args(["-c", &format!("printf %s {quoted}")]).env("LC_ALL", "C.UTF-8").output();
    assert_eq!(String::from_utf8(said.unwrap().stdout).unwrap(), db, "{line}");
}

#[test]
fn a_journal_whose_name_begins_with_a_dash() {
    let folder = Scratch::new("dash");
    folder.file("ask.yaml", ASK);
    let here = |command: &str| {
        let ran = Command::new("sh")
            .args(["-c", command])
            .current_dir(&folder.0)
            .env("charter", env!("CARGO_BIN_EXE_charter"))
            .env_remove("CHARTER_DB")
            .output()
            .unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap())
    };
    let (_, all) = here("$charter run ask.yaml --run r --db=-y.db");
    for start in ["charter log", "charter explain", "charter verify"] {
        let line = all.lines().find_map(|line| Some(line.get(line.find(start)?..)?.to_owned()));
        let line = line.unwrap_or_else(|| panic!("{start}: {all}")).replacen("charter", "$charter", 1);
        let (code, said) = here(&line);
        assert_eq!(code, Some(0), "{line}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_journal() {
    let folder = Scratch::new("pipe");
    let pipe = folder.0.join("pipe.db");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let name = pipe.display().to_string();
    let file = folder.file("ask.yaml", ASK);
    for args in [&["runs", "--db", &name][..], &["show", "r", "--db", &name], &["run", &file, "--db", &name]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_charter"))
            .args(args)
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let started = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("{args:?} waits");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let said = child.wait_with_output().unwrap();
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{err}");
        assert!(err.contains("is not a journal file: it is not a file but a device or a pipe"), "{err}");
    }
}

#[test]
fn a_fork_cannot_have_a_name_whose_ids_are_taken() {
    let folder = Scratch::new("fork-ids");
    let file = folder
        .file("c.yaml", "charter: 1\nid: c\nevents: {X: {}}\ninitial: s\nstates: {s: {on: {X: {actions: []}}}}\n");
    let db = folder.0.join("c.db").display().to_string();
    charter(&["run", &file, "--run", "A", "--db", &db]);
    assert_eq!(charter(&["send", "A", "X", "--id", "B/2", "--db", &db]).code, 0);
    let refused = charter(&["fork", "A", "--at", "1", "--run", "B", "--db", &db]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("the fork cannot be called `B`: record 1 of run `A` has the event id `B/2`"),
        "{}",
        refused.err
    );
    assert_eq!(charter(&["fork", "A", "--at", "0", "--run", "B", "--db", &db]).code, 0);
    assert_eq!(charter(&["fork", "A", "--at", "1", "--run", "C", "--db", &db]).code, 0);
}
