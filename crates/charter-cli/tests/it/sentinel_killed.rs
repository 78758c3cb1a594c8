//! `charter run sentinel` killed at arbitrary times: the next start finishes or undoes the changes,
//! and the cycle continues.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use charter_test_support::cases;

use crate::support::Scratch;

struct Desk(Scratch);

impl Desk {
    fn new() -> Desk {
        let scratch = Scratch::new("killed");
        fs::create_dir(scratch.0.join("w")).unwrap();
        scratch.file("w/greeting.txt", "Hello, world\n");
        Desk(scratch)
    }

    fn charter(&self, args: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_charter"))
            .args(args)
            .args(["--yes", "--db", "runs.db"])
            .current_dir(&self.0.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn start(&self, more: &str) -> Child {
        let input = format!(r#"{{"workspace": "w", "goal": "Greet in German"{more}}}"#);
        self.charter(&["run", "sentinel", "--run", "r", "--input", &input])
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.0.0.join("w").join(name)).unwrap_or_else(|_| "(none)".into())
    }

    /// Resumes the run after a kill.
    fn resume(&self) {
        let resumed = self.charter(&["run", "--resume", "r"]).wait().unwrap();
        assert!(resumed.success());
        assert_eq!(self.file("greeting.txt"), "Guten Tag, world\n");
        assert!(self.file("greeter.txt").contains("Goal: Greet in German"));
        let mut left: Vec<_> =
            fs::read_dir(self.0.0.join("w")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["greeter.txt", "greeting.txt"]);
    }
}

#[test]
fn while_the_verification_runs() {
    let desk = Desk::new();
    // The command writes into its copy only, which is beside the journal.
    let marker = desk.0.0.join("began");
    let script = format!("touch began; test -e {} || sleep 20", marker.display());
    let workspaces = desk.0.0.join("runs.db-files/workspaces");
    let began = || {
        let known = fs::read_dir(&workspaces).into_iter().flatten();
        known.into_iter().any(|known| known.unwrap().path().join("scratch/tree/began").exists())
    };
    let mut child = desk.start(&format!(r#", "verify": ["/bin/sh", "-c", {script:?}]"#));
    let started = Instant::now();
    while !began() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(&marker, "").unwrap();
    assert_eq!(desk.file("greeting.txt"), "Hello, world\n", "nothing before it is verified");
    desk.resume();
}

#[test]
fn at_several_times() {
    // Measure the duration without a kill.
    let whole = Desk::new();
    let started = Instant::now();
    assert!(whole.start("").wait().unwrap().success());
    let all = started.elapsed();
    let steps = cases(4, 16);
    for step in 1..steps {
        let desk = Desk::new();
        let mut child = desk.start("");
        std::thread::sleep(all * step / steps);
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = Command::new(env!("CARGO_BIN_EXE_charter"))
            .args(["show", "r", "--db", "runs.db"])
            .current_dir(&desk.0.0)
            .output()
            .unwrap();
        // The process was killed before the run existed.
        if !shown.status.success() {
            continue;
        }
        desk.resume();
        let verified = Command::new(env!("CARGO_BIN_EXE_charter"))
            .args(["verify", "runs.db"])
            .current_dir(&desk.0.0)
            .output()
            .unwrap();
        assert!(verified.status.success());
    }
}

/// A signal while the files of a large change are switched: the program ends by itself with all of
/// them or none changed, and leaves nothing to the next start.
#[test]
fn a_signal_in_an_apply_leaves_no_mixed_tree() {
    const FILES: usize = 400;
    let mut caught = 0;
    for (signal, pause) in [("TERM", 0), ("INT", 60), ("HUP", 120), ("TERM", 180)] {
        let desk = Desk::new();
        let charter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/sentinel");
        assert!(Command::new("cp").args(["-r", charter]).arg(desk.0.0.join("s")).status().unwrap().success());
        let text = fs::read_to_string(desk.0.0.join("s/charter.yaml")).unwrap();
        let begin = text.find("      changes: >-").unwrap();
        let end = begin + text[begin..].find("  apply:").unwrap();
        let rule =
            "      changes: \"= input.files.map(f, {'operation': 'MODIFY', 'file_path': f.path, 'content': 'new'})\"\n";
        desk.0.file("s/charter.yaml", format!("{}{rule}{}", &text[..begin], &text[end..]));
        desk.0.file("w/greeting.txt", "old");
        for n in 1..FILES {
            desk.0.file(&format!("w/f{n}"), "old");
        }
        let args = ["run", "s/charter.yaml", "--run", "r", "--input", r#"{"workspace": "w", "goal": "x"}"#];
        let mut child = desk.charter(&args);
        let started = Instant::now();
        let stage = desk.0.0.join("w/.charter-apply");
        while !stage.exists() {
            assert!(started.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(pause));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let status = child.wait().unwrap();
        caught += usize::from(!status.success());
        let files = fs::read_dir(desk.0.0.join("w")).unwrap().map(|entry| entry.unwrap().path());
        let mut changed = 0;
        for file in files {
            match fs::read_to_string(&file) {
                Ok(text) if text == "new" => changed += 1,
                Ok(text) if text == "old" => {}
                other => panic!("{signal}: {}: {other:?}", file.display()),
            }
        }
        assert!(changed == 0 || changed == FILES, "{signal} after {pause} ms: {changed} of {FILES} files are new");
    }
    assert!(caught > 0, "no signal came in time");
}
