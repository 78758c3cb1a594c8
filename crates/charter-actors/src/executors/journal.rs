//! Kind `journal`: searches the journal for events that earlier runs emitted, as a charter's memory
//! across runs.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::call::Call;
use crate::clock::BoxFuture;
use crate::error::ConfigError;
use crate::executor::{Executor, Fault, Outcome};
use crate::folder::Folder;

/// Default number of results.
const DEFAULT_RESULTS: u64 = 10;
/// Upper limit of `most`.
const MAX_RESULTS: u64 = 1_000;

/// Kind `journal`. Configuration: `emitted` (an event type of `emit`), `where` (a field of its data
/// -> the field of the input that it must equal), `most` (the number of results; default 10).
///
/// The answer is the list of data of the matching events, the latest first. Only committed records
/// are searched, including records of the same run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Journal;

impl Executor for Journal {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), ConfigError> {
        Query::read(actor).map(drop)
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(super::blocking(move || find(&call).map(Outcome::Done)))
    }
}

/// The query of an actor.
struct Query<'a> {
    emitted: &'a str,
    /// Pairs of a field of the data and the field of the input that it must equal.
    equal: Vec<(&'a str, &'a str)>,
    most: u64,
}

impl Query<'_> {
    fn read(actor: &ActorDecl) -> Result<Query<'_>, ConfigError> {
        super::check_keys(actor, &["emitted", "where", "most"])?;
        let config = |key: &str| actor.config.get(key).filter(|v| !v.is_null());
        let emitted = match config("emitted") {
            Some(Json::String(name)) if !name.is_empty() => name,
            Some(other) => return Err(ConfigError::invalid("emitted", "an event type", other)),
            None => return Err(ConfigError::missing("emitted", "the event type to search for")),
        };
        let equal = match config("where") {
            None => Vec::new(),
            Some(Json::Object(map)) => map
                .iter()
                .map(|(field, of)| Ok((field.as_str(), input_field(field, of)?)))
                .collect::<Result<_, ConfigError>>()?,
            Some(other) => {
                let expected = "an object such as `{userId: userId}`, from fields of the data to fields of the input";
                return Err(ConfigError::invalid("where", expected, other));
            }
        };
        let most = match config("most") {
            None => DEFAULT_RESULTS,
            Some(n) => {
                let most = n.as_u64().filter(|n| (1..=MAX_RESULTS).contains(n));
                most.ok_or_else(|| ConfigError::invalid("most", &format!("a number from 1 to {MAX_RESULTS}"), n))?
            }
        };
        Ok(Query { emitted, equal, most })
    }
}

fn input_field<'a>(field: &str, of: &'a Json) -> Result<&'a str, ConfigError> {
    of.as_str().ok_or_else(|| ConfigError::invalid(&format!("where.{field}"), "the name of a field of the input", of))
}

fn find(call: &Call) -> Result<Json, Fault> {
    let query = Query::read(call.actor())?;
    let mut equal = Vec::new();
    for (field, of) in &query.equal {
        // A field missing from the input must not match data that also lacks the field.
        let missing = || Fault::new("config", format!("the input has no `{of}`, which `where` names"));
        equal.push((*field, call.input.get(*of).ok_or_else(missing)?));
    }
    let mut found = Vec::new();
    let most = usize::try_from(query.most).unwrap_or(usize::MAX);
    let read = call.host().emitted(query.emitted, &mut |_, _, data| {
        // Unreadable data is not a match; `charter verify` reports it.
        let data: Json = serde_json::from_str(data).unwrap_or_default();
        if equal.iter().all(|(field, value)| data.get(*field) == Some(*value)) {
            found.push(data);
        }
        found.len() < most
    });
    read.map_err(|e| Fault::new("journal", e.to_string()).retryable())?;
    Ok(Json::Array(found))
}
