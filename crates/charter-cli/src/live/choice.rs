//! Where a person is needed: what could be done now, which of it agrees and which does not, and the question on the terminal.

use charter_kernel::{Digest, Legal, Principal};
use charter_runtime::{Task, View};
use serde_json::{Map, Value as Json, json};

use super::covered::Covered;
use super::host::Host;
use super::{Who, pages};
use crate::io::{Failure, Io, Paint};
use crate::journal::lines::{clean, count, short, when};
use crate::page;

impl Choice {
    /// Whether it is that event, to that actor.
    pub(crate) fn is(&self, kind: &str, to: &str) -> bool {
        matches!(self, Choice::Event(e) if e.r#type == kind && e.to == to)
    }
}

/// Something a person could do now.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Send an event.
    Event(Event),
    /// Answer a task.
    Task(Answer),
}

/// An event that is legal.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) r#type: String,
    pub(crate) to: String,
    pub(crate) by: Principal,
    description: Option<String>,
    schema: Option<Json>,
    approves: Option<String>,
}

/// A task that waits.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) effect: String,
    pub(crate) by: Principal,
    title: String,
    input: Json,
    schema: Option<Json>,
}

/// Everything that could be done. Whoever names no roles has all that the charter declares: it is their own machine.
pub(crate) fn all(view: &View, who: &Who, now: i64) -> Vec<Choice> {
    let machine = view.charter.machine();
    let mut by = who.principal();
    if !who.has_roles() {
        by.roles = machine.definition().roles.keys().cloned().collect();
    }
    let mut choices = Vec::new();
    for Task {
        effect,
        title,
        src,
        by: roles,
        input,
        output,
        ..
    } in view.tasks.clone()
    {
        if roles.is_empty() || roles.iter().any(|r| by.roles.contains(r)) {
            choices.push(Choice::Task(Answer {
                effect,
                by: by.clone(),
                title: title.unwrap_or(src),
                input,
                schema: output.map(resolved),
            }));
        }
    }
    for Legal {
        to,
        r#type,
        data,
        description,
        ..
    } in machine.legal(&view.snapshot, &by, now)
    {
        if r#type.starts_with("charter.") {
            continue;
        }
        choices.push(Choice::Event(Event {
            approves: approves(view, &to, &r#type),
            by: by.clone(),
            schema: data.map(resolved),
            r#type,
            to,
            description,
        }));
    }
    // What agrees comes first; the rest stays in the order of its declaration.
    choices.sort_by_key(|c| !matches!(c, Choice::Event(e) if e.approves.is_some()));
    choices
}

/// A schema in which the properties that only name another schema of it are that schema.
fn resolved(mut schema: Json) -> Json {
    let whole = schema.clone();
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut);
    for property in properties.into_iter().flatten().map(|(_, p)| p) {
        // One may be another one's name; not for ever.
        for _ in 0..8 {
            let name = property.get("$ref").and_then(Json::as_str);
            match name.and_then(|name| whole.pointer(name.strip_prefix('#')?)) {
                Some(of) => *property = of.clone(),
                None => break,
            }
        }
    }
    schema
}

/// What an event would approve in the state as it is: an expression.
fn approves(view: &View, to: &str, kind: &str) -> Option<String> {
    let machine = view.charter.machine();
    let actor = view.snapshot.actor(to)?;
    let core = serde_json::to_value(machine.definition()).ok()?;
    machine.transitions().find_map(|(of, name, at)| {
        let (state, rest) = name.rsplit_once("/on/")?;
        let events = rest.rsplit_once('/').map_or(rest, |(events, _)| events);
        let here = of == actor.machine()
            && actor.active().any(|active| active == state)
            && events.split([',', ' ']).any(|e| e == kind);
        let approves = core.pointer(at)?.get("approves")?.as_str()?;
        here.then(|| approves.to_owned())
    })
}

/// What is approved, and its digest.
fn approved(event: &Event, view: &View, now: i64) -> Option<(Json, String)> {
    let machine = view.charter.machine();
    let query = machine.query(event.approves.as_ref()?).ok()?;
    let value = machine.ask(&view.snapshot, &event.to, &query, now).ok()?;
    let digest = Digest::of_json(&value).to_string();
    Some((value, digest))
}

/// Values that are approved here and have more to show than their JSON: the event, the digest, and what it is.
pub(crate) fn covered(
    choices: &[Choice],
    view: &View,
    host: &Host,
    now: i64,
) -> Vec<(String, String, Covered)> {
    let one = |choice: &Choice| {
        let Choice::Event(event) = choice else {
            return None;
        };
        let (value, digest) = approved(event, view, now)?;
        let covered = Covered::of(&value, view, &event.to, host)?;
        Some((event.r#type.clone(), digest, covered))
    };
    choices.iter().filter_map(one).collect()
}

/// Data for an event as it could be written on the command line: what can be told is filled in, of the rest it is said what it is.
pub(crate) fn example(choices: &[Choice], kind: &str, to: &str, view: &View, now: i64) -> Json {
    let event = choices.iter().find_map(|c| match c {
        Choice::Event(e) if c.is(kind, to) => Some(e),
        _ => None,
    });
    let mut data = Map::new();
    let Some((event, schema)) = event.and_then(|e| Some((e, e.schema.as_ref()?))) else {
        return Json::Object(data);
    };
    for name in required(schema) {
        let property = schema.get("properties").and_then(|p| p.get(&name));
        let word = |key: &str| property.and_then(|p| p.get(key));
        let first = word("enum").and_then(|e| e.get(0)).or(word("const"));
        let value = match (first, word("type").and_then(Json::as_str)) {
            (Some(first), _) => first.clone(),
            (None, Some("integer" | "number")) => 0.into(),
            (None, Some("boolean")) => true.into(),
            (None, Some("array")) => json!([]),
            (None, Some("object")) => json!({}),
            _ => "...".into(),
        };
        data.insert(name, value);
    }
    if let (true, Some((_, digest))) = (data.contains_key("digest"), approved(event, view, now)) {
        data.insert("digest".into(), digest.into());
    }
    Json::Object(data)
}

/// The choice that agrees, or the one that does not, with its data; none if that cannot be told, or if it needs data that nobody gave.
pub(crate) fn agreeing(
    choices: &[Choice],
    yes: bool,
    view: &View,
    now: i64,
) -> Option<(Choice, Json)> {
    const AGREES: [&str; 7] = [
        "APPROVE", "ACCEPT", "CONFIRM", "YES", "ALLOW", "GRANT", "AGREE",
    ];
    const DISAGREES: [&str; 8] = [
        "REJECT", "DENY", "DENIED", "DECLINE", "REFUSE", "NO", "DISAGREE", "VETO",
    ];
    let fits = |event: &Event| {
        let words: Vec<String> = event
            .r#type
            .split(|c: char| !c.is_alphanumeric())
            .map(str::to_uppercase)
            .collect();
        let any = |list: &[&str]| {
            words.iter().any(|w| {
                list.iter()
                    .any(|l| w == l || (l.len() > 3 && w.starts_with(l)))
            })
        };
        match yes {
            true => event.approves.is_some() || (any(&AGREES) && !any(&DISAGREES)),
            false => any(&DISAGREES),
        }
    };
    choices.iter().find_map(|choice| {
        let data = match choice {
            Choice::Task(task) if yes => plain(task.schema.as_ref(), true)?,
            Choice::Task(_) => json!({}),
            Choice::Event(event) if fits(event) => {
                let mut data = plain_event(event, yes)?;
                if let (Json::Object(map), Some((_, digest))) =
                    (&mut data, approved(event, view, now))
                {
                    map.insert("digest".into(), digest.into());
                }
                data
            }
            Choice::Event(_) => return None,
        };
        Some((choice.clone(), data))
    })
}

fn plain_event(event: &Event, yes: bool) -> Option<Json> {
    let mut schema = event.schema.clone();
    // The digest is filled in.
    if let Some(required) = schema
        .as_mut()
        .and_then(|s| s.get_mut("required"))
        .and_then(Json::as_array_mut)
    {
        required.retain(|r| event.approves.is_none() || r != "digest");
    }
    plain(schema.as_ref(), yes)
}

/// The least data that a schema asks for, if a yes or no says it all: truth values are the answer, a reason says where it comes from.
fn plain(schema: Option<&Json>, yes: bool) -> Option<Json> {
    let mut data = Map::new();
    let Some(schema) = schema else {
        return Some(Json::Object(data));
    };
    for name in required(schema) {
        let property = schema.pointer(&format!(
            "/properties/{}",
            name.replace('~', "~0").replace('/', "~1")
        ));
        let kind = property.and_then(|p| p.get("type")).and_then(Json::as_str);
        let value = match kind {
            Some("boolean") => Json::Bool(yes),
            Some("string")
                if ["reason", "feedback", "comment", "note"].contains(&name.as_str()) =>
            {
                format!("answered with --{}", if yes { "yes" } else { "no" }).into()
            }
            _ => return None,
        };
        data.insert(name, value);
    }
    Some(Json::Object(data))
}

fn required(schema: &Json) -> Vec<String> {
    let list = schema.get("required").and_then(Json::as_array);
    let names = list.into_iter().flatten().filter_map(Json::as_str);
    names.map(str::to_owned).collect()
}

/// Asks. None: the run is left as it is. `seen`: digests of what was shown before, which is not shown at length again.
pub(crate) fn ask(
    choices: &[Choice],
    view: &View,
    host: &Host,
    seen: &mut Vec<String>,
    now: i64,
    io: &mut Io<'_>,
) -> Result<Option<(Choice, Json)>, Failure> {
    if choices.is_empty() {
        return Ok(None);
    }
    let paint = Paint(io.colour_err);
    let covered = covered(choices, view, host, now);
    for (_, digest, covered) in &covered {
        writeln!(io.err)?;
        let mut sections = vec![covered.head(paint)];
        if !seen.contains(digest) {
            sections.extend(spaced(covered.diffs(paint)));
            seen.push(digest.clone());
        }
        pages::write(&sections, io)?;
    }
    let columns = io.screen.map(|(columns, _)| usize::from(columns));
    let page = page::lines(view.charter.machine(), &view.snapshot, now, columns, paint);
    let digest = Digest::of_bytes(page.join("\n").as_bytes()).to_string();
    if !page.is_empty() && !seen.contains(&digest) {
        seen.push(digest);
        writeln!(io.err)?;
        pages::write(std::slice::from_ref(&page), io)?;
    }
    writeln!(io.err, "\n{}", paint.strong("What next?"))?;
    for (number, choice) in choices.iter().enumerate() {
        let above = !page.is_empty()
            || matches!(choice, Choice::Event(e) if covered.iter().any(|c| c.0 == e.r#type));
        show(number + 1, choice, view, now, above, paint, io)?;
    }
    let diffs = covered.iter().find(|c| c.2.parts() > 0);
    if diffs.is_some() {
        let again = "shows the changes again; `d 2` the second";
        writeln!(io.err, "  {}  {again}", paint.help("d"))?;
    }
    writeln!(io.err, "  {}  leave it as it is", paint.help("q"))?;
    if let Some(timer) = view.snapshot.next_timer() {
        let due = format!("until {} UTC; then: {}", when(timer.due), clean(&timer.id));
        writeln!(io.err, "{}", paint.faint(&due))?;
    }
    loop {
        let Some(line) = question("> ", io)? else {
            return Ok(None);
        };
        if ["q", "quit", "exit"].contains(&line.as_str()) {
            return Ok(None);
        }
        if line.is_empty() {
            continue;
        }
        if let (Some((_, _, covered)), Some(which)) = (diffs, line.strip_prefix('d'))
            && (which.is_empty() || which.starts_with(' '))
        {
            let all = covered.diffs(paint);
            let chosen = which.trim().parse::<usize>().ok();
            let one = chosen.and_then(|n| all.get(n.checked_sub(1)?)).cloned();
            pages::write(&spaced(one.map_or(all, |one| vec![one])), io)?;
            continue;
        }
        let by_name =
            |c: &&Choice| matches!(c, Choice::Event(e) if e.r#type.eq_ignore_ascii_case(&line));
        let by_number = line
            .parse::<usize>()
            .ok()
            .and_then(|n| choices.get(n.checked_sub(1)?));
        let Some(choice) = by_number.or_else(|| choices.iter().find(by_name)) else {
            writeln!(io.err, "a number from 1 to {}, or q", choices.len())?;
            continue;
        };
        let part = match choice {
            Choice::Event(e) => covered.iter().find(|c| c.0 == e.r#type).map(|c| &c.2),
            Choice::Task(_) => None,
        };
        let Some(data) = data_of(choice, part, view, now, io)? else {
            return Ok(None);
        };
        return Ok(Some((choice.clone(), data)));
    }
}

/// As much of a description as a list has room for.
fn first_sentence(text: &str) -> &str {
    match text.find(". ") {
        Some(end) if text.chars().count() > 70 => text.get(..=end).unwrap_or(text),
        _ => text,
    }
}

/// With an empty line before each.
fn spaced(sections: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let with = |section| [vec![String::new()], section].concat();
    sections.into_iter().map(with).collect()
}

fn show(
    number: usize,
    choice: &Choice,
    view: &View,
    now: i64,
    above: bool,
    paint: Paint,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let number = paint.help(&number.to_string());
    match choice {
        Choice::Task(task) => {
            writeln!(io.err, "  {number}  {}", paint.strong(&clean(&task.title)))?;
            if task.input != json!({}) {
                writeln!(io.err, "     {}", short(&task.input, 600))?;
            }
        }
        Choice::Event(event) => {
            let to = match event.to.as_str() {
                "root" => String::new(),
                to => format!(" to {}", clean(to)),
            };
            let what = event
                .description
                .as_deref()
                .map(|d| format!("  {}", clean(first_sentence(d))));
            let kind = paint.strong(&event.r#type);
            writeln!(io.err, "  {number}  {kind}{to}{}", what.unwrap_or_default())?;
            if let Some((value, digest)) = approved(event, view, now) {
                let what = event.approves.as_deref().unwrap_or_default();
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

/// Asks for the data, one property after the other.
fn data_of(
    choice: &Choice,
    covered: Option<&Covered>,
    view: &View,
    now: i64,
    io: &mut Io<'_>,
) -> Result<Option<Json>, Failure> {
    let mut data = Map::new();
    let schema = match choice {
        Choice::Event(event) => {
            if let Some((_, digest)) = approved(event, view, now) {
                data.insert("digest".into(), digest.into());
            }
            event.schema.as_ref()
        }
        Choice::Task(task) => task.schema.as_ref(),
    };
    let Some(schema) = schema else {
        return Ok(Some(Json::Object(data)));
    };
    let properties = schema.get("properties").and_then(Json::as_object);
    let Some(properties) = properties else {
        if schema.get("type").is_none_or(|t| t == "object") {
            return Ok(Some(Json::Object(data)));
        }
        let Some(line) = question("JSON: ", io)? else {
            return Ok(None);
        };
        return Ok(Some(
            serde_json::from_str(&line).unwrap_or(Json::String(line)),
        ));
    };
    let needed = required(schema);
    for (name, property) in properties {
        if data.contains_key(name) {
            continue;
        }
        if let (Some(covered), "accepted") = (covered.filter(|c| c.parts() > 0), name.as_str()) {
            let Some(part) = part_of(covered, io)? else {
                return Ok(None);
            };
            data.extend(part);
            continue;
        }
        let kind = property.get("type").and_then(Json::as_str).unwrap_or("any");
        let optional = !needed.contains(name);
        let hint = match (property.get("enum"), optional) {
            (Some(one), _) => format!(" {}", short(one, 200)),
            (None, true) => format!(" ({kind}, may be empty)"),
            (None, false) => format!(" ({kind})"),
        };
        let Some(line) = question(&format!("  {}{hint}: ", clean(name)), io)? else {
            return Ok(None);
        };
        if line.is_empty() && optional {
            continue;
        }
        data.insert(name.clone(), typed(&line, kind));
    }
    Ok(Some(Json::Object(data)))
}

/// Asks which of the changes are accepted: a part of them has a digest of its own.
fn part_of(covered: &Covered, io: &mut Io<'_>) -> Result<Option<Map<String, Json>>, Failure> {
    loop {
        let Some(line) = question("  which changes? numbers, or Enter for all of them: ", io)?
        else {
            return Ok(None);
        };
        if line.is_empty() || line == "all" {
            return Ok(Some(Map::new()));
        }
        match covered.part(&line) {
            Ok((paths, _)) if paths.len() == covered.parts() => return Ok(Some(Map::new())),
            Ok((paths, digest)) => {
                let left = (covered.parts() - paths.len()) as u64;
                let (some, left) = (paths.join(", "), count(left, "change"));
                writeln!(io.err, "  only {}; {left} left out", clean(&some))?;
                return Ok(Some(Map::from_iter([
                    ("digest".to_owned(), digest.into()),
                    ("accepted".to_owned(), paths.into()),
                ])));
            }
            Err(why) => writeln!(io.err, "  {why}")?,
        }
    }
}

/// A text as the type that is asked for; the schema judges it afterwards.
fn typed(line: &str, kind: &str) -> Json {
    match (kind, line.to_lowercase().as_str()) {
        ("string", _) => line.into(),
        ("boolean", "y" | "yes" | "true") => true.into(),
        ("boolean", "n" | "no" | "false") => false.into(),
        _ => serde_json::from_str(line).unwrap_or_else(|_| line.into()),
    }
}

/// A line from the person; none at the end of the input.
fn question(prompt: &str, io: &mut Io<'_>) -> Result<Option<String>, Failure> {
    write!(io.err, "{prompt}")?;
    io.err.flush()?;
    let mut line = String::new();
    match io.input.read_line(&mut line)? {
        0 => {
            writeln!(io.err)?;
            Ok(None)
        }
        _ => Ok(Some(line.trim().to_owned())),
    }
}
