//! `charter hook`: what it decides, and that it blocks in whatever way it is broken. Each test runs
//! the real program.

use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use charter_guard::config::guarded_command;
use serde_json::{Value as Json, json};

use crate::support::processes::{Site, until};

/// Reading is free, writing needs a plan that the boss has approved, deleting is never legal.
pub(crate) const GUARDED: &str = "
charter: 1
id: guarded
roles: {agent: {}, boss: {}}
context: {plan: null, results: []}
events:
  tool.call: {by: agent}
  tool.result: {by: agent}
  PLAN: {by: agent, description: Propose what to change, data: {type: object, required: [text], properties: {text: {type: string}}}}
  APPROVE: {by: boss, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
  DONE: {by: boss}
initial: look
states:
  look:
    on:
      tool.call: {when: '!event.does.write && !event.does.delete'}
      tool.result: {actions: {assign: {results: '= context.results + [event.ok]'}}}
      PLAN: {target: asked, actions: {assign: {plan: '= event.text'}}}
      DONE: finished
  asked:
    tags: [waiting]
    on:
      tool.call: {when: '!event.does.write && !event.does.delete'}
      APPROVE: {target: change, approves: context.plan}
  change:
    on:
      tool.call: {when: '!event.does.delete'}
      tool.result: {actions: {assign: {results: '= context.results + [event.ok]'}}}
  finished: {type: final}
";

/// A run `r` of the charter in a folder.
pub(crate) fn site(name: &str) -> Site {
    let site = Site::new(name, &[("guarded.yaml", GUARDED.into())]);
    let root = site.path("").canonicalize().unwrap();
    fs::write(site.path("input.json"), json!({"workspace": root}).to_string()).unwrap();
    site.run("run guarded.yaml --run r --input @input.json --as ana --role boss");
    site
}

/// A call of an agent in Claude Code.
pub(crate) fn call(site: &Site, id: &str, tool: &str, input: Json) -> Json {
    json!({
        "session_id": "s1", "cwd": site.path("").canonicalize().unwrap(), "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": id,
    })
}

pub(crate) fn read(site: &Site, id: &str) -> Json {
    call(site, id, "Read", json!({"file_path": site.path("guarded.yaml")}))
}

pub(crate) fn write(site: &Site, id: &str) -> Json {
    call(site, id, "Write", json!({"file_path": site.path("a.txt"), "content": "a"}))
}

/// Runs a hook with a request on standard input.
pub(crate) fn hook_with(mut command: Command, request: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A hook that has decided does not read the rest.
    let _ = child.stdin.take().unwrap().write_all(request);
    child.wait_with_output().unwrap()
}

pub(crate) fn hook(site: &Site, args: &str, request: &Json) -> Output {
    hook_with(site.command(&format!("hook {args}")), request.to_string().as_bytes())
}

/// The decision of a hook that works: its JSON.
pub(crate) fn decision(output: &Output) -> Json {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*err), (Some(0), ""), "{out}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// The reason of a denial of Claude Code.
pub(crate) fn denied(output: &Output) -> String {
    let said = decision(output);
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    said["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap().to_owned()
}

/// Asserts that a hook blocks: exit code 2, nothing on standard output, one line on standard error.
fn blocked(what: &str, output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(2), ""), "{what}: {err}");
    assert!(err.starts_with("charter hook: not allowed: ") && err.lines().count() == 1, "{what}: {err:?}");
    err.into_owned()
}

/// A call that would be legal, so that only the fault can block it.
fn broken(site: &Site, what: &str, args: &str) -> String {
    blocked(what, &hook(site, args, &read(site, what)))
}

#[test]
fn a_broken_call_blocks() {
    let site = site("hook-broken");
    assert_eq!(decision(&hook(&site, "r --client claude", &read(&site, "fine"))), json!({}));
    fs::write(site.path("text.db"), "not a journal").unwrap();
    fs::write(site.path("empty.db"), "").unwrap();
    fs::create_dir(site.path("folder.db")).unwrap();
    for (args, why) in [
        ("nobody --client claude", "no run `nobody`"),
        ("r --client claude --db missing.db", "not found; `charter guard init"),
        ("r --client claude --db text.db", "not a journal file"),
        ("r --client claude --db empty.db", "empty"),
        ("r --client claude --db folder.db", "folder"),
        ("r --client claude --server http://127.0.0.1:1", "no answer from the server"),
        ("r --client claude --server nonsense", "not the address of a server"),
        ("r --client", "a value is required"),
        ("r --client emacs", "unknown client"),
        ("r --client claude --frobnicate", "unexpected argument"),
        ("r s --client claude", "cannot be used with"),
        ("--client claude", "required"),
        ("r --client claude --help", "Usage"),
        ("r --version", "charter"),
        ("r --client claude --role system", "system"),
    ] {
        let said = broken(&site, args, args);
        assert!(said.contains(why), "{args}: {said}");
    }
    for (request, why) in [
        ("", "empty"),
        ("\n", "empty"),
        ("garbage", "not JSON"),
        ("{\"session_id\":", "not JSON"),
        ("[1]", "shape"),
        ("{}", "`hook_event_name`"),
        ("{\"a\": 1, \"a\": 2}", "duplicate"),
        (&"[".repeat(200_000), "not JSON"),
        (&format!("{{\"a\": \"{}\"}}", "x".repeat(9 << 20)), "more than"),
    ] {
        let said = blocked(why, &hook_with(site.command("hook r --client claude"), request.as_bytes()));
        assert!(said.contains(why), "{said}");
    }
    let mut nowhere = read(&site, "nowhere");
    nowhere["cwd"] = json!("relative/folder");
    assert!(blocked("cwd", &hook(&site, "r --client claude", &nowhere)).contains("`cwd`"));
    assert_eq!(site.records("r").len(), 2, "only the call that was decided is recorded");
}

#[test]
fn a_process_that_fails_blocks() {
    let site = site("hook-fails");
    let request = read(&site, "t").to_string();
    let fault = |fault: &str| {
        let mut command = site.command("hook r --client claude");
        command.env("CHARTER_HOOK_FAULT", fault);
        command
    };
    assert!(blocked("panic", &hook_with(fault("panic"), request.as_bytes())).contains("internal error"));
    // What the process itself cannot catch is caught by the configured command line.
    let program = env!("CARGO_BIN_EXE_charter");
    for (what, command) in [
        ("abort", format!("CHARTER_HOOK_FAULT=abort {program} hook r --client claude")),
        ("killed", "sh -c 'kill -9 $$'".to_owned()),
        ("missing", "/nowhere/charter hook r --client claude".to_owned()),
        ("not executable", format!("{} hook r", site.path("guarded.yaml").display())),
    ] {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &guarded_command(&command)]).current_dir(site.path(""));
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = hook_with(shell, request.as_bytes());
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{what}: {err}");
        assert!(err.contains("charter hook: ended without a decision, so not allowed"), "{what}: {err}");
    }
    // And it changes nothing about a decision.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &guarded_command(&format!("{program} hook r --client claude"))]).current_dir(site.path(""));
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_eq!(decision(&hook_with(shell, request.as_bytes())), json!({}));
}

#[test]
fn an_answer_that_nobody_can_read_blocks() {
    let site = site("hook-closed");
    let program = env!("CARGO_BIN_EXE_charter");
    for (n, how) in [">&-", ">/dev/null", ">/dev/full", "<&-", "<&- >&-"].into_iter().enumerate() {
        for (kind, request) in [("read", read(&site, &format!("r{n}"))), ("write", write(&site, &format!("w{n}")))] {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("{program} hook r --client claude {how}")]).current_dir(site.path(""));
            shell.stdout(Stdio::piped()).stderr(Stdio::piped());
            blocked(&format!("{how} {kind}"), &hook_with(shell, request.to_string().as_bytes()));
        }
    }
    // A reader that has gone.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = site.command("hook r --client claude");
    command.stdout(OwnedFd::from(writer));
    let said = blocked("a pipe without a reader", &hook_with(command, write(&site, "gone").to_string().as_bytes()));
    assert!(said.contains("deny"), "the reason is on standard error then: {said}");
}

#[test]
fn what_does_not_end_is_ended_after_five_seconds() {
    let site = site("hook-slow");
    let own = charter_journal::SqliteStore::open(&site.path("charter.db")).unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let timed = |what: &'static str, command: Command, request: Option<Json>| {
            move || {
                let mut command = command;
                let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
                let mut input = child.stdin.take().unwrap();
                if let Some(request) = request {
                    input.write_all(request.to_string().as_bytes()).unwrap();
                    drop(input);
                } else {
                    // The beginning of a request that never ends.
                    input.write_all(b"{").unwrap();
                    std::mem::forget(input);
                }
                let output = child.wait_with_output().unwrap();
                blocked(what, &output);
            }
        };
        let mut hang = site.command("hook r --client claude");
        hang.env("CHARTER_HOOK_FAULT", "hang");
        scope.spawn(timed("hangs", hang, Some(read(&site, "a"))));
        scope.spawn(timed("no end of input", site.command("hook r --client claude"), None));
        scope.spawn(timed("a locked journal", site.command("hook r --client claude"), Some(read(&site, "b"))));
    });
    let took = began.elapsed();
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(9), "{took:?}");
    drop(own);
    assert_eq!(site.records("r").len(), 1);
}

#[test]
fn a_host_that_is_stopped_or_killed_blocks_or_is_replaced() {
    let site = site("hook-host");
    // It stays for an actor.
    let busy = "charter: 1\nid: busy\nactors: {work: {kind: exec, command: [sleep, '60']}}\nstates:\n  \
        a: {invoke: {src: work, onDone: b, onError: b}}\n  b: {type: final}\n";
    std::fs::write(site.path("busy.yaml"), busy).unwrap();
    site.run("run busy.yaml --run busy --detach");
    let pid = site.holder();
    assert_eq!(decision(&hook(&site, "r --client claude", &read(&site, "a"))), json!({}));
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    broken(&site, "stopped", "r --client claude");
    signal("-CONT");
    assert_eq!(decision(&hook(&site, "r --client claude", &read(&site, "b"))), json!({}));
    signal("-KILL");
    site.wait_for_no_holder();
    assert_eq!(decision(&hook(&site, "r --client claude", &read(&site, "c"))), json!({}));
    site.run("verify");
}

#[test]
fn a_legal_call_is_no_opinion_and_a_refused_one_says_what_is_legal() {
    let site = site("hook-decides");
    assert_eq!(decision(&hook(&site, "r --client claude", &read(&site, "t1"))), json!({}));
    let granted = decision(&hook(&site, "r --client claude --grant", &read(&site, "t2")));
    assert_eq!(granted["hookSpecificOutput"]["permissionDecision"], "allow");
    let why = denied(&hook(&site, "r", &write(&site, "t3")));
    for part in ["refused by the charter `guarded`", "state: look", "PLAN (Propose what to change)"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let records = site.records("r");
    assert_eq!(records.len(), 4);
    assert_eq!(records[1]["id"], "claude/s1/t1");
    assert_eq!(records[1]["event"]["type"], "tool.call");
    assert_eq!(
        records[1]["by"],
        json!({"id": "agent:claude/s1", "kind": "agent", "roles": ["agent"], "auth": "local"})
    );
    assert_eq!((&records[1]["verdict"], &records[3]["verdict"]), (&json!("accepted"), &json!("refused")));
    // The agent has no other role than those of the hook.
    let why = denied(&hook(&site, "r --client claude --role boss", &read(&site, "t4")));
    assert!(why.contains("authority"), "{why}");
    // The outcome is recorded, once.
    let mut after = read(&site, "t1");
    after["hook_event_name"] = json!("PostToolUse");
    after["tool_response"] = json!({"stdout": "x"});
    for _ in 0..2 {
        assert_eq!(decision(&hook(&site, "r --client claude", &after)), json!({}));
    }
    let records = site.records("r");
    assert_eq!(records.len(), 6);
    assert_eq!((&records[5]["id"], &records[5]["event"]["data"]["ok"]), (&json!("claude/s1/t1/result"), &json!(true)));
    site.run("send r DONE --as ana --role boss");
    assert!(denied(&hook(&site, "r --client claude", &read(&site, "t5"))).contains("done"));
    site.run("verify");
}

#[test]
fn what_controls_agents_is_not_changed_unless_the_charter_says_so() {
    let site = site("hook-frees");
    site.run("send r PLAN {\"text\":\"x\"} --as bot --kind agent --role agent");
    let records = site.records("r");
    let digest = charter_kernel::Digest::of_json(&json!("x"));
    site.run(&format!("send r APPROVE {{\"digest\":\"{digest}\"}} --as ana --role boss"));
    let file = |path: &str| call(&site, path, "Write", json!({"file_path": site.path(path), "content": "{}"}));
    assert_eq!(decision(&hook(&site, "r --client claude", &file("a.txt"))), json!({}));
    for path in [".claude/settings.json", ".codex/hooks.json", ".github/hooks/x.json", "charter.db", "charter.db-wal"] {
        let why = denied(&hook(&site, "r --client claude", &file(path)));
        assert!(why.contains("controls agents"), "{path}: {why}");
    }
    assert_eq!(site.records("r").len(), records.len() + 2);
}

#[test]
fn a_call_that_waits_for_a_person_is_deferred_and_legal_after_the_decision() {
    let site = site("hook-waits");
    let headless = |request: &Json| {
        let mut command = site.command("hook r --client claude");
        command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
        hook_with(command, request.to_string().as_bytes())
    };
    // Nobody is asked yet.
    denied(&headless(&write(&site, "t0")));
    site.run("send r PLAN {\"text\":\"x\"} --as bot --kind agent --role agent");
    let request = write(&site, "t1");
    let why = denied(&hook(&site, "r --client claude", &request));
    let id = why.strip_prefix("waits for approval ").unwrap().split(": ").next().unwrap();
    assert!(id.starts_with("r/root/asked/on/APPROVE/0/sha256:"), "{why}");
    assert!(why.contains("charter run --resume r"), "{why}");
    let deferred = decision(&headless(&request));
    assert_eq!(deferred["hookSpecificOutput"]["permissionDecision"], "defer", "{deferred}");
    let asked = decision(&hook(&site, "r --client claude --ask", &request));
    assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask", "{asked}");
    // Deleting is not legal after the approval either: nobody has to decide about it.
    let delete = call(&site, "t2", "Bash", json!({"command": "rm a.txt"}));
    let why = denied(&headless(&delete));
    assert!(why.starts_with("refused"), "{why}");
    // Repeated before the decision, the call is the same event.
    let before = site.records("r").len();
    denied(&hook(&site, "r --client claude", &request));
    assert_eq!(site.records("r").len(), before);
    let digest = charter_kernel::Digest::of_json(&json!("x"));
    site.run(&format!("send r APPROVE {{\"digest\":\"{digest}\"}} --as ana --role boss"));
    assert_eq!(decision(&headless(&request)), json!({}));
    let records = site.records("r");
    let (decided, again) = (&records[before], &records[before + 1]);
    assert_eq!(again["id"], json!(format!("claude/s1/t1/{}", decided["seq"])));
    // And once more is the same again.
    assert_eq!(decision(&headless(&request)), json!({}));
    assert_eq!(site.records("r").len(), before + 2);
    denied(&headless(&delete));
}

#[test]
fn calls_at_the_same_time_are_each_decided_once() {
    let site = site("hook-many");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let site = &site;
            scope.spawn(move || {
                for repeat in 0..2 {
                    let output = hook(site, "r --client claude", &read(site, &format!("t{n}")));
                    assert_eq!(decision(&output), json!({}), "{n} {repeat}");
                }
            });
        }
    });
    // A repeat is the same event, unless others were accepted in between: then it is decided again.
    let records = site.records("r");
    assert!((9..=17).contains(&records.len()), "{}", records.len());
    for n in 0..8 {
        let id = json!(format!("claude/s1/t{n}"));
        assert_eq!(records.iter().filter(|record| record["id"] == id).count(), 1);
    }
    until("no holder", || charter_journal::holder(&site.path("charter.db")).unwrap().is_none());
    site.run("verify");
}
