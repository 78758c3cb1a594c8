//! `charter trust RUN`: shows what the actors of an imported run would do, and allows exactly that.

use charter_actors::{ConfigError, FolderError};
use charter_journal::{Manifest, RunInfo};
use charter_runtime::{RuntimeError, SendEvent};
use serde_json::json;

use super::host::{Host, Opener, Place};
use super::send::After;
use super::{Who, folder, setup};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::text::clean;
use crate::{models, program};

/// What a run that came from another journal waits for.
pub(crate) const WAITS: &str = "the run came from another journal, and nobody has allowed its actors to work";

/// The role that may allow it.
const OPERATOR: &str = "operator";

/// Allows the actors of an imported run to work.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Only show what would be allowed
    #[arg(long)]
    show: bool,
    /// Do not ask
    #[arg(long, conflicts_with = "show")]
    yes: bool,
    /// Allow exactly this manifest, without asking; fail if the run has another one
    #[arg(long, value_name = "DIGEST", conflicts_with = "show")]
    manifest: Option<String>,
    /// The file of the same charter, in whose folder its programs are
    #[arg(long, value_name = "FILE", conflicts_with = "show")]
    charter: Option<String>,
    #[command(flatten)]
    who: Who,
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
}

/// The command that shows what the actors of a run would do. `db` is the option `--db`.
pub(crate) fn show_command(run: &str, db: &str) -> String {
    format!("{} trust {run} --show{db}", program::name())
}

/// Adds to a message of a host what to do, if nobody has allowed the actors of the run to work.
pub(super) fn with_help(message: &str, run: &str, db: &str) -> String {
    match says_untrusted(message, run) {
        true => format!("{}; see what they do with `{}`", clean(message), show_command(run, db)),
        false => clean(message),
    }
}

/// Whether a message of a host says that nobody has allowed the actors of a run to work.
pub(super) fn says_untrusted(message: &str, run: &str) -> bool {
    message == RuntimeError::Untrusted { run: run.to_owned() }.to_string()
}

/// Runs the command. Sends the event `charter.trust` with the digest of the run's manifest.
///
/// # Errors
/// The run does not exist, was not imported or is allowed already, has another manifest or charter;
/// an actor could not start; or the journal is in use.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.file_only("trust")?;
    Host::with(&args.db, &args.models, Opener::Here, io, |host, io| allow(args, host, machine_output, io))
}

fn allow(args: &Args, host: &Host, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let info = host.find(&args.run)?;
    let run = info.run.as_str();
    let first = host.call(|b| b.records(run.to_owned(), 0, 1))?.into_iter().next();
    let manifest = first.and_then(|first| first.manifest.clone()).map(|m| *m).unwrap_or_default();
    let digest = manifest.digest(info.charter).to_string();
    if let Some(given) = args.manifest.as_ref().filter(|given| **given != digest) {
        return Err(Failure::new(format!("run `{run}` has the manifest {digest}, not {given}")));
    }
    let charter = host.call(|b| b.charter(info.charter))?;
    if args.show && machine_output {
        let actors = &charter.machine().definition().actors;
        writeln!(io.out, "{}", json!({"run": run, "manifest": digest, "files": manifest, "actors": actors}))?;
        return Ok(Exit::Yes);
    }
    let place = place(args, &info)?;
    if !machine_output {
        show(&charter, &manifest, &digest, io)?;
        if let Some(folder) = place.as_deref().and_then(folder::folder_of) {
            writeln!(io.err, "  in the folder {}", json!(folder))?;
        }
    }
    if args.show {
        return Ok(Exit::Yes);
    }
    // The host reads the run only after it knows the folder.
    if !charter_runtime::is_untrusted(args.db.read()?.as_ref(), &info)? {
        return Err(RuntimeError::NothingToAllow { run: run.to_owned() }.into());
    }
    if args.charter.is_none() {
        can_start(args, host, run, &host.view(run)?.charter)?;
    }
    if !args.yes && args.manifest.is_none() && !confirmed(args, run, &digest, io)? {
        return Ok(Exit::No);
    }
    if let Some(file) = &args.charter {
        let found = folder::copy(file, &info)?;
        host.call(|b| b.add(found.clone()))?;
    }
    // It works in the folder that was shown, even if a copy of its charter was added meanwhile.
    if let Some(place) = &place {
        folder::move_to(host, run, place)?;
    }
    let mut by = args.who.principal();
    by.roles.push(OPERATOR.to_owned());
    let events = host.watch(run, Some(info.seq))?;
    let receipt = host.send(SendEvent::new(run, "charter.trust", json!({"manifest": digest}), by))?;
    let after = After { who: &args.who, db: &args.db, leave: None };
    after.show(host, run, receipt, events, machine_output, io)
}

/// Returns where the charter of the run will be: the given file, or where the run is now.
fn place(args: &Args, info: &RunInfo) -> Result<Option<String>, Failure> {
    if let Some(file) = &args.charter {
        return Ok(Some(folder::copy(file, info)?.stored().name.clone()));
    }
    let store = args.db.read()?;
    match charter_journal::place(store.as_ref(), &info.run)? {
        Some(place) => Ok(Some(place)),
        None => Ok(store.charter(info.charter)?.map(|charter| charter.name)),
    }
}

/// Asks whether to allow what was shown.
fn confirmed(args: &Args, run: &str, digest: &str, io: &mut Io<'_>) -> Result<bool, Failure> {
    let file = args.db.option();
    if !io.terminal {
        return Err(Failure::with_help(
            format!("the actors of run `{}` are allowed only after a confirmation", clean(run)),
            format!(
                "`{}` shows what they do; `{} trust {run} --manifest {digest}{file}` allows exactly that",
                show_command(run, &file),
                program::name()
            ),
        ));
    }
    Ok(io.confirm(&format!("allow the actors of run `{}` in `{}` to do this?", clean(run), args.db.db.display()))?)
}

/// Checks that no actor needs the folder of the charter, where the host knows none: its failure
/// would end the run. A host in another process checks its own folders.
fn can_start(args: &Args, host: &Host, run: &str, charter: &charter_runtime::Charter) -> Result<(), Failure> {
    if !matches!(&*host.place.borrow(), Place::Own(_)) {
        return Ok(());
    }
    let folder =
        |e: &ConfigError| matches!(e, ConfigError::Folder(FolderError::NotInFileSystem | FolderError::NoFolder(_)));
    match setup::actor_errors(charter).into_iter().find(|e| folder(&e.error)) {
        None => Ok(()),
        Some(first) => Err(Failure::with_help(
            format!("nothing was allowed, because an actor of run `{}` could not start: {first}", clean(run)),
            format!(
                "name the file of the charter, in whose folder its programs are: `{} trust {run} --charter FILE{}`",
                program::name(),
                args.db.option()
            ),
        )),
    }
}

/// Shows what the actors do and which files they use.
fn show(charter: &charter_runtime::Charter, manifest: &Manifest, digest: &str, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.color_err);
    writeln!(io.err, "{}", paint.faint(&format!("manifest {digest}")))?;
    for (name, actor) in &charter.machine().definition().actors {
        let config = serde_json::to_string(&actor.config).unwrap_or_default();
        writeln!(io.err, "  actor {name}: {} {config}", actor.kind)?;
    }
    for (path, digest) in manifest.all() {
        writeln!(io.err, "  file {}: {digest}", json!(path))?;
    }
    for (actor, models) in &manifest.models {
        writeln!(
            io.err,
            "  models of {} when the run began (this host may ask others): {}",
            json!(actor),
            json!(models)
        )?;
    }
    Ok(())
}
