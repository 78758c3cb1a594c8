//! `charter trust RUN`: shows what the actors of an imported run would do, and allows exactly that.

use charter_journal::Manifest;
use charter_runtime::SendEvent;
use serde_json::json;

use super::host::{Host, Opener};
use super::send::After;
use super::{Who, setup};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::models;

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
    /// Allow only this manifest; fail if the run has another one
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

/// Runs the command. Sends the event `charter.trust` with the digest of the run's manifest.
///
/// # Errors
/// The run does not exist, has another manifest or charter, or the journal is in use.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
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
    if !machine_output {
        show(&charter, &manifest, &digest, io)?;
    }
    if args.show {
        return Ok(Exit::Yes);
    }
    if let Some(file) = &args.charter {
        let found = setup::charter(file)?;
        if found.digest() != info.charter {
            let message = format!("`{file}` is another charter than that of run `{run}`");
            return Err(Failure::new(format!("{message}: {}, not {}", found.digest(), info.charter)));
        }
        host.call(|b| b.add(found.clone()))?;
    }
    let mut by = args.who.principal();
    by.roles.push(OPERATOR.to_owned());
    let events = host.watch(run, Some(info.seq))?;
    let receipt = host.send(SendEvent::new(run, "charter.trust", json!({"manifest": digest}), by))?;
    let after = After { who: &args.who, db: &args.db, leave: None };
    after.show(host, run, receipt, events, machine_output, io)
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
    Ok(())
}
