//! `charter run`: starts a run on the embedded host, or takes one up again, and follows it until it ends or waits for somebody.

mod approval_preview;
mod ask;
mod choice;
mod follow;
pub(crate) mod host;
pub mod legal;
mod model_progress;
mod pages;
mod progress;
mod report;
pub mod send;
mod story;

use charter_kernel::{Code, Envelope, Event, Machine, Principal};
use charter_runtime::{Start, Subscription};
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value as Json, json};

use crate::input::json_or_file;
use crate::io::{Exit, Failure, Io};
use crate::journal::lines::further;
use crate::journal::{self, Db};
use crate::models;
use follow::{Follow, Reply};
use host::Host;

/// Starts a run and follows it.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "charter run CHARTER [--input JSON]\n       charter run --resume RUN",
    after_help = "It ends when the run ends, or when nothing goes on without somebody: it says what it waits for then.\nCtrl-C leaves the run as it is; `charter run --resume RUN` goes on."
)]
pub struct Args {
    /// A charter, or the name of a bundled charter
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    charter: Option<String>,
    /// What the run starts with: JSON, or `@file`
    #[arg(long, value_name = "JSON", conflicts_with = "resume")]
    input: Option<String>,
    /// Id of the run [default: a new one]
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    run: Option<String>,
    /// Take up a run that was left
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// Agree wherever a person is needed
    #[arg(long, conflicts_with = "no")]
    yes: bool,
    /// Disagree wherever a person is needed
    #[arg(long)]
    no: bool,
    /// Start it, leave it to a process in the background, and print its id
    #[arg(long, conflicts_with_all = ["yes", "no"])]
    detach: bool,
    #[command(flatten)]
    who: Who,
    /// Go on waiting for timers, however far off they are
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
}

/// Who acts.
#[derive(Debug, Clone, clap::Args)]
pub struct Who {
    /// Who you are
    #[arg(long = "as", value_name = "ID", default_value = "me", value_parser = NonEmptyStringValueParser::new())]
    sender: String,
    /// A role you have (may be given several times)
    #[arg(long, value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    role: Vec<String>,
}

impl Who {
    /// Whoever it may be, with every role.
    pub(crate) fn anybody() -> Who {
        Who { sender: "ID".into(), role: Vec::new() }
    }
    pub(crate) fn principal(&self) -> Principal {
        Principal { id: self.sender.clone(), roles: self.role.clone() }
    }
    pub(crate) fn has_roles(&self) -> bool {
        !self.role.is_empty()
    }
}

/// Runs the command.
///
/// # Errors
/// The charter or the input cannot be read, the journal is in use, or there is no such run.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (host, run, news) = match (&args.charter, &args.resume) {
        (_, Some(resume)) => {
            let store = args.db.write()?;
            let run = journal::find(&store, resume)?.run;
            let host = Host::open(store, &args.models)?;
            let news = host.runtime.subscribe(Some(&run));
            (host, run, news)
        }
        (Some(charter), None) => match start(args, charter, io)? {
            Ok(started) => started,
            Err(refused) => return Ok(refused),
        },
        (None, None) => return Err(Failure::new("nothing to run")),
    };
    if args.detach {
        host.close();
        background(args, &run)?;
        match machine_output {
            true => writeln!(io.out, "{}", json!({"run": run}))?,
            false => writeln!(io.out, "{run}")?,
        }
        return Ok(Exit::Yes);
    }
    let follow = Follow {
        reply: match (args.yes, args.no) {
            (true, _) => Reply::Yes,
            (_, true) => Reply::No,
            _ if io.terminal => Reply::Ask,
            _ => Reply::Leave,
        },
        who: args.who.clone(),
        patient: args.wait,
        resumed: args.resume.is_some(),
        db: args.db.clone(),
    };
    let exit = follow.run(&host, &run, news, machine_output, io);
    host.close();
    exit
}

/// Starts a run; the inner error: its start was refused.
fn start(args: &Args, charter: &str, io: &mut Io<'_>) -> Result<Result<(Host, String, Subscription), Exit>, Failure> {
    let input = match &args.input {
        Some(text) => json_or_file("--input", text)?,
        None => json!({}),
    };
    // Everything that can be wrong with what was asked for is told before a journal is made.
    let charter = host::charter(charter)?;
    fits(charter.machine(), &input, args.who.principal())?;
    host::admits(&charter, args.run.as_deref(), &args.models)?;
    let host = Host::open(args.db.make()?, &args.models)?;
    let digest = charter.digest();
    host.wait(host.runtime.add(charter))?;
    // Before it starts, so that nothing of it is missed.
    let news = host.runtime.subscribe(None);
    let receipt = host.wait(host.runtime.start(Start {
        charter: digest,
        run: args.run.clone(),
        input,
        by: args.who.principal(),
    }))?;
    if receipt.is_refused() {
        send::show_refusal(&receipt.record, &host, io)?;
        host.close();
        return Ok(Err(Exit::No));
    }
    let run = receipt.record.run.to_string();
    let news = news.only(&run);
    Ok(Ok((host, run, news)))
}

/// An input that does not fit is told before a journal is made.
fn fits(machine: &Machine, input: &Json, by: Principal) -> Result<(), Failure> {
    let start = Envelope {
        event: Event::Start { input: input.clone() },
        ..Envelope::event(0, "", json!({}), by, follow::now())
    };
    let Err(refusal) = machine.start("run", &start) else {
        return Ok(());
    };
    if refusal.code != Code::Schema {
        return Ok(());
    }
    let story = machine.explain(None, &start, &refusal);
    let mut message = story.message.clone();
    for line in further(&story.misfits) {
        message.push('\n');
        message.push_str(&line);
    }
    let example = machine.definition().root.input.as_ref().and_then(|schema| {
        let examples = schema.get("examples")?.as_array()?;
        examples.last()
    });
    Err(match example {
        Some(example) => Failure::with_help(message, format!("e.g. `--input '{example}'`")),
        None => Failure::new(message),
    })
}

/// A process of its own goes on with the run.
fn background(args: &Args, run: &str) -> Result<(), Failure> {
    use std::process::{Command, Stdio};
    let cannot = |e: std::io::Error| {
        Failure::with_help(
            format!("no process could be started in the background: {}", crate::load::plain(&e)),
            format!("the run has begun; `charter run --resume {run}` goes on"),
        )
    };
    let program = std::env::current_exe().map_err(cannot)?;
    let mut command = Command::new(program);
    command.args(["run", "--resume", run, "--wait", "--db"]).arg(&args.db.db);
    let models = &args.models;
    for (flag, value) in [("--model", &models.model), ("--model-url", &models.model_url)] {
        command.args(value.iter().flat_map(|value| [flag, value]));
    }
    let files = [("--record-models", &models.record_models), ("--replay-models", &models.replay_models)];
    for (flag, file) in files {
        if let Some(file) = file {
            command.arg(flag).arg(file);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // So that what ends this terminal's programs does not end it.
        command.process_group(0);
    }
    command.spawn().map_err(cannot)?;
    Ok(())
}

/// Data of an event on the command line: JSON, `@file`, or nothing.
pub(crate) fn data(text: Option<&String>) -> Result<Json, Failure> {
    match text {
        Some(text) => json_or_file("DATA", text),
        None => Ok(json!({})),
    }
}
