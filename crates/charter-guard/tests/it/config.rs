//! Hooks in the configuration of the clients.

use charter_guard::client::Client;
use charter_guard::config::{MARK, Setup, commands, read, uninstall, unread, with_server, without_server};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn setup(client: Client, stop: bool) -> Setup {
    Setup { client, command: format!("charter hook coder --client {client} --db '/a b/charter.db'"), stop }
}

/// With comments it would be another language.
const JSON: [Client; 6] =
    [Client::Claude, Client::Codex, Client::Gemini, Client::Copilot, Client::Cursor, Client::Goose];

#[test]
fn a_new_configuration_calls_the_hook_and_is_removed_as_a_whole() {
    for client in Client::ALL {
        let setup = setup(client, true);
        let text = setup.install(None).unwrap();
        assert_eq!(setup.install(Some(&text)).unwrap(), text, "{client}: idempotent");
        assert_eq!(commands(client, &text), [format!("{} || {{ echo '{MARK}' >&2; exit 2; }}", setup.command)]);
        assert_eq!(uninstall(client, &text).unwrap(), None, "{client}");
    }
    let claude: Json = serde_json::from_str(&setup(Client::Claude, false).install(None).unwrap()).unwrap();
    let hook = &claude["hooks"]["PreToolUse"][0];
    assert_eq!((&hook["matcher"], &hook["hooks"][0]["type"]), (&json!("*"), &json!("command")));
    assert_eq!((&hook["hooks"][0]["timeout"], &hook["hooks"][0]["onFailure"]), (&json!(30), &json!("block")));
    assert!(claude["hooks"].get("Stop").is_none());
    let gemini: Json = serde_json::from_str(&setup(Client::Gemini, false).install(None).unwrap()).unwrap();
    assert_eq!(gemini["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"], 30_000, "in milliseconds");
    let cursor: Json = serde_json::from_str(&setup(Client::Cursor, false).install(None).unwrap()).unwrap();
    assert_eq!(cursor["hooks"]["preToolUse"][0]["failClosed"], true);
}

/// `UPDATE_CLIENTS=1` writes it.
#[test]
fn the_plugin_for_claude_code_has_the_same_hook() {
    let command =
        "charter hook \"${CHARTER_RUN:-coder}\" --client claude --db \"${CHARTER_DB:-$CLAUDE_PROJECT_DIR/charter.db}\"";
    let text = Setup { client: Client::Claude, command: command.into(), stop: false }.alone();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/claude-code/hooks/hooks.json");
    if std::env::var_os("UPDATE_CLIENTS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}

#[test]
fn nothing_else_is_lost_and_everything_is_as_before_after_the_removal() {
    let existing = [
        "{}",
        "{\n}\n",
        "{\"b\":1,\"a\":[1,2]}",
        "{\n\t\"z\": 1e2,\n\t\"permissions\": {\n\t\t\"allow\": [\"Bash(ls:*)\"]\n\t},\n\t\"a\": \"\\u00e9\"\n}\n",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}]}, "x": {}}"#,
        "{\n  \"hooks\": {\n    \"SessionStart\": [],\n    \"PostToolUse\": [\n      {\"hooks\": []}\n    ]\n  }\n}",
    ];
    for (client, text) in JSON.into_iter().flat_map(|client| existing.map(|text| (client, text))) {
        let setup = setup(client, true);
        let installed = setup.install(Some(text)).unwrap();
        let (old, new): (Json, Json) = (serde_json::from_str(text).unwrap(), serde_json::from_str(&installed).unwrap());
        for (key, value) in old.as_object().unwrap().iter().filter(|(key, _)| *key != "hooks") {
            assert_eq!(new[key], *value, "{client} {installed}");
        }
        for (event, entries) in old.get("hooks").and_then(Json::as_object).into_iter().flatten() {
            for entry in entries.as_array().unwrap() {
                assert!(new["hooks"][event].as_array().unwrap().contains(entry), "{client} {installed}");
            }
        }
        assert_eq!(commands(client, &installed).len(), 1);
        assert_eq!(setup.install(Some(&installed)).unwrap(), installed, "{client}");
        // Another command replaces it, and nothing else.
        let other = Setup { command: "charter hook other".into(), ..setup.clone() };
        let replaced = other.install(Some(&installed)).unwrap();
        assert_eq!(commands(client, &replaced).len(), 1, "{replaced}");
        assert!(commands(client, &replaced)[0].starts_with("charter hook other"));
        let version = matches!(client, Client::Copilot | Client::Cursor);
        let mut expected = old.clone();
        if version {
            expected["version"] = json!(1);
        }
        match uninstall(client, &installed).unwrap() {
            None => assert!(old.as_object().unwrap().is_empty(), "{client} {text}"),
            Some(after) if !version => assert_eq!(after, text, "{client}"),
            Some(after) => assert_eq!(serde_json::from_str::<Json>(&after).unwrap(), expected, "{client}"),
        }
    }
}

#[test]
fn what_cannot_be_changed_without_loss_is_not_changed() {
    let claude = setup(Client::Claude, false);
    for text in [
        "{\n  // mine\n  \"a\": 1\n}",
        "{\"a\": 1,}",
        "{\"a\": 1, \"a\": 2}",
        "[]",
        "{\"hooks\": []}",
        "{\"hooks\": {\"PreToolUse\": {}}}",
        "{",
    ] {
        let error = claude.install(Some(text)).unwrap_err().to_string();
        assert!(error.contains("not changed"), "{error}");
    }
    assert!(setup(Client::Opencode, false).install(Some("export default 1")).is_err());
    assert_eq!(uninstall(Client::Opencode, "export default 1").unwrap().as_deref(), Some("export default 1"));
}

#[test]
fn a_hook_counts_only_in_a_file_that_its_client_reads() {
    for client in JSON {
        let setup = setup(client, false);
        let text = setup.install(None).unwrap();
        let commented = text.replacen('{', "{ // mine \"\n /* } , */", 1);
        let comma = format!("{},\n}}", text.trim_end().strip_suffix('}').unwrap());
        for (other, is_read) in [(&commented, client == Client::Gemini), (&comma, false)] {
            assert_eq!(commands(client, other).len(), usize::from(is_read), "{client}: {other}");
            assert_eq!(unread(client, other).is_none(), is_read, "{client}: {other}");
            assert_eq!(setup.install(Some(other)).ok().as_ref(), is_read.then_some(other), "{client}");
            // What may be there is never said to be gone.
            assert!(uninstall(client, other).unwrap_err().to_string().contains(MARK), "{client}");
        }
        assert!(unread(client, &text).is_none() && unread(client, "{ // mine\n}").is_none(), "{client}");
        assert_eq!(uninstall(client, "{ // mine\n}").unwrap().as_deref(), Some("{ // mine\n}"), "{client}");
    }
}

#[test]
fn comments_are_read_as_comments_only() {
    for (text, value) in [
        ("{} // x", Some(json!({}))),
        ("// x\n{\"a\": 1 /* , \" */}", Some(json!({"a": 1}))),
        (r#"{"a": "// \" /* x", "b": "*/"}"#, Some(json!({"a": "// \" /* x", "b": "*/"}))),
        (r#"{"a": [",]", ",}",], }"#, Some(json!({"a": [",]", ",}"]}))),
        (r#"{"a\\": "//"}"#, Some(json!({"a\\": "//"}))),
        ("[1/**/2]", None),
        ("[1,,]", None),
        ("{/*}", None),
        ("{\"}", None),
        ("{} /", None),
        ("{\"a\": 1, // x\n \"a\": 2}", None),
    ] {
        assert_eq!(read(text), value, "{text}");
    }
}

#[test]
fn a_server_stays_in_a_file_with_comments() {
    let server = json!({"command": "charter", "args": ["mcp", "--run", "r"]});
    let text = format!("{{ // mine\n\"mcp\": {{\"charter\": {server},}},\n}}");
    assert_eq!(with_server(Client::Opencode, Some(&text), "mcp", "charter", &server).unwrap(), text);
    let other = with_server(Client::Opencode, Some("{ // mine\n}"), "mcp", "charter", &server).unwrap_err();
    assert!(other.to_string().contains("Add this yourself"), "{other}");
    let claude = with_server(Client::Claude, Some(&text), "mcp", "charter", &server).unwrap_err();
    assert!(claude.to_string().contains("make it plain JSON"), "{claude}");
    assert!(without_server(&text, "mcp", "charter").unwrap_err().to_string().contains("Remove `charter` from `mcp`"));
    assert_eq!(without_server("{ // x\n}", "mcp", "charter").unwrap().as_deref(), Some("{ // x\n}"));
}

#[test]
fn a_server_is_added_beside_others() {
    let server = json!({"command": "charter", "args": ["mcp"]});
    let text = with_server(
        Client::Claude,
        Some("{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}"),
        "mcpServers",
        "charter",
        &server,
    )
    .unwrap();
    let read: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(read["mcpServers"], json!({"x": {}, "charter": server}));
    assert_eq!(
        with_server(Client::Claude, Some(&text), "mcpServers", "charter", &server).unwrap(),
        text,
        "it stays as it is"
    );
    let other =
        with_server(Client::Claude, Some(&text), "mcpServers", "charter", &json!({"command": "other"})).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&other).unwrap(),
        json!({"mcpServers": {"x": {}, "charter": {"command": "other"}}})
    );
    assert!(with_server(Client::Claude, Some("{\"mcpServers\": 1}"), "mcpServers", "charter", &server).is_err());
    assert!(with_server(Client::Claude, None, "mcp", "charter", &server).unwrap().contains("\"mcp\""));
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        "[a-z\"\\\\{}\\[\\],:é]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-z\"]{0,3}", inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_configuration_survives(
        rest in prop::collection::btree_map("[a-gi-z\"]{0,3}", value(), 0..4),
        hooks in prop::option::of(prop::collection::btree_map(
            prop_oneof![Just("PreToolUse".to_owned()), "[a-z]{1,3}"], prop::collection::vec(value(), 0..3), 0..3)),
        pretty in any::<bool>(),
    ) {
        let mut whole: serde_json::Map<String, Json> = rest.into_iter().collect();
        if let Some(hooks) = hooks {
            whole.insert("hooks".into(), json!(hooks));
        }
        let whole = Json::Object(whole);
        let text = if pretty { format!("{whole:#}") } else { whole.to_string() };
        let setup = setup(Client::Claude, true);
        let installed = setup.install(Some(&text)).unwrap();
        let new: Json = serde_json::from_str(&installed).unwrap();
        for (key, value) in whole.as_object().unwrap().iter().filter(|(key, _)| *key != "hooks") {
            prop_assert_eq!(&new[key], value);
        }
        prop_assert_eq!(commands(Client::Claude, &installed).len(), 1);
        let after = uninstall(Client::Claude, &installed).unwrap().unwrap_or_else(|| "{}".into());
        let mut expected = whole.clone();
        // Lists that were empty are removed with ours.
        let tidy = |json: &mut Json| {
            if let Some(hooks) = json.get_mut("hooks").and_then(Json::as_object_mut) {
                hooks.retain(|_, entries| entries.as_array().is_none_or(|entries| !entries.is_empty()));
            }
            if json.get("hooks").and_then(Json::as_object).is_some_and(serde_json::Map::is_empty) {
                json.as_object_mut().unwrap().remove("hooks");
            }
        };
        let mut after: Json = serde_json::from_str(&after).unwrap();
        tidy(&mut expected);
        tidy(&mut after);
        prop_assert_eq!(after, expected);
    }
}
