//! `charter answer TASK`: answers a task for a person, or any call of a dry fork; or declines it.

use std::collections::BTreeSet;

use charter_journal::{Record, RunInfo, SourceKind};
use charter_kernel::{Code, EffectId};
use charter_runtime::backend::TaskAnswer;
use charter_runtime::{RuntimeError, Task, View};
use serde_json::{Value as Json, json};

use super::host::{Host, Opener};
use super::size;
use super::suggest::Suggest;
use super::{Who, choice, follow, report, role_hint, send};
use crate::input::event_data;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::text::{clean, when};
use crate::models;

/// Maximum number of records that are read at a time.
const PAGE: usize = 1_000;

/// Answers a task, or a call of a dry fork.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The task, as `charter show RUN` lists it: `RUN/SEQ/INDEX`; or the run, if it has one task
    task: String,
    /// The answer: JSON, or `@file`
    #[arg(conflicts_with = "decline")]
    data: Option<String>,
    /// Decline the task, for this reason
    #[arg(long, value_name = "REASON")]
    decline: Option<String>,
    #[command(flatten)]
    who: Who,
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
}

/// Runs the command. With `--json`, prints the record.
///
/// # Errors
/// There is no such task, it is for other roles, or the answer is missing.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let db = args.db.hosted_with(&args.models);
    let args = &Args { who: args.who.known_to(&args.db)?, db, ..args.clone() };
    let data = args.data.as_ref().map(|text| event_data(text, "charter answer TASK")).transpose()?;
    Host::with(&args.db, &args.models, Opener::Here, io, |host, io| answer(args, data, host, machine_output, io))
}

fn answer(
    args: &Args,
    data: Option<Json>,
    host: &Host,
    machine_output: bool,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let (run, effect) = match (args.task.rsplitn(3, '/').nth(2), EffectId::parse(&args.task)) {
        (Some(run), Some(effect)) => (host.find(run)?, Some(effect)),
        // The id of a run has no `/`.
        _ if args.task.contains('/') => return Err(not_a_task(&args.task)),
        _ => (host.find(&args.task)?, None),
    };
    let view = host.view(&run.run)?;
    let named = effect.map(|effect| effect.text(&run.run));
    if let Some(task) = paused(&view, named.as_deref()) {
        let suggest = Suggest::new((view.charter.machine(), &view.snapshot), &args.who, &args.db, &[], follow::now());
        let why = format!(
            "task `{}` cannot be answered now: run `{}` is paused; `{}` ends the pause",
            task.effect,
            run.run,
            suggest.unpause()
        );
        return report::show_denied(&run.run, Code::Paused, None, &why, machine_output, io);
    }
    let task = match (&named, view.tasks.as_slice()) {
        (None, [task]) => task,
        (None, []) => return Err(none_open(host, &run, &view, &args.db)?),
        (None, tasks) => return Err(several(&run.run, tasks)),
        (Some(named), tasks) => match tasks.iter().find(|task| task.effect == *named) {
            Some(task) => task,
            None => return Err(not_open(host, &run, &view, named, &args.db)?),
        },
    };
    let limits = &view.charter.machine().definition().limits;
    let limit = limits.data.min(limits.bytes);
    // A request to another process has a limit, too, which must not be the answer.
    if let Some(data) = &data
        && host.other().is_some()
        && size(data) > limit
    {
        let why = format!(
            "the answer is larger than {limit} bytes (`limits.data`); store large values elsewhere and send their digest"
        );
        return report::show_denied(&run.run, Code::TooLarge, None, &why, machine_output, io);
    }
    let reply = match (&args.decline, data) {
        (Some(reason), _) => TaskAnswer::Declined(reason.clone()),
        (None, Some(data)) => TaskAnswer::Output(data),
        (None, None) if !task.dry && choice::needs_no_data(task.output.as_ref()) => TaskAnswer::Output(json!({})),
        (None, None) => return Err(no_data(args, &view, task)),
    };
    let events = host.watch(&run.run, Some(run.seq))?;
    let receipt = match host.answer(&task.effect, reply, &args.who.principal())? {
        Ok(receipt) => receipt,
        Err(RuntimeError::NoTask { .. } | RuntimeError::NotAwaited(_)) => {
            return Err(not_open(host, &run, &host.view(&run.run)?, &task.effect, &args.db)?);
        }
        Err(other) => match other.code() {
            Some((code, rule)) => {
                let exit = report::show_denied(&run.run, code, rule, &other.to_string(), machine_output, io)?;
                let hint = role_hint(view.charter.machine(), &args.who.role);
                if let Some(hint) = hint.filter(|_| code == Code::Authority && !machine_output) {
                    writeln!(io.err, "{} {hint}", Paint(io.color_err).help("help:"))?;
                }
                return Ok(exit);
            }
            None => return Err(other.into()),
        },
    };
    let after = send::After { who: &args.who, db: &args.db, leave: None };
    after.show(host, &run.run, receipt, events, machine_output, io)
}

/// Returns the task that is meant, if it is open and the run is paused.
fn paused(view: &View, named: Option<&str>) -> Option<Task> {
    view.snapshot.paused_at()?;
    let open = charter_runtime::open_tasks(view.charter.machine(), &view.snapshot, view.dry);
    open.into_iter().find(|task| named.is_none_or(|named| task.effect == named))
}

fn no_data(args: &Args, view: &View, task: &Task) -> Failure {
    let snapshot = (view.charter.machine().as_ref(), &view.snapshot);
    let suggest = Suggest::new(snapshot, &args.who, &args.db, &[], follow::now());
    let [answer, decline] = suggest.answer(task);
    Failure::with_help(
        format!("the answer to `{}` is missing", clean(task.title.as_deref().unwrap_or(&task.src))),
        format!("`{answer}`, or `{decline}`"),
    )
}

fn several(run: &str, tasks: &[Task]) -> Failure {
    let list: Vec<String> = tasks.iter().map(|t| format!("`{}` ({})", t.effect, clean(&t.src))).collect();
    Failure::with_help(format!("run `{run}` has several tasks for persons"), format!("name one: {}", list.join(", ")))
}

fn not_a_task(text: &str) -> Failure {
    Failure::with_help(
        format!("invalid task `{}`", clean(text)),
        "a task is `RUN/SEQ/INDEX`, as `charter show RUN` lists it; the numbers have no leading zeros",
    )
}

/// A task that is no longer open, and the record that ended it.
struct Ended {
    effect: String,
    record: Record,
}

impl Ended {
    fn describe(&self, run: &RunInfo, db: &Db) -> Failure {
        let Ended { effect, record } = self;
        let by = match record.by.id.as_str() {
            "" | "system" => String::new(),
            by => format!(" by {}", clean(by)),
        };
        Failure::with_help(
            format!(
                "task `{effect}` is no longer waited for: `{}`{by} ended it in record {}, {}",
                clean(&record.event.r#type),
                record.seq,
                when(record.at)
            ),
            format!("`charter explain {} {}{}` shows the record", run.run, record.seq, db.option()),
        )
    }
}

/// Returns the last of the tasks that ended in a run, beginning with a record. `is_meant` chooses
/// tasks by the effect that requests them.
fn ended(
    host: &Host,
    run: &RunInfo,
    mut from: u64,
    is_meant: impl Fn(&str, &Json) -> bool,
) -> Result<Option<Ended>, Failure> {
    let text = |effect: &Json, key: &str| effect.get(key).and_then(Json::as_str).map(str::to_owned);
    let (mut open, mut last) = (BTreeSet::new(), None);
    loop {
        let records = host.call(|b| b.records(run.run.clone(), from, PAGE))?;
        let Some(next) = records.last().map(|record| record.seq.saturating_add(1)) else {
            return Ok(last);
        };
        for record in records {
            let answered = record.source.effect.as_deref().filter(|_| {
                matches!(record.source.kind, SourceKind::Done | SourceKind::Error) && record.refusal.is_none()
            });
            let cancelled = record.effects.iter().filter_map(|effect| text(effect, "effect"));
            let ends = answered.map(str::to_owned).into_iter().chain(cancelled).find(|id| open.remove(id));
            let requested = record.effects.iter().filter_map(|effect| text(effect, "id").map(|id| (id, effect)));
            open.extend(requested.filter(|(id, effect)| is_meant(id, effect)).map(|(id, _)| id));
            last = ends.map(|effect| Ended { effect, record }).or(last);
        }
        from = next;
    }
}

/// Says why a run has no task that can be answered: what ended the last one.
fn none_open(host: &Host, run: &RunInfo, view: &View, db: &Db) -> Result<Failure, Failure> {
    let actors = &view.charter.machine().definition().actors;
    let is_task = |_: &str, effect: &Json| {
        let actor = effect.get("src").and_then(Json::as_str).and_then(|src| actors.get(src));
        actor.is_some_and(|actor| view.dry || actor.kind == "human")
    };
    Ok(match ended(host, run, 0, is_task)? {
        Some(task) => task.describe(run, db),
        None => Failure::with_help(
            format!("run `{}` has no task for a person, and had none", run.run),
            format!("`charter show {}{}` shows what it waits for", run.run, db.option()),
        ),
    })
}

/// Says why a task cannot be answered: it never existed, or what ended it.
fn not_open(host: &Host, run: &RunInfo, view: &View, effect: &str, db: &Db) -> Result<Failure, Failure> {
    let from = EffectId::parse(effect).map_or(0, |effect| effect.seq);
    if let Some(task) = ended(host, run, from, |id, _| id == effect)? {
        return Ok(task.describe(run, db));
    }
    Ok(match view.tasks.first() {
        Some(task) => Failure::with_help(
            format!("run `{}` has no task `{effect}`", run.run),
            format!("did you mean `{}`?", task.effect),
        ),
        None => Failure::new(format!("run `{}` has no task `{effect}`, and no other task is open", run.run)),
    })
}
