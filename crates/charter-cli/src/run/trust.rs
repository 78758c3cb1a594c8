//! `charter trust RUN`: shows what the actors of an imported run would do, and allows exactly that.

use charter_journal::{Manifest, RunInfo, StoredCharter};
use charter_kernel::Status;
use charter_runtime::{Charter, RuntimeError, SendEvent};
use serde_json::json;

use super::host::{Host, Opener};
use super::send::After;
use super::{Who, folder};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::text::{clean, quoted};
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
    #[arg(long, value_name = "FILE")]
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

/// What to tell if the open invocations of a run were not resumed. The error usually names the run.
pub(super) fn not_resumed(message: &str, run: &str, db: &str) -> String {
    let why = with_help(message, run, db);
    match why.contains(&format!("run `{run}`")) {
        true => format!("not resumed: {why}"),
        false => format!("run `{run}` was not resumed: {why}"),
    }
}

/// Whether a message of a host says that nobody has allowed the actors of a run to work.
pub(super) fn says_untrusted(message: &str, run: &str) -> bool {
    message == RuntimeError::Untrusted { run: run.to_owned() }.to_string()
}

/// Runs the command. Sends the event `charter.trust` with the digest of the run's manifest.
///
/// # Errors
/// The run does not exist, has ended, was not imported or is allowed already, has another manifest
/// or charter; an actor could not start; or the journal is in use.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.file_only("trust")?;
    Host::with(&args.db, &args.models, Opener::Here, io, |host, io| allow(args, host, machine_output, io))
}

/// What is known about a run before it is allowed.
struct Imported {
    info: RunInfo,
    charter: std::sync::Arc<Charter>,
    manifest: Manifest,
    digest: String,
    /// Where its charter is now, and where it will be.
    before: Option<String>,
    place: Option<String>,
    /// What its actors need of the folder, if none is known.
    need: Option<String>,
}

impl Imported {
    fn read(args: &Args, host: &Host) -> Result<Imported, Failure> {
        let info = host.find(&args.run)?;
        let manifest = folder::manifest(host, &info.run)?;
        let digest = manifest.digest(info.charter).to_string();
        let charter = host.call(|b| b.charter(info.charter))?;
        let before = folder::stored_place(&args.db, &info)?;
        let place = match &args.charter {
            Some(file) => Some(folder::copy(file, &info)?.stored().name.clone()),
            None => before.clone(),
        };
        let mut imported = Imported { info, charter, manifest, digest, before, place, need: None };
        if imported.folder().is_none() {
            let stored = imported.charter.stored().clone();
            let stored = StoredCharter { name: imported.place.clone().unwrap_or(stored.name), ..stored };
            // A folder that is gone is none.
            let stored = StoredCharter { name: stored.plain_name().to_owned(), ..stored };
            imported.need = folder::need(&stored, &imported.manifest)?;
        }
        Ok(imported)
    }

    /// The folder in which its actors will work, for messages.
    fn folder(&self) -> Option<String> {
        self.place.as_deref().filter(|place| folder::exists(place)).and_then(folder::folder_of)
    }

    /// What that folder has that is not as it was.
    fn changes(&self) -> Vec<String> {
        let place = self.place.as_deref().filter(|place| folder::exists(place));
        place.map(|place| folder::changes(&self.manifest, place)).unwrap_or_default()
    }

    fn has_ended(&self) -> bool {
        self.info.status.is_some_and(Status::is_finished)
    }
}

fn allow(args: &Args, host: &Host, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let imported = Imported::read(args, host)?;
    let (run, digest) = (imported.info.run.as_str(), &imported.digest);
    if let Some(given) = args.manifest.as_ref().filter(|given| *given != digest) {
        return Err(Failure::new(format!("run `{run}` has the manifest {digest}, not {given}")));
    }
    if args.show && machine_output {
        let actors = &imported.charter.machine().definition().actors;
        let (files, folder, changes) = (&imported.manifest, imported.folder(), imported.changes());
        let shown = json!({"run": run, "manifest": digest, "files": files, "actors": actors, "folder": folder, "changes": changes});
        writeln!(io.out, "{shown}")?;
        return Ok(Exit::Yes);
    }
    if !machine_output {
        show(&imported, io)?;
    }
    if args.show {
        return Ok(Exit::Yes);
    }
    if imported.has_ended() {
        return Err(Failure::new(format!(
            "run `{}` has ended, so nothing of this will be carried out; nothing was recorded",
            clean(run)
        )));
    }
    // The host reads the run only after it knows the folder.
    if !charter_runtime::is_untrusted(args.db.read()?.as_ref(), &imported.info)? {
        return is_allowed(args, &imported, host, machine_output, io);
    }
    if let Some(need) = &imported.need {
        return Err(Failure::with_help(
            format!(
                "nothing was allowed, because the actors of run `{}` could not start: {need}, and the folder of the charter is not known here",
                clean(run)
            ),
            format!(
                "name the file of the same charter, in whose folder its programs are: `{}`",
                command(args, run, Some("FILE"), args.manifest.as_deref())
            ),
        ));
    }
    if !args.yes && args.manifest.is_none() && !confirmed(args, &imported, io)? {
        return Ok(Exit::No);
    }
    move_there(args, &imported, host)?;
    let mut by = args.who.principal();
    by.roles.push(OPERATOR.to_owned());
    let events = host.watch(run, Some(imported.info.seq))?;
    let receipt = host.send(SendEvent::new(run, "charter.trust", json!({"manifest": digest}), by))?;
    let after = After { who: &args.who, db: &args.db, leave: None };
    after.show(host, run, receipt, events, machine_output, io)
}

/// Gives the run the folder that was shown. It works there, even if a copy of its charter was added
/// meanwhile.
fn move_there(args: &Args, imported: &Imported, host: &Host) -> Result<(), Failure> {
    if let Some(file) = &args.charter {
        let found = folder::copy(file, &imported.info)?;
        host.call(|b| b.add(found.clone()))?;
    }
    match &imported.place {
        Some(place) => folder::move_to(host, &imported.info.run, place),
        None => Ok(()),
    }
}

/// Gives a run that is allowed already the folder that it lacks.
fn is_allowed(
    args: &Args,
    imported: &Imported,
    host: &Host,
    machine_output: bool,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let run = imported.info.run.as_str();
    let nothing = RuntimeError::NothingToAllow { run: run.to_owned() };
    let (Some(file), Some(folder)) = (&args.charter, imported.folder()) else {
        return Err(nothing.into());
    };
    let resume = |more: &str| format!("{} run --resume {}{more}{}", program::name(), quoted(run), args.db.option());
    match imported.before.as_deref().and_then(folder::folder_of) {
        Some(before) if before == folder => return Err(nothing.into()),
        Some(before) => {
            let there = resume(&format!(" --charter {}", quoted(file)));
            return Err(Failure::with_help(
                format!("{nothing}; its actors work in `{before}`"),
                format!("`{there}` moves it to `{folder}`"),
            ));
        }
        None => move_there(args, imported, host)?,
    }
    if machine_output {
        writeln!(io.out, "{}", json!({"run": run, "folder": folder}))?;
        return Ok(Exit::Yes);
    }
    writeln!(io.err, "run `{}` was allowed without a folder; from now on, it works in `{folder}`", clean(run))?;
    writeln!(io.err, "  to continue it: {}", Paint(io.color_err).faint(&resume("")))?;
    Ok(Exit::Yes)
}

/// The command that allows a run.
fn command(args: &Args, run: &str, charter: Option<&str>, manifest: Option<&str>) -> String {
    let charter = charter.map(|file| format!(" --charter {}", quoted(file))).unwrap_or_default();
    let manifest = manifest.map(|digest| format!(" --manifest {digest}")).unwrap_or_default();
    format!("{} trust {}{charter}{manifest}{}", program::name(), quoted(run), args.db.option())
}

/// Asks whether to allow what was shown.
fn confirmed(args: &Args, imported: &Imported, io: &mut Io<'_>) -> Result<bool, Failure> {
    let run = imported.info.run.as_str();
    if !io.terminal {
        return Err(Failure::with_help(
            format!("the actors of run `{}` are allowed only after a confirmation", clean(run)),
            format!(
                "`{}` shows what they do; `{}` allows exactly that",
                show_command(run, &args.db.option()),
                command(args, run, args.charter.as_deref(), Some(&imported.digest))
            ),
        ));
    }
    Ok(io.confirm(&format!("allow the actors of run `{}` in `{}` to do this?", clean(run), args.db.db.display()))?)
}

/// Shows what the actors do, which files they use and where these are.
fn show(imported: &Imported, io: &mut Io<'_>) -> Result<(), Failure> {
    let Imported { charter, manifest, digest, .. } = imported;
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
    if let Some(folder) = imported.folder() {
        writeln!(io.err, "  in the folder {}", json!(folder))?;
    }
    if let Some(need) = &imported.need {
        let missing = paint.warning("  in no folder that is known here:");
        writeln!(io.err, "{missing} {need}; name the file of the same charter with `--charter FILE`")?;
    }
    for change in imported.changes() {
        writeln!(io.err, "  {} {}", paint.warning("not as it was:"), clean(&change))?;
    }
    if imported.has_ended() {
        writeln!(io.err, "  the run has ended, so nothing of this will be carried out")?;
    }
    Ok(())
}
