//! `--models FILE`: actors that name models of several providers, with local servers that speak
//! their wire formats.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::Scratch;
use serde_json::{Value as Json, json};

/// The key of the second provider.
const KEY: &str = "sk-far-0123456789";

/// What a server says: status and body, for the text of a request.
type Say = dyn Fn(&str) -> (u16, Json) + Send + Sync;

pub(crate) struct Server {
    pub(crate) url: String,
    /// The heads of the requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn new(say: impl Fn(&str) -> (u16, Json) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, say): (_, Arc<Say>) = (asked.clone(), Arc::new(say));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, say) = (kept.clone(), say.clone());
                std::thread::spawn(move || drop(serve(stream.unwrap(), &kept, say.as_ref())));
            }
        });
        Server { url, asked }
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<String>>, say: &Say) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut head) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some((_, value)) = line.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case("content-length")) {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    asked.lock().unwrap().push(head);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, answer) = say(&String::from_utf8(body).unwrap());
    // A server that limits the rate wants to be left alone for an hour.
    let retry = if status == 429 { "retry-after: 3600\r\n" } else { "" };
    let answer = answer.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

/// An answer as Anthropic gives it.
pub(crate) fn anthropic(answer: &Json) -> (u16, Json) {
    let content = json!([{"type": "tool_use", "id": "t", "name": "answer", "input": answer}]);
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    (200, json!({"model": "far-1", "content": content, "stop_reason": "tool_use", "usage": usage}))
}

/// An answer as servers like OpenAI's give it.
fn openai(answer: &Json) -> (u16, Json) {
    let choice = json!({"message": {"content": answer.to_string()}, "finish_reason": "stop"});
    (200, json!({"model": "near-1", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}))
}

pub(crate) fn busy(_: &str) -> (u16, Json) {
    (429, json!({"error": {"message": "slow down"}}))
}

pub(crate) fn charter(scratch: &Scratch, args: &str, key: Option<&str>) -> (Output, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
    command.current_dir(&scratch.0).args(args.split_whitespace()).stdin(Stdio::null());
    for name in
        ["CHARTER_MODEL", "CHARTER_MODEL_URL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "FAR_KEY"]
    {
        command.env_remove(name);
    }
    command.envs(key.map(|key| ("FAR_KEY", key)));
    let output = command.output().unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output, String::from_utf8(text).unwrap())
}

/// A folder with a charter whose actor asks `near:a`, then `far:b`, and the file of providers.
fn asking(name: &str, near: &str, far: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.file(
        "c.yaml",
        "\
charter: 1
id: asks
context: {n: 0}
actors:
  ask:
    kind: model
    prompt: p.md
    model: near:a
    fallback: ['far:b']
    output: {type: object, required: [n], properties: {n: {type: integer}}}
    timeout: 30s
    retry: {attempts: 1}
states:
  asking:
    invoke:
      src: ask
      onDone: {target: done, actions: {assign: {n: '= event.output.n'}}}
      onError: failed
  done: {type: final}
  failed: {type: final, tags: [failed]}
",
    );
    scratch.file("p.md", "You count.\n---\nHow many?");
    scratch.file(
        "m.toml",
        format!(
            "\
[providers.near]
kind = \"openai\"
address = \"{near}\"
concurrent = 2
[providers.far]
kind = \"anthropic\"
address = \"{far}\"
key = \"FAR_KEY\"
headers = {{x-team = \"counters\"}}
"
        ),
    );
    scratch
}

/// The records, without times and what depends on them.
fn records(scratch: &Scratch, db: &str) -> Vec<Json> {
    let (output, log) = charter(scratch, &format!("log r --json --db {db}"), None);
    assert!(output.status.success(), "{log}");
    let stripped = log.lines().map(|line| {
        let mut record: Json = serde_json::from_str(line).unwrap();
        for key in ["at", "hash", "prev", "snapshot", "timers"] {
            record.as_object_mut().unwrap().remove(key);
        }
        record
    });
    stripped.collect()
}

#[test]
fn a_fallback_answers_and_a_cassette_repeats_it_without_a_call() {
    let (near, far) = (Server::new(busy), Server::new(|_| anthropic(&json!({"n": 7}))));
    let scratch = asking("fallback", &near.url, &far.url);
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml --record-models said.jsonl", Some(KEY));
    assert!(output.status.success() && text.contains("r: done in done"), "{text}");
    assert!(text.contains("asking `far:b` instead"), "{text}");
    assert_eq!((near.times(), far.times()), (1, 1));
    let head = far.asked.lock().unwrap()[0].to_lowercase();
    assert!(head.contains(&format!("x-api-key: {KEY}")) && head.contains("x-team: counters"), "{head}");
    assert!(!near.asked.lock().unwrap()[0].contains(KEY), "each key goes to its own provider");

    // The cassette needs neither a key nor a server.
    let replay = "run c.yaml --run r --models m.toml --replay-models said.jsonl --db again.db";
    let (output, text) = charter(&scratch, replay, None);
    assert!(output.status.success() && text.contains("r: done in done"), "{text}");
    assert_eq!((near.times(), far.times()), (1, 1));
    assert_eq!(records(&scratch, "charter.db"), records(&scratch, "again.db"));
    for db in ["charter.db", "again.db"] {
        let (output, text) = charter(&scratch, &format!("verify {db}"), None);
        assert!(output.status.success(), "{text}");
    }
    for file in std::fs::read_dir(&scratch.0).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes()));
    }
}

#[test]
fn a_replay_asks_the_default_of_the_file_for_actors_that_name_no_model() {
    let (near, far) = (Server::new(busy), Server::new(|_| anthropic(&json!({"n": 7}))));
    let scratch = asking("default", &near.url, &far.url);
    let path = scratch.0.join("c.yaml");
    let charter_text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, charter_text.replace("    model: near:a\n    fallback: ['far:b']\n", "")).unwrap();
    let path = scratch.0.join("m.toml");
    let with = |default: &str| format!("default = \"{default}\"\n");
    let providers = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, with("far:b") + &providers).unwrap();
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml --record-models said.jsonl", Some(KEY));
    assert!(output.status.success() && text.contains("r: done in done"), "{text}");
    assert_eq!((near.times(), far.times()), (0, 1));

    let replay = "run c.yaml --run r --models m.toml --replay-models said.jsonl --db";
    let (output, text) = charter(&scratch, &format!("{replay} again.db"), None);
    assert!(output.status.success() && text.contains("r: done in done"), "{text}");
    assert_eq!((near.times(), far.times()), (0, 1));
    assert_eq!(records(&scratch, "charter.db"), records(&scratch, "again.db"));

    // The default of a changed file is refused as it is without a cassette.
    std::fs::write(&path, with("gone:b") + &providers).unwrap();
    let (output, text) = charter(&scratch, &format!("{replay} other.db"), None);
    assert!(!output.status.success() && text.contains("unknown provider `gone`"), "{text}");
}

#[test]
fn a_cassette_is_completed_and_a_changed_line_is_refused() {
    let (near, far) = (Server::new(busy), Server::new(|_| anthropic(&json!({"n": 7}))));
    let scratch = asking("missing", &near.url, &far.url);
    let run = |run: &str| {
        let line = format!("run c.yaml --run {run} --models m.toml --record-missing said.jsonl --db {run}.db");
        charter(&scratch, &line, Some(KEY))
    };
    // Nothing is there yet; then nothing is asked again; then only what is new.
    for (name, asked) in [("a", 1), ("b", 1)] {
        let (output, text) = run(name);
        assert!(output.status.success(), "{text}");
        assert_eq!((near.times(), far.times()), (asked, asked), "{name}");
    }
    let usage = |run: &str| charter(&scratch, &format!("show {run} --db {run}.db"), None).1.contains("tokens read");
    assert_eq!((usage("a"), usage("b")), (true, false), "what a cassette answers costs nothing");
    let path = scratch.0.join("said.jsonl");
    let before = std::fs::read_to_string(&path).unwrap();
    // The line of a recording that was killed.
    std::fs::write(&path, format!("{before}{{\"request\": ")).unwrap();
    scratch.file("p.md", "You count.\n---\nHow many now?");
    assert!(run("c").0.status.success());
    assert_eq!((near.times(), far.times()), (2, 2));
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&before) && now.lines().count() == 4, "{now}");
    let replay = |run: &str| {
        charter(&scratch, &format!("run c.yaml --models m.toml --replay-models said.jsonl --db {run}.db"), None)
    };
    assert!(replay("d").0.status.success());
    let lines: Vec<&str> = now.lines().collect();
    let unmarked: Vec<String> = lines
        .iter()
        .map(|line| {
            let mut line: Json = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("mark");
            line.to_string()
        })
        .collect();
    for (wrong, part) in [
        (now.replacen("\\\"n\\\":7", "\\\"n\\\":8", 1), "line 2 of the cassette"),
        ([lines[0], lines[2], lines[3]].join("\n"), "line 2 of the cassette"),
        (lines[1..].join("\n"), "line 1 of the cassette"),
        ([lines[0], &unmarked[1]].join("\n"), "it has no `mark`"),
        ([&unmarked[0], lines[1]].join("\n"), "the lines before it have none"),
    ] {
        std::fs::write(&path, wrong + "\n").unwrap();
        let (output, text) = replay("e");
        assert_eq!(output.status.code(), Some(2), "{part}: {text}");
        assert!(text.contains(part), "{part}: {text}");
    }
    std::fs::write(&path, unmarked.join("\n") + "\n").unwrap();
    assert!(replay("f").0.status.success());
}

#[test]
fn a_provider_that_cannot_be_used_is_refused_before_the_run() {
    let (near, far) = (Server::new(busy), Server::new(busy));
    let scratch = asking("unusable", &near.url, &far.url);
    let refused = |args: &str, parts: &[&str]| {
        let (output, text) = charter(&scratch, &format!("run c.yaml --run r {args}"), None);
        assert!(!output.status.success(), "{text}");
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    refused("--models m.toml", &["the provider `far` cannot be used: the variable FAR_KEY with its key is not set"]);
    refused("--models m.toml --model far:b", &["`--model`", "`far` cannot be used: the variable FAR_KEY"]);
    refused("--models m.toml --model nowhere:b", &["`--model`: unknown provider `nowhere`"]);
    refused("--models m.toml --model b", &["`--model`: invalid model `b`: expected `PROVIDER:NAME`"]);
    refused("--models m.toml --model offline", &["the actor has no `offline` rules"]);
    refused("--models no.toml", &["cannot read `no.toml`"]);
    for (file, parts) in [
        ("[providers.a]\nkind = \"opena\"\n", ["bad.toml:2:8", "unknown variant `opena`, expected one of `openai`"]),
        ("[providers.a]\nkind = \"azure\"\n", ["provider `a`: missing `address`", "openai.azure.com/openai/v1"]),
        ("[providers.a]\nkind = \"openai\"\nkeys = \"K\"\n", ["unknown key `keys`", "did you mean `key`?"]),
        (
            "[providers.a]\nkind = \"openai\"\naddress = \"http://models.example/v1\"\n",
            ["provider `a`", "not encrypted"],
        ),
        (
            "[providers.a]\nkind = \"openai\"\nconcurrent = 0\n",
            ["provider `a`", "`concurrent` must be a number from 1"],
        ),
        ("[providers.a]\nkind = \"openai\"\nheaders = {Authorization = \"x\"}\n", ["provider `a`", "keys are set"]),
        ("default = \"b:x\"\n[providers.a]\nkind = \"openai\"\n", ["`default`", "unknown provider `b`"]),
        ("[providers.'a b']\nkind = \"openai\"\n", ["provider `a b`", "its name may have letters"]),
        ("[providers.a]\nkind = \"openai\"\n", ["this host has no provider `near`; it has `a`", "ask"]),
    ] {
        scratch.file("bad.toml", file);
        refused("--models bad.toml", &parts);
    }
    assert_eq!((near.times(), far.times()), (0, 0));
    assert!(!scratch.0.join("charter.db").exists() || charter(&scratch, "runs", None).1.contains("no runs"));
}

#[test]
fn a_model_of_the_file_answers_for_actors_that_name_none() {
    let (near, far) = (Server::new(|_| openai(&json!({"n": 5}))), Server::new(|_| anthropic(&json!({"n": 7}))));
    let scratch = asking("both", &near.url, &far.url);
    let path = scratch.0.join("c.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    scratch.file("d.yaml", text.replace("    model: near:a\n    fallback: ['far:b']\n", ""));
    let path = scratch.0.join("m.toml");
    let providers = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("default = \"near:a\"\n{providers}")).unwrap();
    let models = "--models m.toml --model far:b";
    for (file, run, wanted) in [("c.yaml", "c", "models: near:a"), ("d.yaml", "d", "models: far:b")] {
        let line = format!("run {file} --run {run} {models} --record-models {run}.jsonl");
        let (output, text) = charter(&scratch, &line, Some(KEY));
        assert!(output.status.success() && text.contains(wanted), "{text}");
        let line = format!("run {file} --run {run} {models} --replay-models {run}.jsonl --db again.db");
        let (output, text) = charter(&scratch, &line, None);
        assert!(output.status.success() && text.contains("(from "), "{text}");
        assert_eq!((near.times(), far.times()), if run == "c" { (1, 0) } else { (1, 1) });
    }
    let begun = |db: &str| charter(&scratch, &format!("log d --json --db {db}"), None).1;
    assert!(begun("charter.db").contains("far:b at "), "{}", begun("charter.db"));
    let stripped = |db: &str| begun(db).lines().next().map(|line| line.split("\"manifest\"").last().unwrap().len());
    assert_eq!(stripped("charter.db"), stripped("again.db"));
    let (_, text) = charter(&scratch, "run d.yaml --replay-models d.jsonl --model far:b", None);
    assert!(text.contains("`--model` has no effect with `--replay-models`"), "{text}");
}

#[test]
fn rules_that_answer_for_a_named_model_say_so_unless_they_were_chosen() {
    let (near, far) = (Server::new(busy), Server::new(busy));
    let scratch = asking("unasked", &near.url, &far.url);
    let path = scratch.0.join("c.yaml");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("    prompt: p.md\n", "    prompt: p.md\n    offline: {n: 1}\n");
    std::fs::write(&path, &text).unwrap();
    scratch.file("d.yaml", text.replace("model: near:a", "provider: openai\n    model: m"));
    scratch.file("e.yaml", text.replace("    model: near:a\n", ""));
    let told = |args: &str| charter(&scratch, &format!("run {args}"), None).1;
    let near = told("c.yaml");
    let wanted = "offline rules answer for `ask`, although the charter asks for `near:a`: pass `--models FILE` with the provider `near`";
    assert!(near.contains(wanted) && near.contains("offline: no model is called"), "{near}");
    let detached = told("c.yaml --detach --db detached.db");
    assert!(detached.contains(wanted), "{detached}");
    let openai = told("d.yaml");
    assert!(openai.contains("although the charter asks for `openai:m`: set OPENAI_API_KEY"), "{openai}");
    for args in ["c.yaml --model offline", "e.yaml"] {
        let text = told(args);
        assert!(text.contains("offline: no model is called") && !text.contains("although"), "{text}");
    }
}

#[test]
fn a_key_that_an_input_quotes_is_neither_in_a_cassette_nor_in_an_exchange() {
    let (near, far) = (Server::new(busy), Server::new(|_| anthropic(&json!({"n": 7}))));
    let scratch = asking("quoted", &near.url, &far.url);
    let path = scratch.0.join("c.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("src: ask\n", &format!("src: ask\n      input: {{q: 'my key is {KEY}, is it?'}}\n"));
    std::fs::write(&path, text).unwrap();
    scratch.file("p.md", "You count.\n---\n{{q}}");
    let run = "run c.yaml --run r --models m.toml";
    let (output, text) = charter(&scratch, &format!("{run} --record-models said.jsonl"), Some(KEY));
    assert!(output.status.success(), "{text}");
    let said = std::fs::read_to_string(scratch.0.join("said.jsonl")).unwrap();
    assert!(!said.contains(KEY) && said.matches("my key is [secret], is it?").count() == 2, "{said}");
    let query = "SELECT CAST(b.data AS TEXT) FROM usage u JOIN blobs b ON b.digest = u.exchange";
    let exchanges = crate::usage::sql(&scratch, query);
    assert!(!exchanges.contains(KEY) && exchanges.contains("my key is [secret]"), "{exchanges}");
    for (db, key) in [("with.db", Some(KEY)), ("without.db", None)] {
        let (output, text) = charter(&scratch, &format!("{run} --replay-models said.jsonl --db {db}"), key);
        assert!(output.status.success(), "{text}");
        assert_eq!(records(&scratch, "charter.db"), records(&scratch, db));
    }
    assert_eq!((near.times(), far.times()), (1, 1));
}
