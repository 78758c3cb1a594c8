//! The definitions of valid charters.

use charter_format::{ReadOptions, read};
use charter_kernel::Definition;
use serde_json::{Value, json};

fn definition(source: &str) -> Definition {
    match read(source, "t.yaml", &ReadOptions::default()) {
        Ok(document) => document.definition,
        Err(errors) => panic!("{errors}"),
    }
}

/// Returns the definition of a charter that starts with `charter: 1`, `id: t`.
fn core(body: &str) -> Value {
    serde_json::to_value(definition(&format!("charter: 1\nid: t\n{body}"))).unwrap()
}

const FRED: &str = r#"
charter: 1                      # language version; required
id: fred                        # [a-z][a-z0-9-]*
version: 1.2.0                  # semver of this charter
title: A decision engine
strict: true                    # default; see "Strict"

roles:                          # who may act. 'system' (effect results, timers) always exists
  founder: {description: asks and clarifies}
  reviewer: {description: approves what is not decided automatically}

input: {type: object, required: [userId]}        # JSON Schema (2020-12) of what a run starts with
context: {userId: "= input.userId", decision: null, retryCount: 0}   # a string that starts with '= ' is CEL; else a literal
output: "= context.decision"

events:                         # every event a person or program may send
  START: {by: founder, data: {type: object, required: [input], properties: {input: {type: object}}}}
  HUMAN_APPROVED: {by: reviewer}
  HUMAN_REJECTED: {by: reviewer, data: {type: object, required: [feedback], properties: {feedback: {type: string}}}}

guards:
  canAutoDecide: event.output.confidence >= 0.85 && event.output.requiresHumanApproval == false
actions:
  countRetry: {assign: {retryCount: "= context.retryCount + 1"}}
delays:
  reviewDeadline: 24h
actors:                         # what may be invoked; 'kind' is known to the host, not to the kernel
  decide: {kind: model, input: {}, output: {type: object, required: [confidence, requiresHumanApproval]}, timeout: 60s, retry: {attempts: 3, backoff: 2s}}

initial: idle
states:
  idle: {on: {START: decide}}
  decide:
    invoke:
      src: decide
      input: {synthesis: "= context.synthesis"}
      onDone:
        - {guard: canAutoDecide, target: execute, actions: {assign: {decision: "= event.output"}}}
        - {target: human_review, actions: {assign: {decision: "= event.output"}}}
      onError: {target: error}
  human_review:
    tags: [waiting]
    on:
      HUMAN_APPROVED: {target: execute, by: reviewer, when: "by.id != context.userId"}
    after: {reviewDeadline: {target: failed}}
  execute: {type: final}
  error: {type: final}
  failed: {type: final}
"#;

#[test]
fn an_example_with_most_keys() {
    let core = serde_json::to_value(definition(FRED)).unwrap();
    assert_eq!(
        core["root"]["context"],
        json!({"userId": {"cel": "input.userId"}, "decision": {"literal": null}, "retryCount": {"literal": 0}})
    );
    assert_eq!(core["actors"]["decide"]["timeout"], json!({"ms": 60_000}));
    assert_eq!(core["actors"]["decide"]["config"], json!({"retry": {"attempts": 3, "backoff": "2s"}}));
    let states = &core["root"]["state"]["states"];
    assert_eq!(states["decide"]["invoke"][0]["on_done"][0]["guard"], json!({"name": "canAutoDecide"}));
    assert_eq!(
        states["human_review"],
        json!({
            "on": [{"events": ["HUMAN_APPROVED"], "transitions": [{"target": ["execute"], "when": "by.id != context.userId", "by": ["reviewer"]}]}],
            "after": [{"key": "reviewDeadline", "delay": {"name": "reviewDeadline"}, "transitions": [{"target": ["failed"]}]}],
            "tags": ["waiting"],
        })
    );
}

#[test]
fn transitions_in_every_form() {
    let core =
        core("states: {a: {on: {A: b, B: {target: [b, c]}, C: [b, {target: c, when: true}], D: {}}}, b:, c: {}}");
    assert_eq!(
        core["root"]["state"]["states"]["a"]["on"],
        json!([
            {"events": ["A"], "transitions": [{"target": ["b"]}]},
            {"events": ["B"], "transitions": [{"target": ["b", "c"]}]},
            {"events": ["C"], "transitions": [{"target": ["b"]}, {"target": ["c"], "when": "true"}]},
            {"events": ["D"], "transitions": [{}]},
        ])
    );
    assert_eq!(core["root"]["state"]["kind"], "compound");
}
