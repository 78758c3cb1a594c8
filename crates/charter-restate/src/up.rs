//! `charter-restate up`: one Restate server with an endpoint.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use charter_restate::Engine;

use crate::{Serve, host};

/// The version of the server that is tested.
const SERVER: &str = "1.7.12";
const PROGRAM: &str = "restate-server";

/// Starts one Restate server and serves charters to it.
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Folder with the data of the server
    #[arg(long, default_value = "restate-data", value_name = "DIR")]
    base_dir: PathBuf,
    /// The server's program [default: `restate-server` of node_modules here, or on the path]
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    #[command(flatten)]
    serve: Serve,
}

pub(crate) fn run(args: Up) -> anyhow::Result<bool> {
    let program = match args.server {
        Some(program) => program,
        None => found()?,
    };
    std::fs::create_dir_all(&args.base_dir).with_context(|| format!("cannot make `{}`", args.base_dir.display()))?;
    let server = started(&program, &args.base_dir)?;
    // The addresses that a server has which is told none.
    host(&Engine::new("http://127.0.0.1:8080", "http://127.0.0.1:9070"), args.serve, Some(server))
}

/// Finds the server: in node_modules, where its package for this machine has the program itself,
/// or on the path.
fn found() -> anyhow::Result<PathBuf> {
    let installed = std::fs::read_dir("node_modules/@restatedev").into_iter().flatten().flatten();
    let installed = installed.map(|entry| entry.path().join("bin").join(PROGRAM)).find(|file| file.is_file());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || std::env::split_paths(&path).map(|dir| dir.join(PROGRAM)).find(|file| file.is_file());
    match installed.or_else(on_path) {
        Some(program) => Ok(program),
        None => bail!(
            "no `{PROGRAM}` in ./node_modules or on the path; install it with `npm install @restatedev/restate-server@{SERVER}`, or name it with `--server FILE`"
        ),
    }
}

fn started(program: &Path, base_dir: &Path) -> anyhow::Result<Child> {
    let log = std::fs::File::create(base_dir.join("server.log"))?;
    let errors = log.try_clone()?;
    let mut command = Command::new(program);
    command.arg("--base-dir").arg(base_dir).args(["--bind-ip", "127.0.0.1", "--node-name", "charter"]);
    // Its queues would stay in the folder of all programs when it is killed.
    let temporary = base_dir.join("tmp");
    std::fs::create_dir_all(&temporary)?;
    command.env("TMPDIR", std::path::absolute(&temporary)?);
    command.env("DO_NOT_TRACK", "1").stdin(Stdio::null()).stdout(log).stderr(errors);
    command.spawn().with_context(|| format!("cannot start `{}`", program.display()))
}
