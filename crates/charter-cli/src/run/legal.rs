//! `charter legal RUN`: the events that a run accepts now, and from whom.

use std::sync::Arc;

use charter_kernel::{Machine, Snapshot, Status, Timestamp};
use charter_runtime::{Task, View};
use charter_scenario::timestamp;
use serde_json::{Value as Json, json};

use super::host::{Host, Opener};
use super::suggest::Suggest;
use super::{Who, follow, trust};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::access::holder_of;
use crate::journal::offers::{self, Barred, Offer};
use crate::journal::overdue;
use crate::journal::show::Hosting;
use crate::journal::text::{clean, count, short};
use crate::journal::{Db, at, show};
use crate::{models, program};

/// Maximum length of a schema, in characters: the data has to fit all of it.
const MAX_SCHEMA: usize = 4_000;

/// Maximum number of tasks that are listed.
const MAX_TASKS: usize = 20;

/// Lists the legal events, and the tasks that wait for a person.
#[derive(Debug, Clone, clap::Args)]
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
    let args = &Args { who: args.who.known_to(&args.db)?, ..args.clone() };
    let State { machine, snapshot, overdue, dry, untrusted } = state(args)?;
    let now = follow::now();
    let paint = Paint(io.color_out);
    let by = args.who.principal_in(&machine, snapshot.run());
    let (all, others) = match args.who.is_unnamed() {
        true => (offers::all(&machine, &snapshot, now), Vec::new()),
        false => offers::to(&machine, &snapshot, &by, now),
    };
    // What others may send is listed for a user who names nobody; the rest has a reason.
    let listed = |barred: &Barred| all.iter().any(|o| o.event.r#type == barred.kind && o.event.to == barred.to);
    let mut barred = offers::barred(&machine, &snapshot, &by, &others, now);
    barred.retain(|barred| !listed(barred));
    let all = offers::with_votes(all, &args.db, &snapshot);
    if let Some(due) = overdue.filter(|_| !machine_output) {
        writeln!(io.out, "{}", paint.warning(&overdue::warning(due)))?;
    }
    let suggest = Suggest::new((&machine, &snapshot), &args.who, &args.db, &all, now);
    let tasks = charter_runtime::tasks(&machine, &snapshot, dry);
    for task in tasks.iter().filter(|task| task.dry && !machine_output) {
        let [answer, _] = suggest.answer(task);
        writeln!(io.out, "{}: not started; answer with `{answer}`", paint.warning(&format!("dry: {}", task.src)))?;
    }
    let untrusted = untrusted && !snapshot.status().is_finished();
    if untrusted && !machine_output {
        let how = trust::show_command(snapshot.run(), &args.db.option());
        writeln!(io.out, "{} {}; see what they do: `{how}`", paint.warning("untrusted:"), trust::WAITS)?;
    }
    let paused = snapshot.status() == Status::Paused;
    if paused && !all.is_empty() && !machine_output {
        let what = paint.warning("paused:");
        writeln!(io.out, "{what} no other events are accepted before the run is resumed: `{}`", suggest.unpause())?;
    }
    for offer in &all {
        let Offer { event, demands, .. } = offer;
        if machine_output {
            let mut line = offer.json();
            line.insert("data".into(), event.data.clone().unwrap_or_default());
            line.insert("description".into(), event.description.as_deref().into());
            line.insert("depends_on_data".into(), event.depends_on_data.into());
            line.extend(overdue.map(|due| ("overdue".to_owned(), timestamp::text(due).into())));
            line.extend(paused.then(|| ("paused".to_owned(), true.into())));
            let line = Json::Object(line);
            writeln!(io.out, "{line}")?;
            continue;
        }
        let by = if args.who.has_roles() { String::new() } else { offer.by_anyone() };
        let what = event.description.as_deref().map(|d| format!("  {}", clean(d)));
        let (kind, to) = (paint.strong(&clean(&event.r#type)), show::to(&event.to));
        writeln!(io.out, "{kind}{to}{by}{}{}", offer.aside(), paint.faint(&what.unwrap_or_default()))?;
        if let Some(approval) = &demands.approves {
            writeln!(io.out, "  approves {}: needs the digest {}", clean(&approval.value), approval.digest)?;
        }
        if let Some(conditions) = offer.conditions() {
            writeln!(io.out, "  {conditions}")?;
        }
        if let Some(schema) = &event.data {
            writeln!(io.out, "  data: {}", short(schema, MAX_SCHEMA))?;
        }
    }
    // Who names nobody is shown what anybody may answer.
    let answerable = |task: &&Task| !task.dry && (args.who.is_unnamed() || task.is_for(&by));
    let for_persons: Vec<&Task> = tasks.iter().filter(answerable).collect();
    write_tasks(&for_persons, &suggest, (&snapshot, &args.db), machine_output, paint, io)?;
    if all.is_empty() {
        let why = match (snapshot.status(), tasks.as_slice()) {
            (status, _) if status.is_finished() => format!("no events accepted: the run is {}", status.word()),
            (Status::Paused, _) => format!("no events accepted now: the run is paused; `{}`", suggest.unpause()),
            (_, []) if untrusted && args.who.is_unnamed() => {
                "no events accepted now: waiting for somebody to allow the actors of the run, or for a timer".to_owned()
            }
            (_, []) if args.who.is_unnamed() => "no events accepted now: waiting for an actor or a timer".to_owned(),
            (_, []) if barred.iter().any(|barred| barred.why.ends_with(offers::OTHER_VOTE)) => {
                format!("no events accepted now from {}, except votes with other data", clean(args.who.id()))
            }
            (_, []) => format!("no events accepted now from {}", clean(args.who.id())),
            (_, [task, ..]) if task.dry => {
                "no events accepted now: the run is a dry fork, which waits for answers".to_owned()
            }
            (_, [task, ..]) if for_persons.is_empty() => {
                let (title, [answer, _]) = (clean(task.title.as_deref().unwrap_or(&task.src)), suggest.answer(task));
                format!("no events accepted now: waiting for a person: {title}{}; `{answer}`", by_roles(task))
            }
            (_, [_]) => "no events accepted now: waiting for a person".to_owned(),
            (_, tasks) => format!("no events accepted now: waiting for persons, with {} tasks", tasks.len()),
        };
        match machine_output {
            true => {
                let not = barred.iter().map(|b| json!({"type": b.kind, "to": b.to, "reason": b.why}));
                let (status, not) = (snapshot.status().word(), not.collect::<Vec<_>>());
                let none = json!({"run": snapshot.run(), "status": status, "legal": false, "reason": why, "not": not});
                writeln!(io.out, "{none}")?;
            }
            false => {
                writeln!(io.out, "{why}")?;
                if let Some(hint) = super::role_hint(&machine, &by.roles) {
                    writeln!(io.out, "{hint}")?;
                }
            }
        }
    }
    for barred in barred.iter().filter(|_| !machine_output) {
        let (kind, to) = (clean(&barred.kind), show::to(&barred.to));
        writeln!(io.out, "{}", paint.faint(&format!("not {kind}{to}: {}", barred.why)))?;
    }
    match all.is_empty() {
        true => Ok(Exit::No),
        false => Ok(Exit::Yes),
    }
}

/// Renders ` by ROLE or ROLE`; nothing if anybody may answer.
fn by_roles(task: &Task) -> String {
    let roles: Vec<String> = task.by.iter().map(|role| clean(role)).collect();
    if roles.is_empty() { String::new() } else { format!(" by {}", roles.join(" or ")) }
}

/// Lists tasks of persons, each with the command that answers it.
fn write_tasks(
    tasks: &[&Task],
    suggest: &Suggest<'_>,
    (snapshot, db): (&Snapshot, &Db),
    machine_output: bool,
    paint: Paint,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    for task in tasks.iter().take(MAX_TASKS) {
        let title = task.title.as_deref().unwrap_or(&task.src);
        let [answer, _] = suggest.answer(task);
        if machine_output {
            let line = json!({"task": task.effect, "title": title, "by": task.by, "answer": answer});
            writeln!(io.out, "{line}")?;
            continue;
        }
        writeln!(io.out, "{} {}{}: `{answer}`", paint.strong("task"), clean(title), by_roles(task))?;
    }
    let more = tasks.len().saturating_sub(MAX_TASKS) as u64;
    if more > 0 && !machine_output {
        let show = format!("{} show {}{}", program::name(), snapshot.run(), db.option());
        writeln!(io.out, "{}: `{show}` lists them", count(more, "more task"))?;
    }
    Ok(())
}

/// The state of a run.
struct State {
    machine: Arc<Machine>,
    snapshot: Snapshot,
    /// When the first timer was due that no process fires.
    overdue: Option<Timestamp>,
    /// Whether it is a dry fork.
    dry: bool,
    /// Whether it came from another journal, and nobody has allowed its actors to work.
    untrusted: bool,
}

/// Returns the current state of the run.
fn state(args: &Args) -> Result<State, Failure> {
    match held(&args.db, &args.run) {
        // No process has the journal open, or it has just ended.
        Ok(None) | Err(Failure::Lost(_)) => {}
        Ok(Some((_, View { charter, snapshot, dry, untrusted, .. }))) => {
            return Ok(State { machine: charter.machine().clone(), snapshot, overdue: None, dry, untrusted });
        }
        Err(e) => return Err(e),
    }
    let has_no_holder = overdue::has_no_holder(&args.db);
    let store = args.db.read()?;
    let run = args.db.find(store.as_ref(), &args.run)?;
    let (machine, snapshot) = at(store.as_ref(), &run, None)?;
    let overdue = overdue::overdue(store.as_ref(), has_no_holder)?.get(&run.run).copied();
    let dry = show::is_dry(charter_journal::origin(store.as_ref(), &run.run)?.as_ref());
    let untrusted = charter_runtime::is_untrusted(store.as_ref(), &run)?;
    Ok(State { machine: Arc::new(machine), snapshot, overdue, dry, untrusted })
}

/// Returns the process that has the journal open, and the run as it is there.
fn held(db: &Db, run: &str) -> Result<Option<(u32, View)>, Failure> {
    if db.remote()?.is_some() {
        return Ok(None);
    }
    let Some(holder) = holder_of(&db.db)?.filter(|holder| holder.address.is_some()) else {
        return Ok(None);
    };
    let host = Host::open(db, &models::Args::default(), Opener::Nobody)?;
    let view = host.view(&host.find(run)?.run)?;
    Ok(Some((holder.pid, view)))
}

/// Returns the process that executes the open invocations of a run. Must be called before this
/// process opens the journal.
pub(crate) fn hosting(db: &Db, run: &str) -> Hosting {
    if !matches!(db.remote(), Ok(None)) {
        return Hosting::NotKnown;
    }
    match holder_of(&db.db) {
        Ok(None) => Hosting::Nobody,
        Ok(Some(_)) => match held(db, run) {
            Ok(Some((pid, view))) => Hosting::Process { pid, working: view.working },
            _ => Hosting::NotKnown,
        },
        Err(_) => Hosting::NotKnown,
    }
}
