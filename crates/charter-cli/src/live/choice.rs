//! Where a person is needed: what could be done now, which of it agrees and which does not, and the question on the terminal.

use charter_kernel::{Digest, Legal, Principal};
use charter_runtime::{Task, View};
use serde_json::{Map, Value as Json, json};

use super::Who;
use crate::io::{Failure, Io, Paint};
use crate::journal::lines::{clean, short};

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
                schema: output,
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
            schema: data,
            r#type,
            to,
            description,
        }));
    }
    choices
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

/// Asks. None: the run is left as it is.
pub(crate) fn ask(
    choices: &[Choice],
    view: &View,
    now: i64,
    io: &mut Io<'_>,
) -> Result<Option<(Choice, Json)>, Failure> {
    if choices.is_empty() {
        return Ok(None);
    }
    let paint = Paint(io.colour_err);
    writeln!(io.err, "\n{}", paint.strong("What next?"))?;
    for (number, choice) in choices.iter().enumerate() {
        show(number + 1, choice, view, now, paint, io)?;
    }
    writeln!(io.err, "  {}  leave it as it is", paint.help("q"))?;
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
        let Some(data) = data_of(choice, view, now, io)? else {
            return Ok(None);
        };
        return Ok(Some((choice.clone(), data)));
    }
}

fn show(
    number: usize,
    choice: &Choice,
    view: &View,
    now: i64,
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
                .map(|d| format!("  {}", clean(d)));
            let kind = paint.strong(&event.r#type);
            writeln!(io.err, "  {number}  {kind}{to}{}", what.unwrap_or_default())?;
            if let Some((value, _)) = approved(event, view, now) {
                let what = event.approves.as_deref().unwrap_or_default();
                writeln!(io.err, "     approves {what}: {}", short(&value, 600))?;
            }
        }
    }
    Ok(())
}

/// Asks for the data, one property after the other.
fn data_of(
    choice: &Choice,
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
