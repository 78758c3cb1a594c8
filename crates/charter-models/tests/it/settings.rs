//! Settings of an actor as the providers receive them, and other modes where a server refuses one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use charter_actors::{Executor as _, Fault, Folder};
use charter_kernel::definition::ActorDecl;
use charter_models::ask::{Budget, Question, ask};
use charter_models::{Effort, Exchange, HttpTransport, Model, Models, OutputMode, Settings, Watcher, codes};
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, Server, anthropic, gemini, openai, server};
use crate::wire::{GOOD, model, prompt, schema};

fn asked(provider: &str, server: &Server, settings: &Settings) -> (Result<Json, Fault>, Exchange) {
    let (prompt, schema, model) = (prompt(), schema(), model(provider, server));
    let budget = Budget { tokens: 100_000, time: Duration::from_secs(20) };
    let (schema, tools) = (Some(&schema), &[]);
    let question = Question { model: &model, prompt: &prompt, schema, settings, budget, tools, rounds: 0 };
    ask(&question, &HttpTransport::default(), &())
}

fn good(provider: &str) -> Act {
    match provider {
        "openai" => openai(GOOD),
        "anthropic" => anthropic(GOOD),
        _ => gemini(GOOD),
    }
}

/// Keeps what is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Watcher for Told {
    fn note(&self, sentence: &str) {
        self.0.lock().unwrap().push(sentence.to_owned());
    }
}

#[test]
fn thoughts_leave_half_of_the_limit_and_what_is_not_sent_is_told() {
    for (provider, effort, max_tokens, thoughts, told) in [
        ("gemini", Effort::High, 16_384, Some(8_192), None),
        ("gemini", Effort::Low, 500, Some(250), None),
        ("gemini", Effort::Low, 200, None, Some("at least 128 tokens")),
        ("anthropic", Effort::High, 16_384, Some(8_192), None),
        ("anthropic", Effort::Low, 1_500, None, Some("at least 1024 tokens")),
        ("openai", Effort::High, 500, None, None),
    ] {
        let server = server(vec![good(provider)]);
        let (prompt, schema, model, notes) = (prompt(), schema(), model(provider, &server), Told::default());
        let settings = &Settings { effort: Some(effort), max_tokens: Some(max_tokens), ..Settings::default() };
        let budget = Budget { tokens: 100_000, time: Duration::from_secs(20) };
        let (schema, tools) = (Some(&schema), &[]);
        let question = Question { model: &model, prompt: &prompt, schema, settings, budget, tools, rounds: 0 };
        ask(&question, &HttpTransport::default(), &notes).0.unwrap();
        let body = server.asked.lock().unwrap()[0].body.clone();
        let sent = match provider {
            "gemini" => body["generationConfig"]["thinkingConfig"]["thinkingBudget"].as_u64(),
            _ => body["thinking"]["budget_tokens"].as_u64(),
        };
        assert_eq!(sent, thoughts, "{provider}, {max_tokens}");
        let notes = notes.0.lock().unwrap();
        assert_eq!(notes.len(), usize::from(told.is_some()), "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(told.unwrap()) && note.contains("`effort`")), "{notes:?}");
    }
}

#[test]
fn a_mode_that_a_provider_does_not_have_is_told() {
    for (provider, mode, told) in [
        ("gemini", OutputMode::Tool, "with `outputMode: json_schema`, because it does not take `tool` here"),
        ("anthropic", OutputMode::JsonSchema, "with `outputMode: tool`, because it does not take `json_schema` here"),
    ] {
        let server = server(vec![good(provider)]);
        let (prompt, schema, model, notes) = (prompt(), schema(), model(provider, &server), Told::default());
        let settings = &Settings { mode: Some(mode), ..Settings::default() };
        let budget = Budget { tokens: 100_000, time: Duration::from_secs(20) };
        let (schema, tools) = (Some(&schema), &[]);
        let question = Question { model: &model, prompt: &prompt, schema, settings, budget, tools, rounds: 0 };
        ask(&question, &HttpTransport::default(), &notes).0.unwrap();
        assert_eq!(*notes.0.lock().unwrap(), [format!("`{provider}:m` is asked {told}")]);
    }
}

#[test]
fn settings_that_a_model_does_not_take_are_refused_before_it_is_asked() {
    let check = |model: &str, config: Json| {
        let mut config = config;
        config["prompt"] = json!("p.md");
        let folder = Folder::Texts(Arc::new([("p.md".to_owned(), "You judge.\n---\nWhat?".to_owned())].into()));
        let config = serde_json::from_value(config).unwrap();
        let decl = ActorDecl { kind: "model".into(), config, ..ActorDecl::default() };
        let models = Models::asking(Model::parse(model).unwrap(), HttpTransport::default());
        models.check("a", &decl, &folder).map_err(|e| e.to_string())
    };
    let effort = |most: u32| json!({"effort": "low", "maxTokens": most});
    for (model, config, error) in [
        ("anthropic:m", effort(2_048), None),
        ("openai:m", effort(500), None),
        ("gemini:m", effort(500), None),
        (
            "anthropic:m",
            effort(1_500),
            Some(
                "`maxTokens`: `anthropic:m` thinks with at least 1024 tokens, and with at most half of those of the answer, 1500; `effort` needs 2048: raise `maxTokens`, or remove `effort`",
            ),
        ),
        ("openai:m", json!({"temperature": 1.5}), None),
        ("anthropic:m", json!({"temperature": 1.5}), Some("`temperature`: `anthropic:m` takes 0 to 1, found `1.5`")),
    ] {
        assert_eq!(check(model, config).err().as_deref(), error);
    }
}

#[test]
fn each_provider_receives_the_settings() {
    let settings = Settings {
        max_tokens: Some(5_000),
        temperature: Some(0.5),
        effort: Some(Effort::Low),
        prompt_caching: true,
        ..Settings::default()
    };
    let body = |provider: &str, settings: &Settings| {
        let server = server(vec![good(provider)]);
        assert_eq!(asked(provider, &server, settings).0.unwrap()["sure"], 0.9);
        let asked = server.asked.lock().unwrap();
        asked[0].body.clone()
    };
    let sent = body("openai", &settings);
    assert_eq!(
        (&sent["max_tokens"], &sent["temperature"], &sent["reasoning_effort"]),
        (&json!(5_000), &json!(0.5), &json!("low"))
    );
    let sent = body("gemini", &settings);
    let config = &sent["generationConfig"];
    assert_eq!((&config["temperature"], &config["thinkingConfig"]["thinkingBudget"]), (&json!(0.5), &json!(1_024)));
    // With thoughts, Anthropic accepts neither a temperature nor a tool that must be used.
    let sent = body("anthropic", &settings);
    assert_eq!((&sent["max_tokens"], &sent["thinking"]["budget_tokens"]), (&json!(5_000), &json!(1_024)));
    assert_eq!((sent.get("temperature"), &sent["tool_choice"]), (None, &json!({"type": "auto"})));
    assert_eq!(sent["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    assert!(sent["system"][0]["text"].is_string(), "{sent}");
    let calm = body("anthropic", &Settings { effort: None, ..settings });
    assert_eq!((&calm["temperature"], &calm["tool_choice"]["type"]), (&json!(0.5), &json!("tool")));
    for provider in ["openai", "anthropic", "gemini"] {
        let plain = body(provider, &Settings::default()).to_string();
        assert!(!["temperature", "effort", "hinking", "cache"].iter().any(|word| plain.contains(word)), "{plain}");
    }
}

#[test]
fn a_refused_mode_is_replaced() {
    let refused =
        |what: &str| Act::Say(400, JSON, json!({"error": {"message": format!("{what} is not supported")}}).to_string());
    let modes = |server: &Server| -> Vec<String> {
        let asked = server.asked.lock().unwrap();
        asked.iter().map(|a| a.body["response_format"]["type"].as_str().unwrap_or("none").to_owned()).collect()
    };
    let server1 = server(vec![refused("response_format json_schema"), refused("response_format"), openai(GOOD)]);
    let (answer, exchange) = asked("openai", &server1, &Settings::default());
    assert_eq!((answer.unwrap()["sure"].as_f64(), exchange.requests), (Some(0.9), 3));
    assert_eq!(modes(&server1), ["json_schema", "json_object", "none"]);
    let systems: Vec<bool> = server1
        .asked
        .lock()
        .unwrap()
        .iter()
        .map(|a| a.body["messages"][0].to_string().contains("JSON Schema of your answer"))
        .collect();
    assert_eq!(systems, [false, true, true]);

    let tool = Settings { mode: Some(OutputMode::Tool), ..Settings::default() };
    let server2 = server(vec![refused("tool_choice"), openai(GOOD)]);
    assert!(asked("openai", &server2, &tool).0.is_ok());
    assert_eq!(server2.asked.lock().unwrap()[0].body["tools"][0]["function"]["name"], "answer");
    assert_eq!(modes(&server2), ["none", "json_object"]);

    let server3 = server(vec![
        refused("tools"),
        Act::Say(
            200,
            JSON,
            json!({"content": [{"type": "text", "text": GOOD}], "stop_reason": "end_turn"}).to_string(),
        ),
    ]);
    assert!(asked("anthropic", &server3, &Settings::default()).0.is_ok());
    assert_eq!(server3.asked.lock().unwrap()[1].body.get("tools"), None);

    // Another reason is none to try another mode, and the last mode has no other.
    let server4 = server(vec![refused("model m")]);
    assert_eq!(asked("openai", &server4, &Settings::default()).1.requests, 1);
    let server5 = server(vec![refused("response_format")]);
    let (answer, exchange) = asked("openai", &server5, &Settings::default());
    assert_eq!((answer.unwrap_err().code.as_str(), exchange.requests), (codes::REQUEST, 3));
}

/// Gateways that know other parameters.
#[test]
fn a_parameter_that_a_server_does_not_take_is_changed() {
    let refused = |message: &str| Act::Say(400, JSON, json!({"error": {"message": message}}).to_string());
    let server1 = server(vec![
        refused(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        refused("Unrecognized request argument supplied: stream_options"),
        openai(GOOD),
    ]);
    let (answer, exchange) = asked("openai", &server1, &Settings::default());
    assert_eq!((answer.unwrap()["sure"].clone(), exchange.requests), (json!(0.9), 3));
    let bodies: Vec<Json> = server1.asked.lock().unwrap().iter().map(|asked| asked.body.clone()).collect();
    assert!(bodies[1]["max_completion_tokens"].is_u64() && bodies[1].get("max_tokens").is_none());
    assert!(bodies[1]["stream_options"].is_object() && bodies[2].get("stream_options").is_none());
    // What is wrong with the value, or refused again, is not tried again.
    for (message, requests) in [
        ("max_tokens is too large: 16384", 1),
        ("max_tokens and max_completion_tokens are not supported", 2),
        ("stream_options is not supported", 2),
    ] {
        let (answer, exchange) = asked("openai", &server(vec![refused(message)]), &Settings::default());
        assert_eq!((answer.unwrap_err().code.as_str(), exchange.requests), (codes::REQUEST, requests), "{message}");
    }
}
