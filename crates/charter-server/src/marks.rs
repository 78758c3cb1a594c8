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
use tokio::sync::watch;

/// The area of the host's state.
const AREA: &str = "inbox";
/// Requests with marks; beyond them, those that were marked longest ago are forgotten.
const MAX_MARKED: usize = 10_000;
/// People who are noted for a request.
const MAX_PEOPLE: usize = 100;

/// The marks of a request. Times are RFC 3339 texts in UTC, which sort by time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// Who has seen it, and when first.
    #[serde(default)]
    seen: BTreeMap<String, String>,
    /// Who has put it off, and until when.
    #[serde(default)]
    later: BTreeMap<String, String>,
    #[serde(default)]
    assigned: Option<Assigned>,
    /// When it was marked last.
    changed: String,
}

/// To whom a request was assigned, by whom and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Assigned {
    to: String,
    by: String,
    at: String,
}

/// The marks of a request, for one reader.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Shown {
    /// Who has seen it, and when first.
    seen: Vec<Seen>,
    /// Until when the reader has put it off.
    later: Option<String>,
    assigned: Option<Assigned>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Seen {
    id: String,
    at: String,
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
    fn add(&mut self, mark: Mark, by: &str, now: &str) {
        match mark {
            Mark::Seen => {
                if self.seen.len() < MAX_PEOPLE {
                    self.seen.entry(by.to_owned()).or_insert_with(|| now.to_owned());
                }
            }
            Mark::Later(until) => {
                self.later.retain(|id, until| id != by && until.as_str() > now);
                if let Some(until) = until.filter(|_| self.later.len() < MAX_PEOPLE) {
                    self.later.insert(by.to_owned(), timestamp::text(until));
                }
            }
            Mark::Assigned(to) => {
                self.assigned = to.map(|to| Assigned { to, by: by.to_owned(), at: now.to_owned() });
            }
        }
        now.clone_into(&mut self.changed);
    }

    fn shown(&self, to: &str, now: &str) -> Shown {
        let seen = |(id, at): (&String, &String)| Seen { id: id.clone(), at: at.clone() };
        Shown {
            seen: self.seen.iter().map(seen).collect(),
            later: self.later.get(to).filter(|until| until.as_str() > now).cloned(),
            assigned: self.assigned.clone(),
        }
    }
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
    pub(crate) fn of(&self, request: &str, reader: &str, now: Timestamp) -> Shown {
        self.marks().get(request).map(|marks| marks.shown(reader, &timestamp::text(now))).unwrap_or_default()
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
        let (text, old) = (timestamp::text(now), self.marks().get(request).cloned());
        let mut new = old.clone().unwrap_or_default();
        new.add(mark, by, &text);
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
        for n in 0..3 * MAX_PEOPLE {
            marks.add(Mark::Seen, &format!("p{n}"), "2026-01-01T00:00:00.000Z");
            marks.add(Mark::Later(Some(Timestamp(1_800_000_000_000))), &format!("p{n}"), "2026-01-01T00:00:00.000Z");
        }
        assert_eq!((marks.seen.len(), marks.later.len()), (MAX_PEOPLE, MAX_PEOPLE));
        assert_eq!(marks.shown("p1", "2026-01-02T00:00:00.000Z").later.as_deref(), Some("2027-01-15T08:00:00.000Z"));
        assert_eq!(marks.shown("eve", "2026-01-02T00:00:00.000Z").later, None);
        assert_eq!(marks.shown("p1", "2027-01-15T08:00:00.000Z").later, None, "that time has come");
        marks.add(Mark::Later(None), "p1", "2026-01-03T00:00:00.000Z");
        assert_eq!(marks.shown("p1", "2026-01-04T00:00:00.000Z").later, None);
    }
}
