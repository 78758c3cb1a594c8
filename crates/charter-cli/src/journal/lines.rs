//! A record as a line for people; texts that come from outside are kept from writing to the terminal.

use charter_journal::{Record, Verdict};
use serde_json::Value as Json;

use crate::io::Paint;
use crate::moment;

/// Writes records, one line each, with the day wherever it changes.
pub(crate) struct Lines {
    paint: Paint,
    day: String,
    width: usize,
}

impl Lines {
    /// `width`: of the longest event type that is to come, as far as known.
    pub(crate) fn new(paint: Paint, width: usize) -> Lines {
        Lines {
            paint,
            day: String::new(),
            width: width.clamp(8, 28),
        }
    }

    /// The line of a record, with its line break.
    pub(crate) fn line(&mut self, record: &Record) -> String {
        let paint = self.paint;
        let mut out = String::new();
        let (day, time) = day_and_time(record.at);
        if day != self.day {
            out.push_str(&paint.faint(&day));
            out.push('\n');
            self.day = day;
        }
        let word = format!("{:<8}", record.verdict.word());
        let verdict = match record.verdict {
            Verdict::Accepted => paint.good(&word),
            Verdict::Refused => paint.error(&word),
            Verdict::Vote => paint.help(&word),
            Verdict::Ignored | Verdict::Late => paint.warning(&word),
        };
        let kind = format!(
            "{:<width$}",
            clean(&record.event.r#type),
            width = self.width
        );
        out.push_str(&format!(
            "{:>5}  {}  {verdict}  {}  ",
            record.seq,
            paint.faint(&time),
            paint.strong(&kind)
        ));
        let mut what = Vec::new();
        if record.by.id != "system" && !record.by.id.is_empty() {
            what.push(format!("by {}", clean(&record.by.id)));
        }
        if record.to != "root" {
            what.push(format!("to {}", clean(&record.to)));
        }
        what.push(moved(record));
        out.push_str(what.join("  ").trim_end());
        out.push('\n');
        if let Some(refusal) = &record.refusal {
            let why = format!("{}: {}", refusal.code, clean(&refusal.message));
            out.push_str(&format!("{:22}{}\n", "", why));
        }
        out
    }
}

/// From where to where.
fn moved(record: &Record) -> String {
    let all = |states: &[std::borrow::Cow<'_, str>]| states.join(", ");
    let (from, to) = (all(&record.from), all(&record.state));
    match (from.as_str(), to.as_str()) {
        (from, to) if from == to => from.to_owned(),
        ("", to) => format!("→ {to}"),
        (from, "") => format!("{from} →"),
        (from, to) => format!("{from} → {to}"),
    }
}

/// `2026-11-21` and `10:00:00.000`, in UTC.
pub(crate) fn day_and_time(at: i64) -> (String, String) {
    let text = moment::text(at);
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    let time = time.trim_end_matches('Z');
    let (whole, part) = time.split_once('.').unwrap_or((time, ""));
    (day.to_owned(), format!("{whole}.{part:0<3}"))
}

/// `2026-11-21 10:00:00`, in UTC.
pub(crate) fn when(at: i64) -> String {
    let (day, time) = day_and_time(at);
    format!("{day} {}", time.split('.').next().unwrap_or_default())
}

/// A text from outside on one line, without what a terminal would obey.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// A value on one line, cut if it is long.
pub(crate) fn short(value: &Json, most: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// `1 record`, `2 records`.
pub(crate) fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
