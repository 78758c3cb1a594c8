//! Processes that resume runs with another model than before, or with offline rules, say so.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::providers::Server;
use crate::support::processes::{Site, until};

const CHARTER: &str = "\
charter: 1
id: c
actors:
  ask: {kind: model, prompt: p.md, offline: {said: rules}, output: {type: object, required: [said]}, timeout: 60s}
initial: asking
states:
  asking: {invoke: {src: ask, onDone: done, onError: done}}
  done: {type: final}
";

/// An answer as servers like OpenAI's give it.
fn said() -> (u16, Json) {
    let choice = json!({"message": {"content": json!({"said": "model"}).to_string()}, "finish_reason": "stop"});
    (200, json!({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}))
}

/// A folder with runs that were killed before their model, `near:a`, had answered.
fn killed(name: &str, runs: usize) -> (Site, Server) {
    let slow = Server::new(|_| {
        std::thread::sleep(Duration::from_secs(60));
        said()
    });
    let other = Server::new(|_| said());
    let site = Site::new(name, &[("c.yaml", CHARTER.to_owned()), ("p.md", "You say.\n---\nWhat?".to_owned())]);
    let file = |host: &str, server: &Server| {
        format!("default = \"{host}:a\"\n[providers.{host}]\nkind = \"openai\"\naddress = \"{}\"\n", server.url)
    };
    site.0.file("near.toml", file("near", &slow));
    site.0.file("far.toml", file("far", &other));
    for run in 1..=runs {
        let mut process = site.start(&format!("run c.yaml --run r{run} --models near.toml"));
        until("question", || slow.times() == run);
        process.kill();
        process.end();
    }
    (site, other)
}

#[test]
fn a_run_left_to_a_process_with_offline_rules() {
    let (site, _) = killed("another-detached", 1);
    let (code, out, err) = site.any("run --resume r1 --detach --model offline");
    assert_eq!((code, out.as_str()), (0, "r1\n"), "{err}");
    let told = "another answerer: run r1: the run began with `near:a` at http://127.0.0.1:";
    assert!(err.contains(told) && err.contains("for `ask`; from now on, rules of the charter answer"), "{err}");
    assert_eq!(err.matches("another answerer").count(), 1, "{err}");
    site.wait_for_no_holder();

    // Nothing is left to tell.
    let (_, _, err) = site.any("run c.yaml --run new --detach --model offline");
    assert!(!err.contains("another answerer"), "{err}");
}

#[test]
fn a_run_left_to_a_process_that_has_other_models() {
    let (site, _) = killed("another-host", 2);
    let wait = "\
charter: 1
id: w
actors: {ask: {kind: exec, command: [sleep, '60']}}
initial: asking
states: {asking: {invoke: {src: ask}}}
";
    site.0.file("w.yaml", wait);
    let host = site.start("run w.yaml --run w --model offline");
    until("host", || site.holder() == host.0.as_ref().unwrap().id());
    for command in ["run --resume r1 --detach", "run --resume r2"] {
        let (_, _, err) = site.any(command);
        let told = "another answerer: the run began with `near:a` at http://127.0.0.1:";
        assert!(err.contains(told) && err.contains("from now on, rules of the charter answer"), "{err}");
        assert_eq!(err.matches("another answerer").count(), 1, "{err}");
    }
}

#[test]
fn a_server_names_the_runs_that_another_model_answers_for() {
    let (site, other) = killed("another-served", 12);
    let mut server = site.start("serve --listen 127.0.0.1:0 --models far.toml");
    let mut url = String::new();
    let out = server.0.as_mut().unwrap().stdout.take().unwrap();
    BufReader::new(out).read_line(&mut url).unwrap();
    until("answers", || other.times() == 12);
    server.kill();
    let (_, _, err) = server.end();
    let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("another answerer:")).collect();
    assert_eq!(lines.len(), 11, "{err}");
    assert!(lines[0].contains("run r12: the run began with `near:a` at ") && lines[0].contains("`far:a` at "), "{err}");
    assert!(lines[10].ends_with("and 2 more runs"), "{err}");
}
