//! The prompt on the terminal: shows the pending decision, then the choices, then asks for the data
//! of the chosen one.

use std::time::Duration;

use charter_kernel::{Digest, Schema, Timestamp};
use charter_runtime::View;
use serde_json::{Map, Value as Json, json};

use super::approval_preview::ApprovalPreview;
use super::choice::{Choice, approved, previews, required};
use super::follow::now;
use super::hint::{by_number, enumerated, kind_of, typed_as};
use super::host::Host;
use super::pages;
use crate::input::typed;
use crate::io::{Failure, Io, Paint};
use crate::journal::offers;
use crate::journal::text::{clean, count, short, when};
use crate::page;

/// How often a prompt looks whether the run has changed.
const LOOK: Duration = Duration::from_millis(200);

/// The reply to a prompt for a choice.
pub(crate) enum Response {
    /// A choice, and its data.
    Chosen(Box<Choice>, Json),
    /// The run stays as it is.
    Quit,
    /// Others have changed the run, so that the prompt is no longer right.
    Moved,
}

/// Tells whether others have changed the run since the prompt was shown.
pub(crate) type HasMoved<'a> = dyn FnMut(&mut Io<'_>) -> Result<bool, Failure> + 'a;

/// Asks for a choice. `seen` contains the digests of values that were already shown in full; they
/// are not shown again. `others` are the events that the person at the terminal may not send, with
/// the commands of those who may.
pub(crate) fn ask(
    choices: &[Choice],
    others: &[String],
    view: &View,
    host: &Host,
    seen: &mut Vec<String>,
    has_moved: &mut HasMoved<'_>,
    io: &mut Io<'_>,
) -> Result<Response, Failure> {
    let now = now();
    let declined = |choice: &Choice| match choice {
        Choice::Task(task) => Some(Choice::Decline(task.clone())),
        _ => None,
    };
    let choices: Vec<Choice> = choices.iter().cloned().chain(choices.iter().filter_map(declined)).collect();
    if choices.is_empty() {
        return Ok(Response::Quit);
    }
    let paint = Paint(io.color_err);
    let columns = io.screen.map(|(columns, _)| usize::from(columns));
    let page = page::lines(view.charter.machine(), &view.snapshot, now, columns, paint);
    let digest = Digest::of_bytes(page.join("\n").as_bytes()).to_string();
    if !page.is_empty() && !seen.contains(&digest) {
        seen.push(digest);
        writeln!(io.err)?;
        pages::write(std::slice::from_ref(&page), io)?;
    }
    let previews = previews(choices.iter().filter_map(Choice::event), view, host, now);
    for (_, digest, preview) in &previews {
        writeln!(io.err)?;
        let mut sections = vec![preview.head(paint)];
        if !seen.contains(digest) {
            sections.extend(spaced(preview.diffs(paint)));
            seen.push(digest.clone());
        }
        pages::write(&sections, io)?;
    }
    let diffs = previews.iter().find(|c| c.2.parts() > 0);
    let list = |io: &mut Io<'_>| -> Result<(), Failure> {
        writeln!(io.err, "\n{}", paint.strong("What next?"))?;
        for (number, choice) in choices.iter().enumerate() {
            let above =
                !page.is_empty() || matches!(choice, Choice::Event(e) if previews.iter().any(|c| c.0 == e.r#type));
            show(number + 1, choice, view, now, above, paint, io)?;
        }
        if diffs.is_some() {
            let again = "show the changes again; `d 2` shows the second";
            writeln!(io.err, "  {}  {again}", paint.help("d"))?;
        }
        writeln!(io.err, "  {}  quit; the run stays as it is", paint.help("q"))?;
        for line in others {
            writeln!(io.err, "{}", paint.faint(line))?;
        }
        if let Some(timer) = view.snapshot.next_timer() {
            let due = format!("timer {} is due {}", clean(&timer.id), when(timer.due));
            writeln!(io.err, "{}", paint.faint(&due))?;
        }
        Ok(())
    };
    list(io)?;
    loop {
        write!(io.err, "> ")?;
        io.err.flush()?;
        while !(io.ready)(LOOK) {
            if has_moved(io)? {
                return Ok(Response::Moved);
            }
        }
        let Some(line) = question("", io)? else {
            return Ok(Response::Quit);
        };
        if ["q", "quit", "exit"].contains(&line.as_str()) {
            return Ok(Response::Quit);
        }
        if line.is_empty() {
            continue;
        }
        if let (Some((_, _, preview)), Some(which)) = (diffs, line.strip_prefix('d'))
            && (which.is_empty() || which.starts_with(' '))
        {
            let all = preview.diffs(paint);
            let chosen = which.trim().parse::<usize>().ok();
            let one = chosen.and_then(|n| all.get(n.checked_sub(1)?)).cloned();
            pages::write(&spaced(one.map_or(all, |one| vec![one])), io)?;
            continue;
        }
        let by_name = |c: &&Choice| matches!(c, Choice::Event(e) if e.r#type.eq_ignore_ascii_case(&line));
        let by_number = line.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
        let Some(choice) = by_number.or_else(|| choices.iter().find(by_name)) else {
            let numbers = match choices.len() {
                1 => "1".to_owned(),
                many => format!("a number from 1 to {many}"),
            };
            let again = if diffs.is_some() { ", d" } else { "" };
            writeln!(io.err, "enter {numbers}{again} or q")?;
            continue;
        };
        let part = match choice {
            Choice::Event(e) => previews.iter().find(|c| c.0 == e.r#type).map(|c| &c.2),
            Choice::Task(_) | Choice::Decline(_) => None,
        };
        let Some(data) = data_of(choice, part, io)? else {
            list(io)?;
            continue;
        };
        return Ok(Response::Chosen(Box::new(choice.clone()), data));
    }
}

/// Returns the first sentence of a long description.
fn first_sentence(text: &str) -> &str {
    match text.find(". ") {
        Some(end) if text.chars().count() > 70 => text.get(..=end).unwrap_or(text),
        _ => text,
    }
}

/// Adds an empty line before each section.
fn spaced(sections: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let with = |section| [vec![String::new()], section].concat();
    sections.into_iter().map(with).collect()
}

fn show(
    number: usize,
    choice: &Choice,
    view: &View,
    now: Timestamp,
    above: bool,
    paint: Paint,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let number = paint.help(&number.to_string());
    match choice {
        Choice::Task(task) => {
            writeln!(io.err, "  {number}  {}", paint.strong(&clean(&task.title)))?;
            if task.input != json!({}) && !task.input.is_null() {
                writeln!(io.err, "     {}", short(&task.input, 600))?;
            }
        }
        Choice::Decline(task) => {
            writeln!(io.err, "  {number}  decline: {}", clean(&task.title))?;
        }
        Choice::Event(event) => {
            let to = match event.to.as_str() {
                "root" => String::new(),
                to => format!(" to {}", clean(to)),
            };
            let what = event.description.as_deref().map(|d| format!("  {}", clean(first_sentence(d))));
            let kind = paint.strong(&event.r#type);
            writeln!(io.err, "  {number}  {kind}{to}{}", what.unwrap_or_default())?;
            if let Some(quorum) = &event.demands.quorum {
                writeln!(io.err, "     {}", paint.faint(&offers::votes(quorum)))?;
            }
            for other in &event.demands.withheld {
                writeln!(io.err, "     {}", paint.faint(&offers::withheld(other)))?;
            }
            if let Some((value, digest)) = approved(&event.to, &event.demands, view, now) {
                let what = event.demands.approves.as_ref().map(|a| clean(&a.value)).unwrap_or_default();
                let line = match above {
                    true => format!("     approves exactly {digest}"),
                    false => format!("     approves {what}: {}", short(&value, 600)),
                };
                writeln!(io.err, "{}", paint.faint(&line))?;
            }
        }
    }
    Ok(())
}

/// Asks for the data of a choice, one property at a time; `None` goes back to the choices.
fn data_of(choice: &Choice, preview: Option<&ApprovalPreview>, io: &mut Io<'_>) -> Result<Option<Json>, Failure> {
    let mut data = Map::new();
    let schema = match choice {
        Choice::Event(event) => {
            if let Some(approval) = &event.demands.approves {
                data.insert("digest".into(), approval.digest.to_string().into());
            }
            event.schema.as_ref()
        }
        Choice::Task(task) => task.schema.as_ref(),
        Choice::Decline(_) => {
            let schema = json!({"type": "string", "minLength": 1});
            say_way_back(io)?;
            return Ok(match ask_property("reason", &schema, false, io)? {
                Entered::Value(reason) => Some(reason),
                Entered::Skipped | Entered::EndOfInput => None,
            });
        }
    };
    let Some(schema) = schema else {
        return Ok(Some(Json::Object(data)));
    };
    let properties = schema.get("properties").and_then(Json::as_object);
    let Some(properties) = properties else {
        if schema.get("type").is_none_or(|t| t == "object") {
            return Ok(Some(Json::Object(data)));
        }
        say_way_back(io)?;
        return Ok(match ask_property("answer", schema, false, io)? {
            Entered::Value(value) => Some(value),
            Entered::Skipped | Entered::EndOfInput => None,
        });
    };
    let needed = required(schema);
    if properties.keys().any(|name| !data.contains_key(name)) {
        say_way_back(io)?;
    }
    // What is required first, in the order of the schema.
    let first = needed.iter().filter_map(|name| properties.get_key_value(name));
    let rest = properties.iter().filter(|(name, _)| !needed.contains(name));
    for (name, property) in first.chain(rest) {
        if data.contains_key(name) {
            continue;
        }
        if let (Some(preview), "accepted") = (preview.filter(|c| c.parts() > 0), name.as_str()) {
            let Some(part) = ask_selection(preview, io)? else {
                return Ok(None);
            };
            data.extend(part);
            continue;
        }
        let optional = !needed.contains(name);
        match ask_property(name, property, optional, io)? {
            Entered::Value(value) => drop(data.insert(name.clone(), value)),
            Entered::Skipped => {}
            Entered::EndOfInput => return Ok(None),
        }
    }
    Ok(Some(Json::Object(data)))
}

/// Says how to leave the prompts for data. No text that is typed does, because it may be the data.
fn say_way_back(io: &mut Io<'_>) -> Result<(), Failure> {
    writeln!(io.err, "{}", Paint(io.color_err).faint("  Ctrl-D goes back to the choices"))?;
    Ok(())
}

/// The reply to a prompt.
enum Entered {
    Value(Json),
    Skipped,
    EndOfInput,
}

/// Asks for a property; for an object, asks for its required properties.
fn ask_property(name: &str, property: &Json, optional: bool, io: &mut Io<'_>) -> Result<Entered, Failure> {
    let inner = property.get("properties").filter(|_| !optional);
    let needed = required(property);
    if let Some(inner) = inner.filter(|_| !needed.is_empty()) {
        let mut data = Map::new();
        for key in needed {
            let of = inner.get(&key).unwrap_or(&Json::Null);
            match ask_property(&format!("{name}.{key}"), of, false, io)? {
                Entered::Value(value) => drop(data.insert(key, value)),
                Entered::Skipped => {}
                Entered::EndOfInput => return Ok(Entered::EndOfInput),
            }
        }
        return Ok(Entered::Value(Json::Object(data)));
    }
    let kind = kind_of(property);
    let values = property.get("enum").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let optionally = if optional { ", optional: Enter leaves it out" } else { "" };
    let hint = match values {
        [] => format!(" ({}{optionally})", typed_as(kind, property)),
        values => format!(" ({}{optionally})", enumerated(values)),
    };
    // Validate here as well, because every refused event is recorded.
    let schema = Schema::compile(property).ok();
    loop {
        let Some(line) = question(&format!("  {}{hint}: ", clean(name)), io)? else {
            return Ok(Entered::EndOfInput);
        };
        if line.is_empty() {
            if optional {
                return Ok(Entered::Skipped);
            }
            // Enter alone is never an answer: it cannot be taken back.
            let empty = match schema.as_ref().is_none_or(|s| s.accepts(&"".into())) {
                true => "; `\"\"` is an empty text",
                false => "",
            };
            writeln!(io.err, "  must not be empty{empty}; Ctrl-D goes back to the choices")?;
            continue;
        }
        let value = match by_number(&line, values).cloned().map_or_else(|| typed(&line, kind), Ok) {
            Ok(value) => value,
            Err(why) => {
                writeln!(io.err, "  {}", clean(&why.to_string()))?;
                continue;
            }
        };
        let misfits = schema.as_ref().map(|s| s.misfits(&value)).unwrap_or_default();
        match misfits.first() {
            None => return Ok(Entered::Value(value)),
            Some(misfit) => writeln!(io.err, "  {}", clean(&misfit.message))?,
        }
    }
}

/// Asks which of the changes are accepted: each selection has its own digest.
fn ask_selection(preview: &ApprovalPreview, io: &mut Io<'_>) -> Result<Option<Map<String, Json>>, Failure> {
    loop {
        let Some(line) = question("  which changes? numbers or paths, or `all`: ", io)? else {
            return Ok(None);
        };
        if line.is_empty() {
            continue;
        }
        if line == "all" {
            return Ok(Some(Map::new()));
        }
        match preview.part(&line) {
            Ok((paths, _)) if paths.len() == preview.parts() => return Ok(Some(Map::new())),
            Ok((paths, digest)) => {
                let left = (preview.parts() - paths.len()) as u64;
                let (some, left) = (paths.join(", "), count(left, "change"));
                writeln!(io.err, "  accepting {}, without {left}; approves exactly {digest}", clean(&some))?;
                return Ok(Some(Map::from_iter([
                    ("digest".to_owned(), digest.into()),
                    ("accepted".to_owned(), paths.into()),
                ])));
            }
            Err(why) => writeln!(io.err, "  {why}")?,
        }
    }
}

/// Reads a line after a prompt; `None` at the end of the input. A line that was not finished with
/// Enter is not an answer.
fn question(prompt: &str, io: &mut Io<'_>) -> Result<Option<String>, Failure> {
    write!(io.err, "{prompt}")?;
    io.err.flush()?;
    let mut line = String::new();
    io.input.read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(Some(line.trim().to_owned())),
        None => {
            writeln!(io.err)?;
            Ok(None)
        }
    }
}
