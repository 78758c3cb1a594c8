//! What models took: the table `usage`, totals, prices and budgets, with local servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::providers::{Server, anthropic, busy, charter};
use crate::support::Scratch;
use serde_json::{Value as Json, json};

/// A charter whose actor `ask` makes `calls` calls at once, up to three times.
fn asking(name: &str, server: &Server, calls: usize, budget: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let list = vec!["{who: x}"; calls].join(", ");
    scratch.file(
        "c.yaml",
        format!(
            "\
charter: 1
id: asks
context: {{n: 0}}
actors:
  ask:
    kind: model
    prompt: p.md
    model: near:a
    calls: [{list}]
    output: {{type: array, items: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}}}}
    offline: {{n: 1}}
    timeout: 30s
    retry: {{attempts: 1}}
events:
  GO: {{}}
  END: {{}}
initial: waiting
states:
  waiting:
    on:
      GO: asking
      END: done
  asking:
    invoke:
      src: ask
      onDone: waiting
      onError: {{target: failed}}
  done: {{type: final}}
  failed: {{type: final, tags: [failed]}}
"
        ),
    );
    scratch.file("p.md", "You count.\n---\nHow many?");
    scratch.file(
        "m.toml",
        format!(
            "{budget}\n[providers.near]\nkind = \"openai\"\naddress = \"{}\"\n\
             [prices.\"near:a\"]\ninput = \"2.50\"\noutput = \"10\"\ncached = \"0.25\"\n",
            server.url
        ),
    );
    scratch
}

/// Answers, and reports 1,000 tokens read, 400 of them cached, and 100 written.
fn counting() -> Server {
    Server::new(|_| answer(100))
}

fn answer(written: u64) -> (u16, Json) {
    let choice = json!({"message": {"content": "{\"n\": 7}"}, "finish_reason": "stop"});
    let usage = json!({
        "prompt_tokens": 1000, "completion_tokens": written, "prompt_tokens_details": {"cached_tokens": 400},
    });
    (200, json!({"model": "a-2026", "choices": [choice], "usage": usage}))
}

fn go(scratch: &Scratch, run: &str) -> String {
    charter(scratch, &format!("send {run} GO --models m.toml"), None).1
}

pub(crate) fn sql(scratch: &Scratch, query: &str) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_charter"))
        .current_dir(&scratch.0)
        .args(["sql", "charter.db", query, "--json", "--arrays"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_models_took_is_counted_and_priced() {
    let server = counting();
    let scratch = asking("usage", &server, 2, "");
    let (_, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(text.contains("r"), "{text}");
    go(&scratch, "r");
    assert_eq!(server.times(), 2);
    // 600 * 2.50 + 400 * 0.25 + 100 * 10 dollars per million, twice.
    let rows = sql(
        &scratch,
        "SELECT run, actor, attempt, call, model, answered_as, input, output, cached, picodollars, outcome FROM usage ORDER BY call",
    );
    for call in [0, 1] {
        let row = format!(r#"["r","ask",1,{call},"near:a","a-2026",1000,100,400,2600000000,"answered"]"#);
        assert!(rows.contains(&row), "{rows}");
    }
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("models: 2 questions, 2,000 tokens read (800 cached), 200 written, $0.0052"), "{text}");
    let (_, text) = charter(&scratch, "runs", None);
    assert!(text.contains("TOKENS") && text.contains("2,200") && text.contains("$0.0052"), "{text}");
    let (_, text) = charter(&scratch, "show r --json", None);
    let shown: Json = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(shown["usage"]["picodollars"], 5_200_000_000u64, "{text}");
    let (output, text) = charter(&scratch, "verify charter.db", None);
    assert!(output.status.success(), "{text}");

    // Record 0 names the model.
    let begun = sql(&scratch, "SELECT json_extract(json, '$.manifest.models') FROM records WHERE seq = 0");
    assert!(begun.contains(r#"{\"ask\":[\"near:a at http://127.0.0.1:"#), "{begun}");

    // So does who is asked to trust the run in another journal.
    let (_, text) = charter(&scratch, "export r -o r.json", None);
    let (output, imported) = charter(&scratch, "import r.json --db other.db", None);
    assert!(output.status.success(), "{text} {imported}");
    let (_, text) = charter(&scratch, "trust r --show --db other.db", None);
    assert!(
        text.contains("models of \"ask\" when the run began (this host may ask others): [\"near:a at http"),
        "{text}"
    );

    // A user who goes on without the model is told so.
    let (_, text) = charter(&scratch, "run --resume r --yes", None);
    assert!(text.contains("until now, `near:a` at http://127.0.0.1:"), "{text}");
    assert!(text.contains("rules of the charter answer"), "{text}");

    // One that never asked began with another address, or with rules.
    charter(&scratch, "run c.yaml --run moved --models m.toml", None);
    charter(&scratch, "run c.yaml --run rules", None);
    let file = std::fs::read_to_string(scratch.0.join("m.toml")).unwrap();
    let moved = file.replace("http://127.0.0.1:", "http://localhost:");
    scratch.file("moved.toml", moved);
    let (_, text) = charter(&scratch, "run --resume moved --yes --models m.toml", None);
    assert!(!text.contains("another answerer"), "{text}");
    let (_, text) = charter(&scratch, "run --resume moved --yes --models moved.toml", None);
    assert!(text.contains("the run began with `near:a` at http://127.0.0.1:"), "{text}");
    assert!(text.contains("from now on, `near:a` at http://localhost:"), "{text}");
    let (_, text) = charter(&scratch, "run --resume rules --yes --models m.toml", None);
    assert!(text.contains("the run began with rules of the charter for `ask`; from now on, `near:a` at"), "{text}");

    // A deleted run takes its exchanges with it.
    let exchange = "SELECT count(*) FROM blobs WHERE instr(data, 'a-2026')";
    assert!(sql(&scratch, exchange).contains("[1]"), "{}", sql(&scratch, exchange));
    charter(&scratch, "send r END", None);
    let (output, text) = charter(&scratch, "delete r --yes --reason test", None);
    assert!(output.status.success(), "{text}");
    assert!(sql(&scratch, exchange).contains("[0]"), "{}", sql(&scratch, exchange));
    assert!(sql(&scratch, "SELECT count(*) FROM usage").contains("[0]"));
}

#[test]
fn a_budget_ends_questions_before_they_are_sent() {
    for (budget, message) in [
        ("[budget.actor]\ntokens = 2300", "raise `budget.actor.tokens`"),
        ("[budget.run]\ntokens = 2300", "raise `budget.run.tokens`"),
        ("[budget.day]\nusd = \"0.0053\"", "raise `budget.day.usd`"),
    ] {
        let server = counting();
        let scratch = asking("budget", &server, 1, budget);
        charter(&scratch, "run c.yaml --run r --models m.toml", None);
        // The first two are paid for; the third would exceed the budget, whichever process asks.
        let texts = [go(&scratch, "r"), go(&scratch, "r"), go(&scratch, "r")];
        assert_eq!(server.times(), 2, "{budget}: {texts:?}");
        let (_, text) = charter(&scratch, "log r --json", None);
        assert!(text.contains("the budget is used up") && text.contains(message), "{budget}: {text}");
        // Another run has a budget of its own, but the same day.
        charter(&scratch, "run c.yaml --run s --models m.toml", None);
        go(&scratch, "s");
        assert_eq!(server.times(), if budget.contains("day") { 2 } else { 3 }, "{budget}");
    }
}

#[test]
fn questions_at_once_share_a_budget() {
    // Writes as many tokens as it is allowed to.
    let granted = Arc::new(AtomicU64::new(0));
    let sum = granted.clone();
    let server = Server::new(move |body| {
        let asked: Json = serde_json::from_str(body).unwrap();
        let limit = asked.get("max_completion_tokens").or(asked.get("max_tokens")).unwrap().as_u64().unwrap();
        sum.fetch_add(limit, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(200));
        answer(limit)
    });
    let scratch = asking("at-once", &server, 4, "[budget.run]\nusd = \"0.05\"");
    charter(&scratch, "run c.yaml --run r --models m.toml", None);
    go(&scratch, "r");
    // 0.05 dollars are 5,000 written tokens.
    let granted = granted.load(Ordering::SeqCst);
    assert!((1..=5_000).contains(&granted), "{granted} tokens were granted");
}

#[test]
fn money_needs_prices() {
    let server = counting();
    let scratch = asking("unpriced", &server, 1, "");
    let providers = format!("[providers.near]\nkind = \"openai\"\naddress = \"{}\"\n", server.url);
    let near = "[prices.\"near:a\"]\ninput = \"1\"\noutput = \"1\"\n";
    let with_fallback = std::fs::read_to_string(scratch.0.join("c.yaml")).unwrap();
    scratch.file("d.yaml", with_fallback.replace("    model: near:a\n", "    model: near:a\n    fallback: [near:b]\n"));
    for (file, prices, lacking) in [("c.yaml", "", "near:a"), ("d.yaml", near, "near:b")] {
        scratch.file("m.toml", format!("[budget.run]\nusd = \"1\"\n{providers}{prices}"));
        let (output, text) = charter(&scratch, &format!("run {file} --run r --models m.toml"), None);
        let wanted = format!(
            "actor `ask`: `budget.run.usd` is set, and the price of `{lacking}` is unknown: add `[prices.\"{lacking}\"]`"
        );
        assert!(!output.status.success() && text.contains(&wanted), "{text}");
        assert!(!scratch.0.join("charter.db").exists(), "nothing has begun");
    }
    // A server says what it does not serve, before it finds that its address is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    scratch.file("d.toml", format!("default = \"near:a\"\n[budget.day]\nusd = \"1\"\n{providers}"));
    let line = format!("serve --db s.db --models d.toml --listen {}", taken.local_addr().unwrap());
    let (_, text) = charter(&scratch, &line, None);
    assert!(text.contains("`budget.day.usd` is set, and the price of `near:a` is unknown"), "{text}");
    assert!(text.contains("`fred` is not served; the others are") && text.contains("in use"), "{text}");
    // A run that has begun with other options.
    charter(&scratch, "run c.yaml --run r --model offline", None);
    scratch.file("m.toml", format!("[budget.run]\nusd = \"1\"\n{providers}"));
    go(&scratch, "r");
    let (_, text) = charter(&scratch, "log r --json", None);
    assert!(text.contains("the price of `near:a` is unknown"), "{text}");
    assert_eq!(server.times(), 0);
    for (file, parts) in [
        ("[budget.run]\nusd = 1.5\n", vec!["bad.toml:2"]),
        ("[budget.run]\nusd = \"1,5\"\n", vec!["`budget.run.usd`", "`1,5`", "2.50"]),
        ("[budget.runs]\nusd = \"1\"\n", vec!["unknown key `runs`", "did you mean `run`?"]),
        (
            "[providers.near]\nkind = \"openai\"\nzone = \"eu\"\n",
            vec![
                "unknown key `zone`",
                "the keys here are `kind`, `address`, `key`, `concurrent`, `per-minute`, `headers`",
            ],
        ),
        (
            "default = \"near:a\"\n[providers.near]\nkind = \"openai\"\n",
            vec!["the provider `near` cannot be used: the variable OPENAI_API_KEY with its key is not set"],
        ),
        ("[prices.\"near:a\"]\ninput = \"-1\"\noutput = \"1\"\n", vec!["the price of `near:a`", "`input`", "`-1`"]),
        ("[prices.near]\ninput = \"1\"\noutput = \"1\"\n", vec!["the price of `near`", "PROVIDER:NAME"]),
    ] {
        scratch.file("bad.toml", file);
        let (output, text) = charter(&scratch, "run c.yaml --run x --models bad.toml", None);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
    }
}

/// Makes a value that matches a schema: the largest number, the first choice, no optional parts.
fn example(schema: &Json, root: &Json) -> Json {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
        return example(root.pointer(pointer).unwrap(), root);
    }
    if let Some(first) = schema["enum"].get(0).or(schema.get("const")) {
        return first.clone();
    }
    if let Some(first) = schema["anyOf"].get(0) {
        return example(first, root);
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or("object");
    match kind {
        "array" => {
            let count = schema["minItems"].as_u64().unwrap_or(0);
            (0..count).map(|_| example(&schema["items"], root)).collect()
        }
        "string" => json!("text"),
        "boolean" => json!(false),
        "number" | "integer" => schema.get("maximum").cloned().unwrap_or(json!(1)),
        _ => {
            let required = schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap());
            required.map(|name| (name.to_owned(), example(&schema["properties"][name], root))).collect()
        }
    }
}

#[test]
fn fred_runs_on_two_providers_with_a_fallback_and_a_budget() {
    let near = Server::new(|body| {
        let asked: Json = serde_json::from_str(body).unwrap();
        if asked["model"] == "busy" {
            return busy(body);
        }
        let schema = &asked["response_format"]["json_schema"]["schema"];
        let choice = json!({"message": {"content": example(schema, schema).to_string()}, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 500, "completion_tokens": 50});
        (200, json!({"model": "small", "choices": [choice], "usage": usage}))
    });
    let far = Server::new(|body| {
        let asked: Json = serde_json::from_str(body).unwrap();
        let schema = &asked["tools"][0]["input_schema"];
        anthropic(&example(schema, schema))
    });
    let scratch = Scratch::new("fred-on-two");
    let fred = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/fred");
    let copied = std::process::Command::new("cp").args(["-r", fred]).arg(scratch.0.join("fred")).status().unwrap();
    assert!(copied.success());
    let path = scratch.0.join("fred/charter.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let named = text
        .replace("    prompt: prompts/synthesize.md\n", "    prompt: prompts/synthesize.md\n    model: far:large\n")
        .replace(
            "    prompt: prompts/decide.md\n",
            "    prompt: prompts/decide.md\n    model: near:busy\n    fallback: ['far:large']\n",
        );
    std::fs::write(&path, named).unwrap();
    let mut file = format!(
        "default = \"near:small\"\n[budget.run]\nusd = \"0.05\"\n\
         [providers.near]\nkind = \"openai\"\naddress = \"{}\"\n\
         [providers.far]\nkind = \"anthropic\"\naddress = \"{}\"\n",
        near.url, far.url
    );
    for model in ["near:small", "near:busy", "far:large"] {
        file.push_str(&format!("[prices.\"{model}\"]\ninput = \"0.50\"\noutput = \"2\"\n"));
    }
    scratch.file("m.toml", &file);
    let run = |run: &str| {
        let input = r#"{"userId":"u","message":"Should_we_raise_prices?"}"#;
        charter(&scratch, &format!("run fred --run {run} --input {input} --models m.toml --role founder --yes"), None)
    };
    let (output, text) = run("f");
    assert!(output.status.success(), "{text}");
    assert!(text.contains("asking `far:large` instead"), "{text}");
    let rows = sql(&scratch, "SELECT actor, model, outcome, count(*), sum(picodollars) FROM usage GROUP BY 1, 2, 3");
    // In dollars per million: 500 * 0.50 + 50 * 2 for each question to `near`, and
    // 100 * 0.50 + 10 * 2 to `far`.
    for row in [
        r#"["applyMentalModels","near:small","answered",4,1400000000]"#,
        r#"["decide","far:large","answered",1,70000000]"#,
        r#"["decide","near:busy","rate-limited",1,0]"#,
        r#"["synthesize","far:large","answered",1,70000000]"#,
        r#"["validateInput","near:small","answered",1,350000000]"#,
    ] {
        assert!(rows.contains(row), "{row}: {rows}");
    }
    let (_, text) = charter(&scratch, "show f", None);
    assert!(text.contains("$0.0"), "{text}");

    // A smaller budget ends the run's questions, and says how to go on.
    scratch.file("m.toml", file.replace("0.05", "0.001"));
    let asked = near.times() + far.times();
    let (_, text) = run("g");
    let (_, log) = charter(&scratch, "log g --json", None);
    assert!(log.contains("raise `budget.run.usd`"), "{log}\n{text}");
    assert!(near.times() + far.times() <= asked + 5);
    // The server counts more tokens read than the estimate: one question can exceed the budget.
    let spent = sql(&scratch, "SELECT sum(picodollars) BETWEEN 1 AND 1350000000 FROM usage WHERE run = 'g'");
    assert!(spent.contains("[1]"), "{spent}");
}

#[test]
fn commands_go_on_with_the_same_models_or_say_that_they_do_not() {
    let server = Server::new(|_| {
        let choice = json!({"message": {"content": json!({"said": "model"}).to_string()}, "finish_reason": "stop"});
        (200, json!({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}))
    });
    let scratch = Scratch::new("same-models");
    scratch.file(
        "c.yaml",
        "\
charter: 1
id: c
roles: {boss: {}}
events: {GO: {by: boss}}
actors:
  ask: {kind: model, prompt: p.md, model: 'near:a', offline: {said: rules}, output: {type: object, required: [said]}, timeout: 9s}
  free: {kind: model, prompt: p.md, offline: {said: rules}, output: {type: object, required: [said]}, timeout: 9s}
context: {said: ''}
initial: idle
states:
  idle: {on: {GO: asking}}
  asking: {invoke: {src: ask, onDone: {target: done, actions: {assign: {said: '= event.output.said'}}}, onError: done}}
  done: {invoke: {src: free, onDone: over, onError: over}}
  over: {type: final}
",
    );
    scratch.file("p.md", "You say.\n---\nWhat?");
    scratch.file("m.toml", format!("[providers.near]\nkind = \"openai\"\naddress = \"{}\"\n", server.url));
    let (_, text) = charter(&scratch, "run c.yaml --run a --models m.toml", None);
    assert!(text.contains("models: near:a for ask; rules of the charter for free"), "{text}");
    let command = "charter send a GO --as me --role boss --models m.toml";
    assert!(text.contains(command), "{text}");
    let (_, text) = charter(&scratch, command.trim_start_matches("charter "), None);
    assert!(!text.contains("another answerer") && text.contains("over"), "{text}");

    charter(&scratch, "run c.yaml --run b --models m.toml", None);
    let (_, text) = charter(&scratch, "send b GO --as me --role boss", None);
    let said = "another answerer: the run began with `near:a` at http://127.0.0.1:";
    assert!(text.contains(said) && text.contains("from now on, rules of the charter answer"), "{text}");
    assert_eq!(text.matches("another answerer").count(), 1, "{text}");
}
