//! `offlineTools` of an actor: events that its offline rules send before they answer, so that the
//! tools of a model can be tried without one.

use charter_actors::{ConfigError, Fault};
use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use crate::codes;
use crate::kept_round::Place;
use crate::offline::{answer_after, check_after};
use crate::progress::Progress;
use crate::tools::{Tool, ToolCall, Toolbox};

/// Key of the configuration.
pub(crate) const KEY: &str = "offlineTools";
/// Maximum number of events.
const MAX_EVENTS: usize = 64;

/// An event that the rules send.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfflineEvent {
    event: String,
    data: Json,
    when: Json,
}

/// Reads `offlineTools`: a list of `{type, data, when}`.
pub(crate) fn read(actor: &ActorDecl, toolbox: Option<&Toolbox>) -> Result<Vec<OfflineEvent>, ConfigError> {
    let Some(given) = actor.config.get(KEY).filter(|given| !given.is_null()) else {
        return Ok(Vec::new());
    };
    let expected = format!("a list of at most {MAX_EVENTS} events, each with `type`, `data` and `when`");
    let invalid = |given: &Json| ConfigError::invalid(KEY, &expected, given);
    let list = given.as_array().filter(|list| list.len() <= MAX_EVENTS).ok_or_else(|| invalid(given))?;
    let entry = |entry: &Json| {
        let map = entry.as_object().ok_or_else(|| invalid(entry))?;
        if map.keys().any(|key| !["type", "data", "when"].contains(&key.as_str())) {
            return Err(invalid(entry));
        }
        let event = map.get("type").and_then(Json::as_str).ok_or_else(|| invalid(entry))?;
        if toolbox.is_none_or(|toolbox| !toolbox.events.contains_key(event)) {
            return Err(ConfigError::Other(format!("`{KEY}`: `{event}` is none of the `tools` of the actor")));
        }
        let of = |key: &str| map.get(key).cloned();
        let (data, when) = (of("data").unwrap_or_else(|| json!({})), of("when").unwrap_or(true.into()));
        for rules in [&data, &when] {
            check_after(rules).map_err(|e| ConfigError::Other(format!("`{KEY}`: {e}")))?;
        }
        Ok(OfflineEvent { event: event.to_owned(), data, when })
    };
    list.iter().map(entry).collect()
}

/// Sends the events of one of the parallel calls, one after another, and returns the list of their
/// results: what a model would get, or null for an event whose `when` does not hold.
///
/// # Errors
/// An expression fails, or an event was not recorded.
pub(crate) fn send(
    events: &[OfflineEvent],
    input: &Json,
    (index, call): (usize, &Json),
    progress: &dyn Progress,
) -> Result<Json, Fault> {
    let fault = |why: String| Fault::new(codes::CONFIG, format!("`{KEY}`: {why}"));
    let mut results = Json::Array(Vec::new());
    for (round, event) in (0u32..).zip(events) {
        let value = |rules: &Json| answer_after(rules, input, call, &results).map_err(|e| fault(e.to_string()));
        let result = match value(&event.when)? {
            Json::Bool(true) => {
                let (tool, data) = (Tool::of(&event.event), value(&event.data)?);
                let call = ToolCall { id: String::new(), name: tool.name.clone(), arguments: data.to_string() };
                let place = Place { call: index, round, index: 0, kept: None };
                let result = progress.act(place, &tool, call, data)?;
                if !result.repeated {
                    progress.note(index, &result.told("the offline rules send", &event.event));
                }
                result.content
            }
            Json::Bool(false) => Json::Null,
            other => return Err(fault(format!("`when` must be true or false, not `{other}`"))),
        };
        results.as_array_mut().into_iter().for_each(|list| list.push(result.clone()));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use charter_actors::Fault;
    use charter_kernel::definition::ActorDecl;
    use serde_json::{Value as Json, json};

    use super::{read, send};
    use crate::kept_round::Place;
    use crate::progress::Progress;
    use crate::tools::{Tool, ToolCall, ToolResult, Toolbox};

    /// Accepts all events but `PAY`.
    #[derive(Default)]
    struct Sent(Mutex<Vec<String>>);

    impl Progress for Sent {
        fn act(&self, place: Place, tool: &Tool, call: ToolCall, data: Json) -> Result<ToolResult, Fault> {
            self.0.lock().unwrap().push(format!("{}.{} {} {data}", place.call, place.round, tool.event));
            let failed = tool.event == "PAY";
            let content = if failed { json!({"refused": "authority"}) } else { json!({"accepted": true}) };
            Ok(ToolResult { call, content, failed, repeated: false })
        }
    }

    fn decl(config: Json) -> ActorDecl {
        ActorDecl { config: serde_json::from_value(config).unwrap(), ..ActorDecl::default() }
    }

    #[test]
    fn later_events_see_the_results_of_earlier_ones() {
        let actor = decl(json!({"tools": ["PAY", "look.up"], "offlineTools": [
            {"type": "PAY", "data": {"sum": "= input.sum"}},
            {"type": "look.up", "when": "= has(results[0].accepted)"},
            {"type": "look.up", "data": "= results[0].refused", "when": "= results[1] == null"},
        ]}));
        let events = read(&actor, Toolbox::read(&actor).unwrap().as_ref()).unwrap();
        let sent = Sent::default();
        let results = send(&events, &json!({"sum": 7}), (1, &Json::Null), &sent).unwrap();
        assert_eq!(results, json!([{"refused": "authority"}, null, {"accepted": true}]));
        assert_eq!(*sent.0.lock().unwrap(), [r#"1.0 PAY {"sum":7}"#, r#"1.2 look.up "authority""#]);
    }

    #[test]
    fn what_is_no_event_of_the_tools_is_refused() {
        for (event, message) in [
            (json!({"type": "PAY"}), "`offlineTools`: `PAY` is none of the `tools` of the actor"),
            (json!({"type": "A", "data": "= ("}), "`offlineTools`: invalid expression `(`"),
            (json!({"type": "A", "to": "x"}), "invalid `offlineTools`: expected a list of at most 64 events"),
            (json!("A"), "invalid `offlineTools`"),
        ] {
            let actor = decl(json!({"tools": ["A"], "offlineTools": [event]}));
            let error = read(&actor, Toolbox::read(&actor).unwrap().as_ref()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
