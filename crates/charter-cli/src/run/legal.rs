//! `charter legal RUN`: the events that a run accepts now, and from whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::{Machine, Snapshot, Status};
use serde_json::json;

use super::host::{Host, Opener};
use super::{Who, follow};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::access::holder_of;
use crate::journal::text::{clean, short};
use crate::journal::{Db, at, find, show};
use crate::models;

/// Lists the legal events.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    who: Who,
    #[command(flatten)]
    db: Db,
}

/// Runs the command. It exits with 1 if no event is legal.
///
/// # Errors
/// The run does not exist.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (machine, snapshot) = state(args)?;
    let now = follow::now();
    let paint = Paint(io.color_out);
    // Collect the events for one principal, or for each role.
    let mut all: BTreeMap<(String, String), (Vec<String>, charter_kernel::Legal)> = BTreeMap::new();
    let mut put = |role: Option<&String>, principal| {
        for legal in machine.legal(&snapshot, &principal, now) {
            let key = (legal.r#type.clone(), legal.to.clone());
            let (roles, _) = all.entry(key).or_insert_with(|| (Vec::new(), legal));
            roles.extend(role.cloned());
        }
    };
    if args.who.has_roles() {
        put(None, args.who.principal());
    } else {
        let open = show::legal(&machine, &snapshot, now);
        for role in machine.definition().roles.keys() {
            let mut principal = args.who.principal();
            principal.roles = vec![role.clone()];
            put(Some(role), principal);
        }
        put(None, args.who.principal());
        // An event that anyone may send needs no role.
        for (key, (roles, _)) in &mut all {
            if open.get(key).is_some_and(Vec::is_empty) {
                roles.clear();
            }
        }
    }
    for ((kind, to), (roles, legal)) in &all {
        if machine_output {
            let line = json!({
                "type": kind, "to": to, "roles": roles, "data": legal.data,
                "description": legal.description, "depends_on_data": legal.depends_on_data,
            });
            writeln!(io.out, "{line}")?;
            continue;
        }
        let to = show::to(to);
        let by = match (roles.is_empty(), args.who.has_roles()) {
            (_, true) => String::new(),
            (true, _) => " by anyone".to_owned(),
            (false, _) => format!(" by {}", roles.join(" or ")),
        };
        let what = legal.description.as_deref().map(|d| format!("  {}", clean(d)));
        writeln!(io.out, "{}{to}{by}{}", paint.strong(kind), paint.faint(&what.unwrap_or_default()))?;
        if let Some(schema) = &legal.data {
            writeln!(io.out, "  data: {}", short(schema, 300))?;
        }
    }
    if all.is_empty() {
        if !machine_output {
            let why = match snapshot.status() {
                status if status.is_finished() => format!("no events accepted: the run is {}", status.word()),
                Status::Paused => {
                    "no events accepted now: the run is paused, and `charter.resume` by the role `operator` resumes it"
                        .to_owned()
                }
                _ if !charter_runtime::tasks(&machine, &snapshot).is_empty() => {
                    "no events accepted now: waiting for a person; `charter show` lists the task".to_owned()
                }
                _ => "no events accepted now: waiting for an actor or a timer".to_owned(),
            };
            writeln!(io.out, "{why}")?;
        }
        return Ok(Exit::No);
    }
    Ok(Exit::Yes)
}

/// Returns the current state of the run.
fn state(args: &Args) -> Result<(Arc<Machine>, Snapshot), Failure> {
    match of_holder(args) {
        // No process has the journal open, or it has just ended.
        Ok(None) | Err(Failure::Lost(_)) => {}
        Ok(Some(state)) => return Ok(state),
        Err(e) => return Err(e),
    }
    let store = args.db.read()?;
    let run = find(&store, &args.run)?;
    let (machine, snapshot) = at(&store, &run, None)?;
    Ok((Arc::new(machine), snapshot))
}

/// Returns the state according to the process that has the journal open, if there is one that
/// accepts requests.
fn of_holder(args: &Args) -> Result<Option<(Arc<Machine>, Snapshot)>, Failure> {
    if !args.db.db.is_file() || holder_of(&args.db.db)?.is_none_or(|h| h.address.is_none()) {
        return Ok(None);
    }
    let host = Host::open(&args.db, &models::Args::default(), Opener::Nobody)?;
    let view = host.view(&host.find(&args.run)?.run)?;
    Ok(Some((view.charter.machine().clone(), view.snapshot)))
}
