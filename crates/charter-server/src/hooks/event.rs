//! Which events a record is, and the CloudEvent that tells of it.

use charter_journal::{Record, Verdict};
use charter_runtime::Charter;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// Items of each list of an event.
const MAX_ITEMS: usize = 100;
/// Characters of a title.
const MAX_TITLE: usize = 200;

/// What a hook tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HookEvent {
    /// A run has ended: done, failed or cancelled.
    Ended,
    /// An event was refused.
    Refused,
    /// A task or an approval waits for a person.
    Task,
    /// A run has started.
    Started,
    /// Any record.
    Record,
}

impl HookEvent {
    /// All events. A record that is several of them is sent once, as the first one.
    pub const ALL: [HookEvent; 5] =
        [HookEvent::Ended, HookEvent::Refused, HookEvent::Task, HookEvent::Started, HookEvent::Record];

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HookEvent::Ended => "ended",
            HookEvent::Refused => "refused",
            HookEvent::Task => "task",
            HookEvent::Started => "started",
            HookEvent::Record => "record",
        }
    }

    /// Whether a record is this event.
    fn is(self, record: &Record, tasks: &[Json], approvals: &[Json]) -> bool {
        let accepted = record.verdict == Verdict::Accepted;
        match self {
            HookEvent::Ended => accepted && record.status.is_some_and(|status| status.is_finished()),
            HookEvent::Refused => record.verdict == Verdict::Refused,
            HookEvent::Task => !tasks.is_empty() || !approvals.is_empty(),
            HookEvent::Started => accepted && record.seq == 0,
            HookEvent::Record => true,
        }
    }
}

impl std::fmt::Display for HookEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl std::str::FromStr for HookEvent {
    type Err = BadEvent;

    fn from_str(text: &str) -> Result<HookEvent, BadEvent> {
        let found = HookEvent::ALL.into_iter().find(|event| event.word() == text);
        found.ok_or_else(|| BadEvent(text.to_owned()))
    }
}

/// A text that is no event of hooks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an event of hooks: choose `task`, `refused`, `ended`, `started` or `record`")]
pub struct BadEvent(String);

/// The tasks of persons that a record requests.
fn tasks(record: &Record, charter: &Charter) -> Vec<Json> {
    let actors = &charter.machine().definition().actors;
    let requested = record.effects.iter().enumerate().filter_map(|(index, effect)| {
        let src = effect.get("src").and_then(Json::as_str)?;
        let invoked = effect.get("kind").and_then(Json::as_str) == Some("invoke");
        let actor = actors.get(src).filter(|actor| invoked && actor.kind == "human")?;
        let title = actor.config.get("title").and_then(Json::as_str);
        let title: Option<String> = title.map(|title| title.chars().take(MAX_TITLE).collect());
        Some(json!({"task": format!("{}/{}/{index}", record.run, record.seq), "src": src, "title": title}))
    });
    requested.take(MAX_ITEMS).collect()
}

/// A message of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The position of the record in the journal.
    pub(super) position: u64,
    /// The run.
    pub(super) run: String,
    /// The number of the record.
    pub(super) seq: u64,
    /// What it is.
    pub(super) event: HookEvent,
    /// The id of the message: the same for every attempt, and different for every hook and record,
    /// even if a position is used again in a journal that was restored from a copy.
    pub(super) id: String,
    /// The CloudEvent.
    pub(super) body: String,
}

/// The id of a message.
fn message_id(hook: &str, position: u64, record: &Record) -> String {
    let hash: String = record.hash.hex().chars().take(12).collect();
    format!("msg_{hook}_{position}_{hash}")
}

/// The message about a record, if a hook for these events sends one. `source` is the address of the
/// server, `approvals` are those that the record has made wait. It has what happened, and neither
/// the data of the event nor what is approved: who may see that asks for it.
pub(super) fn message(
    hook: &str,
    on: &[HookEvent],
    source: &str,
    position: u64,
    record: &Record,
    charter: &Charter,
    approvals: &[Json],
) -> Option<Message> {
    let tasks = tasks(record, charter);
    let is = |event: &HookEvent| on.contains(event) && event.is(record, &tasks, approvals);
    let event = HookEvent::ALL.into_iter().find(is)?;
    let definition = charter.machine().definition();
    let id = message_id(hook, position, record);
    let first = |texts: &[std::borrow::Cow<'_, str>]| -> Vec<String> {
        texts.iter().take(MAX_ITEMS).map(|text| text.clone().into_owned()).collect()
    };
    let mut data = json!({
        "run": record.run, "seq": record.seq, "position": position,
        "charter": {"id": definition.id, "version": definition.version, "digest": record.charter},
        "event": record.event.r#type, "by": {"id": record.by.id, "kind": record.by.kind()},
        "verdict": record.verdict.word(), "status": record.status_word(), "state": first(&record.state),
        "hash": record.hash,
    });
    if let (Json::Object(data), Some(refusal)) = (&mut data, record.explanation(None)) {
        data.insert("refusal".to_owned(), json!({"code": refusal.code, "rule": refusal.rule}));
    }
    for (name, list) in [("tasks", tasks.as_slice()), ("approvals", approvals)] {
        if let (Json::Object(data), false) = (&mut data, list.is_empty()) {
            data.insert(name.to_owned(), list.into());
        }
    }
    let body = json!({
        "specversion": "1.0", "id": id, "source": source, "type": format!("charter.{event}"), "subject": record.run,
        "time": record.at_text(), "datacontenttype": "application/json", "data": data,
    });
    let (run, seq) = (record.run.clone().into_owned(), record.seq);
    Some(Message { position, run, seq, event, id, body: body.to_string() })
}
