//! `charter hook-out`: adds, lists and removes the webhooks of a server, in the run `host` of its
//! journal, or at the server.

use charter_remote::Remote;
use charter_server::hooks::{DeadLetter, HookEvent, HookStatus, NewHook, dead_letters, statuses};
use charter_server::identity::{HostError, Office};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::key::{failure, with_office};
use super::user;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::table::Table;
use crate::journal::text::clean;
use crate::run::host::Host;

/// Webhooks of a server.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a webhook and print the secret that signs its messages, once
    Add(AddArgs),
    /// List the webhooks, and how far each one is
    List {
        #[command(flatten)]
        db: Db,
    },
    /// List the messages that could not be delivered
    Dead(One),
    /// Remove a webhook, with its secret and its dead letters
    Remove(One),
    /// Try again now, the dead letters included; opens a closed webhook again
    Retry(One),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Where events are sent: `https://HOST/PATH`
    url: String,
    /// Events: `task`, `refused`, `ended`, `started`, `record`
    #[arg(long, value_name = "EVENT", value_delimiter = ',', required = true)]
    on: Vec<HookEvent>,
    /// Only runs of this charter
    #[arg(long, value_name = "ID")]
    charter: Option<String>,
    /// Allow addresses of this machine and of private networks, and `http`
    #[arg(long)]
    allow_private: bool,
    /// A remark, for the list
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    db: Db,
}

#[derive(Debug, clap::Args)]
struct One {
    /// The id of the webhook, as `hook-out list` prints it
    hook: String,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The journal cannot be opened, the server does not answer, or the run `host` refuses the change.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match &args.command {
        Command::Add(args) => add(args, machine_output, io),
        Command::List { db } => list(db, machine_output, io),
        Command::Dead(args) => dead(args, machine_output, io),
        Command::Remove(args) => change(args, machine_output, io, false),
        Command::Retry(args) => change(args, machine_output, io, true),
    }
}

/// Works in the run `host` of a journal file, or at a server.
fn anywhere<T>(
    db: &Db,
    io: &mut Io<'_>,
    at_server: impl FnOnce(&Remote) -> Result<T, Failure>,
    in_file: impl FnOnce(&Host, &Office) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(remote) = db.remote()? {
        return at_server(&remote);
    }
    with_office(db, io, |host, office, _| in_file(host, office))
}

/// Reads a part of an answer of a server.
fn part<T: DeserializeOwned>(mut answer: Json, name: &str) -> Result<T, Failure> {
    let part = answer.get_mut(name).map(Json::take).unwrap_or_default();
    serde_json::from_value(part).map_err(|e| Failure::new(format!("the server's answer has no `{name}`: {e}")))
}

/// What refused the change, and where to look.
fn about_hook(error: HostError, db: &Db) -> Failure {
    match error {
        HostError::Refused { why, .. } => {
            Failure::with_help(why, format!("`charter hook-out list{}` lists the webhooks", db.option()))
        }
        other => failure(other),
    }
}

fn add(args: &AddArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut on = args.on.clone();
    on.sort();
    on.dedup();
    let new = NewHook {
        url: args.url.clone(),
        on: on.clone(),
        charter: args.charter.clone(),
        private: args.allow_private,
        note: args.note.clone(),
    };
    let at_server = |remote: &Remote| {
        let mut body = json!({"url": new.url, "on": new.on, "allow_private": new.private});
        if let Json::Object(body) = &mut body {
            body.extend(new.charter.clone().map(|charter| ("charter".to_owned(), charter.into())));
            body.extend(new.note.clone().map(|note| ("note".to_owned(), note.into())));
        }
        let made = remote.add_hook(&body)?;
        Ok((part::<String>(made.clone(), "hook")?, part::<String>(made, "secret")?))
    };
    let in_file = |host: &Host, office: &Office| {
        let added = host.threads.block_on(office.add_hook(new.clone(), Office::owner(&user())));
        added.map(|(hook, secret)| (hook, secret.reveal().to_owned())).map_err(failure)
    };
    let (hook, secret) = anywhere(&args.db, io, at_server, in_file)?;
    if machine_output {
        let line = json!({
            "hook": hook, "secret": secret, "url": new.url, "on": on, "charter": new.charter, "allow_private": new.private,
        });
        writeln!(io.out, "{line}")?;
        return Ok(Exit::Yes);
    }
    let words: Vec<&str> = on.iter().map(|event| event.word()).collect();
    let runs = new.charter.as_ref().map(|id| format!(" of runs of `{}`", clean(id))).unwrap_or_default();
    writeln!(io.err, "webhook {hook}: {}{runs}, to {}", words.join(", "), clean(&new.url))?;
    writeln!(io.out, "{secret}")?;
    let once = "the secret is shown this once; the receiver checks signatures with it";
    writeln!(io.err, "{}", Paint(io.color_err).faint(once))?;
    Ok(Exit::Yes)
}

/// How a webhook is, in a few words.
fn state(hook: &HookStatus) -> String {
    match (&hook.closed, hook.attempts, &hook.next_attempt, hook.behind) {
        (Some(why), ..) => format!("closed: {}", clean(why)),
        (None, 0, _, 0) => "up to date".to_owned(),
        (None, 0, _, behind) => format!("{behind} records behind"),
        (None, failed, next, _) => {
            let why = hook.error.as_deref().map(clean).unwrap_or_default();
            let next = next.as_ref().map(|at| format!(", next attempt {at}")).unwrap_or_default();
            format!("{failed} failed attempts ({why}){next}")
        }
    }
}

fn list(db: &Db, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    db.check()?;
    let hooks: Vec<HookStatus> = anywhere(
        db,
        io,
        |remote| part(remote.hooks()?, "hooks"),
        |host, office| {
            let backend = host.backend()?;
            Ok(host.threads.block_on(statuses(backend.as_ref(), &office.directory()))?)
        },
    )?;
    if machine_output {
        for hook in &hooks {
            writeln!(io.out, "{}", json!(hook))?;
        }
        return Ok(Exit::Yes);
    }
    if hooks.is_empty() {
        writeln!(io.err, "no webhooks yet; `charter hook-out add URL --on task,ended{}` adds one", db.option())?;
        return Ok(Exit::Yes);
    }
    let mut table = Table::new(&["hook", "url", "on", "charter", "state", "dead", "note"]);
    for hook in &hooks {
        let on: Vec<&str> = hook.on.iter().map(|event| event.word()).collect();
        let charter = hook.charter.as_deref().map_or("all".to_owned(), clean);
        let note = hook.note.as_deref().map(clean).unwrap_or_default();
        let row =
            vec![hook.hook.clone(), clean(&hook.url), on.join(","), charter, state(hook), hook.dead.to_string(), note];
        table.row(row);
    }
    table.write(io.out, Paint(io.color_out))?;
    Ok(Exit::Yes)
}

fn dead(args: &One, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.check()?;
    let letters: Vec<DeadLetter> = anywhere(
        &args.db,
        io,
        |remote| part(remote.dead_letters(&args.hook)?, "dead"),
        |host, office| {
            if office.directory().hook(&args.hook).is_none() {
                let help = format!("`charter hook-out list{}` lists the webhooks", args.db.option());
                return Err(Failure::with_help("there is no webhook with this id", help));
            }
            let backend = host.backend()?;
            Ok(host.threads.block_on(dead_letters(backend.as_ref(), &args.hook))?)
        },
    )?;
    if machine_output {
        for letter in &letters {
            writeln!(io.out, "{}", json!(letter))?;
        }
        return Ok(Exit::Yes);
    }
    if letters.is_empty() {
        writeln!(io.err, "no dead letters")?;
        return Ok(Exit::Yes);
    }
    let mut table = Table::new(&["run", "seq", "event", "attempts", "last attempt", "why"]);
    for letter in &letters {
        let DeadLetter { run, seq, event, attempts, at, error, .. } = letter;
        table.row(vec![clean(run), seq.to_string(), clean(event), attempts.to_string(), at.clone(), clean(error)]);
    }
    table.write(io.out, Paint(io.color_out))?;
    Ok(Exit::Yes)
}

/// Removes a webhook, or tries again.
fn change(args: &One, machine_output: bool, io: &mut Io<'_>, retry: bool) -> Result<Exit, Failure> {
    args.db.check()?;
    anywhere(
        &args.db,
        io,
        |remote| match retry {
            true => Ok(remote.retry_hook(&args.hook)?),
            false => Ok(remote.remove_hook(&args.hook)?),
        },
        |host, office| {
            let by = Office::owner(&user());
            let done = match retry {
                true => host.threads.block_on(office.retry_hook(&args.hook, by)),
                false => host.threads.block_on(office.remove_hook(&args.hook, by)),
            };
            done.map_err(|e| about_hook(e, &args.db))
        },
    )?;
    let hook = clean(&args.hook);
    match (machine_output, retry) {
        (true, true) => writeln!(io.out, "{}", json!({"retried": args.hook}))?,
        (true, false) => writeln!(io.out, "{}", json!({"removed": args.hook}))?,
        (false, true) => writeln!(io.err, "webhook {hook}: the server tries again now")?,
        (false, false) => writeln!(io.err, "webhook {hook} is removed; nothing is sent any more")?,
    }
    Ok(Exit::Yes)
}
