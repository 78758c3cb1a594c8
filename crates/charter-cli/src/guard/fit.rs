//! Whether what the agent of a client changes can ever be committed in a run of the charter
//! `coder`.

use charter_guard::client::Client;
use charter_guard::gate::input_of;
use charter_journal::Store;
use serde_json::Value as Json;

use super::doctor::journal_of;
use super::init::CHARTER;
use crate::io::Failure;
use crate::journal::Db;
use crate::journal::text::quoted;

/// Why nothing can be committed, because the agent runs the tests and its client does not say how
/// they ended.
pub(super) fn untested(client: Client, run: &str, input: &Json, options: &str) -> Option<String> {
    if client != Client::Codex || is_by_host(input) {
        return None;
    }
    let test = input.get("test").and_then(Json::as_str).unwrap_or("COMMAND");
    Some(format!(
        "in the run `{run}` the agent runs the tests, and {} does not say how a command ended: they never count as \
         passed, and nothing can be committed. `charter guard init {client} --run {run}-{client} --host-tests --test \
         {}{options}` starts a run whose host runs them",
        client.title(),
        quoted(test),
    ))
}

/// Whether the host of the run runs the tests.
pub(super) fn is_by_host(input: &Json) -> bool {
    input.get("testsBy").and_then(Json::as_str) == Some("host")
}

/// The same for the run of a configured command line, if it is one of the charter `coder`.
pub(super) fn untested_by(client: Client, command: &str, db: &Db, options: &str) -> Result<Option<String>, Failure> {
    let (Some(run), true) = (run_of(command), client == Client::Codex) else { return Ok(None) };
    let store: Box<dyn Store> = match journal_of(command) {
        // The hook says itself what is wrong with it.
        Some(journal) if !journal.exists() => return Ok(None),
        Some(journal) => Db::of_file(&journal).read()?,
        None => db.read()?,
    };
    let Some(info) = store.run(run)? else { return Ok(None) };
    let charter = store.charter(info.charter)?.and_then(|charter| serde_json::from_str::<Json>(&charter.core).ok());
    if charter.is_none_or(|charter| charter.get("id").and_then(Json::as_str) != Some(CHARTER)) {
        return Ok(None);
    }
    let first = store.records(run, 0, 1)?.into_iter().next();
    Ok(first.and_then(|first| untested(client, run, &input_of(&first), options)))
}

/// The run of a command line.
pub(super) fn run_of(command: &str) -> Option<&str> {
    let (_, rest) = command.split_once(" hook ")?;
    rest.split_whitespace().next().map(|run| run.trim_matches('\''))
}
