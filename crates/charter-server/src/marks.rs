//! What people note about requests of the inbox: that they have seen one, have put it off, or have
//! assigned it to somebody. It decides nothing, so it is kept beside the records.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use charter_journal::StateChange;
use charter_kernel::Timestamp;
use charter_runtime::RuntimeError;
use charter_runtime::backend::Backend;
use charter_scenario::timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tokio::sync::watch;

/// The area of the host's state.
const AREA: &str = "inbox";
/// Requests with marks; beyond them, those that were marked longest ago are forgotten.
const MAX_MARKED: usize = 10_000;
/// People who are noted for a request.
const MAX_PEOPLE: usize = 100;

/// The marks of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// Who has seen it, and when first.
    #[serde(default)]
    seen: BTreeMap<String, Timestamp>,
    /// Who has put it off, and until when.
    #[serde(default)]
    later: BTreeMap<String, Timestamp>,
    #[serde(default)]
    assigned: Option<Assigned>,
    /// When it was marked last.
    changed: Timestamp,
}

/// To whom a request was assigned, by whom and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Assigned {
    to: String,
    by: String,
    at: Timestamp,
}

/// A new mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    Seen,
    /// Until when it is put off; `None`: it is not put off any more.
    Later(Option<Timestamp>),
    /// To whom it is assigned; `None`: to nobody any more.
    Assigned(Option<String>),
}

impl Marks {
    fn add(&mut self, mark: Mark, by: &str, now: Timestamp) {
        match mark {
            Mark::Seen => {
                if self.seen.len() < MAX_PEOPLE {
                    self.seen.entry(by.to_owned()).or_insert(now);
                }
            }
            Mark::Later(until) => {
                self.later.retain(|id, until| id != by && *until > now);
                if let Some(until) = until.filter(|_| self.later.len() < MAX_PEOPLE) {
                    self.later.insert(by.to_owned(), until);
                }
            }
            Mark::Assigned(to) => {
                self.assigned = to.map(|to| Assigned { to, by: by.to_owned(), at: now });
            }
        }
        self.changed = now;
    }

    /// Who has seen it and when first, until when the reader has put it off, and to whom it is
    /// assigned.
    fn shown(&self, to: &str, now: Timestamp) -> Json {
        let later = self.later.get(to).filter(|until| **until > now);
        json!({
            "seen": self.seen.iter().map(|(id, at)| json!({"id": id, "at": timestamp::text(*at)})).collect::<Vec<_>>(),
            "later": later.map(|until| timestamp::text(*until)),
            "assigned": self.assigned.as_ref().map(|Assigned { to, by, at }| {
                json!({"to": to, "by": by, "at": timestamp::text(*at)})
            }),
        })
    }
}

/// What is shown of a request without marks.
pub(crate) fn none() -> Json {
    Marks::default().shown("", Timestamp::default())
}

/// The marks of the requests of a journal, by the ids of the requests.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    marks: Mutex<BTreeMap<String, Marks>>,
    /// One change is written after the other.
    writing: tokio::sync::Mutex<()>,
    changed: watch::Sender<()>,
}

impl Inbox {
    /// Reads the marks of earlier servers.
    pub(crate) async fn read(backend: &dyn Backend) -> Result<Inbox, RuntimeError> {
        let kept = backend.host_state(AREA.to_owned()).await?;
        // What cannot be read is overwritten by the next mark.
        let marks = kept.into_iter().filter_map(|(id, marks)| Some((id, serde_json::from_str(&marks).ok()?)));
        Ok(Inbox { marks: Mutex::new(marks.collect()), ..Inbox::default() })
    }

    fn marks(&self) -> MutexGuard<'_, BTreeMap<String, Marks>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The marks of a request, for one reader.
    pub(crate) fn of(&self, request: &str, reader: &str, now: Timestamp) -> Json {
        match self.marks().get(request) {
            Some(marks) => marks.shown(reader, now),
            None => none(),
        }
    }

    /// Tells that a request was marked, from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Marks a request.
    pub(crate) async fn mark(
        &self,
        backend: &dyn Backend,
        request: &str,
        mark: Mark,
        by: &str,
        now: Timestamp,
    ) -> Result<(), RuntimeError> {
        let _turn = self.writing.lock().await;
        let old = self.marks().get(request).cloned();
        let mut new = old.clone().unwrap_or_default();
        new.add(mark, by, now);
        let is_same = |old: &Marks| (&old.seen, &old.later, &old.assigned) == (&new.seen, &new.later, &new.assigned);
        if old.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let forgotten = match &old {
            None => self.oldest_beyond_limit(),
            Some(_) => None,
        };
        let value = serde_json::to_string(&new).unwrap_or_default();
        let change = |name: &str, value| StateChange { area: AREA.to_owned(), name: name.to_owned(), value };
        let mut changes = vec![change(request, Some(value))];
        changes.extend(forgotten.iter().map(|name| change(name, None)));
        backend.put_host_state(changes).await?;
        let mut marks = self.marks();
        marks.insert(request.to_owned(), new);
        if let Some(forgotten) = forgotten {
            marks.remove(&forgotten);
        }
        drop(marks);
        self.changed.send_replace(());
        Ok(())
    }

    /// The request that was marked longest ago, if one more would be too many.
    fn oldest_beyond_limit(&self) -> Option<String> {
        let marks = self.marks();
        let oldest = marks.iter().min_by(|(_, a), (_, b)| a.changed.cmp(&b.changed));
        oldest.filter(|_| marks.len() >= MAX_MARKED).map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded_and_of_one_reader() {
        let mut marks = Marks::default();
        let until = Timestamp(1_800_000_000_000);
        for n in 0..3 * MAX_PEOPLE {
            marks.add(Mark::Seen, &format!("p{n}"), Timestamp(0));
            marks.add(Mark::Later(Some(until)), &format!("p{n}"), Timestamp(0));
        }
        assert_eq!((marks.seen.len(), marks.later.len()), (MAX_PEOPLE, MAX_PEOPLE));
        assert_eq!(marks.shown("p1", Timestamp(until.0 - 1))["later"], timestamp::text(until));
        assert_eq!(marks.shown("eve", Timestamp(0))["later"], Json::Null);
        assert_eq!(marks.shown("p1", until)["later"], Json::Null, "that time has come");
        marks.add(Mark::Later(None), "p1", Timestamp(1));
        assert_eq!(marks.shown("p1", Timestamp(2))["later"], Json::Null);
    }
}
