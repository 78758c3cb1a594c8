//! `charter host`: a process in the background that has the journal open, for `--detach`.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::host::Host;
use crate::io::{Exit, Failure};
use crate::journal::Db;
use crate::models;

/// How long the process waits for the command that started it.
const FIRST: Duration = Duration::from_secs(20);

/// Maximum size of an error message of the process, in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 10;

/// Hosts the runs of a journal file while there is something to do: a connection, a running actor,
/// a timer of a run that was left to it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
    /// Stay for this run, until no timer of it is due within a minute (repeatable); resumes no
    /// other run
    #[arg(long, value_name = "RUN")]
    keep: Vec<String>,
    /// The same, until it has no timer
    #[arg(long, value_name = "RUN")]
    keep_all: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The journal file cannot be opened.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    args.db.file_only("host")?;
    args.db.check_new()?;
    let all = |runs: &[String], all_timers| runs.iter().map(|run| (run.clone(), all_timers)).collect::<Vec<_>>();
    let left = [all(&args.keep, false), all(&args.keep_all, true)].concat();
    if !left.is_empty() {
        Host::open_for(&args.db, &args.models, &left)?.stay_while_needed(Duration::ZERO);
    } else if let Some(host) = Host::open_to_stay(&args.db, &args.models)? {
        host.stay_while_needed(FIRST);
    }
    Ok(Exit::Yes)
}

/// A process that was started.
pub(crate) struct Background(Child);

impl Background {
    /// Starts `charter host`.
    pub(crate) fn start(db: &Db, models: &models::Args) -> Result<Background, Failure> {
        Background::start_for(db, models, &[])
    }

    /// Starts `charter host` to stay for these runs, and for all of their timers or only those that
    /// are due soon, once the present holder has ended.
    pub(super) fn start_for(db: &Db, models: &models::Args, left: &[(String, bool)]) -> Result<Background, Failure> {
        let cannot =
            |e: std::io::Error| Failure::new(format!("cannot start a background process: {}", crate::load::plain(&e)));
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["host", "--db"]).arg(&db.db);
        command.args(models.accept_clock.then_some("--accept-clock"));
        command.args(models.allow_insecure.then_some("--allow-insecure"));
        for (flag, value) in [("--model", &models.model), ("--model-url", &models.model_url)] {
            command.args(value.iter().flat_map(|value| [flag, value]));
        }
        let files = [
            ("--models", &models.models),
            ("--record-models", &models.record_models),
            ("--replay-models", &models.replay_models),
            ("--record-missing", &models.record_missing),
        ];
        for (flag, file) in files {
            if let Some(file) = file {
                command.arg(flag).arg(file);
            }
        }
        for (run, all_timers) in left {
            command.arg(format!("--keep{}={run}", if *all_timers { "-all" } else { "" }));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt as _;
            // Signals to the programs of this terminal must not end the process.
            command.process_group(0);
        }
        charter_process::start_apart(&mut command).map(Background).map_err(cannot)
    }

    /// Checks that the process has not failed; `None` if it has ended, because another process has
    /// the journal open.
    pub(super) fn check(mut self) -> Result<Option<Background>, Failure> {
        match self.0.try_wait() {
            Ok(Some(status)) if !status.success() => {
                let mut said = String::new();
                if let Some(err) = self.0.stderr.take() {
                    let _ = err.take(MAX_MESSAGE_BYTES).read_to_string(&mut said);
                }
                let said = said.trim().trim_start_matches("error:").trim();
                Err(Failure::new(format!("the background process failed: {said}")))
            }
            Ok(Some(_)) => Ok(None),
            _ => Ok(Some(self)),
        }
    }

    /// Whether it is this process.
    pub(super) fn is(&self, pid: u32) -> bool {
        self.0.id() == pid
    }
}
