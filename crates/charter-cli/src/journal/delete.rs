//! `charter delete RUN`: deletes a run that has ended from a journal file.

use charter_actors::BoxFuture;
use charter_journal::{Deletion, RunInfo, SqliteStore};
use charter_local::Client;
use serde_json::json;

use super::access::{Operation, perform};
use super::text::{clean, count};
use super::{Db, head_of};
use crate::io::{Exit, Failure, Io, Paint};
use crate::run::Who;
use crate::run::follow::now;

/// Deletes a run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Why it is deleted; recorded in the journal
    #[arg(long, value_name = "REASON", default_value = "no reason given", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The run does not exist or has not ended, or the journal is in use.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.file_only("delete")?;
    args.db.check()?;
    let run = args.db.find(args.db.read()?.as_ref(), &args.run)?;
    let what = format!("run `{}` with {}", clean(&run.run), count(run.seq + 1, "record"));
    if run.status.is_some_and(|status| !status.is_finished()) {
        return Err(Failure::with_help(
            format!("run `{}` has not ended; only runs that have ended can be deleted", clean(&run.run)),
            format!("`charter send {} charter.cancel --role operator{}` ends it", run.run, args.db.option()),
        ));
    }
    if !args.yes && !confirmed(&what, args, io)? {
        writeln!(io.err, "nothing was deleted")?;
        return Ok(Exit::No);
    }
    perform(&args.db.db, &mut Delete { args, run: &run })?;
    if machine_output {
        let line = json!({"deleted": run.run, "records": run.seq + 1, "journal": head_of(&args.db.db)});
        writeln!(io.out, "{line}")?;
    } else {
        writeln!(io.err, "{}", Paint(io.color_err).faint(&format!("{what} deleted")))?;
    }
    Ok(Exit::Yes)
}

/// Asks whether to delete.
fn confirmed(what: &str, args: &Args, io: &mut Io<'_>) -> Result<bool, Failure> {
    if !io.terminal {
        return Err(Failure::with_help(
            format!("{what} is deleted only after a confirmation"),
            format!("`charter delete {}{} --yes` does not ask", args.run, args.db.option()),
        ));
    }
    Ok(io.confirm(&format!("delete {what} from `{}`? It cannot be restored.", args.db.db.display()))?)
}

struct Delete<'a> {
    args: &'a Args,
    run: &'a RunInfo,
}

impl Operation for Delete<'_> {
    type Output = ();

    fn own(&mut self, store: &SqliteStore, _: bool) -> Result<(), Failure> {
        let (run, reason) = (self.run.run.clone(), self.args.reason.clone());
        Ok(store.delete(Deletion { run, reason, by: Who::unnamed().id().to_owned(), at: now() })?)
    }

    fn other<'a>(&'a mut self, client: &'a Client, _: bool) -> BoxFuture<'a, Result<(), Failure>> {
        let pid = client.pid();
        Box::pin(async move {
            Err(Failure::with_help(
                format!("process {pid} has the journal open, and may have the run in memory; nothing was deleted"),
                "stop it, or wait until it ends",
            ))
        })
    }
}
