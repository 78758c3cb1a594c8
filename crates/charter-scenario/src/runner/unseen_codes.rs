//! Finds the refusal codes that a charter can return, so that `--cover` can report those that no
//! scenario covers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use charter_kernel::Code;
use charter_kernel::definition::Definition;
use serde_json::Value as Json;

use super::Cover;

/// Returns the refusal codes that this charter can return but that no scenario has seen. Codes that
/// every charter can return, such as `unknown-actor`, are omitted, because the kernel's own tests
/// cover them.
#[must_use]
pub fn unseen_codes(definition: &Definition, cover: &Cover) -> Vec<&'static str> {
    let json = serde_json::to_value(definition).unwrap_or_default();
    let mut possible = BTreeSet::new();
    if definition.strict {
        possible.insert(Code::Unhandled);
    }
    if !definition.interlocks.is_empty() {
        possible.insert(Code::Interlock);
    }
    if definition.events.values().any(|e| e.data.is_some()) {
        possible.insert(Code::Schema);
    }
    if definition.events.values().any(|e| !e.by.is_empty()) {
        possible.insert(Code::Authority);
    }
    if definition.events.values().any(|e| e.unique.is_some()) {
        possible.insert(Code::Taken);
    }
    charts(definition, &json, &BTreeSet::new(), &mut possible);
    let seen: BTreeSet<&str> = cover.codes().collect();
    let open = possible.iter().map(|code| code.word());
    open.filter(|word| !seen.contains(word)).collect()
}

/// Collects the codes that states, transitions and actions can cause. `taken` are the events that
/// an ancestor takes in any case. The reader limits the depth.
fn charts(definition: &Definition, json: &Json, taken: &BTreeSet<String>, possible: &mut BTreeSet<Code>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| charts(definition, item, taken, possible)),
        Json::Object(fields) => {
            let mut taken = Cow::Borrowed(taken);
            // Only a transition that is selected by an event can refuse it because of what it
            // requires of the sender.
            for on in fields.get("on").and_then(Json::as_array).into_iter().flatten() {
                let list = |key: &str| on.get(key).and_then(Json::as_array).into_iter().flatten();
                let events: Vec<&str> = list("events").filter_map(Json::as_str).collect();
                let demands = ["guard", "when", "by", "not_by", "approves", "requires", "quorum"];
                if list("transitions").any(|t| demands.iter().all(|key| t.get(key).is_none())) {
                    taken.to_mut().extend(events.iter().map(|event| (*event).to_owned()));
                }
                // Nobody can send an event that is not declared.
                let open = |event: &&str| {
                    let sent = event.ends_with('*') || definition.events.contains_key(*event);
                    sent && !taken.contains(*event) && !taken.contains("*")
                };
                let guards = definition.strict && events.iter().any(open);
                for t in list("transitions") {
                    let has = |key: &str| t.get(key).is_some();
                    possible.extend(has("by").then_some(Code::Authority));
                    possible.extend((guards && (has("guard") || has("when"))).then_some(Code::Guard));
                    possible.extend(has("approves").then_some(Code::Stale));
                    let requires = t.get("requires").and_then(Json::as_array);
                    for require in requires.into_iter().flatten() {
                        possible.extend(require.get("use").map(|_| Code::PermitMissing));
                        let scope = require.get("use").and_then(|u| u.get("when"));
                        possible.extend(scope.map(|_| Code::PermitScope));
                        possible.extend(require.get("open").map(|_| Code::ObligationMissing));
                        possible.extend(require.get("none").map(|_| Code::ObligationOpen));
                    }
                }
            }
            if let Some(grant) = fields.get("grant").filter(|g| g.get("kind").is_some()) {
                possible.extend(grant.get("uses").map(|_| Code::PermitExhausted));
                possible.extend(grant.get("expires").map(|_| Code::PermitExpired));
            }
            let revoke = fields.get("revoke").and_then(|r| r.get("kind"));
            possible.extend(revoke.map(|_| Code::PermitRevoked));
            fields.values().for_each(|value| charts(definition, value, &taken, possible));
        }
        _ => {}
    }
}
