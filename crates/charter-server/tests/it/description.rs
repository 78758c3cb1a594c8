//! The OpenAPI document says what there is.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::site::Site;

/// `(method, path)` of the routes, from the source of the router.
fn routes() -> BTreeSet<(String, String)> {
    let source = include_str!("../../src/http/mod.rs");
    let mut found = BTreeSet::new();
    for line in source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")) {
        let (path, handlers) = line.split_once('"').unwrap();
        for method in ["get", "post", "delete"] {
            // The files of the page do not belong to the API.
            if handlers.contains(&format!("{method}(")) && !path.starts_with("/page/") {
                found.insert((method.to_owned(), path.to_owned()));
            }
        }
    }
    found
}

fn references(json: &Json, found: &mut BTreeSet<String>) {
    match json {
        Json::Object(map) => {
            if let Some(Json::String(to)) = map.get("$ref")
                && let Some(name) = to.strip_prefix("#/components/schemas/")
            {
                found.insert(name.to_owned());
            }
            map.values().for_each(|value| references(value, found));
        }
        Json::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let site = Site::new();
    let document = site.get("/openapi.json", &[]).json();
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            described.insert((method.clone(), path.clone()));
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{method} {path}");
        }
    }
    assert_eq!(described, routes());
    let schemas: BTreeSet<String> = document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
    let mut used = BTreeSet::new();
    references(&document, &mut used);
    assert_eq!(used, schemas, "every schema is used, and every one that is used is there");
}

#[test]
fn events_of_the_charters_of_the_caller_are_described() {
    let site = Site::new();
    let ana = site.person("ana", &["payment/clerk"]);
    let eve = site.person("eve", &["omen/clerk"]);
    let one_run = site.person("oda", &["payment/p1/clerk"]);
    let document = ana.get("/openapi.json").json();
    let propose = &document["components"]["schemas"]["payment.PROPOSE"];
    assert_eq!(propose["properties"]["type"]["const"], "PROPOSE");
    assert_eq!(propose["properties"]["data"]["properties"]["amount"], json!({"type": "integer", "minimum": 1}));
    assert_eq!(propose["required"], json!(["type", "data"]));
    assert_eq!(document["components"]["schemas"]["payment.NOTE"]["required"], json!(["type"]));
    let all = document["components"]["schemas"]["Event"]["anyOf"].as_array().unwrap();
    assert!(all.contains(&json!({"$ref": "#/components/schemas/payment.PROPOSE"})));
    assert!(one_run.get("/openapi.json").body.contains("payment.PROPOSE"), "a role in one run is enough");
    assert!(!eve.get("/openapi.json").body.contains("PROPOSE"));
    assert!(!site.get("/openapi.json", &[]).body.contains("PROPOSE"));
}

#[test]
fn answers_are_what_is_described() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk", "admin"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 5}}));
    let document = ana.get("/openapi.json").json();
    for (path, called) in [
        ("/v1/runs", "/v1/runs"),
        ("/v1/runs/{run}", "/v1/runs/p1"),
        ("/v1/runs/{run}/at/{seq}", "/v1/runs/p1/at/0"),
        ("/v1/runs/{run}/records", "/v1/runs/p1/records"),
        ("/v1/runs/{run}/legal", "/v1/runs/p1/legal"),
        ("/v1/runs/{run}/explain/{seq}", "/v1/runs/p1/explain/1"),
        ("/v1/tasks", "/v1/tasks"),
        ("/v1/charters", "/v1/charters"),
        ("/v1/charters/{id}", "/v1/charters/payment"),
        ("/v1/me", "/v1/me"),
        ("/v1/keys", "/v1/keys"),
    ] {
        let schema = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        fits(&document, schema, &ana.get(called).json(), path);
    }
    let missing = ana.get("/v1/runs/none").json();
    fits(&document, &json!({"$ref": "#/components/schemas/Problem"}), &missing, "a problem");
}

/// Checks members, required ones, and types; every member of an answer is described.
fn fits(document: &Json, schema: &Json, answer: &Json, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return fits(document, &document["components"]["schemas"][name], answer, at);
    }
    let is = match answer {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    match &schema["type"] {
        Json::String(wanted) => assert_eq!(wanted, is, "{at}"),
        Json::Array(wanted) => assert!(wanted.contains(&json!(is)), "{at}: {is}, not {wanted:?}"),
        _ => {}
    }
    if let (Some(list), Some(items)) = (answer.as_array(), schema.get("items")) {
        list.iter().for_each(|item| fits(document, items, item, at));
    }
    if let (Some(members), Some(properties)) = (answer.as_object(), schema["properties"].as_object()) {
        for (name, member) in members {
            if schema["additionalProperties"] == true && !properties.contains_key(name) {
                continue;
            }
            let described = properties.get(name).unwrap_or_else(|| panic!("{at}: `{name}` is not described"));
            fits(document, described, member, &format!("{at}.{name}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(members.contains_key(name.as_str().unwrap()), "{at}: {name} is missing");
        }
    }
}
