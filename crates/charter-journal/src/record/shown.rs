//! Records for display. A record contains no messages; they are rendered here from its fields and,
//! for the rules of a charter, from the charter.

use std::borrow::Cow;

use charter_kernel::{Explanation, Machine, NoteKind, RefusalContext};
use serde_json::Value as Json;

use super::{Fields, Record, json_of};

impl Fields<'_> {
    /// Explains why the event was refused; returns `None` if it was not. Without the charter, the
    /// explanation contains the ids of its rules but not their messages.
    #[must_use]
    pub fn explanation(&self, machine: Option<&Machine>) -> Option<Explanation> {
        let ctx = RefusalContext {
            event: Cow::Borrowed(&self.event.r#type),
            invocation: self.source.invocation.as_deref(),
            by: &self.by,
            to: Cow::Borrowed(&self.to),
            state: self.from.iter().map(AsRef::as_ref).collect(),
            at: self.source.at.unwrap_or(self.at),
            expected_seq: self.expected_seq,
            machine: machine.filter(|m| m.digest() == self.charter),
        };
        self.refusal.as_ref().map(|refusal| refusal.explain(&ctx))
    }

    /// The messages of the record's notes.
    pub fn note_messages(&self) -> impl Iterator<Item = String> {
        self.notes.iter().filter_map(note_message)
    }
}

impl Record {
    /// Renders the record for display: its JSON, with a `message` in the refusal and in each
    /// candidate, schema violation and note. The hash still covers only [`Record::text`], without
    /// the messages.
    #[must_use]
    pub fn shown(&self, machine: Option<&Machine>) -> Cow<'_, str> {
        if self.refusal.is_none() && self.notes.is_empty() {
            return Cow::Borrowed(self.text());
        }
        let Ok(mut json) = json_of(self.text()) else {
            return Cow::Borrowed(self.text());
        };
        if let Some(explanation) = self.explanation(machine) {
            let refusal = json.get_mut("refusal");
            if let Some(refusal) = refusal {
                let candidates = explanation.candidates.iter().map(|c| c.message.as_str());
                set_messages(refusal.get_mut("candidates"), candidates);
                set_messages(refusal.get_mut("misfits"), explanation.misfits.iter().map(|m| m.message.as_str()));
                set_message(refusal, &explanation.message);
            }
        }
        if let Some(Json::Array(notes)) = json.get_mut("notes") {
            for note in notes {
                if let Some(message) = note_message(note) {
                    set_message(note, &message);
                }
            }
        }
        Cow::Owned(charter_kernel::digest::canonical(&json))
    }
}

fn set_message(object: &mut Json, message: &str) {
    if let Json::Object(map) = object {
        map.insert("message".into(), message.into());
    }
}

fn set_messages<'a>(list: Option<&mut Json>, messages: impl Iterator<Item = &'a str>) {
    let items = list.and_then(Json::as_array_mut).into_iter().flatten();
    items.zip(messages).for_each(|(item, message)| set_message(item, message));
}

fn note_message(note: &Json) -> Option<String> {
    serde_json::from_value::<NoteKind>(note.clone()).ok().map(|kind| kind.message())
}
