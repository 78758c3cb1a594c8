//! Renders records and values as text, with control characters in untrusted text replaced.

use charter_journal::{Record, SourceKind, Verdict};
use charter_kernel::visible::{is_invisible, is_joiner, is_variation_selector};
use charter_kernel::{Code, Digest, Explanation, Machine, Millis, Misfit, Status, Timestamp};
use serde_json::Value as Json;

use crate::io::Paint;
use charter_scenario::timestamp;

/// Maximum length of the message of an `error.*` event, in characters.
const MAX_MESSAGE: usize = 400;
/// Length of a shortened digest, in characters: `sha256:` and 12 digits.
const SHORT_DIGEST: usize = 19;

/// Formats records, one line each, and shows the date where it changes.
pub(crate) struct RecordLines {
    paint: Paint,
    day: String,
    /// Widths of the event types and of the senders.
    widths: (usize, usize),
}

impl RecordLines {
    /// Computes the widths of the columns from these records.
    pub(crate) fn new(paint: Paint, records: &[Record]) -> RecordLines {
        let width = |of: &dyn Fn(&Record) -> usize| records.iter().map(of).max().unwrap_or(0);
        let types = width(&|r| r.event.r#type.chars().count());
        let senders = width(&|r| who(r).chars().count());
        RecordLines { paint, day: String::new(), widths: (types.max(8), senders.min(40)) }
    }

    /// Renders the line of a record, including its line break.
    pub(crate) fn line(&mut self, record: &Record, machine: Option<&Machine>) -> String {
        let paint = self.paint;
        let mut out = String::new();
        let (day, time) = day_and_time(record.at);
        if day != self.day {
            out.push_str(&paint.faint(&format!("{day} UTC")));
            out.push('\n');
            self.day = day;
        }
        let verdict = verdict(record, paint);
        let (types, senders) = self.widths;
        let kind = format!("{:<types$}", clean(&record.event.r#type));
        let rest = format!("{:<senders$}  {}", who(record), moved(record));
        out.push_str(&format!(
            "{:>5}  {}  {verdict}  {}  {}\n",
            record.seq,
            paint.faint(&time),
            paint.strong(&kind),
            rest.trim_end()
        ));
        if let Some(refusal) = record.explanation(machine) {
            let why = format!("{}: {}", code(&refusal), clean(&refusal.message));
            out.push_str(&format!("{:31}{}\n", "", why));
        } else if let Some(error) = error(record) {
            out.push_str(&format!("{:31}{error}\n", ""));
        }
        if is_held(record) {
            out.push_str(&format!("{:31}held until the run is resumed\n", ""));
        }
        for note in record.note_messages() {
            out.push_str(&format!("{:31}note: {}\n", "", clean(&short_text(&note, MAX_MESSAGE))));
        }
        for effect in record.effects.iter().filter(|effect| is_log(effect)) {
            out.push_str(&format!("{:31}log {}\n", "", logged(effect)));
        }
        out
    }
}

/// Whether a record is an answer that a paused run has held.
pub(crate) fn is_held(record: &Record) -> bool {
    let answer = matches!(record.source.kind, SourceKind::Done | SourceKind::Error);
    answer && record.verdict == Verdict::Accepted && record.status == Some(Status::Paused)
}

/// Whether an effect is a log message.
pub(crate) fn is_log(effect: &Json) -> bool {
    effect.get("kind").is_some_and(|kind| kind == "log")
}

/// Renders the label and the value of a log message: `count: 3`.
pub(crate) fn logged(effect: &Json) -> String {
    let value = match effect.get("value") {
        Some(Json::String(text)) => short_text(&on_one_line(text), MAX_MESSAGE),
        value => short(value.unwrap_or(&Json::Null), MAX_MESSAGE),
    };
    match effect.get("label").and_then(Json::as_str) {
        Some(label) => clean(&format!("{}: {value}", short_text(label, MAX_MESSAGE))),
        None => clean(&value),
    }
}

/// Renders the code and the message of the error that an `error.*` event or a failed attempt
/// reports. The event of a time limit has no data.
pub(crate) fn error(record: &Record) -> Option<String> {
    let failed_attempt = record.source.kind == SourceKind::Attempt;
    if !failed_attempt && !record.event.r#type.starts_with("error.") {
        return None;
    }
    if failed_attempt {
        let data = |key: &str| record.event.data.get(key);
        let retry = data("retryAt").and_then(Json::as_i64);
        let retry = retry.map(|at| format!("; the next one is due {}", when(Timestamp(at)))).unwrap_or_default();
        let attempt = data("attempt").and_then(Json::as_u64).unwrap_or_default();
        return Some(format!("attempt {attempt} failed: {}{retry}", data("error").and_then(fault).unwrap_or_default()));
    }
    if let Some(timer) = record.source.timer.as_deref().filter(|_| record.source.kind == SourceKind::Timer) {
        return Some(format!("timeout: no answer within the time limit (timer {})", clean(timer)));
    }
    fault(record.event.data.get("error")?)
}

/// Renders the code and the message of an error.
fn fault(error: &Json) -> Option<String> {
    let text = |key: &str| Some(short_text(&on_one_line(error.get(key)?.as_str()?), MAX_MESSAGE));
    match (text("code"), text("message")) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (None, None) => Some(clean(&short(error, MAX_MESSAGE))),
        (code, message) => code.or(message),
    }
}

/// Renders `by ana to plan-1`, without implied parts.
fn who(record: &Record) -> String {
    let mut who = Vec::new();
    if record.by.id != "system" && !record.by.id.is_empty() {
        who.push(format!("by {}", clean(&record.by.id)));
    }
    if record.to != "root" {
        who.push(format!("to {}", clean(&record.to)));
    }
    who.join(" ")
}

/// The verdict; a failed attempt is ignored by the charter, but it counts.
pub(crate) fn word(record: &Record) -> &'static str {
    match record.source.kind {
        SourceKind::Attempt if record.verdict == Verdict::Ignored => "noted",
        _ => record.verdict.word(),
    }
}

/// Renders the verdict, padded to the width of the widest verdict.
fn verdict(record: &Record, paint: Paint) -> String {
    let word = format!("{:<8}", word(record));
    match record.verdict {
        Verdict::Accepted => paint.good(&word),
        Verdict::Refused => paint.error(&word),
        Verdict::Vote => paint.help(&word),
        _ => paint.warning(&word),
    }
}

/// Renders a new record on one line.
pub(crate) fn short_line(record: &Record, paint: Paint) -> String {
    let verdict = verdict(record, paint);
    let (to, moved) = (clean(&record.to), moved(record));
    let what = match (to.as_str(), moved.as_str()) {
        ("root", moved) => moved.to_owned(),
        // The actor does not exist.
        (to, "") => to.to_owned(),
        (to, moved) => format!("{to}: {moved}"),
    };
    format!("{}  {}  {what}", record.seq, verdict.trim_end())
}

/// Renders the states before and after.
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

/// Renders the date and the time, in UTC: `2026-11-21` and `10:00:00.000`.
pub(crate) fn day_and_time(at: Timestamp) -> (String, String) {
    let text = timestamp::text(at);
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    let time = time.trim_end_matches('Z');
    let (whole, part) = time.split_once('.').unwrap_or((time, ""));
    (day.to_owned(), format!("{whole}.{part:0<3}"))
}

/// Renders `2026-11-21 10:00:00 UTC`.
pub(crate) fn when(at: Timestamp) -> String {
    format!("{} UTC", seconds(at))
}

/// Renders `2026-11-21 10:00:00`, in UTC.
pub(crate) fn seconds(at: Timestamp) -> String {
    let (day, time) = day_and_time(at);
    format!("{day} {}", time.split('.').next().unwrap_or_default())
}

/// Renders a duration: `1.2 s`, `3 min 05 s`, `2 h 10 min`, `2 days 23 h`.
pub(crate) fn elapsed(Millis(ms): Millis) -> String {
    let s = ms / 1_000;
    match s {
        ..60 => format!("{s}.{} s", ms % 1_000 / 100),
        60..3_600 => format!("{} min {:02} s", s / 60, s % 60),
        3_600..172_800 => format!("{} h {:02} min", s / 3_600, s / 60 % 60),
        _ => match s / 3_600 % 24 {
            0 => format!("{} days", s / 86_400),
            hours => format!("{} days {hours:02} h", s / 86_400),
        },
    }
}

/// Replaces control characters and line breaks in untrusted text. Invisible characters are made
/// visible when the text is written: see [`crate::visible`].
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Renders the output of a program on one line: its lines that are not empty, joined by a space,
/// without the sequences that color and move in a terminal. See also [`clean`].
pub(crate) fn on_one_line(text: &str) -> String {
    let mut words = text.split(|c: char| c.is_whitespace()).map(|word| clean(&plain(word))).collect::<Vec<_>>();
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Leaves out escape sequences such as `ESC [ 2 J`, and other escape and backspace characters.
fn plain(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                let Some(sequence) = rest.as_str().strip_prefix('[') else { continue };
                let end = sequence.trim_start_matches(|c: char| (' '..='?').contains(&c));
                if let Some(('@'..='~', after)) = end.chars().next().map(|c| (c, end.get(c.len_utf8()..))) {
                    rest = after.unwrap_or_default().chars();
                }
            }
            '\u{8}' => {}
            c => out.push(c),
        }
    }
    out
}

/// Renders an argument of a suggested command, so that it can be pasted into a shell.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:/+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    let hidden = |c: char| c.is_control() || is_invisible(c) || is_joiner(c) || is_variation_selector(c);
    if !argument.contains(hidden) {
        return format!("'{}'", argument.replace('\'', "'\\''"));
    }
    // As bash, zsh and ksh read it, whatever the locale: byte by byte.
    let escaped = argument.chars().map(|c| match c {
        '\'' | '\\' => format!("\\{c}"),
        c if !hidden(c) => c.to_string(),
        c => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
    });
    format!("$'{}'", escaped.collect::<String>())
}

/// Renders a digest where it is only compared by people; what is to be pasted has all of it.
pub(crate) fn short_digest(digest: Digest) -> String {
    short_digest_text(&digest.to_string())
}

/// Like [`short_digest`], for the text of a digest.
pub(crate) fn short_digest_text(digest: &str) -> String {
    short_text(digest, SHORT_DIGEST)
}

/// Renders the code of a refusal, with the rule of the charter that requires it: `guard`, `rule
/// R7`, `schema, rule R2`.
pub(crate) fn code(refusal: &Explanation) -> String {
    match (refusal.code, refusal.rule.as_deref().map(clean)) {
        (code, None) => code.to_string(),
        (Code::Rule, Some(rule)) => format!("rule {rule}"),
        (code, Some(rule)) => format!("{code}, rule {rule}"),
    }
}

/// Renders the other schema violations, one line each; the message of the refusal has the first.
pub(crate) fn further(misfits: &[Misfit]) -> impl Iterator<Item = String> {
    misfits.iter().skip(1).map(|misfit| match misfit.at.as_str() {
        "" => format!("  {}", clean(&misfit.message)),
        at => format!("  at `{}`: {}", clean(at), clean(&misfit.message)),
    })
}

/// Renders a value on one line, shortened to `max` characters.
pub(crate) fn short(value: &Json, max: usize) -> String {
    short_text(&value.to_string(), max)
}

/// Like [`short`], but the code and the message of an error come first: they are what is read.
pub(crate) fn short_error_first(value: &Json, max: usize) -> String {
    let Some(error) = value.as_object().filter(|error| error.get("message").is_some_and(Json::is_string)) else {
        return short(value, max);
    };
    let first = ["code", "message"];
    let head = first.iter().filter_map(|key| error.get_key_value(*key));
    let rest = error.iter().filter(|(key, _)| !first.contains(&key.as_str()));
    let members: Vec<String> =
        head.chain(rest).map(|(key, value)| format!("{}:{value}", Json::from(key.as_str()))).collect();
    short_text(&format!("{{{}}}", members.join(",")), max)
}

/// Shortens a text to `max` characters.
pub(crate) fn short_text(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Renders `1 record`, `2 records`.
pub(crate) fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{on_one_line, short_error_first};

    #[test]
    fn the_output_of_programs_is_on_one_line() {
        for (text, line) in [
            ("10%\r20%\r\n\n  all\tdone\n", "10% 20% all done"),
            ("\u{1b}[1;32mok\u{1b}[0m \u{1b}[2Jnow\u{1b}", "ok now"),
            ("a\u{1b}[31", "a[31"),
            ("a\u{7}b\u{8}", "a\u{fffd}b"),
        ] {
            assert_eq!(on_one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn code_and_message_of_an_error_come_first() {
        let error = json!({"attempt": 1, "code": "exit", "details": {"a": 1}, "message": "no file"});
        let shown = r#"{"code":"exit","message":"no file","attempt":1,"details":{"a":1}}"#;
        assert_eq!(short_error_first(&error, 100), shown);
        assert_eq!(short_error_first(&error, 10), r#"{"code":"e…"#);
        assert_eq!(short_error_first(&json!({"b": 1, "a": 2}), 100), r#"{"a":2,"b":1}"#);
    }
}
