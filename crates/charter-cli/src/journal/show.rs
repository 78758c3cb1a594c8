//! `charter show RUN`: the current state of a run, and what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use charter_kernel::{Machine, Principal, Snapshot, Timestamp};
use serde_json::{Value as Json, json};

use super::overdue::{has_no_holder, overdue};
use super::text::{clean, count, seconds, short, when};
use super::{Db, at, charter_of, find};
use crate::io::{Exit, Failure, Io, Paint};
use crate::page;
use charter_scenario::timestamp;

/// Shows a run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The run does not exist, or its records cannot be replayed.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let has_no_holder = has_no_holder(&args.db);
    let store = args.db.read()?;
    let run = find(&store, &args.run)?;
    let charter = charter_of(&store, run.charter)?;
    let (machine, snapshot) = at(&store, &run, None)?;
    let definition = machine.definition();
    let overdue = overdue(&store, has_no_holder)?.get(&run.run).copied();
    if machine_output {
        let mut all = json!({
            "run": run.run,
            "charter": {"id": definition.id, "version": definition.version, "digest": run.charter, "name": charter.name},
            "records": run.seq + 1,
            "started": timestamp::text(run.started),
            "updated": timestamp::text(run.updated),
            "hash": run.hash,
        });
        if let (Json::Object(all), Json::Object(now)) = (&mut all, now(&machine, &snapshot, run.updated)) {
            all.extend(now);
            all.extend(overdue.map(|due| ("overdue".to_owned(), timestamp::text(due).into())));
        }
        writeln!(io.out, "{all}")?;
        return Ok(Exit::Yes);
    }
    let paint = Paint(io.color_out);
    let name = format!("{} {}", definition.id, definition.version);
    writeln!(io.out, "{}  {}", paint.strong(&run.run), name.trim_end())?;
    writeln!(
        io.out,
        "  {}, {} from {} to {}",
        status(&snapshot, paint),
        count(run.seq + 1, "record"),
        seconds(run.started),
        when(run.updated)
    )?;
    if let Some(due) = overdue {
        let since = paint.warning(&format!("overdue since {}", when(due)));
        let how = format!("charter run --resume {}{}", run.run, args.db.option());
        writeln!(io.out, "  {since}: no process has the journal open to fire its timers; `{how}` does")?;
    }
    writeln!(io.out, "  {}", paint.faint(&format!("charter {}, last hash {}", run.charter, run.hash)))?;
    for line in page::lines(&machine, &snapshot, run.updated, None, paint) {
        writeln!(io.out, "{line}")?;
    }
    print(&machine, &snapshot, run.updated, io)?;
    Ok(Exit::Yes)
}

fn status(snapshot: &Snapshot, paint: Paint) -> String {
    let word = snapshot.status().word();
    match word {
        "done" => paint.good(word),
        "failed" | "cancelled" => paint.error(word),
        "paused" => paint.warning(word),
        _ => paint.help(word),
    }
}

/// The event type and the addressee of each legal event, with the roles that may send it now; if
/// there are no roles, anyone may.
pub(crate) type LegalEvents = BTreeMap<(String, String), Vec<String>>;

/// Returns the events that are legal now.
pub(crate) fn legal(machine: &Machine, snapshot: &Snapshot, now: Timestamp) -> LegalEvents {
    let mut legal = LegalEvents::new();
    let key = |event: charter_kernel::Legal| (event.r#type, event.to);
    let anonymous = machine.legal(snapshot, &Principal::new("", &[]), now);
    for event in anonymous {
        legal.entry(key(event)).or_default();
    }
    let unrestricted: BTreeSet<(String, String)> = legal.keys().cloned().collect();
    for role in machine.definition().roles.keys() {
        for event in machine.legal(snapshot, &Principal::new("", &[role]), now) {
            let key = key(event);
            if !key.0.starts_with("charter.") && !unrestricted.contains(&key) {
                legal.entry(key).or_default().push(role.clone());
            }
        }
    }
    legal
}

/// Renders ` to ACTOR`, or nothing for the root actor.
pub(crate) fn to(actor: &str) -> String {
    match actor {
        "root" => String::new(),
        actor => format!(" to {}", clean(actor)),
    }
}

/// Renders a snapshot as JSON.
pub(crate) fn now(machine: &Machine, snapshot: &Snapshot, at: Timestamp) -> Json {
    let actors = snapshot.actors().map(|actor| {
        json!({
            "id": actor.id(), "machine": actor.machine(), "status": actor.status().word(),
            "state": actor.state().collect::<Vec<_>>(), "context": actor.context(),
        })
    });
    let open = snapshot.invocations().filter(|(_, i)| !i.is_machine());
    let working = open.map(|(actor, i)| {
        json!({"actor": actor.id(), "invocation": &*i.id, "src": &*i.src, "effect": i.effect.text(snapshot.run()), "input": &*i.input})
    });
    let timers = snapshot
        .timers()
        .iter()
        .map(|t| json!({"id": &*t.id, "actor": &*t.actor, "generation": t.generation, "due": timestamp::text(t.due)}));
    let legal = legal(machine, snapshot, at);
    let legal = legal.iter().map(|((kind, to), roles)| json!({"type": kind, "to": to, "roles": roles}));
    let state: Vec<&str> = snapshot.actor("root").iter().flat_map(|a| a.state()).collect();
    json!({
        "status": snapshot.status().word(),
        "state": state,
        "actors": actors.collect::<Vec<_>>(),
        "working": working.collect::<Vec<_>>(),
        "timers": timers.collect::<Vec<_>>(),
        "legal": legal.collect::<Vec<_>>(),
        "output": snapshot.output(),
    })
}

/// Prints a snapshot as text.
pub(crate) fn print(machine: &Machine, snapshot: &Snapshot, at: Timestamp, io: &mut Io<'_>) -> Result<(), Failure> {
    const MAX_VALUE: usize = 100;
    let paint = Paint(io.color_out);
    for actor in snapshot.actors() {
        let state: Vec<&str> = actor.state().collect();
        let (name, state) = (clean(actor.id()), paint.strong(&state.join(", ")));
        match actor.id() {
            "root" => writeln!(io.out, "\nstate    {state}")?,
            _ => writeln!(io.out, "\nactor    {name} ({}): {state}", clean(actor.machine()))?,
        }
        let all: Vec<(&str, &Json)> = actor.variables().collect();
        let width = all.iter().map(|(n, _)| n.chars().count()).max().unwrap_or(0);
        for (name, value) in all {
            writeln!(io.out, "  {name:<width$}  {}", short(value, MAX_VALUE))?;
        }
    }
    let mut heading = "\nledger   ";
    for (kind, key, entry) in snapshot.ledger().iter().flat_map(|l| l.entries()) {
        writeln!(io.out, "{heading}{kind} {}: {}", clean(key), entry.status.word())?;
        heading = "         ";
    }
    let mut heading = "\nrunning  ";
    for (_, i) in snapshot.invocations().filter(|(_, i)| !i.is_machine()) {
        writeln!(io.out, "{heading}{} since record {}", clean(&i.id), i.effect.seq)?;
        heading = "         ";
    }
    let mut heading = "\ntimers   ";
    for timer in snapshot.timers() {
        writeln!(io.out, "{heading}{}  {}", when(timer.due), clean(&timer.id))?;
        heading = "         ";
    }
    let mut heading = "\nlegal    ";
    if !snapshot.status().is_finished() {
        for ((kind, actor), roles) in legal(machine, snapshot, at) {
            let roles = match roles.is_empty() {
                true => "anyone".to_owned(),
                false => roles.join(" or "),
            };
            writeln!(io.out, "{heading}{kind}{} {}", to(&actor), paint.faint(&format!("by {roles}")))?;
            heading = "         ";
        }
    }
    if let Some(output) = snapshot.output().filter(|o| !o.is_null()) {
        writeln!(io.out, "\noutput   {}", short(output, 2_000))?;
    }
    Ok(())
}
