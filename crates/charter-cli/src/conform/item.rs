//! How an item of a stream becomes an event: the expressions of `stream` in the charter.

use charter_expr::{Env, EvalError, Fuel, Map, Path, Program, RootId, Scope, Segment, Type, Value};
use charter_kernel::definition::{Definition, Stream};
use charter_kernel::{Machine, Principal};
use serde_json::Value as Json;

use super::tape::Wanted;
use crate::io::Failure;
use crate::moment;

/// One expression may look at the whole of an item.
const FUEL: u64 = 100_000;

/// The expressions of `stream`, compiled.
#[derive(Debug)]
pub(crate) struct Mapping {
    run: Program,
    kind: Program,
    id: Option<Program>,
    at: Option<Program>,
    data: Option<Program>,
    to: Option<Program>,
    by: Option<Program>,
    input: Option<Program>,
}

/// An item as an event.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) run: String,
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    /// Milliseconds since 1970; none: it has no time of its own. The error says what is wrong with the time.
    pub(crate) at: Result<Option<i64>, String>,
    pub(crate) to: Option<String>,
    pub(crate) by: Principal,
    pub(crate) data: Json,
    /// Where the data stood in the item.
    pub(crate) part: Part,
}

/// What is wrong with an item, and what could be found out about it all the same.
#[derive(Debug)]
pub(crate) struct NoItem {
    pub(crate) kind: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) message: String,
}

struct Seen<'a>(&'a Json);

impl<'a> Scope<'a> for Seen<'a> {
    fn root(&self, _: RootId) -> Option<Value<'a>> {
        Some(Value::from_json(self.0))
    }
}

impl Mapping {
    /// Compiles the mapping of a charter. `clock`: the time of items is this, instead of `stream.at`.
    pub(crate) fn new(definition: &Definition, clock: Option<&str>) -> Result<Mapping, Failure> {
        let missing = |what: &str| {
            Failure::with_help(
                format!("the charter `{}` does not say {what}", definition.id),
                "add it, e.g. `stream: {run: \"= item.run\", type: \"= item.type\"}`",
            )
        };
        let stream =
            definition.stream.as_ref().ok_or_else(|| missing("how the items of a stream become events (`stream`)"))?;
        let run = stream.run.as_ref().ok_or_else(|| missing("which run an item belongs to (`stream.run`)"))?;
        let kind = stream.r#type.as_ref().ok_or_else(|| missing("which event an item is (`stream.type`)"))?;
        let optional = |cel: &Option<String>| cel.as_deref().map(compile).transpose();
        let clock = clock.map(|name| clock_of(stream, name)).transpose()?;
        Ok(Mapping {
            run: compile(run)?,
            kind: compile(kind)?,
            id: optional(&stream.id)?,
            at: optional(&clock.or_else(|| stream.at.clone()))?,
            data: optional(&stream.data)?,
            to: optional(&stream.to)?,
            by: optional(&stream.by)?,
            input: optional(&stream.input)?,
        })
    }

    /// What an item is. Its data is taken out of it where it is a part of it.
    pub(crate) fn read(&self, mut item: Json) -> Result<Item, NoItem> {
        let run = text(&self.run, &item);
        let kind = text(&self.kind, &item);
        let (run, kind) = match (run, kind) {
            (Ok(Some(run)), Ok(Some(kind))) => (run, kind),
            (run, kind) => {
                let why = |what: &str, found: &Result<Option<String>, String>| match found {
                    Ok(Some(_)) => None,
                    Ok(None) => Some(format!("{what} is null")),
                    Err(message) => Some(format!("{what} cannot be told: {message}")),
                };
                let message = why("its run", &run).or_else(|| why("its event type", &kind));
                return Err(NoItem {
                    message: message.unwrap_or_default(),
                    kind: kind.ok().flatten(),
                    run: run.ok().flatten(),
                });
            }
        };
        let no_item = |message: String| NoItem { kind: Some(kind.clone()), run: Some(run.clone()), message };
        let optional = |program: &Option<Program>| match program {
            Some(program) => text(program, &item),
            None => Ok(None),
        };
        // An id of the wrong kind is the business of the event's schema.
        let id = optional(&self.id).unwrap_or_default();
        let to = optional(&self.to).map_err(|m| no_item(format!("the actor it is for cannot be told: {m}")))?;
        let at = match &self.at {
            None => Ok(None),
            Some(program) => match evaluate(program, &item) {
                Ok(Value::Null) => Ok(None),
                Ok(Value::Timestamp(at)) => Ok(Some(at.millis())),
                Ok(value) => {
                    value.to_json().map_err(|e| e.to_string()).and_then(|value| moment::from_json(&value).map(Some))
                }
                Err(e) => Err(format!("its time cannot be told: {e}")),
            },
        };
        let by = match &self.by {
            None => Principal::default(),
            Some(program) => {
                principal(program, &item).map_err(|m| no_item(format!("who sends it cannot be told: {m}")))?
            }
        };
        let (part, made) = match &self.data {
            None => (Part::Whole, None),
            Some(program) => {
                let value = evaluate(program, &item).map_err(|e| no_item(format!("its data cannot be told: {e}")))?;
                match part_of(&item, &value) {
                    Part::Made => {
                        let json = value.to_json().map_err(|e| no_item(e.to_string()))?;
                        (Part::Made, Some(json))
                    }
                    part => (part, None),
                }
            }
        };
        let data = match (&part, made) {
            (Part::Whole, _) => item,
            (Part::Field(name), _) => {
                let field = item.get_mut(name.as_str());
                field.map(Json::take).unwrap_or_default()
            }
            (Part::Made, json) => json.unwrap_or_default(),
        };
        Ok(Item { run, kind, id, at, to, by, data, part })
    }

    /// The parts of items that decide about anything; none if that cannot be told before.
    pub(crate) fn wanted(&self, machine: &Machine) -> Option<Wanted> {
        let events = machine.event_reads().filter(|_| self.input.is_none())?;
        let mut wanted = Wanted::default();
        let others = [&self.id, &self.at, &self.to, &self.by];
        let others = others.into_iter().flatten();
        for program in others.chain([&self.run, &self.kind]) {
            for path in program.reads() {
                wanted.add(fields(path));
            }
        }
        let roots = match &self.data {
            None => vec![Vec::new()],
            Some(data) => data.reads().iter().map(fields).collect(),
        };
        for root in &roots {
            for event in events {
                wanted.add(root.iter().copied().chain(event.iter().map(AsRef::as_ref)));
            }
        }
        Some(wanted)
    }

    /// What a run starts with that this item opens.
    pub(crate) fn input(&self, item: &Json) -> Result<Json, String> {
        match &self.input {
            None => Ok(Json::Object(serde_json::Map::new())),
            Some(program) => evaluate(program, item).and_then(|value| value.to_json()).map_err(|e| e.to_string()),
        }
    }
}

/// Where the data of an event is in its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Field(String),
    /// Nowhere: it was computed.
    Made,
}

/// Finds an object again, so that it need not be copied.
fn part_of(item: &Json, value: &Value<'_>) -> Part {
    let (Value::Map(Map::Json(map)), Some(whole)) = (value, item.as_object()) else {
        return Part::Made;
    };
    if std::ptr::eq(whole, *map) {
        return Part::Whole;
    }
    let field = whole.iter().find(|(_, field)| field.as_object().is_some_and(|f| std::ptr::eq(f, *map)));
    field.map_or(Part::Made, |(name, _)| Part::Field(name.clone()))
}

/// The fields of a path, as far as they are fields.
fn fields(path: &Path) -> Vec<&str> {
    let names = path.segments().iter().map_while(|segment| match segment {
        Segment::Field(name) => Some(&**name),
        Segment::Index(_) => None,
    });
    names.collect()
}

fn compile(cel: &str) -> Result<Program, Failure> {
    let mut env = Env::new();
    env.root("item", Type::Dyn);
    // The compiler of the charter has been over it; only a clock of the command line can fail.
    Program::compile(cel, &env).map_err(|e| Failure::new(format!("`{cel}` is no expression: {}", e.message)))
}

/// The expression of `--clock`: one of the charter's clocks, or a path in the item.
fn clock_of(stream: &Stream, name: &str) -> Result<String, Failure> {
    if let Some(cel) = stream.clocks.get(name) {
        return Ok(cel.clone());
    }
    let field = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    if name.contains('.') && name.split('.').all(field) {
        return Ok(format!("item.{name}"));
    }
    let known: Vec<String> = stream.clocks.keys().map(|k| format!("`{k}`")).collect();
    let message = format!("there is no clock `{name}`");
    Err(match known.is_empty() {
        true => Failure::with_help(
            message,
            "write the path of a field, such as `--clock header.created_at`, or declare it under `stream.clocks`",
        ),
        false => Failure::with_help(
            message,
            format!(
                "the charter has {}; the path of a field, such as `header.created_at`, is possible too",
                known.join(", ")
            ),
        ),
    })
}

fn evaluate<'a>(program: &'a Program, item: &'a Json) -> Result<Value<'a>, EvalError> {
    program.eval(&Seen(item), &mut Fuel::new(FUEL))
}

fn text(program: &Program, item: &Json) -> Result<Option<String>, String> {
    match evaluate(program, item).map_err(|e| e.to_string())? {
        Value::Null => Ok(None),
        value => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => {
                let (name, vowels) = (value.type_name(), ['a', 'e', 'i', 'o', 'u']);
                let article = if name.starts_with(vowels) { "an" } else { "a" };
                Err(format!("a text is needed, this is {article} {name}"))
            }
        },
    }
}

fn principal(program: &Program, item: &Json) -> Result<Principal, String> {
    let value = evaluate(program, item).map_err(|e| e.to_string())?;
    let Value::Map(map) = &value else {
        return Err("an object with `id` and `roles` is needed".into());
    };
    let id = map.get_str("id");
    let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut roles = Vec::new();
    if let Some(Value::List(list)) = map.get_str("roles") {
        for role in list.iter() {
            roles.extend(role.as_str().map(str::to_owned));
        }
    }
    Ok(Principal { id: id.to_owned(), roles })
}
