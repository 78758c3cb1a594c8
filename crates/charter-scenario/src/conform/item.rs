//! Maps an item of a stream to an event, using the expressions under `stream` in the charter.

use charter_expr::{Env, EvalError, Fuel, Map, Path, Program, RootId, Scope, Segment, Type, Value};
use charter_kernel::definition::{Definition, Stream};
use charter_kernel::digest::canonical;
use charter_kernel::{InvalidName, Machine, Principal, Timestamp, UnknownWord};
use serde_json::Value as Json;

use super::field_set::FieldSet;
use crate::timestamp::{self, TimestampError};

/// The fuel limit of one expression: enough to read a whole item.
const FUEL: u64 = 100_000;

/// The compiled expressions of `stream`.
#[derive(Debug)]
pub(crate) struct StreamMapping {
    run: Program,
    kind: Program,
    id: Option<Program>,
    at: Option<Program>,
    data: Option<Program>,
    to: Option<Program>,
    by: Option<Program>,
    input: Option<Program>,
}

/// Why a stream cannot be checked against a charter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The charter does not define a part of the mapping from items to events.
    #[error("charter `{charter}` does not define {what}")]
    NoMapping {
        /// The id of the charter.
        charter: String,
        /// What is missing, and the key that would provide it.
        what: &'static str,
    },
    /// The clock is neither declared nor a path in the item.
    #[error("unknown clock `{name}`")]
    UnknownClock {
        /// The name that was requested.
        name: String,
        /// The clocks of the charter.
        declared: Vec<String>,
    },
    /// An expression does not compile.
    #[error("invalid expression `{cel}`: {message}")]
    Expression {
        /// The expression.
        cel: String,
        /// The error message of the compiler.
        message: String,
    },
}

impl StreamError {
    /// How to fix the error, if that is known.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            StreamError::NoMapping { .. } => {
                Some("add it to the charter, e.g. `stream: {run: \"= item.run\", type: \"= item.type\"}`".into())
            }
            StreamError::UnknownClock { declared, .. } if declared.is_empty() => Some(
                "use the path of a field, such as `header.created_at`, or declare the clock under `stream.clocks`"
                    .into(),
            ),
            StreamError::UnknownClock { declared, .. } => {
                let names: Vec<String> = declared.iter().map(|name| format!("`{name}`")).collect();
                let names = names.join(", ");
                Some(format!(
                    "the charter declares {names}; the path of a field, such as `header.created_at`, works too"
                ))
            }
            StreamError::Expression { .. } => None,
        }
    }
}

/// An item that was mapped to an event.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) run: String,
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    /// `None` if the item has no time; an error if its time is invalid.
    pub(crate) at: Result<Option<Timestamp>, PartError>,
    pub(crate) to: Option<String>,
    pub(crate) by: Principal,
    pub(crate) data: Json,
    /// Where the data is in the item.
    pub(crate) part: Part,
}

/// Why an item cannot be mapped to an event, and the parts of it that are known.
#[derive(Debug)]
pub(crate) struct ItemError {
    pub(crate) kind: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) problem: PartError,
}

/// Why a part of an item could not be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PartError {
    /// An expression of the charter failed.
    #[error(transparent)]
    Evaluation(#[from] EvalError),
    /// The value is not a timestamp.
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    /// The value is not a string. Contains the name of its type, with an article.
    #[error("expected a string, found {0}")]
    NotString(String),
    /// The item is not an object. Contains the name of its type, with an article.
    #[error("expected an object, found {0}")]
    NotObject(&'static str),
    /// The value is not a principal.
    #[error("expected an object with `id` and `roles`")]
    NotPrincipal,
    /// The `kind` or the `auth` of the sender is not one that exists.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// The sender has the name of the host, or one that looks like another.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The value is required, but null.
    #[error("{0} is null")]
    Null(&'static str),
    /// Another of these errors, together with the part of the item that it concerns.
    #[error("cannot determine {part}: {error}")]
    Undetermined {
        /// The part of the item.
        part: &'static str,
        /// The error.
        error: Box<PartError>,
    },
}

impl PartError {
    fn of(self, part: &'static str) -> PartError {
        PartError::Undetermined { part, error: Box::new(self) }
    }
}

struct ItemScope<'a>(&'a Json);

impl<'a> Scope<'a> for ItemScope<'a> {
    fn root(&self, _: RootId) -> Option<Value<'a>> {
        Some(Value::from_json(self.0))
    }
}

impl StreamMapping {
    /// Compiles the mapping of a charter. `clock` overrides `stream.at`.
    pub(crate) fn new(definition: &Definition, clock: Option<&str>) -> Result<StreamMapping, StreamError> {
        let missing = |what| StreamError::NoMapping { charter: definition.id.clone(), what };
        let stream =
            definition.stream.as_ref().ok_or_else(|| missing("how items of a stream map to events (key `stream`)"))?;
        let run = stream.run.as_ref().ok_or_else(|| missing("the run of an item (key `stream.run`)"))?;
        let kind = stream.r#type.as_ref().ok_or_else(|| missing("the event type of an item (key `stream.type`)"))?;
        let optional = |cel: &Option<String>| cel.as_deref().map(compile).transpose();
        let clock = clock.map(|name| clock_of(stream, name)).transpose()?;
        Ok(StreamMapping {
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

    /// Maps an item to an event. Data that is a part of the item is moved, not copied.
    pub(crate) fn read(&self, mut item: Json) -> Result<Item, ItemError> {
        let run = text(&self.run, &item);
        let kind = text(&self.kind, &item);
        let (run, kind) = match (run, kind) {
            (Ok(Some(run)), Ok(Some(kind))) => (run, kind),
            (run, kind) => {
                if !item.is_object() {
                    let problem = PartError::NotObject(type_name(&item));
                    return Err(ItemError { kind: None, run: None, problem });
                }
                let name = |part, found: Result<Option<String>, PartError>| match found {
                    Ok(Some(name)) => Ok(name),
                    Ok(None) => Err(PartError::Null(part)),
                    Err(error) => Err(error.of(part)),
                };
                let (run, kind) = (name("the run", run), name("the event type", kind));
                let (known_run, known_kind) = (run.clone().ok(), kind.clone().ok());
                let problem = run.err().or(kind.err()).unwrap_or(PartError::Null("the item"));
                return Err(ItemError { kind: known_kind, run: known_run, problem });
            }
        };
        let item_error = |problem: PartError| ItemError { kind: Some(kind.clone()), run: Some(run.clone()), problem };
        let optional = |program: &Option<Program>| match program {
            Some(program) => text(program, &item),
            None => Ok(None),
        };
        let id = self.id.as_ref().and_then(|program| identity(program, &item));
        let to = optional(&self.to).map_err(|e| item_error(e.of("the actor addressed")))?;
        let at = match &self.at {
            None => Ok(None),
            Some(program) => match evaluate(program, &item) {
                Ok(Value::Null) => Ok(None),
                Ok(Value::Timestamp(at)) => Ok(Some(Timestamp(at.millis()))),
                Ok(value) => {
                    let json = value.to_json().map_err(PartError::from);
                    json.and_then(|json| Ok(Some(timestamp::from_json(&json)?)))
                }
                Err(e) => Err(PartError::from(e).of("the time")),
            },
        };
        let by = match &self.by {
            None => Principal::default(),
            Some(program) => principal(program, &item).map_err(|e| item_error(e.of("the sender")))?,
        };
        let (part, computed) = match &self.data {
            None => (Part::Whole, None),
            Some(program) => {
                let value = evaluate(program, &item).map_err(|e| item_error(PartError::from(e).of("the data")))?;
                match part_of(&item, &value) {
                    Part::Computed => {
                        let json = value.to_json().map_err(|e| item_error(e.into()))?;
                        (Part::Computed, Some(json))
                    }
                    part => (part, None),
                }
            }
        };
        let data = match (&part, computed) {
            (Part::Whole, _) => item,
            (Part::Field(name), _) => {
                let field = item.get_mut(name.as_str());
                field.map(Json::take).unwrap_or_default()
            }
            (Part::Computed, json) => json.unwrap_or_default(),
        };
        Ok(Item { run, kind, id, at, to, by, data, part })
    }

    /// The fields of items that can affect a verdict; `None` if they are not known in advance.
    pub(crate) fn fields_read(&self, machine: &Machine) -> Option<FieldSet> {
        let events = machine.event_reads().filter(|_| self.input.is_none())?;
        let mut needed = FieldSet::default();
        let others = [&self.id, &self.at, &self.to, &self.by];
        let others = others.into_iter().flatten();
        for program in others.chain([&self.run, &self.kind]) {
            for path in program.reads() {
                needed.add(fields(path));
            }
        }
        let roots = match &self.data {
            None => vec![Vec::new()],
            Some(data) => data.reads().iter().map(fields).collect(),
        };
        for root in &roots {
            for event in events {
                needed.add(root.iter().copied().chain(event.iter().map(AsRef::as_ref)));
            }
        }
        Some(needed)
    }

    /// Evaluates the input of the run that this item starts.
    pub(crate) fn input(&self, item: &Json) -> Result<Json, EvalError> {
        match &self.input {
            None => Ok(Json::Object(serde_json::Map::new())),
            Some(program) => evaluate(program, item).and_then(|value| value.to_json()),
        }
    }
}

/// Where the data of an event is located in its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Field(String),
    /// The data is not in the item, because it was computed.
    Computed,
}

/// Locates a value in its item, so that it need not be copied.
fn part_of(item: &Json, value: &Value<'_>) -> Part {
    let (Value::Map(Map::Json(map, _)), Some(whole)) = (value, item.as_object()) else {
        return Part::Computed;
    };
    if std::ptr::eq(whole, *map) {
        return Part::Whole;
    }
    let field = whole.iter().find(|(_, field)| field.as_object().is_some_and(|f| std::ptr::eq(f, *map)));
    field.map_or(Part::Computed, |(name, _)| Part::Field(name.clone()))
}

/// The leading fields of a path, up to the first index.
fn fields(path: &Path) -> Vec<&str> {
    let names = path.segments().iter().map_while(|segment| match segment {
        Segment::Field(name) => Some(&**name),
        Segment::Index(_) => None,
    });
    names.collect()
}

/// The name of a value's type, with an article.
fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

fn compile(cel: &str) -> Result<Program, StreamError> {
    let mut env = Env::new();
    env.root("item", Type::Dyn);
    // The expressions of the charter have compiled before; only a clock given by the caller can
    // fail.
    Program::compile(cel, &env).map_err(|e| StreamError::Expression { cel: cel.to_owned(), message: e.message })
}

/// Returns the expression of a clock: declared by the charter, or a path in the item.
fn clock_of(stream: &Stream, name: &str) -> Result<String, StreamError> {
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
    Err(StreamError::UnknownClock { name: name.to_owned(), declared: stream.clocks.keys().cloned().collect() })
}

fn evaluate<'a>(program: &'a Program, item: &'a Json) -> Result<Value<'a>, EvalError> {
    program.eval(&ItemScope(item), &mut Fuel::new(FUEL))
}

fn text(program: &Program, item: &Json) -> Result<Option<String>, PartError> {
    string_of(&evaluate(program, item)?)
}

/// Returns a string; `None` for null.
fn string_of(value: &Value<'_>) -> Result<Option<String>, PartError> {
    match value {
        Value::Null => Ok(None),
        value => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => {
                let (name, vowels) = (value.type_name(), ['a', 'e', 'i', 'o', 'u']);
                let article = if name.starts_with(vowels) { "an" } else { "a" };
                Err(PartError::NotString(format!("{article} {name}")))
            }
        },
    }
}

/// What items with the same id have in common; `None` without an id. The schema of the event checks
/// its type.
fn identity(program: &Program, item: &Json) -> Option<String> {
    match evaluate(program, item).ok()? {
        Value::Null => None,
        value => match value.as_str() {
            Some(text) => Some(text.to_owned()),
            // The number 1 is not the text "1".
            None => value.to_json().ok().map(|json| format!("\0{}", canonical(&json))),
        },
    }
}

fn principal(program: &Program, item: &Json) -> Result<Principal, PartError> {
    let value = evaluate(program, item)?;
    let Value::Map(map) = &value else {
        return Err(PartError::NotPrincipal);
    };
    let id = map.get_str("id");
    let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut roles = Vec::new();
    if let Some(Value::List(list)) = map.get_str("roles") {
        for role in list.iter() {
            roles.extend(role.as_str().map(str::to_owned));
        }
    }
    let word = |key: &str| map.get_str(key).map_or(Ok(None), |value| string_of(&value));
    let kind = word("kind")?.map(|word| word.parse()).transpose()?;
    let auth = word("auth")?.map(|word| word.parse()).transpose()?;
    let by = Principal { id: id.to_owned(), roles, kind, auth };
    by.check_sender()?;
    Ok(by)
}
