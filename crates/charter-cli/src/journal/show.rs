//! `charter show RUN`: the current state of a run, and what it waits for.

use std::collections::BTreeMap;

use charter_journal::{Origin, UsageFilter};
use charter_kernel::{EffectId, EntryStatus, Machine, Millis, Snapshot, Status, Timer, Timestamp};
use charter_runtime::{NextAttempt, Resume, Working};
use serde_json::{Map, Value as Json, json};

use super::offers::{self, Offer};
use super::overdue::{self, overdue};
use super::text::{clean, count, elapsed, seconds, short_digest, short_error_first, when};
use super::{Db, at, charter_of, usage};
use crate::io::{Exit, Failure, Io, Paint};
use crate::page;
use crate::run::suggest::Suggest;
use crate::run::{Who, follow, legal, setup, trust};
use charter_scenario::{overview, timestamp};

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
    let host = legal::hosting(&args.db, &args.run);
    let has_no_holder = matches!(host, Hosting::Nobody);
    let store = args.db.read_and_warn(io)?;
    let run = args.db.find(store.as_ref(), &args.run)?;
    let charter = charter_of(store.as_ref(), run.charter)?;
    let (machine, snapshot) = at(store.as_ref(), &run, None)?;
    let definition = machine.definition();
    let overdue = overdue(store.as_ref(), has_no_holder)?.get(&run.run).copied();
    let origin = charter_journal::origin(store.as_ref(), &run.run)?;
    let untrusted = charter_runtime::is_untrusted(store.as_ref(), &run)?;
    let asked = store.usage(&UsageFilter::run(&run.run))?;
    if machine_output {
        let mut all = json!({
            "run": run.run,
            "charter": {"id": definition.id, "version": definition.version, "digest": run.charter, "name": charter.name},
            "records": run.seq + 1,
            "started": timestamp::text(run.started),
            "updated": timestamp::text(run.updated),
            "hash": run.hash,
        });
        if let Json::Object(all) = &mut all {
            all.extend(now(&machine, &snapshot, follow::now()));
            all.extend(overdue.map(|due| ("overdue".to_owned(), timestamp::text(due).into())));
            all.extend(origin_members(origin.as_ref()));
            all.extend(untrusted.then(|| ("untrusted".to_owned(), true.into())));
            all.extend(usage::json(&asked).map(|totals| ("usage".to_owned(), totals)));
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
    if let Some(origin) = &origin {
        writeln!(io.out, "  {}", origin_line(origin))?;
    }
    if let Some(line) = usage::line(&asked) {
        writeln!(io.out, "  {line}")?;
    }
    if let Some(due) = overdue {
        let since = paint.warning(&format!("overdue since {}", when(due)));
        let how = format!("charter run --resume {}{}", run.run, args.db.option());
        writeln!(io.out, "  {since}: no process has the journal open to fire its timers; `{how}` does")?;
    }
    writeln!(
        io.out,
        "  {}",
        paint.faint(&format!("charter {}, last hash {}", short_digest(run.charter), short_digest(run.hash)))
    )?;
    for line in page::lines(&machine, &snapshot, run.updated, None, paint) {
        writeln!(io.out, "{line}")?;
    }
    let (machine, snapshot, db, now) = (&machine, &snapshot, &args.db, follow::now());
    let resumed = charter_runtime::after_restart(store.as_ref(), machine, &run.run, &setup::executors(), now)?;
    let still = overdue::stands_still(&run, origin.as_ref()).then_some(run.updated);
    let dry = is_dry(origin.as_ref());
    let waits = Waiting { machine, snapshot, db, now, host, resumed, overdue, still, dry, untrusted };
    print(&waits, io)?;
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

/// Renders ` to ACTOR`, or nothing for the root actor.
pub(crate) fn to(actor: &str) -> String {
    match actor {
        "root" => String::new(),
        actor => format!(" to {}", clean(actor)),
    }
}

/// Renders a snapshot as JSON.
pub(crate) fn now(machine: &Machine, snapshot: &Snapshot, at: Timestamp) -> Map<String, Json> {
    let mut now = overview::json(snapshot);
    let legal = offers::all(machine, snapshot, at);
    now.insert("legal".to_owned(), legal.iter().map(Offer::json).collect());
    now
}

/// The process that executes the open invocations of a run.
pub(crate) enum Hosting {
    /// No process has the journal open.
    Nobody,
    /// A process has the journal open; these calls are being made, or wait for their next attempt.
    Process {
        /// Its id.
        pid: u32,
        /// The calls.
        working: Vec<Working>,
    },
    /// It is not known, or an earlier state is shown.
    NotKnown,
}

/// What [`print`] needs to say what a run waits for.
pub(crate) struct Waiting<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) db: &'a Db,
    pub(crate) now: Timestamp,
    pub(crate) host: Hosting,
    /// What becomes of the open invocations that no process executes, by effect, and the attempts
    /// that wait.
    pub(crate) resumed: BTreeMap<String, (Resume, Option<NextAttempt>)>,
    /// When the first timer was due that no process fires.
    pub(crate) overdue: Option<Timestamp>,
    /// The time of its last record, if the run is a fork for which no time has passed since.
    pub(crate) still: Option<Timestamp>,
    /// Whether the run is a dry fork.
    pub(crate) dry: bool,
    /// Whether it came from another journal, and nobody has allowed its actors to work.
    pub(crate) untrusted: bool,
}

/// Whether a run with this origin is a dry fork.
pub(crate) fn is_dry(origin: Option<&Origin<'_>>) -> bool {
    origin.is_some_and(|origin| origin.dry)
}

/// The members that a fork has in JSON.
pub(crate) fn origin_members(origin: Option<&Origin<'_>>) -> Vec<(String, Json)> {
    let Some(origin) = origin else {
        return Vec::new();
    };
    let from = json!({"run": origin.run, "seq": origin.seq});
    vec![("forked_from".to_owned(), from), ("dry".to_owned(), origin.dry.into())]
}

/// Says what a fork is.
pub(crate) fn origin_line(origin: &Origin<'_>) -> String {
    let of = format!("fork of {} after record {}", clean(&origin.run), origin.seq);
    match origin.dry {
        true => format!("dry {of}: no actor is called; answers come from the past of that run, or from persons"),
        false => of,
    }
}

/// Renders the timers of a paused run, one line each; nothing if the run is not paused.
pub(crate) fn timers_left(snapshot: &Snapshot) -> Vec<String> {
    let timers = snapshot.timers().iter();
    let one = |timer: &std::sync::Arc<Timer>| {
        overview::left(snapshot, timer).map(|left| format!("{}: {} left", clean(&timer.id), elapsed(left)))
    };
    timers.filter_map(one).collect()
}

/// Prints a snapshot as text.
pub(crate) fn print(waits: &Waiting<'_>, io: &mut Io<'_>) -> Result<(), Failure> {
    let snapshot = waits.snapshot;
    const MAX_VALUE: usize = 100;
    let paint = Paint(io.color_out);
    for actor in snapshot.actors() {
        let state: Vec<&str> = actor.state().filter(|state| !state.is_empty()).collect();
        let state = if state.is_empty() { "(the charter has no `states`)".to_owned() } else { state.join(", ") };
        let (name, state) = (clean(actor.id()), paint.strong(&state));
        match actor.id() {
            "root" => writeln!(io.out, "\nstate    {state}")?,
            _ => writeln!(io.out, "\nactor    {name} ({}): {state}", clean(actor.machine()))?,
        }
        let all: Vec<(&str, &Json)> = actor.variables().collect();
        let width = all.iter().map(|(n, _)| n.chars().count()).max().unwrap_or(0);
        for (name, value) in all {
            writeln!(io.out, "  {name:<width$}  {}", short_error_first(value, MAX_VALUE))?;
        }
    }
    let mut heading = "\nledger   ";
    // The clock of obligations stands still in a pause, that of permits does not.
    let stands = snapshot.paused_at().or(waits.still);
    let current = snapshot.with_expired_permits(waits.still.unwrap_or(waits.now));
    for (kind, key, entry) in current.ledger().iter().flat_map(|l| l.entries()) {
        let uses = entry.uses.filter(|_| entry.status == EntryStatus::Granted);
        let uses = uses.map(|uses| format!(", {} left", count(uses, "use"))).unwrap_or_default();
        let until = match (entry.status, entry.expires, entry.due) {
            (EntryStatus::Granted, Some(expires), _) => format!(", until {}", when(expires)),
            (EntryStatus::Open, _, Some(due)) if let Some(since) = stands => {
                format!(", {} left", elapsed(due.since(since).max(Millis(0))))
            }
            (EntryStatus::Open | EntryStatus::Overdue, _, Some(due)) => format!(", due {}", when(due)),
            _ => String::new(),
        };
        writeln!(io.out, "{heading}{kind} {}: {}{uses}{until}", clean(key), entry.status.word())?;
        heading = "         ";
    }
    if !snapshot.status().is_finished() {
        print_waiting(waits, io)?;
    }
    if let Some(output) = snapshot.output().filter(|o| !o.is_null()) {
        writeln!(io.out, "\noutput   {}", short_error_first(output, 2_000))?;
    }
    Ok(())
}

/// Renders an open invocation of an actor: whether it is executed, and what `resume` does with it.
fn open(waits: &Waiting<'_>, since: &str, effect: EffectId, resume: &str) -> String {
    let Waiting { snapshot, host, resumed, .. } = waits;
    let (text, paused) = (effect.text(snapshot.run()), snapshot.paused_at().is_some());
    if snapshot.holds_answer(effect) {
        return format!("answered {since}; the answer is held until the run is resumed");
    }
    if waits.untrusted && !waits.dry {
        return format!("open     {since}; not running: nobody has allowed it");
    }
    let (why, one) = match host {
        Hosting::Process { working, .. } if let Some(work) = working.iter().find(|work| *work.effect == *text) => {
            let held = if paused { "; its answer is held until the run is resumed" } else { "" };
            if work.since > waits.now {
                return format!("waiting  {since}; attempt {} begins {}", work.attempt, when(work.since));
            }
            return format!("running  {since}{held}");
        }
        Hosting::NotKnown => return format!("open     {since}"),
        Hosting::Nobody => ("no process has this journal open".to_owned(), true),
        Hosting::Process { pid, .. } => (format!("process {pid} has the journal open, but was not asked to"), false),
    };
    let what = match resumed.get(&text) {
        Some((Resume::Held, next)) => return held(since, *next),
        Some((Resume::Unknown(_), _)) if paused => {
            "once the run is resumed, it is reported as `unknown`, because it is not idempotent".to_owned()
        }
        Some((Resume::Unknown(_), _)) => format!("`{resume}` reports it as `unknown`, because it is not idempotent"),
        _ if one => format!("`{resume}` runs it"),
        _ => format!("`{resume}` asks it"),
    };
    format!("open     {since}; not running: {why}; {what}")
}

/// Renders an open invocation of a paused run whose next attempt waits for the end of the pause.
fn held(since: &str, next: Option<NextAttempt>) -> String {
    let Some(next) = next.filter(|next| next.attempt > 1) else {
        return format!("open     {since}; not running: it begins once the run is resumed");
    };
    let left = next.held_since.map_or(Millis(0), |held| next.not_before.since(held));
    let begins = match left > Millis(0) {
        true => format!("{} after the run is resumed", elapsed(left)),
        false => "once the run is resumed".to_owned(),
    };
    format!("waiting  {since}; attempt {} begins {begins}", next.attempt)
}

/// Prints what a run waits for: actors, timers, persons.
fn print_waiting(waits: &Waiting<'_>, io: &mut Io<'_>) -> Result<(), Failure> {
    let Waiting { machine, snapshot, db, now, overdue, dry, .. } = waits;
    let (paint, who) = (Paint(io.color_out), Who::unnamed());
    let offers = offers::with_votes(offers::all(machine, snapshot, *now), db, snapshot);
    let suggest = Suggest::new((machine, snapshot), &who, db, &offers, *now);
    let paused = snapshot.status() == Status::Paused;
    let tasks = charter_runtime::open_tasks(machine, snapshot, *dry);
    for (_, i) in snapshot.invocations().filter(|(_, i)| !i.is_machine()) {
        let (id, effect) = (clean(&i.id), i.effect.text(snapshot.run()));
        let since = format!("{id} since record {}", i.effect.seq);
        if let Some(task) = tasks.iter().find(|task| task.effect == effect) {
            let by = if task.by.is_empty() { String::new() } else { format!(" by {}", task.by.join(" or ")) };
            let title = clean(task.title.as_deref().unwrap_or(&task.src));
            let [answer, decline] = suggest.answer(task);
            if paused {
                writeln!(io.out, "\ntask     {title}{by}, {since}; it can be answered once the run is resumed")?;
                continue;
            }
            match task.dry {
                true => writeln!(io.out, "\ndry      {since}: not started; answer with")?,
                false => writeln!(io.out, "\ntask     {title}{by}, {since}")?,
            }
            writeln!(io.out, "         {}", paint.faint(&answer))?;
            writeln!(io.out, "         {}", paint.faint(&decline))?;
            continue;
        }
        writeln!(io.out, "\n{}", open(waits, &since, i.effect, &suggest.resume()))?;
    }
    if waits.untrusted {
        writeln!(io.out, "\nuntrusted: {}; see what they do:", trust::WAITS)?;
        writeln!(io.out, "         {}", paint.faint(&trust::show_command(snapshot.run(), &db.option())))?;
    }
    let mut heading = "\ntimers   ";
    for line in timers_left(snapshot) {
        writeln!(io.out, "{heading}{line}")?;
        heading = "         ";
    }
    for timer in snapshot.timers().iter().filter(|_| snapshot.paused_at().is_none()) {
        match waits.still {
            Some(since) => {
                let left = elapsed(timer.due.since(since).max(Millis(0)));
                writeln!(io.out, "{heading}{}: {left} left; the time of the fork stands still", clean(&timer.id))?;
            }
            None => writeln!(io.out, "{heading}{}  {}", when(timer.due), clean(&timer.id))?,
        }
        heading = "         ";
    }
    let mut heading = "\nlegal    ";
    if paused {
        writeln!(io.out, "\npaused   to continue: {}", paint.faint(&suggest.unpause()))?;
    }
    if let Some(due) = overdue.filter(|_| !offers.is_empty()) {
        writeln!(io.out, "{heading}{}", paint.warning(&overdue::warning(due)))?;
        heading = "         ";
    }
    for offer in &offers {
        let by = offer.by_anyone();
        let digest = offer.demands.approves.as_ref().map(|a| format!(", digest {}", short_digest(a.digest)));
        let more = paint.faint(&format!("{by}{}{}", digest.unwrap_or_default(), offer.aside()));
        writeln!(io.out, "{heading}{}{}{more}", clean(&offer.event.r#type), to(&offer.event.to))?;
        heading = "         ";
    }
    Ok(())
}
