//! `tools` of an actor: events of the charter that a model may send while it works on its answer.

use std::collections::BTreeMap;

use charter_actors::ConfigError;
use charter_kernel::definition::{ActorDecl, EventDecl};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::answer;
use crate::schema::wire_schema;

/// Keys of the configuration.
pub(crate) const KEYS: [&str; 2] = [KEY, "rounds"];
/// The key with the events.
pub(crate) const KEY: &str = "tools";
/// The name of the tool that takes the answer.
pub(crate) const ANSWER: &str = "answer";
/// Maximum number of tools.
const MAX_TOOLS: usize = 64;
/// Maximum length of the name of a tool, as providers allow it.
const MAX_NAME: usize = 64;
/// Maximum and default of `rounds`.
const MAX_ROUNDS: u64 = 100;
const ROUNDS: u32 = 10;

/// The events that an actor lets its model send.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Toolbox {
    /// Event types, with a description if the actor has one of its own.
    pub(crate) events: BTreeMap<String, Option<String>>,
    /// How many times the model may call tools before it must answer.
    pub(crate) rounds: u32,
}

impl Toolbox {
    /// Reads `tools` and `rounds`; `None`: there are no tools.
    pub(crate) fn read(decl: &ActorDecl) -> Result<Option<Toolbox>, ConfigError> {
        let get = |key: &str| decl.config.get(key).filter(|value| !value.is_null());
        let expected = format!("a list of at most {MAX_TOOLS} events, or an object with descriptions by event");
        let Some(given) = get("tools") else {
            return match get("rounds") {
                Some(_) => Err(ConfigError::missing("tools", "with `rounds`, the events that the model may send")),
                None => Ok(None),
            };
        };
        let wrong = || ConfigError::invalid("tools", &expected, given);
        let events: BTreeMap<String, Option<String>> = match given {
            Json::Array(list) => list
                .iter()
                .map(|name| Some((name.as_str()?.to_owned(), None)))
                .collect::<Option<_>>()
                .ok_or_else(wrong)?,
            Json::Object(map) => map
                .iter()
                .map(|(name, about)| match about {
                    Json::Null => Some((name.clone(), None)),
                    about => Some((name.clone(), Some(about.as_str()?.to_owned()))),
                })
                .collect::<Option<_>>()
                .ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        if events.is_empty() || events.len() > MAX_TOOLS {
            return Err(wrong());
        }
        let mut names = BTreeMap::new();
        for event in events.keys() {
            let name = tool_name(event);
            if name == ANSWER {
                return Err(ConfigError::Other(format!(
                    "`tools`: `{event}` cannot be a tool: `{ANSWER}` takes the answer"
                )));
            }
            if let Some(other) = names.insert(name, event) {
                return Err(ConfigError::Other(format!(
                    "`tools`: for a model, `{other}` and `{event}` have the same name"
                )));
            }
        }
        let rounds = match get("rounds") {
            None => ROUNDS,
            Some(value) => {
                let count = value.as_u64().filter(|n| (1..=MAX_ROUNDS).contains(n)).and_then(|n| u32::try_from(n).ok());
                count
                    .ok_or_else(|| ConfigError::invalid("rounds", &format!("a number from 1 to {MAX_ROUNDS}"), value))?
            }
        };
        Ok(Some(Toolbox { events, rounds }))
    }

    /// The tools as the model sees them. `declared` finds the events of the charter.
    ///
    /// # Errors
    /// The charter does not declare an event.
    pub(crate) fn tools<'c>(&self, declared: impl Fn(&str) -> Option<&'c EventDecl>) -> Result<Vec<Tool>, ConfigError> {
        let tool = |(event, about): (&String, &Option<String>)| {
            let decl = declared(event).ok_or_else(|| {
                ConfigError::Other(format!("`tools`: the charter does not declare the event `{event}`"))
            })?;
            let any = json!({"type": "object", "properties": {}});
            let wire = wire_schema(decl.data.as_ref().unwrap_or(&any));
            let description = about.clone().or_else(|| decl.description.clone());
            Ok(Tool {
                name: tool_name(event),
                event: event.clone(),
                description: description.unwrap_or_else(|| format!("Sends the event {event}.")),
                schema: wire.schema,
                wrapped: wire.wrapped,
            })
        };
        self.events.iter().map(tool).collect()
    }
}

/// A tool of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name for the model.
    pub name: String,
    /// The type of the event that a call of it sends.
    pub event: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments, with an object at the top and no references.
    pub schema: Json,
    /// Whether the data of the event is the member `answer` of the arguments, because it need not
    /// be an object.
    pub wrapped: bool,
}

impl Tool {
    /// The tool of an event, without what a model is told about it.
    pub(crate) fn of(event: &str) -> Tool {
        let (description, schema) = (String::new(), Json::Null);
        Tool { name: tool_name(event), event: event.to_owned(), description, schema, wrapped: false }
    }

    /// Its size in bytes, about.
    pub(crate) fn size(&self) -> usize {
        self.name.len().saturating_add(self.description.len()).saturating_add(self.schema.to_string().len())
    }

    /// The data of the event for the arguments of a call.
    ///
    /// # Errors
    /// The arguments are not JSON.
    pub fn data(&self, arguments: &str) -> Result<Json, String> {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        answer::read(text, self.wrapped, None).map_err(|problems| problems.join("; "))
    }
}

/// The name of a tool for an event: providers allow ASCII letters, digits, `_` and `-`.
fn tool_name(event: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    event.chars().take(MAX_NAME).map(plain).collect()
}

/// A call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call; may be empty.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, which should be JSON.
    pub arguments: String,
}

/// What a call of a tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call.
    pub call: ToolCall,
    /// For the model.
    pub content: Json,
    /// Whether the event was refused or its actor failed.
    pub failed: bool,
    /// Whether the event was recorded earlier.
    pub repeated: bool,
}

impl ToolResult {
    /// One sentence about the call.
    pub(crate) fn told(&self, who: &str, event: &str) -> String {
        let refused = self.content.get("refused").and_then(Json::as_str);
        match (refused, self.failed) {
            (Some(code), _) => format!("{who} {event}: refused ({code})"),
            (None, true) => format!("{who} {event}: it failed"),
            (None, false) => format!("{who} {event}: accepted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use charter_kernel::definition::ActorDecl;
    use serde_json::{Value as Json, json};

    use super::Toolbox;

    fn read(config: Json) -> Result<Option<Toolbox>, String> {
        let decl = ActorDecl { config: serde_json::from_value(config).unwrap(), ..ActorDecl::default() };
        Toolbox::read(&decl).map_err(|e| e.to_string())
    }

    #[test]
    fn configurations() {
        assert_eq!(read(json!({})), Ok(None));
        let toolbox = read(json!({"tools": {"READ": "Reads.", "a.b": null}, "rounds": 3})).unwrap().unwrap();
        assert_eq!(toolbox.events["READ"].as_deref(), Some("Reads."));
        assert_eq!((toolbox.events.len(), toolbox.rounds), (2, 3));
        for (config, message) in [
            (json!({"tools": []}), "invalid `tools`: expected a list of at most 64 events"),
            (json!({"tools": [1]}), "invalid `tools`"),
            (json!({"tools": ["A"], "rounds": 0}), "invalid `rounds`: expected a number from 1 to 100, found `0`"),
            (json!({"rounds": 2}), "missing key `tools`"),
            (json!({"tools": ["a.b", "a_b"]}), "`tools`: for a model, `a.b` and `a_b` have the same name"),
            (json!({"tools": ["answer"]}), "`tools`: `answer` cannot be a tool"),
        ] {
            let error = read(config).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn undeclared_events() {
        let toolbox = read(json!({"tools": ["READ"]})).unwrap().unwrap();
        let error = toolbox.tools(|_| None).unwrap_err();
        assert_eq!(error.to_string(), "`tools`: the charter does not declare the event `READ`");
    }
}
