//! `charter serve` and `charter key`, as people use them.
#![cfg(all(unix, feature = "serve"))]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Scratch, charter, start_at};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
    command.env_remove("CHARTER_DB");
    command
}

/// A server in a folder.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(folder: &Path) -> Served {
        Served::start_with(folder, &[])
    }

    pub(crate) fn start_with(folder: &Path, options: &[&str]) -> Served {
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options).current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Served { child, url: url.trim().to_owned() }
    }

    /// Sends a signal, and waits for the end; returns the exit code and what was said.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let begin = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(15), "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The blocks of a page that are shell commands.
fn blocks(page: &str) -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs").join(page)).unwrap();
    text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn five_minutes_with_the_page_and_curl() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no curl");
        return;
    }
    let scratch = Scratch::new("serve-page");
    let served = Served::start(&scratch.0);
    let script = blocks("serve.md").join("\n").replace("http://127.0.0.1:7117", &served.url);
    // A person is slower than the work that an approval starts.
    let look = "curl -s $URL/v1/runs/prices -H";
    assert!(script.contains(look));
    let script = script.replace(look, &format!("sleep 3\n{look}"));
    assert!(script.contains(&served.url) && script.contains("HUMAN_APPROVED"));
    let bin = PathBuf::from(env!("CARGO_BIN_EXE_charter"));
    let path = format!("{}:{}", bin.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &script]).current_dir(&scratch.0).env("PATH", path).env_remove("CHARTER_DB");
    let ran = shell.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    for part in [
        r#""verdict":"accepted""#,
        "event: record",
        r#""code":"authority""#,
        r#""status":"done""#,
        "refused   HUMAN_APPROVED",
        "accepted  HUMAN_APPROVED",
        "verified: ",
    ] {
        assert!(out.contains(part), "`{part}` is missing:\n{out}\n{err}");
    }
    assert!(!out.contains("chk_"), "a key was shown twice");
    let (code, said) = served.end("-TERM");
    assert_eq!(code, Some(0), "{said}");
    // The journal is closed: the file alone has all records.
    let left = |name: &str| scratch.0.join(name).exists();
    assert!(!left("charter.db-wal") && !left("charter.db-lock") && !left("charter.db-socket"));
    let db = scratch.0.join("charter.db").display().to_string();
    let log = charter(&["log", "host", "--db", &db]);
    assert!(log.out.contains("SERVER_OPENED") && log.out.contains("SERVER_CLOSED"), "{}", log.out);
    assert_eq!(charter(&["verify", &db]).code, 0);
}

#[test]
fn a_broken_charter_is_reported_and_the_others_are_served() {
    let scratch = Scratch::new("serve-broken");
    let folder = scratch.0.join("charters");
    std::fs::create_dir(&folder).unwrap();
    let good = "charter: 1\nid: good\ninitial: a\nstates: {a: {type: final}}\n";
    std::fs::write(folder.join("good.yaml"), good).unwrap();
    std::fs::write(folder.join("bad.yaml"), "charter: 1\nid: bad\ninitial: a\nstates: {b: {}}\n").unwrap();
    // It can be read, but this host has no such actor.
    let strange = "actors: {x: {kind: sorcerer}}\ninitial: a\nstates: {a: {invoke: {src: x}}}\n";
    std::fs::write(folder.join("odd.yaml"), format!("charter: 1\nid: strange\n{strange}")).unwrap();
    let served = Served::start(&scratch.0);
    let start = |charter: &str| {
        let body = format!("{{\"charter\": \"{charter}\"}}");
        post(&served.url, "/v1/runs", &body)
    };
    let bad = start("bad");
    assert!(bad.starts_with("HTTP/1.1 404 "), "{bad}");
    assert!(bad.contains("the charter `bad` is missing because its file is broken: bad.yaml:3:10: "), "{bad}");
    assert!(!bad.contains("charters/"), "the folder is the server's own business: {bad}");
    let strange = start("strange");
    assert!(strange.contains("its file is broken: ") && strange.contains("sorcerer"), "{strange}");
    assert!(start("good").starts_with("HTTP/1.1 201 "), "{}", start("good"));
    let (_, said) = served.end("-TERM");
    assert!(said.contains("bad.yaml:3:10") && said.contains("^"), "file, line and caret: {said}");
    assert!(said.contains("bad.yaml` is not served") && said.contains("odd.yaml` is not served"), "{said}");
    assert!(!said.contains("good.yaml"), "{said}");
}

#[test]
fn a_charter_that_runs_commands_is_started_only_where_it_is_offered() {
    let scratch = Scratch::new("serve-offer");
    let folder = scratch.0.join("charters");
    std::fs::create_dir(&folder).unwrap();
    let source = "charter: 1\nid: runner\nactors: {x: {kind: exec, command: [echo]}}\ninitial: a\nstates: {a: {invoke: {src: x, onDone: b}}, b: {type: final}}\n";
    std::fs::write(folder.join("runner.yaml"), source).unwrap();
    let start =
        |served: &Served, charter: &str| post(&served.url, "/v1/runs", &format!("{{\"charter\": \"{charter}\"}}"));
    let offering = Served::start_with(&scratch.0, &["--offer", "runner"]);
    let begun = start(&offering, "runner");
    assert!(begun.starts_with("HTTP/1.1 201 "), "{begun}");
    let found = request(&offering.url, "GET", "/v1/charters/runner", "");
    let digest = found.split("\"digest\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    offering.end("-TERM");
    let served = Served::start(&scratch.0);
    let refused = start(&served, "runner");
    assert!(refused.starts_with("HTTP/1.1 404 ") && refused.contains("charter serve --offer runner"), "{refused}");
    // The journal has it, because a run of it was started.
    let refused = start(&served, &digest);
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("charter serve --offer NAME"), "{refused}");
    let (_, said) = served.end("-TERM");
    assert!(said.contains("no run of it starts here without `--offer runner`"), "{said}");
}

/// Sends a body to a server without keys, and returns the answer.
fn post(url: &str, path: &str, body: &str) -> String {
    request(url, "POST", path, body)
}

fn request(url: &str, method: &str, path: &str, body: &str) -> String {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nCharter-As: ana\r\n");
    let length = body.len();
    let request = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn keys_for_what_no_charter_knows_come_with_a_warning() {
    let scratch = Scratch::new("keys-unknown");
    let db = scratch.0.join("j.db").display().to_string();
    let file = scratch.file("f.yaml", "{charter: 1, id: fred, roles: {founder: {}, reviewer: {}}, states: {a: {}}}");
    assert_eq!(charter(&["run", &file, "--run", "f", "--db", &db]).code, 0);
    let add = |args: &[&str]| charter(&[&["key", "add"], args, &["--db", &db]].concat());
    for (role, warning) in [
        ("fred/reviwer", "charter `fred` has no role `reviwer`; did you mean `reviewer`?"),
        ("nope/foo", "this journal has no charter `nope` yet"),
        ("foo", "no charter of this journal has a role `foo` yet"),
        ("", "the key has no role"),
    ] {
        let args = [&["eve"][..], &if role.is_empty() { vec![] } else { vec!["--role", role] }].concat();
        let added = add(&args);
        assert!(added.code == 0 && added.out.starts_with("chk_"), "{}", added.err);
        assert!(added.err.contains("warning: ") && added.err.contains(warning), "{}", added.err);
    }
    for role in ["fred/reviewer", "reviewer", "admin", "operator", "reader", "fred/operator", "fred/f/founder"] {
        let added = add(&["ana", "--role", role]);
        assert!(added.code == 0 && !added.err.contains("warning"), "{}", added.err);
    }
    for args in [&["x y"][..], &["eve", "--role", "x y"], &["a/b"]] {
        let refused = add(args);
        assert!(refused.code == 2 && !refused.err.contains("KEY_ADDED"), "{}", refused.err);
        assert!(refused.err.contains("such a name has 1 to 200 characters, and no spaces"), "{}", refused.err);
    }
}

#[test]
fn keys_are_kept_in_the_journal_without_a_server() {
    let scratch = Scratch::new("keys");
    let db = scratch.0.join("j.db").display().to_string();
    let add = |args: &[&str]| {
        let mut all = vec!["key", "add"];
        all.extend(args);
        all.extend(["--db", &db]);
        charter(&all)
    };
    let empty = charter(&["key", "list", "--db", &db]);
    assert_eq!(empty.code, 2, "there is no journal yet");
    let ana = add(&["ana", "--role", "reviewer", "--charter", "fred", "--expires", "90d", "--note", "the first"]);
    assert_eq!((ana.code, ana.out.len()), (0, "chk_".len() + 43 + 1), "{}{}", ana.out, ana.err);
    assert!(ana.err.contains("ana (person): fred/reviewer, until 2"), "{}", ana.err);
    let bot = add(&["bot", "--agent", "--role", "feijoa/planner"]);
    assert_eq!(bot.code, 0, "{}", bot.err);
    let list = charter(&["key", "list", "--db", &db]);
    for part in ["ana", "person", "fred/reviewer", "the first", "bot", "agent", "feijoa/planner", "never"] {
        assert!(list.out.contains(part), "{part}: {}", list.out);
    }
    assert!(!list.out.contains("chk_"));
    let json = charter(&["key", "list", "--json", "--db", &db]);
    let first: serde_json::Value = serde_json::from_str(json.out.lines().next().unwrap()).unwrap();
    let key = first["key"].as_str().unwrap();
    let revoked = charter(&["key", "revoke", key, "--reason", "lost", "--db", &db]);
    assert_eq!(revoked.code, 0, "{}", revoked.err);
    let again = charter(&["key", "revoke", key, "--db", &db]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("revoked already") && again.err.contains("charter key list"), "{}", again.err);
    assert!(charter(&["key", "list", "--db", &db]).out.contains("was revoked"));
    for wrong in [
        vec!["eve", "--expires", "yesterday"],
        vec!["eve", "--expires", "2020-01-01T00:00:00Z"],
        vec!["system"],
        vec!["a b"],
        vec![""],
        vec!["eve", "--role", "a/b/c/d"],
        vec!["eve", "--agent", "--person"],
    ] {
        let refused = add(&wrong);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{wrong:?}: {}", refused.err);
    }
    for event in ["charter.cancel", "charter.pause"] {
        let ended = charter(&["send", "host", event, "--as", "op", "--role", "operator", "--db", &db]);
        assert!(ended.code == 2 && ended.err.contains("holds the keys"), "{}", ended.err);
    }
    assert_eq!(charter(&["key", "list", "--db", &db]).out.lines().count(), 3, "two keys and a heading");
    assert_eq!(charter(&["verify", &db]).code, 0);
}

#[test]
fn a_journal_is_served_once_and_not_with_another_run_called_host() {
    let scratch = Scratch::new("serve-once");
    let served = Served::start(&scratch.0);
    let db = scratch.0.join("charter.db").display().to_string();
    let second = charter(&["serve", "--listen", "127.0.0.1:0", "--db", &db]);
    assert_eq!(second.code, 2);
    assert!(second.err.contains("another process (process ") && second.err.contains("--db FILE"), "{}", second.err);
    let taken = served.url.trim_start_matches("http://").to_owned();
    let other = scratch.0.join("other.db").display().to_string();
    let same_port = charter(&["serve", "--listen", &taken, "--db", &other]);
    assert_eq!(same_port.code, 2);
    assert!(same_port.err.contains("cannot listen at 127.0.0.1:"), "{}", same_port.err);
    let everybody = charter(&["serve", "--listen", "0.0.0.0:0", "--db", &other]);
    assert!(everybody.code == 2 && everybody.err.contains("charter key add"), "{}", everybody.err);
    drop(served);
    // A charter that reaches the machine is offered only if somebody says so.
    let offered = |args: &[&str]| {
        let db = scratch.0.join("offer.db").display().to_string();
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0", "--db", &db]).args(args).current_dir(&scratch.0);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let curl =
            Command::new("curl").args(["-s", "-H", "Charter-As: ana", &format!("{}/v1/charters", url.trim())]).output();
        child.kill().unwrap();
        child.wait().unwrap();
        curl.map(|ran| String::from_utf8_lossy(&ran.stdout).contains("sentinel"))
    };
    if let (Ok(plain), Ok(with)) = (offered(&[]), offered(&["--offer", "sentinel"])) {
        assert_eq!((plain, with), (false, true));
    }
    let source = "charter: 1\nid: mine\nevents: {GO: {}}\ninitial: a\nstates: {a: {on: {GO: b}}, b: {type: final}}\n";
    let own = scratch.0.join("own.db").display().to_string();
    start_at(Path::new(&own), source, "host", None);
    let refused = charter(&["serve", "--listen", "127.0.0.1:0", "--db", &own]);
    assert!(refused.code == 2 && refused.err.contains("a run `host` of the charter `mine`"), "{}", refused.err);
}

/// Runs `charter` as somebody with a key, against a server.
fn at(url: &str, key: &str, folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = program();
    command.args(args).current_dir(folder).env("CHARTER_SERVER", url).env("CHARTER_KEY", key).stdin(Stdio::null());
    let ran = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr))
}

#[test]
fn commands_work_with_a_server_on_another_machine() {
    let (server, elsewhere) = (Scratch::new("serve-far"), Scratch::new("serve-near"));
    std::fs::create_dir(server.0.join("charters")).unwrap();
    let payment =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/payment.yaml"));
    server.file("charters/payment.yaml", payment.unwrap());
    let db = server.0.join("charter.db").display().to_string();
    let key =
        |name: &str, role: &str| charter(&["key", "add", name, "--role", role, "--db", &db]).out.trim().to_owned();
    let (ana, bea) = (key("ana", "payment/clerk"), key("bea", "payment/controller"));
    let served = Served::start(&server.0);
    let as_ana = |args: &[&str]| at(&served.url, &ana, &elsewhere.0, args);
    let as_bea = |args: &[&str]| at(&served.url, &bea, &elsewhere.0, args);
    std::fs::copy(server.0.join("charters/payment.yaml"), elsewhere.0.join("payment.yaml")).unwrap();

    let (code, out, err) = as_ana(&["run", "payment.yaml", "--run", "pay-1"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = as_ana(&["send", "pay-1", "REQUEST", r#"{"amount": 250}"#]);
    assert!(code == 0 && out.contains("open → review"), "{out}{err}");
    let (code, _, err) = at(&served.url, "", &elsewhere.0, &["log", "pay-1"]);
    assert!(code == 2 && err.contains("`--key KEY`, or in the variable CHARTER_KEY"), "{err}");
    // The same, printed by the command at the machine of the server.
    for args in [
        &["log", "pay-1"][..],
        &["show", "pay-1"],
        &["explain", "pay-1", "1"],
        &["replay", "pay-1", "--to", "0"],
        &["export", "pay-1"],
        &["graph", "--run", "pay-1"],
    ] {
        let (code, far, err) = as_ana(args);
        let mut near = args.to_vec();
        near.extend(["--db", &db]);
        let near = charter(&near);
        // A suggested command names the file, or nothing where the environment names the server.
        let near_out = near.out.replace(&format!(" --db {db}"), "");
        let without_host = |text: &str| text.lines().filter(|l| !l.contains("process ")).collect::<Vec<_>>().join("\n");
        let (far, near) = ((code, without_host(&far)), (i32::from(near.code), without_host(&near_out)));
        assert!(far == near, "{args:?}: {err}\n{:.2000}\n{:.2000}", far.1, near.1);
    }
    let (_, legal, err) = as_bea(&["legal", "pay-1", "--json"]);
    let approve =
        legal.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()).find(|l| l["type"] == "APPROVE");
    let digest = approve.unwrap_or_else(|| panic!("{legal}{err}"))["approves"]["digest"].as_str().unwrap().to_owned();
    let data = format!(r#"{{"digest": "{digest}"}}"#);
    let (code, out, err) = as_ana(&["send", "pay-1", "APPROVE", &data]);
    assert!(code == 1 && out.contains("refused") && err.contains("`ana` has"), "{out}{err}");
    let (code, _, err) = as_ana(&["send", "pay-1", "APPROVE", &data, "--as", "bea"]);
    assert!(code == 2 && err.contains("the key belongs to `ana`, not to `bea`"), "{err}");
    let (code, _, err) = as_ana(&["send", "pay-1", "APPROVE", &data, "--role", "controller"]);
    assert!(code == 2 && err.contains("has no role `controller`"), "{err}");
    let (code, out, err) = as_bea(&["send", "pay-1", "APPROVE", &data, "--id", "a1"]);
    assert!(code == 0 && out.contains("review → paid"), "{out}{err}");
    let (code, out, err) = as_bea(&["send", "pay-1", "APPROVE", &data, "--id", "a1"]);
    assert!(code == 0 && format!("{out}{err}").contains("sent before"), "{out}{err}");
    let (code, out, err) = as_ana(&["runs"]);
    assert!(code == 0 && out.contains("pay-1  payment  done"), "{out}{err}");
    let (code, out, err) = as_ana(&["fork", "pay-1", "--at", "1", "--run", "pay-2"]);
    assert_eq!((code, out.trim()), (0, "pay-2"), "{err}");

    // What works on a file says so; a wrong key and a wrong address, too.
    for args in [&["delete", "pay-1", "--yes"][..], &["trust", "pay-1"], &["key", "list"], &["serve"], &["import", "x"]]
    {
        let (code, _, err) = as_ana(args);
        assert!(code == 2 && err.contains("works on a journal file, not on the server"), "{args:?}: {err}");
    }
    let (code, _, err) = at(&served.url, "chk_wrong", &elsewhere.0, &["runs"]);
    assert!(code == 2 && err.contains("this is not a key"), "{err}");
    let (code, _, err) = at("charter.example", &ana, &elsewhere.0, &["runs"]);
    assert!(code == 2 && err.contains("is not the address of a server"), "{err}");
    let (code, _, err) = at("http://127.0.0.1:9", &ana, &elsewhere.0, &["runs"]);
    assert!(code == 2 && err.contains("no answer from the server"), "{err}");
    let (code, _, err) = at(&served.url, &ana, &elsewhere.0, &["show", "none"]);
    assert!(code == 2 && err.contains("run `none` not found"), "{err}");
    assert!(!elsewhere.0.join("charter.db").exists(), "nothing is kept here");
    // A file that is named wins over the environment.
    let (code, out, err) = as_ana(&["runs", "--db", &db]);
    assert!(code == 0 && out.contains("host"), "{out}{err}");
}
