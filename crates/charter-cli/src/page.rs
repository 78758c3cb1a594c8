//! Renders the summary page of a run, which the charter defines by `meta.page`, a list of `{label,
//! value, when}`. Texts that begin with `= ` are expressions. Values are laid out by type: text is
//! wrapped, maps of numbers from 0 to 1 become bars, lists have one item per line.

use charter_kernel::{Machine, Snapshot, Timestamp};
use charter_runtime::{is_blank, page_rows};
use serde_json::{Map, Value as Json};

use crate::io::Paint;
use crate::journal::text::{clean, short};

/// Width of a page in columns, unless the terminal is narrower.
const MAX_COLUMNS: usize = 100;
/// Maximum length of displayed text, in characters; `charter show --json` has all of it.
const MAX_TEXT: usize = 4_000;
/// Maximum number of displayed items of a list.
const MAX_ITEMS: usize = 12;
/// Maximum length of a value inside a list or a map, in characters.
const MAX_NESTED: usize = 300;
/// Width of a bar in columns.
const BAR_COLUMNS: usize = 20;

/// Renders the lines of the page; empty if the charter has no page, or the page is empty.
pub(crate) fn lines(
    machine: &Machine,
    snapshot: &Snapshot,
    now: Timestamp,
    columns: Option<usize>,
    paint: Paint,
) -> Vec<String> {
    let rows = page_rows(machine, snapshot, now);
    let rows: Vec<(String, Json)> = rows.into_iter().map(|(label, value)| (clean(&label), value)).collect();
    let labels = rows.iter().map(|(l, _)| l.chars().count()).max();
    let labels = labels.unwrap_or(0);
    let wide = columns.unwrap_or(MAX_COLUMNS).clamp(40, MAX_COLUMNS);
    let room = wide.saturating_sub(labels + 4).max(20);
    let mut lines = Vec::new();
    for (label, value) in rows {
        let mut label = Some(label);
        for line in block(&value, room, paint) {
            let left = format!("{:<labels$}", label.take().unwrap_or_default());
            lines.push(format!("  {}  {line}", paint.strong(&left)).trim_end().to_owned());
        }
    }
    lines
}

fn block(value: &Json, room: usize, paint: Paint) -> Vec<String> {
    match value {
        Json::String(text) => wrapped(text, room),
        Json::Array(list) => {
            let mut lines = Vec::new();
            for item in list.iter().take(MAX_ITEMS) {
                let item = wrapped(&nested(item), room.saturating_sub(2));
                let marks = std::iter::once("- ").chain(std::iter::repeat("  "));
                lines.extend(marks.zip(item).map(|(mark, line)| format!("{mark}{line}")));
            }
            if list.len() > MAX_ITEMS {
                lines.push(paint.faint(&format!("{} more", list.len() - MAX_ITEMS)));
            }
            lines
        }
        Json::Object(map) => match bars(map, paint) {
            Some(bars) => bars,
            None => map
                .iter()
                .filter(|(_, value)| !is_blank(value))
                .flat_map(|(name, value)| wrapped(&format!("{name}: {}", nested(value)), room))
                .collect(),
        },
        other => vec![other.to_string()],
    }
}

/// Renders numbers from 0 to 1, each as a bar.
fn bars(map: &Map<String, Json>, paint: Paint) -> Option<Vec<String>> {
    let share = |value: &Json| value.as_f64().filter(|n| (0.0..=1.0).contains(n));
    let all = map.iter().map(|(name, value)| Some((clean(name), share(value)?))).collect::<Option<Vec<_>>>()?;
    let width = all.iter().map(|(n, _)| n.chars().count()).max()?;
    let line = |(name, share): (String, f64)| {
        // Between 0 and BAR_COLUMNS, because the share is between 0 and 1.
        let full = (share * BAR_COLUMNS as f64).round() as usize;
        let (full, rest) = ("█".repeat(full), "░".repeat(BAR_COLUMNS.saturating_sub(full)));
        format!("{name:<width$}  {}{}  {share:.2}", paint.help(&full), paint.faint(&rest))
    };
    Some(all.into_iter().map(line).collect())
}

/// Renders a nested value on one line.
fn nested(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Object(map) => {
            let parts = map.iter().filter(|(_, value)| !is_blank(value));
            let parts: Vec<String> = parts
                .map(|(name, value)| match value {
                    Json::Object(_) | Json::String(_) => format!("{name}: {}", nested(value)),
                    other => format!("{name}: {}", short(other, MAX_NESTED)),
                })
                .collect();
            parts.join("; ")
        }
        other => short(other, MAX_NESTED),
    };
    cut(&text, MAX_NESTED)
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Wraps text to lines of at most `room` columns; keeps existing line breaks.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in cut(text, MAX_TEXT).lines() {
        let mut line = String::new();
        let mut length = 0;
        for word in clean(paragraph).split_whitespace() {
            let mut word = word.to_owned();
            loop {
                let long = word.chars().count();
                if length > 0 && length + 1 + long > room {
                    lines.push(std::mem::take(&mut line));
                    length = 0;
                }
                if length > 0 {
                    line.push(' ');
                    length += 1;
                }
                // Split a word that is longer than a line.
                let Some((at, _)) = word.char_indices().nth(room) else {
                    line.push_str(&word);
                    length += long;
                    break;
                };
                let rest = word.split_off(at);
                lines.push(std::mem::replace(&mut word, rest));
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use charter_kernel::{Envelope, Machine, Principal, Timestamp};
    use serde_json::json;

    use super::{block, lines, wrapped};
    use crate::io::Paint;

    #[test]
    fn values_are_laid_out_by_type() {
        let shown = |value| block(&value, 24, Paint(false));
        assert_eq!(shown(json!("one two three four five six\nseven")), ["one two three four five", "six", "seven"]);
        assert_eq!(
            shown(json!({"time": 0.5, "risk": 1})),
            ["risk  ████████████████████  1.00", "time  ██████████░░░░░░░░░░  0.50"]
        );
        assert_eq!(
            shown(json!(["a", {"option": "wait", "whyNot": {"cost": 2}}])),
            ["- a", "- option: wait; whyNot:", "  cost: 2"]
        );
        assert_eq!(shown(json!({"a": "b\u{1b}[2J", "n": null})), ["a: b\u{fffd}[2J"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(shown(json!(vec![1; 14])).len(), 13);
    }

    #[test]
    fn an_error_in_the_page_hides_nothing_else() {
        let source = "
charter: 1
id: seen
context: {text: hello}
states: {a: {type: final}}
meta:
  page:
    - {label: Said, value: '= context.text'}
    - {label: Never, value: x, when: context.text == ''}
    - {label: Wrong, value: '= context.nothing'}
    - {label: Plain, value: [1]}
";
        let document = charter_format::read(source, "seen.yaml", &Default::default()).unwrap();
        let machine = Machine::compile(document.definition).unwrap();
        let begin = Envelope::start(json!({}), Principal::default(), 0);
        let snapshot = machine.start("r", &begin).unwrap().snapshot;
        let page = lines(&machine, &snapshot, Timestamp(0), None, Paint(false));
        assert_eq!(page[0], "  Said   hello");
        assert!(page[1].starts_with("  Wrong  (error: "), "{}", page[1]);
        assert_eq!((page[2].as_str(), page.len()), ("  Plain  - 1", 3));
    }
}
