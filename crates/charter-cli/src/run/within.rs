//! A journal in the folder that the actors of a run work on.

use std::path::Path;

use charter_kernel::Machine;
use serde_json::Value as Json;

use crate::io::{Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::exclude::{excluded, ignored};
use crate::journal::text::clean;

/// Says that the journal in the folder of a run does not belong to what its actors see and change,
/// and keeps it out of the commits of the Git repository there.
pub(super) fn leave_out(machine: &Machine, input: &Json, db: &Db, io: &mut Io<'_>) -> Result<(), Failure> {
    let has_workspace = machine.definition().actors.values().any(|actor| actor.kind == "workspace");
    let folder = input.get("workspace").and_then(Json::as_str).filter(|_| has_workspace);
    let folder = folder.filter(|name| !name.starts_with("scratch:"));
    let Some(folder) = folder.and_then(|name| Path::new(name).canonicalize().ok()) else { return Ok(()) };
    let journal = std::path::absolute(&db.db)?;
    if db.remote()?.is_some() || ignored(&folder, &journal).is_none() {
        return Ok(());
    }
    let change = excluded(&folder, db)?.filter(|change| change.old != change.new);
    if let Some(change) = &change {
        change.make()?;
    }
    let git = if change.is_some() { ", and out of git (.git/info/exclude)" } else { "" };
    let said =
        format!("the journal {} is inside the folder: it is left out of what the agent sees{git}", clean(&db.name()));
    Ok(writeln!(io.err, "{}", Paint(io.color_err).faint(&said))?)
}
