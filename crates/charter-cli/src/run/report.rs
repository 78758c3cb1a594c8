//! Writes the report on a run to standard output: its result and its actors, or what it waits for.

use charter_journal::Record;
use charter_kernel::{Auth, Code, EffectId, Explanation, Machine, Status, Timestamp};
use charter_runtime::{Task, View};
use serde_json::{Value as Json, json};

use super::host::Host;
use super::suggest::Suggest;
use super::{Who, choice, trust};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::offers::{self, Offer};
use crate::journal::text::{clean, code, count, further, quoted, short, when};
use crate::journal::{Db, head_of, holder, show};
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
    // A record that changes nothing has no snapshot of its own.
    let last = host.find(snapshot.run())?.seq;
    if machine_output {
        let mut all = show::now(machine, snapshot, now);
        all.insert("run".into(), snapshot.run().into());
        all.insert("seq".into(), last.into());
        all.insert("journal".into(), head_of(&db.db));
        if view.dry {
            all.insert("dry".into(), true.into());
        }
        writeln!(io.out, "{}", Json::Object(all))?;
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
    // A chart without states is in one without a name.
    let place = Some(state.join(", ")).filter(|names| !names.is_empty());
    let place = place.map(|names| format!(" in {names}")).unwrap_or_default();
    writeln!(io.out, "{}: {word}{place}, {}", paint.strong(snapshot.run()), count(last + 1, "record"))?;
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
        writeln!(io.out, "Waiting")?;
        waits(view, who, db, host, now, paint, io)?;
    }
    next(snapshot.run(), last, db, paint, io)
}

/// Suggests the next commands.
fn next(run: &str, last: u64, db: &Db, paint: Paint, io: &mut Io<'_>) -> Result<(), Failure> {
    let (charter, file) = (program::name(), db.option());
    let all = match file.is_empty() {
        true => String::new(),
        false => format!(" {}", db.name()),
    };
    let mut commands = vec![
        (format!("{charter} log {run}{file}"), "list the records of the run"),
        (format!("{charter} explain {run} {last}{file}"), "explain the last record"),
    ];
    // The journal file of a server is on its machine.
    if matches!(db.remote(), Ok(None)) {
        commands.push((format!("{charter} verify{all}"), "check that no record was altered"));
    }
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
    let offers = offers::all_with(machine, snapshot, &who.principal_in(machine, snapshot.run()), now);
    let offers = offers::with_votes(offers, db, snapshot);
    let suggest = Suggest::new((machine, snapshot), who, db, &offers, now);
    if view.is_stuck() {
        let stuck = "no timer that fires, no running actor, and no legal event";
        writeln!(io.out, "  {} {stuck}", paint.error("stuck:"))?;
    }
    if snapshot.status() == Status::Active && !view.untrusted && !view.dry {
        for invocation in view.unattended() {
            writeln!(io.out, "  no attempt of {} is under way; resuming the run starts one", clean(&invocation))?;
        }
    }
    if view.untrusted {
        let (waits, how) = (trust::WAITS, trust::show_command(snapshot.run(), &db.option()));
        writeln!(io.out, "  for permission: {waits}; see what they do: {}", paint.faint(&how))?;
    }
    if let Some(since) = snapshot.paused_at() {
        writeln!(io.out, "  paused since {}; to continue: {}", when(since), paint.faint(&suggest.unpause()))?;
        for line in show::timers_left(snapshot) {
            writeln!(io.out, "  timer {line}")?;
        }
    }
    let deadline = |task: &Task| snapshot.timeout_of(EffectId::parse(&task.effect)?);
    for task in &view.tasks {
        let title = task.title.as_deref().unwrap_or(&task.src);
        let by = match task.by.is_empty() {
            true => String::new(),
            false => format!(" by {}", task.by.join(" or ")),
        };
        let [answer, decline] = suggest.answer(task);
        match task.dry {
            true => writeln!(io.out, "  dry: {} not started; answer with  {}", clean(title), paint.faint(&answer))?,
            false => writeln!(io.out, "  for a person{by}: {}  {}", clean(title), paint.faint(&answer))?,
        }
        if decline != answer {
            writeln!(io.out, "    to decline: {}", paint.faint(&decline))?;
        }
        if let Some(due) = deadline(task) {
            writeln!(io.out, "    until {}", when(due))?;
        }
    }
    // On a terminal, the prompt has already shown the previews.
    let approvals = offers.iter().map(|o| (o.event.r#type.as_str(), o.event.to.as_str(), &o.demands));
    let previews = choice::previews(approvals, view, host, now);
    for (_, _, preview) in previews.iter().filter(|_| !io.terminal) {
        let sections = std::iter::once(preview.head(paint)).chain(preview.diffs(paint));
        for section in sections {
            for line in section {
                writeln!(io.out, "  {line}")?;
            }
            writeln!(io.out)?;
        }
    }
    for offer in in_order(&offers, machine) {
        let (kind, to) = (paint.strong(&clean(&offer.event.r#type)), show::to(&offer.event.to));
        let how = paint.faint(&suggest.send(offer));
        writeln!(io.out, "  for {kind}{to}{}{}  {how}", offer.by(), offer.aside())?;
    }
    let is_told = |due| view.tasks.iter().any(|task| deadline(task) == Some(due));
    let timers = snapshot.timers().iter().filter(|timer| !is_told(timer.due));
    if let Some(timer) = timers.into_iter().find(|timer| view.next_due.is_some_and(|next| timer.due >= next)) {
        writeln!(io.out, "  for the timer {}, due {}", clean(&timer.id), when(timer.due))?;
    }
    if snapshot.status() != Status::Paused && !view.is_stuck() && !view.untrusted {
        writeln!(io.out, "  to resume: {}", paint.faint(&suggest.resume()))?;
    }
    Ok(())
}

/// Sorts offers as a prompt does: approvals first, then in the order of declaration.
pub(super) fn in_order<'o>(offers: &'o [Offer], machine: &Machine) -> Vec<&'o Offer> {
    let events = &machine.definition().events;
    let declared = |offer: &Offer| events.keys().position(|kind| *kind == offer.event.r#type);
    let mut sorted: Vec<&Offer> = offers.iter().collect();
    sorted.sort_by_key(|offer| (offer.demands.approves.is_none(), declared(offer).unwrap_or(usize::MAX)));
    sorted
}

/// Prints a refusal on standard error.
pub(crate) fn show_refusal(record: &Record, host: &Host, io: &mut Io<'_>) -> Result<(), Failure> {
    let charter = host.try_call(|b| b.charter(record.charter))?.ok();
    let Some(refusal) = record.explanation(charter.as_ref().map(|c| c.machine().as_ref())) else {
        return Ok(());
    };
    show_explanation(&refusal, io)?;
    let hint = charter.as_ref().and_then(|charter| super::role_hint(charter.machine(), &record.by.roles));
    // The roles of a key are not chosen with an option.
    let lacks_role = record.by.roles.is_empty() && record.by.auth() == Auth::Local;
    let role = record.refusal.as_ref().and_then(|refusal| refusal.roles.first()).filter(|_| lacks_role);
    let hint = hint.or_else(|| role.map(|role| format!("add `--role {}`", clean(&quoted(role)))));
    if let Some(hint) = hint.filter(|_| refusal.code == Code::Authority) {
        writeln!(io.err, "{} {hint}", Paint(io.color_err).help("help:"))?;
    }
    // A refused event changes nothing, so another actor still takes it.
    if refusal.code == Code::Unhandled
        && refusal.legal.iter().any(|legal| *legal == *record.event.r#type)
        && let Some(charter) = &charter
        && let Ok(view) = host.try_call(|b| b.view(record.run.to_string()))?
    {
        let mut legal = charter.machine().legal(&view.snapshot, &record.by, record.at).into_iter();
        let taker = legal.find(|legal| legal.r#type == *record.event.r#type && legal.to != *record.to);
        if let Some(taker) = taker {
            let to = quoted(&taker.to);
            writeln!(io.err, "{} add `--to {}`", Paint(io.color_err).help("help:"), clean(&to))?;
        }
    }
    let mut exists = Ok(true);
    let key = holder::of_key(record, &host.db, |run| {
        exists = host.call(|b| b.run(run.to_owned())).map(|run| run.is_some());
        matches!(exists, Ok(true))
    });
    exists?;
    if let Some(key) = key {
        writeln!(io.err, "{} {key}", Paint(io.color_err).help("help:"))?;
    }
    // A refused event changes nothing, so the condition is that of the present state.
    if refusal.code == Code::Rule
        && let (Some(charter), Ok(envelope)) = (&charter, record.envelope())
        && let Ok(view) = host.try_call(|b| b.view(record.run.to_string()))?
        && view.snapshot.seq() < record.seq
        && let Some(condition) = charter.machine().refusing(&view.snapshot, &envelope)
    {
        writeln!(io.err, "  because `{}`", clean(&condition.condition))?;
        for (path, value) in &condition.read {
            writeln!(io.err, "    {} is {}", clean(path), short(value, 200))?;
        }
    }
    if !refusal.legal.is_empty() {
        writeln!(io.err, "  legal for {} now: {}", clean(&record.by.id), refusal.legal.join(", "))?;
    }
    Ok(())
}

/// Prints a refusal that has no record: on standard error, or as JSON on standard output.
pub(crate) fn show_denied(
    run: &str,
    code: Code,
    rule: Option<&str>,
    message: &str,
    machine_output: bool,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let rule = rule.map(str::to_owned);
    let (candidates, misfits, legal) = Default::default();
    let refusal = Explanation { code, message: message.to_owned(), rule, candidates, misfits, interlock: None, legal };
    match machine_output {
        true => writeln!(io.out, "{}", json!({"run": run, "verdict": "refused", "refusal": refusal}))?,
        false => show_explanation(&refusal, io)?,
    }
    Ok(Exit::No)
}

/// Prints the code and the message of a refusal, and its schema violations.
fn show_explanation(refusal: &Explanation, io: &mut Io<'_>) -> Result<(), Failure> {
    let code = Paint(io.color_err).error(&format!("refused ({}):", code(refusal)));
    writeln!(io.err, "{code} {}", clean(&refusal.message))?;
    for line in further(&refusal.misfits) {
        writeln!(io.err, "{line}")?;
    }
    Ok(())
}
