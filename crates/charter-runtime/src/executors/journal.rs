//! Kind `journal`: what earlier runs have told, found in the journal; a charter's memory across runs.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::call::{Call, Executor, Fault, Outcome};
use crate::charter::Folder;
use crate::clock::BoxFuture;
use crate::runtime::blocking;

/// How many are given unless the actor says otherwise.
const MOST: u64 = 10;
/// The most that an actor may ask for.
const LIMIT: u64 = 1_000;

/// Kind `journal`. Configuration: `emitted` (an event type of `emit`), `where` (field of its data -> field of the input that it has to
/// equal), `most` (how many, the last first; default 10).
///
/// The answer is the list of their data. Only what is committed is seen; what the same run has told is, too.
#[derive(Debug, Clone, Copy, Default)]
pub struct Journal;

impl Executor for Journal {
    fn check(&self, _: &str, actor: &ActorDecl, _: &Folder) -> Result<(), String> {
        Wanted::read(actor).map(drop)
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async move {
            let found = blocking(move || find(&call)).await;
            found
                .unwrap_or_else(|_| Err(Fault::new("failed", "the call was broken off").retryable()))
                .map(Outcome::Done)
        })
    }
}

/// What an actor looks for.
struct Wanted<'a> {
    emitted: &'a str,
    equal: Vec<(&'a str, &'a str)>,
    most: u64,
}

impl Wanted<'_> {
    fn read(actor: &ActorDecl) -> Result<Wanted<'_>, String> {
        super::known(&actor.config, &["emitted", "where", "most"])?;
        let config = |key: &str| actor.config.get(key).filter(|v| !v.is_null());
        let emitted = match config("emitted") {
            Some(Json::String(name)) if !name.is_empty() => name,
            Some(other) => return Err(format!("`emitted` is an event type, not `{other}`")),
            None => return Err("it needs `emitted`, the event type of what it looks for".into()),
        };
        let wrong = || {
            "`where` says which fields are equal, such as `{userId: userId}`: a field of the data, a field of the input"
                .to_owned()
        };
        let equal = match config("where") {
            None => Vec::new(),
            Some(Json::Object(map)) => map
                .iter()
                .map(|(field, of)| Ok((field.as_str(), of.as_str().ok_or_else(wrong)?)))
                .collect::<Result<_, String>>()?,
            Some(_) => return Err(wrong()),
        };
        let most = match config("most") {
            None => MOST,
            Some(n) => n
                .as_u64()
                .filter(|n| (1..=LIMIT).contains(n))
                .ok_or_else(|| format!("`most` is a number from 1 to {LIMIT}, not `{n}`"))?,
        };
        Ok(Wanted { emitted, equal, most })
    }
}

fn find(call: &Call) -> Result<Json, Fault> {
    let wanted = Wanted::read(call.actor()).map_err(|why| Fault::new("config", &why))?;
    let mut equal = Vec::new();
    for (field, of) in &wanted.equal {
        // A missing field must not match what has none either.
        let value = call
            .input
            .get(*of)
            .ok_or_else(|| Fault::new("config", &format!("the input has no `{of}`, which `where` names")))?;
        equal.push((*field, value));
    }
    let mut found = Vec::new();
    let most = usize::try_from(wanted.most).unwrap_or(usize::MAX);
    let read = call.store().emitted(wanted.emitted, &mut |_, _, data| {
        // What cannot be read is no match; `charter verify` finds it.
        let data: Json = serde_json::from_str(data).unwrap_or_default();
        if equal.iter().all(|(field, value)| data.get(*field) == Some(*value)) {
            found.push(data);
        }
        found.len() < most
    });
    read.map_err(|e| Fault::new("journal", &e.to_string()).retryable())?;
    Ok(Json::Array(found))
}
