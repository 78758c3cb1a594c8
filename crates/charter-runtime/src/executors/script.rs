//! What a scripted actor reads: answers by input or in order, with delays, failures, and events that it sends.

use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value};
use serde_json::{Map, Value as Json};

use crate::config::delay;

/// A script: the answers of one actor.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) answers: Vec<Answer>,
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Answer {
    when: Option<When>,
    /// One for each attempt; further ones get the last.
    attempts: Vec<Act>,
}

#[derive(Debug)]
enum When {
    /// The input has at least this.
    Part(Json),
    Cel(Computed),
}

/// What an actor does once.
#[derive(Debug, Default)]
pub(crate) struct Act {
    /// How long it takes before it answers, in milliseconds.
    pub(crate) after: i64,
    pub(crate) events: Vec<Sent>,
    pub(crate) result: Ending,
}

#[derive(Debug, Default)]
pub(crate) enum Ending {
    /// It answers nothing special.
    #[default]
    Nothing,
    Output(Computed),
    Error {
        code: String,
        message: String,
        retryable: bool,
    },
    /// It never answers.
    Never,
}

/// An event that it sends.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) r#type: String,
    pub(crate) to: Option<Computed>,
    pub(crate) data: Option<Computed>,
    /// How long it waits before, in milliseconds.
    pub(crate) after: i64,
    /// Once for each item of a list.
    pub(crate) each: Option<Computed>,
    /// Only if this holds.
    pub(crate) when: Option<Computed>,
    pub(crate) refused: Refused,
}

/// What a scripted actor does if its event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Refused {
    /// It fails, with the code `refused`.
    #[default]
    Fail,
    /// It goes on.
    Ignore,
    /// It tries again whenever the run has changed.
    Wait,
}

/// JSON in which strings that begin with `= ` are CEL.
#[derive(Debug)]
pub(crate) enum Computed {
    Literal(Json),
    Cel(Program),
    List(Vec<Computed>),
    Object(Vec<(String, Computed)>),
}

/// What expressions of a script see.
pub(crate) struct Sight<'a> {
    pub(crate) input: &'a Json,
    pub(crate) run: &'a Json,
    pub(crate) attempt: u32,
    pub(crate) item: Option<&'a Json>,
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

struct Seen<'a>(&'a Sight<'a>, Roots);

impl<'a> Scope<'a> for Seen<'a> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        let Seen(sight, roots) = self;
        if id == roots.input {
            Some(Value::from_json(sight.input))
        } else if id == roots.run {
            Some(Value::from_json(sight.run))
        } else if id == roots.attempt {
            Some(Value::Int(i64::from(sight.attempt)))
        } else if id == roots.item {
            sight.item.map(Value::from_json)
        } else {
            None
        }
    }
}

impl Computed {
    fn read(value: &Json) -> Result<Computed, String> {
        Ok(match value {
            Json::String(text) => match text.strip_prefix("= ") {
                Some(cel) => Computed::Cel(Program::compile(cel, &roots().env).map_err(|e| format!("`{text}`: {e}"))?),
                None => Computed::Literal(value.clone()),
            },
            Json::Array(items) => Computed::List(items.iter().map(Computed::read).collect::<Result<_, _>>()?),
            Json::Object(map) => {
                let field = |(k, v): (&String, &Json)| Ok((k.clone(), Computed::read(v)?));
                Computed::Object(map.iter().map(field).collect::<Result<_, String>>()?)
            }
            other => Computed::Literal(other.clone()),
        })
    }

    pub(crate) fn value(&self, sight: &Sight<'_>) -> Result<Json, String> {
        Ok(match self {
            Computed::Literal(json) => json.clone(),
            Computed::Cel(program) => {
                let seen = Seen(sight, roots());
                let value = program.eval(&seen, &mut Fuel::default()).and_then(|v| v.to_json());
                value.map_err(|e| format!("`= {}`: {e}", program.source()))?
            }
            Computed::List(items) => Json::Array(items.iter().map(|i| i.value(sight)).collect::<Result<_, _>>()?),
            Computed::Object(fields) => {
                let field = |(k, v): &(String, Computed)| Ok((k.clone(), v.value(sight)?));
                Json::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
            }
        })
    }
}

impl Script {
    /// Reads the answers of an actor: a list of entries.
    pub(crate) fn read(value: &Json) -> Result<Script, String> {
        let Json::Array(entries) = value else {
            return Err("the answers are a list".into());
        };
        let numbered = entries.iter().zip(1u32..);
        let answers = numbered
            .map(|(e, n)| answer(e).map_err(|why| format!("answer {n}: {why}")))
            .collect::<Result<Vec<_>, _>>()?;
        if answers.is_empty() {
            return Err("there is no answer in it".into());
        }
        Ok(Script { answers })
    }

    /// The answer to an input: the first one with a `when` that holds; else, of those without, the one whose turn it is. `turn` says
    /// how often the actor was asked before.
    pub(crate) fn find(
        &self,
        sight: &Sight<'_>,
        turn: impl FnOnce() -> Result<usize, String>,
    ) -> Result<Option<&Act>, String> {
        for answer in &self.answers {
            let holds = match &answer.when {
                None => false,
                Some(When::Part(part)) => has(sight.input, part),
                Some(When::Cel(cel)) => cel.value(sight)? == Json::Bool(true),
            };
            if holds {
                return Ok(answer.act(sight.attempt));
            }
        }
        let mut in_turn = self.answers.iter().filter(|a| a.when.is_none()).peekable();
        if in_turn.peek().is_none() {
            return Ok(None);
        }
        Ok(in_turn.nth(turn()?).and_then(|a| a.act(sight.attempt)))
    }
}

impl Answer {
    fn act(&self, attempt: u32) -> Option<&Act> {
        let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        self.attempts.get(at).or(self.attempts.last())
    }
}

/// Whether a value has at least what a part says.
fn has(value: &Json, part: &Json) -> bool {
    match (value, part) {
        (Json::Object(value), Json::Object(part)) => part.iter().all(|(k, p)| value.get(k).is_some_and(|v| has(v, p))),
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (value, part) => value == part,
    }
}

fn object(value: &Json) -> Result<&Map<String, Json>, String> {
    value.as_object().ok_or_else(|| format!("an object such as `{{output: ...}}` was expected, not `{value}`"))
}

fn only(map: &Map<String, Json>, keys: &[&str]) -> Result<(), String> {
    match map.keys().find(|k| !keys.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = charter_expr::nearest(key, keys.iter().copied())
                .map(|n| format!("; did you mean `{n}`?"))
                .unwrap_or_default();
            Err(format!("it has no key `{key}`{near}"))
        }
    }
}

const ACT: [&str; 6] = ["after", "events", "output", "error", "never", "when"];

fn answer(entry: &Json) -> Result<Answer, String> {
    let map = object(entry)?;
    let when = match map.get("when") {
        None => None,
        Some(Json::String(text)) => {
            let Some(cel) = text.strip_prefix("= ") else {
                return Err(format!("`when` is part of an input, or `= CEL`, not `{text}`"));
            };
            Some(When::Cel(Computed::read(&Json::String(format!("= {cel}")))?))
        }
        Some(part) => Some(When::Part(part.clone())),
    };
    let attempts = match map.get("attempts") {
        None => {
            only(map, &["after", "events", "output", "error", "never", "when", "attempts"])?;
            vec![act(map)?]
        }
        Some(Json::Array(list)) if !list.is_empty() => {
            only(map, &["when", "attempts"])?;
            list.iter().map(|a| object(a).and_then(act)).collect::<Result<_, _>>()?
        }
        Some(other) => {
            return Err(format!("`attempts` is a list with something for each attempt, not `{other}`"));
        }
    };
    Ok(Answer { when, attempts })
}

fn act(map: &Map<String, Json>) -> Result<Act, String> {
    if !map.contains_key("attempts") {
        only(map, &ACT)?;
    }
    let after = map.get("after").map_or(Ok(0), |v| delay("after", v))?;
    let events = match map.get("events") {
        None => Vec::new(),
        Some(Json::Array(list)) => list.iter().map(sent).collect::<Result<_, _>>()?,
        Some(other) => return Err(format!("`events` is a list, not `{other}`")),
    };
    let endings = ["output", "error", "never"].iter().filter(|k| map.contains_key(**k)).count();
    if endings > 1 {
        return Err("only one of `output`, `error`, `never` can be".into());
    }
    let result = match (map.get("output"), map.get("error"), map.get("never")) {
        (Some(output), _, _) => Ending::Output(Computed::read(output)?),
        (_, Some(error), _) => failure(error)?,
        (_, _, Some(Json::Bool(true))) => Ending::Never,
        (_, _, Some(other)) => {
            return Err(format!("`never` is `true`, or left out, not `{other}`"));
        }
        _ => Ending::Nothing,
    };
    Ok(Act { after, events, result })
}

fn failure(error: &Json) -> Result<Ending, String> {
    let map = object(error)?;
    only(map, &["code", "message", "retryable"])?;
    let text = |key: &str| map.get(key).and_then(Json::as_str).map(str::to_owned);
    Ok(Ending::Error {
        code: text("code").unwrap_or_else(|| "failed".into()),
        message: text("message").unwrap_or_else(|| "the script says so".into()),
        retryable: map.get("retryable").and_then(Json::as_bool).unwrap_or(true),
    })
}

fn sent(event: &Json) -> Result<Sent, String> {
    let map = object(event)?;
    only(map, &["type", "to", "data", "after", "each", "when", "refused"])?;
    let computed = |key: &str| map.get(key).map(Computed::read).transpose();
    let refused = match map.get("refused").map(|v| v.as_str().unwrap_or_default()) {
        None | Some("fail") => Refused::Fail,
        Some("ignore") => Refused::Ignore,
        Some("wait") => Refused::Wait,
        Some(_) => return Err("`refused` is `fail`, `ignore` or `wait`".into()),
    };
    Ok(Sent {
        r#type: map.get("type").and_then(Json::as_str).map(str::to_owned).ok_or("an event has a `type`")?,
        to: computed("to")?,
        data: computed("data")?,
        after: map.get("after").map_or(Ok(0), |v| delay("after", v))?,
        each: computed("each")?,
        when: computed("when")?,
        refused,
    })
}
