//! The timers in a record.

use std::borrow::Cow;

use charter_kernel::canonical::{write_int, write_str, write_uint};
use charter_kernel::{TimerChange, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// What happened to a timer: `{"set", "generation", "due"}`, `{"cancel", "generation"}`, `{"fired",
/// "generation"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerField<'a> {
    /// The change.
    pub what: TimerWord,
    /// Its id.
    pub timer: Cow<'a, str>,
    /// The generation, which distinguishes timers with the same id.
    pub generation: u64,
    /// The due time of a timer that was set; rounded to a double beyond 2^53 ms.
    pub due: Option<Timestamp>,
}

/// A kind of timer change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimerWord {
    /// The timer was set.
    Set,
    /// The timer was cancelled: its state was exited, or its invocation ended.
    Cancel,
    /// The timer was due, and its event was processed.
    Fired,
}

impl TimerWord {
    /// The value in the text of a record.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TimerWord::Set => "set",
            TimerWord::Cancel => "cancel",
            TimerWord::Fired => "fired",
        }
    }
}

impl<'a> TimerField<'a> {
    pub(super) fn fired(timer: &'a str, generation: u64) -> TimerField<'a> {
        TimerField { what: TimerWord::Fired, timer: Cow::Borrowed(timer), generation, due: None }
    }

    pub(super) fn of(change: &'a TimerChange) -> TimerField<'a> {
        match change {
            TimerChange::Set(t) => TimerField {
                what: TimerWord::Set,
                timer: Cow::Borrowed(&t.id),
                generation: t.generation,
                due: Some(kept(t.due)),
            },
            TimerChange::Cancel { id, generation } => {
                TimerField { what: TimerWord::Cancel, timer: Cow::Borrowed(id), generation: *generation, due: None }
            }
        }
    }

    pub(super) fn owned(self) -> TimerField<'static> {
        TimerField { timer: Cow::Owned(self.timer.into_owned()), ..self }
    }

    /// Appends its canonical JSON, with the keys in order: `cancel`, `due`, `fired`, `generation`,
    /// `set`.
    pub(super) fn write(&self, out: &mut String) {
        let first = match self.what {
            TimerWord::Set => "{",
            TimerWord::Cancel => "{\"cancel\":",
            TimerWord::Fired => "{\"fired\":",
        };
        out.push_str(first);
        if self.what != TimerWord::Set {
            write_str(out, &self.timer);
            out.push(',');
        } else if let Some(due) = self.due {
            out.push_str("\"due\":");
            write_int(out, due.0);
            out.push(',');
        }
        out.push_str("\"generation\":");
        write_uint(out, self.generation);
        if self.what == TimerWord::Set {
            out.push_str(",\"set\":");
            write_str(out, &self.timer);
        }
        out.push('}');
    }
}

/// Rounds a timestamp as a round trip through JSON does, where numbers are doubles.
fn kept(Timestamp(ms): Timestamp) -> Timestamp {
    Timestamp(if ms.unsigned_abs() < 1 << 53 { ms } else { ms as f64 as i64 })
}

impl<'de: 'a, 'a> Deserialize<'de> for TimerField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Text<'a> {
            #[serde(borrow)]
            set: Option<Cow<'a, str>>,
            #[serde(borrow)]
            cancel: Option<Cow<'a, str>>,
            #[serde(borrow)]
            fired: Option<Cow<'a, str>>,
            generation: u64,
            due: Option<serde_json::Number>,
        }
        let text = Text::deserialize(deserializer)?;
        let (what, timer) = match (text.set, text.cancel, text.fired) {
            (Some(timer), None, None) => (TimerWord::Set, timer),
            (None, Some(timer), None) => (TimerWord::Cancel, timer),
            (None, None, Some(timer)) => (TimerWord::Fired, timer),
            _ => {
                return Err(D::Error::custom("a timer has exactly one of `set`, `cancel` and `fired`"));
            }
        };
        let exact = |n: &serde_json::Number| n.as_i64().filter(|i| i.unsigned_abs() < 1 << 53);
        let due = text.due.and_then(|n| exact(&n).or_else(|| n.as_f64().map(|d| d as i64)));
        if due.is_some() != (what == TimerWord::Set) {
            return Err(D::Error::custom("`due` is required with `set`, and not allowed otherwise"));
        }
        Ok(TimerField { what, timer, generation: text.generation, due: due.map(Timestamp) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;

    proptest! {
        #[test]
        fn timers_survive_a_round_trip(timer in any::<String>(), generation in 0u64..1 << 53, due in any::<i64>(), what in 0..3) {
            let what = [TimerWord::Set, TimerWord::Cancel, TimerWord::Fired][what as usize];
            let field = TimerField {
                what,
                timer: Cow::Borrowed(&timer),
                generation,
                due: (what == TimerWord::Set).then(|| kept(Timestamp(due))),
            };
            let mut text = String::new();
            field.write(&mut text);
            let json: Json = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&text, &charter_kernel::digest::canonical(&json));
            prop_assert_eq!(&json[what.word()], &json!(timer));
            prop_assert_eq!(serde_json::from_str::<TimerField<'_>>(&text).unwrap(), field);
        }
    }

    #[test]
    fn invalid_timers_are_refused() {
        for bad in [
            json!({"generation": 1}),
            json!({"set": "a", "cancel": "a", "generation": 1, "due": 1}),
            json!({"set": "a", "generation": 1}),
            json!({"fired": "a", "generation": 1, "due": 1}),
            json!({"cancel": "a", "generation": -1}),
        ] {
            assert!(serde_json::from_str::<TimerField<'_>>(&bad.to_string()).is_err(), "{bad}");
        }
    }
}
