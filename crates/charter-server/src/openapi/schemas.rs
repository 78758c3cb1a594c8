//! The schemas of requests and answers.

use serde_json::{Map, Value, json};

use crate::hooks::HookEvent;

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// A request has no other members.
fn request(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn list(of: &str) -> Value {
    json!({"type": "array", "items": {"$ref": format!("#/components/schemas/{of}")}})
}

/// The schemas that do not depend on charters.
pub(crate) fn fixed() -> Map<String, Value> {
    let text = json!({"type": "string"});
    let whole = json!({"type": "integer", "minimum": 0});
    let time = json!({"type": "string", "format": "date-time"});
    let nullable = json!({"type": ["string", "null"]});
    let digest = digest();
    let status = json!({"enum": ["active", "paused", "done", "failed", "cancelled"], "type": "string"});
    let kind = json!({"enum": ["person", "agent", "service"], "type": "string"});
    let charter = json!({"$ref": "#/components/schemas/CharterName"});
    let summary = json!({
        "run": text, "charter": charter, "status": {"type": ["string", "null"]}, "seq": whole, "hash": digest, "started": time, "updated": time,
    });
    let mut listed = summary.clone();
    if let Some(listed) = listed.as_object_mut() {
        let state = "With `?state=true`; a run whose start was refused has none";
        listed.insert("state".to_owned(), json!({"type": "array", "items": text, "description": state}));
        listed.insert("stuck".to_owned(), json!({"type": "boolean", "description": "With `?state=true`"}));
        let due = "With `?state=true`: when the next timer fires";
        listed.insert("next_due".to_owned(), json!({"type": ["string", "null"], "description": due}));
    }
    let mut run = summary;
    if let Some(run) = run.as_object_mut() {
        let more = json!({
            "state": {"type": "array", "items": text, "description": "The active atomic states of the root actor"},
            "actors": list("AnyObject"), "invocations": list("AnyObject"), "working": list("AnyObject"), "tasks": list("Task"),
            "timers": list("AnyObject"), "next_due": {"type": ["string", "null"]}, "output": {}, "stuck": {"type": "boolean"},
            "dry": {"type": "boolean"}, "untrusted": {"type": "boolean"}, "usage": {"$ref": "#/components/schemas/Usage"}, "snapshot": {"$ref": "#/components/schemas/AnyObject"},
            "page": {"type": "array", "items": {"$ref": "#/components/schemas/AnyObject"}, "description": "What `meta.page` of the charter shows: `label`, `value`"},
        });
        run.extend(more.as_object().cloned().unwrap_or_default());
    }
    let by = object(
        json!({"id": text, "roles": {"type": "array", "items": text}, "kind": kind, "auth": text}),
        &["id", "roles"],
    );
    let charter_summary = json!({"id": text, "version": text, "title": nullable, "digest": digest});
    let mut whole_charter = charter_summary.clone();
    if let Some(charter) = whole_charter.as_object_mut() {
        for part in ["roles", "events", "input"] {
            charter.insert(part.to_owned(), json!({}));
        }
        let core =
            json!({"type": "string", "description": "The core form as JSON text, of which `digest` is the digest"});
        charter.insert("core".to_owned(), core);
        charter.insert("source".to_owned(), text.clone());
        charter.insert("name".to_owned(), json!({"type": "string", "description": "The name of its file"}));
    }
    let me = json!({
        "id": text, "kind": kind, "auth": text, "roles": {"type": ["array", "null"], "items": text, "description": "null: every role"},
        "key": nullable, "csrf": {"type": "string", "description": "The token of the session, if there is one"},
    });
    let record = json!({
        "v": whole, "run": text, "seq": whole, "at": time, "id": text, "charter": digest, "to": text, "by": {"$ref": "#/components/schemas/Principal"},
        "event": object(json!({"type": text, "data": {}}), &["type"]), "verdict": text, "from": {"type": "array", "items": text},
        "state": {"type": "array", "items": text}, "status": status, "transitions": {"type": "array", "items": text}, "effects": list("AnyObject"),
        "snapshot": digest, "prev": text, "hash": digest,
    });
    let mut record = object(record, &["v", "run", "seq", "at", "charter", "event", "verdict", "state", "hash"]);
    if let Some(record) = record.as_object_mut() {
        // What further members it has depends on what happened: docs/sql.md has them all.
        record.insert("additionalProperties".to_owned(), true.into());
    }
    let problem = json!({
        "type": text, "title": text, "status": whole, "code": {"type": "string", "description": "The code of the refusal or error"},
        "detail": text, "run": text, "seq": whole, "refusal": {"$ref": "#/components/schemas/AnyObject"}, "record": {"$ref": "#/components/schemas/Record"},
        "repeated": {"type": "boolean"}, "error": {"$ref": "#/components/schemas/AnyObject"},
    });
    let task = json!({
        "run": text, "effect": {"type": "string", "description": "RUN/SEQ/INDEX: an answer names the task by it"}, "actor": text, "invocation": text,
        "src": text, "title": nullable, "by": {"type": "array", "items": text}, "agents": {"type": "boolean"}, "input": {}, "output": {}, "dry": {"type": "boolean"},
    });
    let decision = json!({
        "type": text, "data": {}, "description": nullable, "depends_on_data": {"type": "boolean"}, "demands": {},
        "value": {"description": "Exactly what is approved"},
        "withheld": {"type": ["string", "null"], "description": "Why the caller may not decide, although somebody else with the same roles may: `not-by`, `voted`, `persons-only`, `authenticated-only`"},
    });
    let request_of_inbox = json!({
        "id": text, "kind": {"enum": ["approval", "task", "waiting"], "type": "string"}, "run": text, "charter": {"$ref": "#/components/schemas/CharterName"},
        "to": text, "seq": whole, "state": {"type": "array", "items": text}, "title": nullable, "due": nullable,
        "about": {"description": "What the run is about: `label` and `value`, the first row of `meta.page`"},
        "since": {"description": "The record that led here: `seq`, `at`, `by`, `type`"}, "decisions": list("Decision"), "task": {},
        "expired": {"description": "If it does not wait any more: the record with which it expired, and its time"}, "marks": {"$ref": "#/components/schemas/Marks"},
    });
    let any_event = json!({"type": text, "data": {}, "to": text, "id": text});
    let grants = json!({"type": "array", "items": text, "description": "`ROLE`, `CHARTER/ROLE` or `CHARTER/RUN/ROLE`"});
    let key = json!({
        "key": text, "id": text, "kind": kind, "roles": {"type": "array", "items": text}, "expires": nullable, "note": nullable,
        "closed": {"type": ["string", "null"], "description": "Why it is not accepted any more"}, "last_used": nullable,
    });
    let somebody = json!({"type": "string", "description": "A person of this name with every role: the answer has the state, what they may send, and the chart"});
    let schemas = json!({
        "AnyObject": {"type": "object", "additionalProperties": true},
        "CharterName": object(json!({"id": text, "version": text, "digest": digest}), &["id", "digest"]),
        "Principal": by,
        "Problem": object(problem, &["type", "title", "status", "code", "detail"]),
        "Record": record,
        "RecordPage": object(json!({"records": list("Record"), "after": whole}), &["records"]),
        "RunSummary": object(listed, &["run", "charter", "seq", "hash"]),
        "RunPage": object(json!({"runs": list("RunSummary"), "after": text}), &["runs"]),
        "Run": object(run, &["run", "charter", "status", "seq", "state", "snapshot"]),
        "StartRun": request(json!({"charter": {"type": "string", "description": "The id of a charter, or a digest"}, "input": {}, "run": text}), &["charter"]),
        "AnyEvent": request(any_event, &["type"]),
        "TaskAnswer": request(json!({"task": text, "output": {}, "declined": {"type": "string", "description": "Why the task is declined"}}), &["task"]),
        "Task": object(task, &["run", "effect", "invocation", "src"]),
        "Decision": object(decision, &["type"]),
        "Request": object(request_of_inbox, &["id", "kind", "run", "to", "seq", "decisions"]),
        "Inbox": object(json!({"requests": list("Request"), "all": {"type": "boolean", "description": "Whether there are no more"}}), &["requests", "all"]),
        "TaskPage": object(json!({"tasks": list("Task"), "all": {"type": "boolean", "description": "Whether there are no more"}}), &["tasks", "all"]),
        "LegalEvent": object(json!({"type": text, "to": text, "data": {}, "description": nullable, "depends_on_data": {"type": "boolean"}, "demands": {}, "value": {"description": "What is approved: the value of the digest in `demands`"}}), &["type", "to"]),
        "LegalEvents": object(json!({"run": text, "seq": whole, "status": status, "by": {"$ref": "#/components/schemas/Principal"}, "events": list("LegalEvent"), "not_legal": list("NotLegal"), "tasks": list("Task")}), &["run", "seq", "events"]),
        "Explained": object(json!({"run": text, "seq": whole, "verdict": text, "type": text, "by": {"$ref": "#/components/schemas/Principal"}, "transitions": {"type": "array", "items": text}, "refusal": {}, "notes": {"type": "array", "items": text}}), &["run", "seq", "verdict"]),
        "ForkRun": request(json!({"at": whole, "run": text, "live": {"type": "boolean", "default": false, "description": "Whether actors work for the new run"}}), &["at"]),
        "Fork": object(json!({"run": text, "forked_from": object(json!({"run": text, "seq": whole}), &["run", "seq"]), "dry": {"type": "boolean"}}), &["run", "dry"]),
        "CharterSummary": object(charter_summary, &["id", "digest"]),
        "CharterPage": object(json!({"charters": list("CharterSummary")}), &["charters"]),
        "Charter": object(whole_charter, &["id", "digest", "source"]),
        "AddCharter": request(json!({"source": text}), &["source"]),
        "Me": object(me, &["id", "kind", "auth"]),
        "OpenSession": request(json!({"key": text, "code": {"type": "string", "description": "The code of a login link, instead of a key"}}), &[]),
        "Key": object(key, &["key", "id", "kind", "roles"]),
        "KeyPage": object(json!({"keys": list("Key")}), &["keys"]),
        "AddKey": request(json!({"id": text, "kind": kind, "grants": grants, "expires": time, "note": text}), &["id"]),
        "NewKey": object(json!({"key": text, "secret": text}), &["key", "secret"]),
        "CheckCharter": request(json!({"source": text, "explore": {"type": "boolean", "default": true}}), &["source"]),
        "Report": object(json!({"findings": list("AnyObject"), "explored": {"$ref": "#/components/schemas/AnyObject"}}), &["findings", "explored"]),
        "StepCharter": request(json!({"source": text, "input": {}, "events": list("AnyObject"), "at": time, "now": somebody}), &["source"]),
        "StepLines": object(json!({"lines": list("AnyObject"), "now": {"$ref": "#/components/schemas/AnyObject"}}), &["lines"]),
    });
    let others = [hooks(), not_legal(), marks(), journal(), usage()];
    let all = schemas.as_object().into_iter().chain(others.iter().filter_map(Value::as_object)).flatten();
    all.map(|(name, schema)| (name.clone(), schema.clone())).collect()
}

/// What the models of a run took.
fn usage() -> Value {
    let whole = |description: &str| json!({"type": "integer", "minimum": 0, "description": description});
    let properties = json!({
        "questions": whole("Questions to models"), "unpriced": whole("Those without a price, which `picodollars` leaves out"),
        "requests": whole("Requests, with repetitions"), "input": whole("Tokens read, cached ones included"),
        "output": whole("Tokens written"), "cached": whole("Tokens read from caches"),
        "picodollars": whole("Cost: 10^12 picodollars are a US dollar"),
        "estimated": {"type": "boolean", "description": "Whether a part of the tokens is an estimate"},
    });
    let required = ["questions", "unpriced", "requests", "input", "output", "cached", "picodollars", "estimated"];
    json!({"Usage": object(properties, &required)})
}

fn digest() -> Value {
    json!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"})
}

/// The schemas of the journal as a whole.
fn journal() -> Value {
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 0}));
    let head = object(
        json!({"runs": count, "records": count, "entries": count, "hash": digest()}),
        &["runs", "records", "entries", "hash"],
    );
    json!({
        "JournalHead": head,
        "Journal": object(
            json!({
                "head": {"oneOf": [{"$ref": "#/components/schemas/JournalHead"}, {"type": "null"}]},
                "bytes": {"type": ["integer", "null"], "description": "Size of the file and of what belongs to it"},
                "sql": {"type": "boolean", "description": "Whether the caller may query it"},
            }),
            &["head", "bytes", "sql"],
        ),
        "Query": request(json!({"query": text}), &["query"]),
        "Rows": object(
            json!({
                "columns": {"type": "array", "items": text},
                "rows": {"type": "array", "items": {"type": "array", "items": {}}},
                "more": {"type": "boolean", "description": "Whether there are more rows than these"},
            }),
            &["columns", "rows", "more"],
        ),
    })
}

/// The schema of an event that the caller may not send.
fn not_legal() -> Value {
    let text = json!({"type": "string"});
    let not = json!({
        "type": text, "to": text, "rule": {"type": ["string", "null"]},
        "code": {"type": "string", "description": "The code of the refusal that the caller would get"},
        "message": {"type": "string", "description": "Why the caller may not send the event now, whatever its data is"},
    });
    json!({"NotLegal": object(not, &["type", "to", "code", "message"])})
}

/// The schemas of the marks of requests.
fn marks() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let marks = json!({
        "seen": {"type": "array", "items": object(json!({"id": text, "at": time}), &["id", "at"]), "description": "Who has seen it, and when first"},
        "later": {"type": ["string", "null"], "description": "Until when the caller has put it off"},
        "assigned": {"type": ["object", "null"], "description": "`to` whom it was assigned, `by` whom, and when (`at`)"},
    });
    let mark = json!({
        "run": text, "request": {"type": "string", "description": "The id of the request"},
        "mark": {"enum": ["seen", "later", "now", "assign", "release"], "type": "string"},
        "until": {"type": "string", "format": "date-time", "description": "With `later`: at most a year from now"},
        "to": {"type": "string", "description": "With `assign`: somebody who has a key"},
    });
    json!({
        "Marks": object(marks, &["seen"]),
        "Mark": request(mark, &["run", "request", "mark"]),
        "Marked": object(json!({"marks": {"$ref": "#/components/schemas/Marks"}}), &["marks"]),
    })
}

/// The schemas of webhooks.
fn hooks() -> Value {
    let text = json!({"type": "string"});
    let whole = json!({"type": "integer", "minimum": 0});
    let nullable = json!({"type": ["string", "null"]});
    let words: Vec<&str> = HookEvent::ALL.iter().map(|event| event.word()).collect();
    let events = json!({"type": "array", "items": {"enum": words, "type": "string"}});
    let private = "Allow addresses that are not public, and `http`";
    let hook = json!({
        "hook": text, "url": text, "on": events, "charter": nullable, "allow_private": {"type": "boolean"}, "note": nullable,
        "added_by": text, "closed": {"type": ["string", "null"], "description": "Why nothing is sent any more"},
        "behind": {"type": "integer", "minimum": 0, "description": "Records that it has not dealt with yet"},
        "attempts": whole, "next_attempt": nullable, "error": nullable, "last_delivered": nullable, "dead": whole, "dropped": whole,
    });
    let add = json!({
        "url": text, "on": events, "charter": {"type": "string", "description": "Only runs of this charter"},
        "allow_private": {"type": "boolean", "default": false, "description": private}, "note": text,
    });
    let secret = json!({"type": "string", "description": "`whsec_...`: what the receiver checks signatures with"});
    let letter = json!({
        "id": text, "event": text, "run": text, "seq": whole, "attempts": whole, "error": text,
        "at": {"type": "string", "format": "date-time"},
    });
    json!({
        "Hook": object(hook, &["hook", "url", "on", "behind", "dead"]),
        "HookPage": object(json!({"hooks": list("Hook")}), &["hooks"]),
        "HookName": object(json!({"hook": text}), &["hook"]),
        "AddHook": request(add, &["url", "on"]),
        "NewHook": object(json!({"hook": text, "secret": secret}), &["hook", "secret"]),
        "DeadLetter": object(letter, &["id", "event", "run", "seq", "attempts", "error", "at"]),
        "DeadLetterPage": object(json!({"hook": text, "dead": list("DeadLetter")}), &["hook", "dead"]),
    })
}
