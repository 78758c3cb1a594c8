//! The script of a scripted actor: answers that are selected by input or given in order, with
//! delays, failures, and events to send.

use charter_expr::{CompileError, Env, EvalError, Fuel, Program, RootId, Scope, Type, Value};
use charter_kernel::Millis;
use serde_json::{Map, Value as Json};

use crate::error::ConfigError;
use crate::executor::Fault;
use charter_run::delay;

/// Why a script is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScriptError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("`{text}`: {error}")]
    Compile { text: String, error: CompileError },
    #[error("`{text}`: {error}")]
    Evaluate { text: String, error: EvalError },
    #[error("answer {number}: {error}")]
    Answer { number: u32, error: Box<ScriptError> },
}

/// The scripted answers of one actor.
#[derive(Debug)]
pub(super) struct Script {
    answers: Vec<Answer>,
}

#[derive(Debug)]
struct Answer {
    when: Option<When>,
    /// One act per attempt; further attempts repeat the last.
    attempts: Vec<Act>,
}

#[derive(Debug)]
enum When {
    /// The input must contain this value.
    Contains(Json),
    Cel(Computed),
}

/// What an actor does in one attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Act {
    /// Pause before the answer.
    pub(super) after: Millis,
    pub(super) events: Vec<ScriptedEvent>,
    pub(super) result: Ending,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Ending {
    /// Answers with an empty object.
    #[default]
    Nothing,
    Output(Computed),
    Error {
        code: String,
        message: String,
        retryable: bool,
    },
    /// Never answers.
    Never,
}

/// An event that an actor sends.
#[derive(Debug, Clone)]
pub(super) struct ScriptedEvent {
    pub(super) r#type: String,
    pub(super) to: Option<Computed>,
    pub(super) data: Option<Computed>,
    /// Delay before the event is sent.
    pub(super) after: Millis,
    /// Sends it once for each item of this list.
    pub(super) each: Option<Computed>,
    /// Sends it only if this holds.
    pub(super) when: Option<Computed>,
    pub(super) refused: OnRefusal,
}

/// What an actor does if its event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum OnRefusal {
    /// Fails with the code `refused`.
    #[default]
    Fail,
    /// Continues.
    Ignore,
    /// Tries again each time the run has changed.
    Wait,
}

/// JSON in which strings that begin with `= ` are CEL.
#[derive(Debug, Clone)]
pub(super) enum Computed {
    Literal(Json),
    Cel(Program),
    List(Vec<Computed>),
    Object(Vec<(String, Computed)>),
}

/// The variables of a script's expressions.
#[derive(Clone, Copy)]
pub(super) struct ScriptContext<'a> {
    pub(super) input: &'a Json,
    pub(super) run: &'a Json,
    pub(super) attempt: u32,
    pub(super) item: Option<&'a Json>,
}

struct Roots {
    env: Env,
    input: RootId,
    run: RootId,
    attempt: RootId,
    item: RootId,
}

fn roots() -> Roots {
    let mut env = Env::new();
    let input = env.root("input", Type::Dyn);
    let run = env.root("run", Type::Dyn);
    let attempt = env.root("attempt", Type::Dyn);
    let item = env.root("item", Type::Dyn);
    Roots { env, input, run, attempt, item }
}

struct ScriptScope<'a>(&'a ScriptContext<'a>, Roots);

impl<'a> Scope<'a> for ScriptScope<'a> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        let ScriptScope(context, roots) = self;
        if id == roots.input {
            Some(Value::from_json(context.input))
        } else if id == roots.run {
            Some(Value::from_json(context.run))
        } else if id == roots.attempt {
            Some(Value::Int(i64::from(context.attempt)))
        } else if id == roots.item {
            context.item.map(Value::from_json)
        } else {
            None
        }
    }
}

impl Computed {
    fn read(value: &Json) -> Result<Computed, ScriptError> {
        Ok(match value {
            Json::String(text) => match text.strip_prefix("= ") {
                Some(cel) => Computed::Cel(
                    Program::compile(cel, &roots().env)
                        .map_err(|error| ScriptError::Compile { text: text.clone(), error })?,
                ),
                None => Computed::Literal(value.clone()),
            },
            Json::Array(items) => Computed::List(items.iter().map(Computed::read).collect::<Result<_, _>>()?),
            Json::Object(map) => {
                let field = |(k, v): (&String, &Json)| Ok((k.clone(), Computed::read(v)?));
                Computed::Object(map.iter().map(field).collect::<Result<_, ScriptError>>()?)
            }
            other => Computed::Literal(other.clone()),
        })
    }

    pub(super) fn value(&self, context: &ScriptContext<'_>) -> Result<Json, ScriptError> {
        Ok(match self {
            Computed::Literal(json) => json.clone(),
            Computed::Cel(program) => {
                let scope = ScriptScope(context, roots());
                let value = program.eval(&scope, &mut Fuel::default()).and_then(|v| v.to_json());
                value.map_err(|error| ScriptError::Evaluate { text: format!("= {}", program.source()), error })?
            }
            Computed::List(items) => Json::Array(items.iter().map(|i| i.value(context)).collect::<Result<_, _>>()?),
            Computed::Object(fields) => {
                let field = |(k, v): &(String, Computed)| Ok((k.clone(), v.value(context)?));
                Json::Object(fields.iter().map(field).collect::<Result<_, ScriptError>>()?)
            }
        })
    }
}

impl Script {
    /// Parses the answers of an actor, a non-empty list.
    pub(super) fn read(value: &Json) -> Result<Script, ScriptError> {
        let entries = value.as_array().filter(|list| !list.is_empty());
        let entries = entries.ok_or_else(|| ConfigError::invalid("answers", "a list of answers", value))?;
        let numbered = entries.iter().zip(1u32..);
        let answers = numbered
            .map(|(e, number)| answer(e).map_err(|error| ScriptError::Answer { number, error: Box::new(error) }))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Script { answers })
    }

    /// Finds the answer to an input: the first one with a `when` that holds; otherwise the next
    /// one, in order, of those without `when`. `earlier` is the number of previous calls of the
    /// actor.
    pub(super) fn find(
        &self,
        context: &ScriptContext<'_>,
        earlier: impl FnOnce() -> Result<usize, Fault>,
    ) -> Result<Option<&Act>, Fault> {
        for answer in &self.answers {
            let holds = match &answer.when {
                None => false,
                Some(When::Contains(part)) => contains(context.input, part),
                Some(When::Cel(cel)) => cel.value(context)? == Json::Bool(true),
            };
            if holds {
                return Ok(answer.act(context.attempt));
            }
        }
        let mut in_order = self.answers.iter().filter(|a| a.when.is_none()).peekable();
        if in_order.peek().is_none() {
            return Ok(None);
        }
        Ok(in_order.nth(earlier()?).and_then(|a| a.act(context.attempt)))
    }
}

impl Answer {
    fn act(&self, attempt: u32) -> Option<&Act> {
        let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.attempts.get(at).or(self.attempts.last())
    }
}

/// Whether a value has all members of `part`, at any depth.
fn contains(value: &Json, part: &Json) -> bool {
    match (value, part) {
        (Json::Object(value), Json::Object(part)) => {
            part.iter().all(|(k, p)| value.get(k).is_some_and(|v| contains(v, p)))
        }
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (value, part) => value == part,
    }
}

fn object(value: &Json) -> Result<&Map<String, Json>, ConfigError> {
    value
        .as_object()
        .ok_or_else(|| ConfigError::Other(format!("expected an object such as `{{output: ...}}`, found `{value}`")))
}

fn check_members(map: &Map<String, Json>, known: &[&str]) -> Result<(), ConfigError> {
    match map.keys().find(|k| !known.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => Err(ConfigError::unknown_key(key, known.iter().copied())),
    }
}

fn answer(entry: &Json) -> Result<Answer, ScriptError> {
    let map = object(entry)?;
    let when = match map.get("when") {
        None => None,
        Some(cel @ Json::String(text)) if text.starts_with("= ") => Some(When::Cel(Computed::read(cel)?)),
        Some(other @ Json::String(_)) => {
            return Err(ConfigError::invalid("when", "a part of the input, or `= CEL`", other).into());
        }
        Some(part) => Some(When::Contains(part.clone())),
    };
    let attempts = match map.get("attempts") {
        None => {
            check_members(map, &["after", "events", "output", "error", "never", "when", "attempts"])?;
            vec![act(map)?]
        }
        Some(Json::Array(list)) if !list.is_empty() => {
            check_members(map, &["when", "attempts"])?;
            let attempt = |entry: &Json| {
                let map = object(entry)?;
                check_members(map, &["after", "events", "output", "error", "never", "when"])?;
                act(map)
            };
            list.iter().map(attempt).collect::<Result<_, _>>()?
        }
        Some(other) => {
            return Err(ConfigError::invalid("attempts", "a list with an entry for each attempt", other).into());
        }
    };
    Ok(Answer { when, attempts })
}

fn act(map: &Map<String, Json>) -> Result<Act, ScriptError> {
    let after = map.get("after").map_or(Ok(Millis(0)), |v| delay("after", v)).map_err(ConfigError::from)?;
    let events = match map.get("events") {
        None => Vec::new(),
        Some(Json::Array(list)) => list.iter().map(scripted_event).collect::<Result<_, _>>()?,
        Some(other) => return Err(ConfigError::invalid("events", "a list of events", other).into()),
    };
    let endings = ["output", "error", "never"].iter().filter(|k| map.contains_key(**k)).count();
    if endings > 1 {
        return Err(ConfigError::Other("only one of `output`, `error` and `never` is allowed".into()).into());
    }
    let result = match (map.get("output"), map.get("error"), map.get("never")) {
        (Some(output), _, _) => Ending::Output(Computed::read(output)?),
        (_, Some(error), _) => failure(error)?,
        (_, _, Some(Json::Bool(true))) => Ending::Never,
        (_, _, Some(other)) => return Err(ConfigError::invalid("never", "`true`", other).into()),
        _ => Ending::Nothing,
    };
    Ok(Act { after, events, result })
}

fn failure(error: &Json) -> Result<Ending, ConfigError> {
    let map = object(error)?;
    check_members(map, &["code", "message", "retryable"])?;
    let text = |key: &str| map.get(key).and_then(Json::as_str).map(str::to_owned);
    Ok(Ending::Error {
        code: text("code").unwrap_or_else(|| "failed".into()),
        message: text("message").unwrap_or_else(|| "scripted failure".into()),
        retryable: map.get("retryable").and_then(Json::as_bool).unwrap_or(true),
    })
}

fn scripted_event(event: &Json) -> Result<ScriptedEvent, ScriptError> {
    let map = object(event)?;
    check_members(map, &["type", "to", "data", "after", "each", "when", "refused"])?;
    let computed = |key: &str| map.get(key).map(Computed::read).transpose();
    let refused = match map.get("refused") {
        None => OnRefusal::Fail,
        Some(word) => match word.as_str() {
            Some("fail") => OnRefusal::Fail,
            Some("ignore") => OnRefusal::Ignore,
            Some("wait") => OnRefusal::Wait,
            _ => return Err(ConfigError::invalid("refused", "`fail`, `ignore` or `wait`", word).into()),
        },
    };
    let r#type = map.get("type").and_then(Json::as_str);
    Ok(ScriptedEvent {
        r#type: r#type.ok_or_else(|| ConfigError::missing("type", "the type of the event"))?.to_owned(),
        to: computed("to")?,
        data: computed("data")?,
        after: map.get("after").map_or(Ok(Millis(0)), |v| delay("after", v)).map_err(ConfigError::from)?,
        each: computed("each")?,
        when: computed("when")?,
        refused,
    })
}
