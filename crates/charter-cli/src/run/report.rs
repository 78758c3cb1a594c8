//! Writes the report on a run to standard output: its result and its actors, or what it waits for.

use charter_journal::Record;
use charter_kernel::{Status, Timestamp};
use charter_runtime::View;
use serde_json::Value as Json;

use super::host::Host;
use super::{Who, choice};
use crate::io::{Failure, Io, Paint};
use crate::journal::text::{clean, code, count, further, short, when};
use crate::journal::{Db, show};
use crate::{page, program};

/// Maximum length of a value next to an actor, in characters.
const MAX_VALUE: usize = 70;

/// Writes the report.
pub(crate) fn write(
    view: &View,
    who: &Who,
    db: &Db,
    machine_output: bool,
    host: &Host,
    now: Timestamp,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let (machine, snapshot) = (view.charter.machine(), &view.snapshot);
    if machine_output {
        let mut all = show::now(machine, snapshot, now);
        if let Json::Object(all) = &mut all {
            all.insert("run".into(), snapshot.run().into());
            all.insert("seq".into(), snapshot.seq().into());
        }
        writeln!(io.out, "{all}")?;
        return Ok(());
    }
    let paint = Paint(io.color_out);
    let word = snapshot.status().word();
    let word = match snapshot.status() {
        Status::Done => paint.good(word),
        Status::Failed | Status::Cancelled => paint.error(word),
        _ => paint.warning(word),
    };
    let state: Vec<&str> = snapshot.actor("root").iter().flat_map(|a| a.state()).collect();
    writeln!(
        io.out,
        "{}: {word} in {}, {}",
        paint.strong(snapshot.run()),
        state.join(", "),
        count(snapshot.seq() + 1, "record")
    )?;
    actors(view, paint, io)?;
    let finished = snapshot.status().is_finished();
    let columns = io.screen.map(|(columns, _)| usize::from(columns));
    let page = page::lines(machine, snapshot, now, columns, paint);
    // On a terminal, the prompt has already shown the page.
    for line in page.iter().filter(|_| finished || !io.terminal) {
        writeln!(io.out, "{line}")?;
    }
    if let Some(output) = snapshot.output().filter(|o| !o.is_null() && page.is_empty()) {
        writeln!(io.out, "{}", serde_json::to_string_pretty(output).unwrap_or_default())?;
    }
    if !finished {
        if !page.is_empty() && !io.terminal {
            writeln!(io.out, "Waiting")?;
        }
        waits(view, who, db, host, now, paint, io)?;
    }
    next(view, db, paint, io)
}

/// Suggests the next commands.
fn next(view: &View, db: &Db, paint: Paint, io: &mut Io<'_>) -> Result<(), Failure> {
    let (run, charter) = (view.snapshot.run(), program::name());
    let (last, file) = (view.snapshot.seq(), db.option());
    let all = match file.is_empty() {
        true => String::new(),
        false => format!(" {}", db.db.display()),
    };
    let commands = [
        (format!("{charter} log {run}{file}"), "list the records of the run"),
        (format!("{charter} explain {run} {last}{file}"), "explain the last record"),
        (format!("{charter} verify{all}"), "check that no record was altered"),
    ];
    let width = commands.iter().map(|(c, _)| c.chars().count()).max();
    let width = width.unwrap_or(0);
    for (command, what) in commands {
        writeln!(io.out, "{}", paint.faint(&format!("{command:<width$}  # {what}")))?;
    }
    Ok(())
}

/// Writes the actors of the run, each with its state and its variables.
fn actors(view: &View, paint: Paint, io: &mut Io<'_>) -> Result<(), Failure> {
    let all: Vec<_> = view.snapshot.actors().filter(|a| a.id() != "root").collect();
    let width = |of: &dyn Fn(&charter_kernel::Actor) -> usize| all.iter().map(|a| of(a)).max().unwrap_or(0);
    let state = |a: &charter_kernel::Actor| a.state().collect::<Vec<_>>().join(", ");
    let names = width(&|a| a.id().chars().count());
    let states = width(&|a| state(a).chars().count());
    for actor in &all {
        let variables = actor.variables().filter_map(|(name, value)| match value {
            Json::String(text) => Some(format!("{name}: {}", clean(text))),
            Json::Null | Json::Object(_) | Json::Array(_) => None,
            other => Some(format!("{name}: {}", short(other, MAX_VALUE))),
        });
        let line = format!(
            "  {:<names$}  {:<states$}  {}",
            clean(actor.id()),
            state(actor),
            paint.faint(&variables.collect::<Vec<_>>().join(", "))
        );
        writeln!(io.out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes what the run waits for, with the commands that answer.
pub(crate) fn waits(
    view: &View,
    who: &Who,
    db: &Db,
    host: &Host,
    now: Timestamp,
    paint: Paint,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let (machine, snapshot) = (view.charter.machine(), &view.snapshot);
    let run = snapshot.run();
    let (file, charter) = (db.option(), program::name());
    if view.is_stuck() {
        let stuck = "no timer, no running actor, and no legal event";
        writeln!(io.out, "  {} {stuck}", paint.error("stuck:"))?;
    }
    if snapshot.status() == Status::Paused {
        let resume = format!("{charter} send {run} charter.resume {} --role operator{file}", who.option());
        writeln!(io.out, "  paused; to continue: {resume}")?;
    }
    for task in &view.tasks {
        let title = task.title.as_deref().unwrap_or(&task.src);
        let by = match task.by.is_empty() {
            true => String::new(),
            false => format!(" by {}", task.by.join(" or ")),
        };
        writeln!(io.out, "  for a person{by}: {}", clean(title))?;
    }
    let choices = choice::all(view, &who.with_every_role(), now);
    // On a terminal, the prompt has already shown the previews.
    let previews = choice::previews(&choices, view, host, now);
    for (_, _, preview) in previews.iter().filter(|_| !io.terminal) {
        let sections = std::iter::once(preview.head(paint)).chain(preview.diffs(paint));
        for section in sections {
            for line in section {
                writeln!(io.out, "  {line}")?;
            }
            writeln!(io.out)?;
        }
    }
    let mut legal: Vec<_> = show::legal(machine, snapshot, now).into_iter().collect();
    legal.sort_by_key(|((kind, to), _)| choices.iter().position(|c| c.is(kind, to)));
    let needed: Vec<String> = legal.iter().flat_map(|(_, roles)| roles.clone()).collect();
    for ((kind, to), roles) in legal {
        let role = least_privileged(&roles, &needed).map(|r| format!(" --role {r}")).unwrap_or_default();
        let by = match roles.is_empty() {
            true => String::new(),
            false => format!(" by {}", roles.join(" or ")),
        };
        let address = match to.as_str() {
            "root" => String::new(),
            to => format!(" --to {}", clean(to)),
        };
        let data = match choice::example(&choices, &kind, &to, view, now) {
            Json::Object(data) if data.is_empty() => String::new(),
            data => format!(" '{}'", data.to_string().replace('\'', "'\\''")),
        };
        let how = format!("{charter} send {run} {kind}{data}{address} {}{role}{file}", who.option());
        writeln!(io.out, "  for {}{}{by}  {}", paint.strong(&kind), show::to(&to), paint.faint(&how))?;
    }
    if let Some(timer) = snapshot.next_timer() {
        writeln!(io.out, "  for the timer {}, due {}", clean(&timer.id), when(timer.due))?;
    }
    let how = format!("{charter} run --resume {run}{file}");
    writeln!(io.out, "  to resume: {}", paint.faint(&how))?;
    Ok(())
}

/// Returns the role that the fewest events need, or the first of several. `needed` lists the roles
/// of all events.
fn least_privileged<'r>(roles: &'r [String], needed: &[String]) -> Option<&'r String> {
    roles.iter().min_by_key(|role| needed.iter().filter(|other| other == role).count())
}

/// Prints a refusal on standard error.
pub(crate) fn show_refusal(record: &Record, host: &Host, io: &mut Io<'_>) -> Result<(), Failure> {
    let charter = host.try_call(|b| b.charter(record.charter))?.ok();
    let Some(refusal) = record.explanation(charter.as_ref().map(|c| c.machine().as_ref())) else {
        return Ok(());
    };
    let paint = Paint(io.color_err);
    let code = paint.error(&format!("refused ({}):", code(&refusal)));
    writeln!(io.err, "{code} {}", clean(&refusal.message))?;
    for line in further(&refusal.misfits) {
        writeln!(io.err, "{line}")?;
    }
    if !refusal.legal.is_empty() {
        writeln!(io.err, "  legal for {} now: {}", clean(&record.by.id), refusal.legal.join(", "))?;
    }
    Ok(())
}
