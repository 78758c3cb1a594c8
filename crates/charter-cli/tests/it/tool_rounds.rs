//! Rounds of tools that are interrupted: by a retry, a fallback, the end of the process, or an
//! event that leaves the state. No event is sent twice, and none after the state was left.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::providers::{Server, charter};
use crate::support::Scratch;
use crate::tool_calls::{clerk, log, reply};
use serde_json::json;

/// The events of the model, each with its verdict.
fn sent(scratch: &Scratch) -> Vec<String> {
    let of_model = |record: &&serde_json::Value| record["by"]["kind"] == "agent";
    let line = |record: &serde_json::Value| {
        let code = record["refusal"]["code"].as_str().unwrap_or("accepted");
        format!("{} {code}", record["event"]["type"].as_str().unwrap())
    };
    log(scratch).iter().filter(of_model).map(line).collect()
}

/// Begins a run, and kills its process while the model is asked for the second time.
fn kill_in_second_round(scratch: &Scratch, asked: &AtomicUsize) {
    let mut child = begin(scratch);
    while asked.load(Ordering::SeqCst) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts the run in a process that a test kills.
fn begin(scratch: &Scratch) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
    command.current_dir(&scratch.0).args(["run", "c.yaml", "--run", "r", "--models", "m.toml"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts the run in a process that is killed while its program works; the next process starts the
/// program again.
fn kill_at_work(scratch: &Scratch) {
    change(scratch, "command: [cat], output: {}", "command: [sh, slow.sh], idempotent: true, output: {}");
    scratch.file("slow.sh", "test -e started || { touch started; sleep 60; }\ncat\n");
    let mut child = begin(scratch);
    while !scratch.0.join("started").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn change(scratch: &Scratch, from: &str, to: &str) {
    let text = std::fs::read_to_string(scratch.0.join("c.yaml")).unwrap();
    assert!(text.contains(from), "{from}");
    scratch.file("c.yaml", text.replace(from, to));
}

/// A model that would note something else each time it does not see what it has noted.
fn forgetful(kind: &'static str, body: &str, n: usize) -> (u16, serde_json::Value) {
    match body.contains("noted") {
        true => reply(kind, &[("answer", json!({"said": "done"}))]),
        false => reply(kind, &[("NOTE", json!({"answer": format!("note {n}")}))]),
    }
}

#[test]
fn a_retry_goes_on_after_the_rounds_of_the_attempt_before() {
    let asked = AtomicUsize::new(0);
    let server = Server::new(move |body| match asked.fetch_add(1, Ordering::SeqCst) {
        // The answer and its repair are invalid, which ends the attempt.
        1 | 2 => reply("openai", &[("answer", json!({"sad": true}))]),
        n => forgetful("openai", body, n),
    });
    let scratch = clerk("rounds-retry", "openai", &server, 5);
    change(&scratch, "retry: {attempts: 1}", "retry: {attempts: 2, backoff: 10ms}");
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    assert_eq!(sent(&scratch), ["NOTE accepted"], "{text}");
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("done"), "{text}");
    assert_eq!(server.times(), 4);
}

#[test]
fn a_fallback_is_told_what_was_called() {
    let asked = AtomicUsize::new(0);
    let near = Server::new(move |body| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => forgetful("openai", body, 0),
        _ => (429, json!({"error": {"message": "slow down"}})),
    });
    let far = Server::new(|body| {
        assert!(body.contains("These tools were called for you before"), "{body}");
        forgetful("anthropic", body, 1)
    });
    let scratch = clerk("rounds-fallback", "openai", &near, 5);
    change(&scratch, "model: near:a", "model: near:a\n    fallback: [far:b]");
    let models = std::fs::read_to_string(scratch.0.join("m.toml")).unwrap();
    let other = format!("{models}[providers.far]\nkind = \"anthropic\"\naddress = \"{}\"\n", far.url);
    scratch.file("m.toml", other);
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    assert_eq!((sent(&scratch), far.times()), (vec!["NOTE accepted".to_owned()], 1), "{text}");
}

#[test]
fn a_killed_process_goes_on_after_the_last_round() {
    for kind in ["openai", "anthropic", "gemini"] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let server = Server::new(move |body| match count.fetch_add(1, Ordering::SeqCst) {
            // The first process gets no second reply before it is killed.
            1 => {
                std::thread::sleep(Duration::from_secs(60));
                (500, json!({}))
            }
            n => {
                assert_eq!(n > 0, body.contains("noted"), "{body}");
                forgetful(kind, body, n)
            }
        });
        let scratch = clerk(&format!("rounds-killed-{kind}"), kind, &server, 5);
        kill_in_second_round(&scratch, &asked);
        let (output, text) = charter(&scratch, "run --resume r --models m.toml", None);
        assert!(output.status.success(), "{kind}: {text}");
        assert_eq!(sent(&scratch), ["NOTE accepted"], "{kind}: {text}");
        assert_eq!(asked.load(Ordering::SeqCst), 3, "{kind}: {text}");
        let (output, text) = charter(&scratch, "verify charter.db", None);
        assert!(output.status.success(), "{kind}: {text}");
    }
}

#[test]
fn nothing_is_sent_after_an_event_that_leaves_the_state() {
    for kind in ["openai", "anthropic", "gemini"] {
        let note = |n: u32| ("NOTE", json!({"answer": n.to_string()}));
        let server = Server::new(move |_| reply(kind, &[note(1), ("LEAVE", json!({})), note(2), note(3)]));
        let scratch = clerk(&format!("rounds-left-{kind}"), kind, &server, 5);
        change(&scratch, "PAY: null}", "PAY: null, LEAVE: Goes.}");
        change(&scratch, "  PAY: {by: [manager]}", "  PAY: {by: [manager]}\n  LEAVE: {}");
        change(
            &scratch,
            "            invoke:\n              src: clerk",
            "            on: {LEAVE: thought}\n            invoke:\n              src: clerk",
        );
        let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
        assert!(output.status.success(), "{kind}: {text}");
        assert_eq!(sent(&scratch), ["NOTE accepted", "LEAVE accepted"], "{kind}: {text}");
        assert_eq!(server.times(), 1, "{kind}");
    }
}

#[test]
fn offline_rules_send_events() {
    let server = Server::new(|_| (500, json!({})));
    let scratch = clerk("rounds-offline", "openai", &server, 5);
    change(
        &scratch,
        "    model: near:a\n",
        "    offline: {said: '= results[0].answers.reading.output.word + \" \" + results[1].refused'}
    offlineTools:
      - {type: look.up, data: {word: '= \"fo\" + \"x\"'}}
      - {type: PAY, when: '= results[0].accepted'}
      - {type: NOTE, data: never, when: '= has(results[1].accepted)'}\n",
    );
    let (output, text) = charter(&scratch, "run c.yaml --run r", None);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("the offline rules send PAY: refused (authority)"), "{text}");
    assert_eq!(sent(&scratch), ["look.up accepted", "PAY authority"], "{text}");
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("fox authority"), "{text}");
    assert_eq!(server.times(), 0);
}

#[test]
fn check_says_which_tool_is_wrong_and_where() {
    let server = Server::new(|_| (500, json!({})));
    let scratch = clerk("rounds-check", "openai", &server, 5);
    change(&scratch, "    model: near:a\n", "    offline: {said: nothing}\n");
    let (output, text) = charter(&scratch, "check c.yaml", None);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let line = "error[tool-not-allowed]: the model of `clerk` can never send `PAY`: it requires the role manager, \
                and the actor has no role\n  --> c.yaml:10:";
    assert!(text.contains(line), "{text}");
    change(&scratch, "{look.up: Looks a word up., NOTE: null, PAY: null}", "[look.up, NOET]");
    let (_, text) = charter(&scratch, "check c.yaml", None);
    let line = "error[actor-config]: actor `clerk`: the charter does not declare the event `NOET`; did you mean \
                `NOTE`?\n  --> c.yaml:10:22\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_round_that_was_cut_short_is_completed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Server::new(move |body| match count.fetch_add(1, Ordering::SeqCst) {
        0 => reply("openai", &[("look_up", json!({"word": "fox"})), ("NOTE", json!({"answer": "a fox"}))]),
        n => {
            assert!(body.contains("noted") && body.contains("look_up"), "{body}");
            forgetful("openai", body, n)
        }
    });
    let scratch = clerk("rounds-cut", "openai", &server, 5);
    kill_at_work(&scratch);
    assert_eq!(sent(&scratch), ["look.up accepted"]);
    let (output, text) = charter(&scratch, "run --resume r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    assert_eq!(sent(&scratch), ["look.up accepted", "NOTE accepted"], "{text}");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "{text}");
}

#[test]
fn rounds_are_counted_across_attempts() {
    let asked = AtomicUsize::new(0);
    let server = Server::new(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        1 | 2 => reply("openai", &[("answer", json!({"sad": true}))]),
        n => reply("openai", &[("NOTE", json!({"answer": format!("note {n}")}))]),
    });
    let scratch = clerk("rounds-counted", "openai", &server, 2);
    change(&scratch, "retry: {attempts: 1}", "retry: {attempts: 3, backoff: 10ms}");
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    assert_eq!(sent(&scratch), ["NOTE accepted", "NOTE accepted"], "{text}");
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("rounds"), "{text}");
}

#[test]
fn parallel_calls_have_rounds_of_their_own() {
    let server = Server::new(move |body| {
        let who = if body.contains("You are one") { "one" } else { "two" };
        match body.contains(&format!("noted by {who}")) {
            true => reply("openai", &[("answer", json!({"said": who}))]),
            false => reply("openai", &[("NOTE", json!({"answer": format!("noted by {who}")}))]),
        }
    });
    let scratch = clerk("rounds-parallel", "openai", &server, 2);
    let schema = "{type: object, required: [said], properties: {said: {type: string}}}";
    change(&scratch, schema, &format!("{{type: array, items: {schema}}}\n    calls: [{{name: one}}, {{name: two}}]"));
    change(&scratch, "'= event.output.said'", "'= event.output[0].said + event.output[1].said'");
    scratch.file("p.md", "You are {{call.name}}.\n---\nWhat is it?");
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    assert_eq!(sent(&scratch), ["NOTE accepted", "NOTE accepted"], "{text}");
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("onetwo"), "{text}");
}

#[test]
fn a_model_does_not_approve_what_it_has_proposed() {
    let server = Server::new(move |body| match body.contains("authority") {
        true => reply("openai", &[("answer", json!({"said": "refused"}))]),
        false => reply("openai", &[("NOTE", json!({"answer": "pay 7"})), ("APPROVE", json!({}))]),
    });
    let scratch = clerk("rounds-own", "openai", &server, 2);
    change(&scratch, "PAY: null}", "APPROVE: null}");
    change(&scratch, "said: ''}", "said: '', author: null}");
    change(&scratch, "  PAY: {by: [manager]}", "  APPROVE: {}");
    change(
        &scratch,
        "              PAY: free",
        "              APPROVE: {quorum: {count: 1, not_by: context.author}, agents: true}",
    );
    change(&scratch, "NOTE: {actions: [", "NOTE: {actions: [{assign: {author: '= by.id'}}, ");
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    assert_eq!(sent(&scratch), ["NOTE accepted", "APPROVE authority"], "{text}");
}

#[test]
fn an_imported_run_goes_on_after_the_recorded_calls() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Server::new(move |body| match count.fetch_add(1, Ordering::SeqCst) {
        0 => {
            // The second call sends nothing.
            let word = json!({"word": "fox"});
            reply("openai", &[("NOTE", json!({"answer": "a fox"})), ("HACK", json!({})), ("look_up", word)])
        }
        1 => {
            std::thread::sleep(Duration::from_secs(60));
            (500, json!({}))
        }
        n => {
            assert!(body.contains("These tools were called for you before") && !body.contains("HACK"), "{body}");
            forgetful("openai", body, n)
        }
    });
    let scratch = clerk("rounds-imported", "openai", &server, 5);
    kill_in_second_round(&scratch, &asked);
    let (output, text) = charter(&scratch, "export r --output r.jsonl", None);
    assert!(output.status.success(), "{text}");
    std::fs::remove_file(scratch.0.join("charter.db")).unwrap();
    for args in ["import r.jsonl --db other.db", "trust r --yes --charter c.yaml --db other.db --models m.toml"] {
        let (output, text) = charter(&scratch, args, None);
        assert!(output.status.success(), "{args}: {text}");
    }
    charter(&scratch, "run --resume r --db other.db --models m.toml", None);
    let (_, text) = charter(&scratch, "log r --db other.db --json", None);
    assert_eq!(text.matches(r#""kind":"agent""#).count(), 2, "{text}");
    let (_, text) = charter(&scratch, "show r --db other.db", None);
    assert!(text.contains("done"), "{text}");
}

#[test]
fn the_tokens_of_earlier_rounds_count_for_the_budget() {
    let server = Server::new(|body| {
        let (status, mut answer) = match body.contains("reading") {
            true => reply("openai", &[("answer", json!({"said": "done"}))]),
            false => reply("openai", &[("look_up", json!({"word": "fox"}))]),
        };
        answer["usage"] = json!({"prompt_tokens": 8_000, "completion_tokens": 10});
        (status, answer)
    });
    let scratch = clerk("rounds-budget", "openai", &server, 5);
    // What is left of it after the first round does not suffice for another question.
    change(&scratch, "rounds: 5", "rounds: 5\n    budget: {tokens: 8100}");
    kill_at_work(&scratch);
    let (output, text) = charter(&scratch, "run --resume r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("budget") && !text.contains("done"), "{text}");
    assert_eq!(server.times(), 1, "{text}");
}
