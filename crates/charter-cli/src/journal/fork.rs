//! `charter fork RUN --at SEQ`: creates a run that starts with the records of another.

use charter_actors::BoxFuture;
use charter_journal::{RunFilter, SqliteStore, Store, StoreError};
use charter_local::Client;
use charter_runtime::RuntimeError;
use charter_runtime::backend::Backend;
use serde_json::{Value as Json, json};

use super::access::{Operation, perform, threads};
use super::{Db, head_of};
use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};
use crate::run::new_run;

/// Forks a run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Number of the last shared record
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = whole::<u64>)]
    at: u64,
    /// Id of the new run [default: the id of the old one plus `.fork1`, `.fork2`, ...]
    #[arg(long = "run", alias = "as", value_name = "ID", value_parser = new_run)]
    new: Option<String>,
    /// Let actors work for the new run: open calls begin once more, with keys of their own
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    db: Db,
}

/// Runs the command; prints the new id.
///
/// # Errors
/// The run or record does not exist, the new id is taken, or the journal is in use.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.check()?;
    let mut fork = Fork { args, requested: None };
    let remote = args.db.remote()?;
    let (run, new) = match &remote {
        Some(remote) => threads(1)?.block_on(fork.at(remote))?,
        None => perform(&args.db.db, &mut fork)?,
    };
    if machine_output {
        let line = json!({
            "run": new, "forked_from": {"run": run, "seq": args.at}, "dry": !args.live,
            "journal": if remote.is_none() { head_of(&args.db.db) } else { Json::Null },
        });
        writeln!(io.out, "{line}")?;
    } else {
        writeln!(io.out, "{new}")?;
        let paint = Paint(io.color_err);
        let to = format!("`charter run --resume {new}{}` continues after record {}", args.db.option(), args.at);
        writeln!(io.err, "{}", paint.faint(&to))?;
        let how = match args.live {
            true => "actors work for it: its open calls begin when it is resumed".to_owned(),
            false => format!("dry: no actor is called; answers come from the past of {run}, or from you"),
        };
        writeln!(io.err, "{}", paint.faint(&how))?;
    }
    Ok(Exit::Yes)
}

struct Fork<'a> {
    args: &'a Args,
    /// The run and its fork, once they were requested from a holder.
    requested: Option<(String, String)>,
}

impl Fork<'_> {
    /// The result, if the fork that was requested from a lost holder exists.
    fn done(&self, exists: impl FnOnce(&str) -> Result<bool, Failure>) -> Result<Option<(String, String)>, Failure> {
        match &self.requested {
            Some((run, new)) if exists(new)? => Ok(Some((run.clone(), new.clone()))),
            _ => Ok(None),
        }
    }
}

impl Fork<'_> {
    /// Forks where the runs are hosted.
    async fn at(&mut self, host: &dyn Backend) -> Result<(String, String), Failure> {
        if let Some((run, new)) = &self.requested
            && host.run(new.clone()).await?.is_some()
        {
            return Ok((run.clone(), new.clone()));
        }
        let run = match host.run(self.args.run.clone()).await? {
            Some(run) => run,
            None => self.args.db.find_among(&host.runs(RunFilter::default()).await?, &self.args.run)?,
        };
        for new in candidates(self.args, &run.run)? {
            if host.run(new.clone()).await?.is_some() {
                continue;
            }
            self.requested = Some((run.run.clone(), new.clone()));
            match host.fork(run.run.clone(), self.args.at, new.clone(), !self.args.live).await {
                Err(RuntimeError::Store(StoreError::RunDeleted { .. })) if self.args.new.is_none() => {}
                forked => {
                    forked?;
                    return Ok((run.run, new));
                }
            }
        }
        Err(taken(self.args, &run.run))
    }
}

impl Operation for Fork<'_> {
    /// The ids of the run and of its fork.
    type Output = (String, String);

    fn own(&mut self, store: &SqliteStore, _: bool) -> Result<Self::Output, Failure> {
        if let Some(done) = self.done(|new| Ok(store.run(new)?.is_some()))? {
            return Ok(done);
        }
        let run = self.args.db.find(store, &self.args.run)?;
        let mut new = None;
        for candidate in candidates(self.args, &run.run)? {
            // The id of a deleted run stays reserved; the store refuses one that was given.
            let is_free = self.args.new.is_some() || store.deletion(&candidate)?.is_none();
            if is_free && store.run(&candidate)?.is_none() {
                new = Some(candidate);
                break;
            }
        }
        let new = new.ok_or_else(|| taken(self.args, &run.run))?;
        let machine = charter_journal::machine(store, run.charter)?;
        charter_journal::fork(store, &machine, &run.run, self.args.at, &new, !self.args.live)?;
        Ok((run.run, new))
    }

    fn other<'a>(&'a mut self, client: &'a Client, _: bool) -> BoxFuture<'a, Result<Self::Output, Failure>> {
        Box::pin(self.at(client))
    }
}

/// The ids that the new run may have, in order.
fn candidates(args: &Args, run: &str) -> Result<Box<dyn Iterator<Item = String> + Send>, Failure> {
    Ok(match &args.new {
        Some(new) => {
            charter_runtime::check_run_id(new).map_err(RuntimeError::from)?;
            Box::new(std::iter::once(new.clone()))
        }
        None => {
            let run = run.to_owned();
            Box::new((1..=10_000_u32).map(move |number| format!("{run}.fork{number}")))
        }
    })
}

fn taken(args: &Args, run: &str) -> Failure {
    match &args.new {
        Some(new) => Failure::new(format!("run `{new}` already exists")),
        None => Failure::with_help(format!("run `{run}` has 10000 forks"), "choose an id with `--run ID`"),
    }
}
