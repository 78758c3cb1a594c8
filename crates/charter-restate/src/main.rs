//! The program `charter-restate`: an endpoint of a Restate server, and its client.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod executors;
mod http;
mod up;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use charter_journal::{Record, SqliteStore, Verdict, VerifyOptions, verify_with};
use charter_kernel::{Auth, Principal, PrincipalKind, Timestamp};
use charter_restate::{Charters, Endpoint, Engine, mirror, serve};
use charter_runtime::{Charter, SendEvent, Start, parse_json};
use charter_server::identity::host_charter;
use clap::Parser as _;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;

/// How long a call may wait for its turn, in seconds, before `status` says so.
const LAG: u32 = 10;
/// How many runs a list shows.
const LISTED: usize = 1_000;

/// Runs of charters on a Restate server.
#[derive(Debug, clap::Parser)]
#[command(name = "charter-restate", version)]
struct Args {
    /// Address of the server's ingress
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080", value_name = "URL")]
    ingress: String,
    /// Address of the server's administration
    #[arg(long, global = true, default_value = "http://127.0.0.1:9070", value_name = "URL")]
    admin: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serves charters to a Restate server, until Ctrl-C
    Serve(Serve),
    /// Starts one Restate server and serves charters to it, until Ctrl-C
    Up(up::Up),
    /// Lets people, programs and agents reach the runs over HTTP, with keys; until Ctrl-C
    Gateway(http::Gateway),
    /// Adds a key for the gateway, and prints its secret
    Key(http::Key),
    /// Starts a run of a charter
    Start {
        /// The charter's file
        charter: PathBuf,
        /// Id of the run; repeating a start with the same id starts nothing new
        #[arg(long)]
        run: Option<String>,
        /// Input of the run, as JSON
        #[arg(long, default_value = "null", value_name = "JSON")]
        input: String,
        #[command(flatten)]
        models: executors::Models,
        #[command(flatten)]
        sender: Sender,
    },
    /// Sends an event to a run
    Send {
        /// The run
        run: String,
        /// Type of the event
        r#type: String,
        /// Its data, as JSON
        #[arg(default_value = "{}")]
        data: String,
        /// Event id: sending again with the same id changes nothing
        #[arg(long)]
        id: Option<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Answers a task, or declines it
    Answer {
        /// The task, `RUN/SEQ/INDEX`
        task: String,
        /// The answer, as JSON
        #[arg(required_unless_present = "decline")]
        output: Option<String>,
        /// Declines the task, for this reason
        #[arg(long, value_name = "REASON", conflicts_with = "output")]
        decline: Option<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Lists the open tasks
    Tasks,
    /// Lists runs
    Runs,
    /// Says what is paused, failing or lagging in the server
    Status,
    /// Copies all runs into a journal file, which the commands of `charter` read
    Mirror {
        /// The journal file
        #[arg(long, value_name = "FILE")]
        db: PathBuf,
        /// Continues every so many seconds, until Ctrl-C
        #[arg(long, value_name = "SECONDS")]
        every: Option<u64>,
    },
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// Address and port to listen at
    #[arg(long, default_value = "127.0.0.1:9080", value_name = "ADDR")]
    listen: SocketAddr,
    /// Address under which the server reaches this endpoint, if it is another one
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Files of the charters; give all endpoints and gateways of a server the same ones
    #[arg(required = true)]
    charters: Vec<PathBuf>,
    #[command(flatten)]
    models: executors::Models,
}

/// Who sends. Who reaches the ingress is believed.
#[derive(Debug, clap::Args)]
struct Sender {
    /// The sender
    #[arg(long = "as", default_value = "local", value_name = "ID")]
    sender: String,
    /// A role of the sender
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
}

impl Sender {
    fn principal(self) -> Principal {
        let by = Principal { roles: self.roles, ..Principal::new(&self.sender, &[]) };
        by.of_kind(PrincipalKind::Person).authenticated(Auth::Local)
    }
}

fn now() -> Timestamp {
    charter_actors::Clock::now(&charter_actors::SystemClock)
}

fn json_of(what: &str, text: &str) -> anyhow::Result<Json> {
    parse_json(text).map_err(|e| anyhow::anyhow!("{what} is not JSON: {e}"))
}

/// Prints a record; whether it was accepted.
fn shown(record: &Record) -> bool {
    println!("{}", record.text());
    record.verdict != Verdict::Refused
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> anyhow::Result<bool> {
    let engine = Engine::new(&args.ingress, &args.admin);
    match args.command {
        Command::Serve(serve) => host(&engine, serve, None),
        Command::Up(up) => up::run(up),
        Command::Gateway(gateway) => http::serve(engine, gateway),
        Command::Key(key) => http::add(engine, key),
        Command::Start { charter, run, input, models, sender } => {
            let charters = Charters::new(&[Charter::load(&charter)?], models.executors()?)?;
            let Some((charter, blobs)) = charters.iter().next() else {
                bail!("no charter");
            };
            engine.put_charter(charter.stored(), blobs)?;
            let input = json_of("the input", &input)?;
            let run = Some(run.unwrap_or_else(charter_runtime::new_run_id));
            let start = Start { charter: charter.digest(), run, input, by: sender.principal() };
            let (record, _) = engine.start(start, now())?;
            Ok(shown(&record))
        }
        Command::Send { run, r#type, data, id, sender } => {
            let data = json_of("the data", &data)?;
            let send = SendEvent { id, ..SendEvent::new(&run, &r#type, data, sender.principal()) };
            let (record, _) = engine.send(send, now())?;
            Ok(shown(&record))
        }
        Command::Answer { task, output, decline, sender } => {
            let by = sender.principal();
            let outcome = match (output, decline) {
                (Some(output), _) => Ok(json_of("the answer", &output)?),
                (None, reason) => Err(charter_run::Fault::declined(&reason.unwrap_or_default(), &by).json()),
            };
            Ok(shown(&engine.settle(&task, outcome, by, now())?))
        }
        Command::Tasks => {
            for task in engine.tasks(None, LISTED)? {
                println!("{}", json!(task));
            }
            Ok(true)
        }
        Command::Runs => {
            let mut after = None;
            loop {
                let page = engine.runs(after.as_deref(), LISTED)?;
                page.iter().for_each(|info| println!("{}", json!(info)));
                after = page.last().map(|info| info.run.clone());
                if after.is_none() {
                    return Ok(true);
                }
            }
        }
        Command::Status => status(&engine),
        Command::Mirror { db, every } => follow(&engine, &db, every),
    }
}

/// Says what does not get on; whether there is nothing.
fn status(engine: &Engine) -> anyhow::Result<bool> {
    let troubled = engine.troubled(LISTED)?;
    for one in &troubled {
        let why = one.last_failure.as_deref().unwrap_or("no reason is known");
        println!("{}  {}  {} after {} attempts: {why}", one.status, one.target, one.id, one.retry_count);
    }
    let lagging = engine.lagging(LAG, LISTED)?;
    for one in &lagging {
        println!("lagging  {}  {} calls wait, the oldest for {} s", one.target, one.calls, one.seconds);
    }
    let fine = troubled.is_empty() && lagging.is_empty();
    if fine {
        println!("nothing is paused, failing or lagging");
    }
    Ok(fine)
}

/// Copies, verifies what was copied, and says both.
fn follow(engine: &Engine, db: &std::path::Path, every: Option<u64>) -> anyhow::Result<bool> {
    let store = SqliteStore::open(db).with_context(|| format!("cannot open `{}`", db.display()))?;
    loop {
        let mut done = mirror(engine, &store)?;
        let mut verified = 0u64;
        for run in &done.changed {
            let report = verify_with(&store, &VerifyOptions { run: Some(run.clone()), ..VerifyOptions::default() })?;
            verified = verified.saturating_add(report.records());
            if !report.is_verified() {
                done.problems.push(format!("run `{run}` does not verify: see `charter verify --db {}`", db.display()));
            }
        }
        let (runs, changed, records) = (done.runs, done.changed.len(), done.records);
        println!(
            "{runs} runs, {changed} of them with {records} new records; {verified} records of these runs verified"
        );
        done.problems.iter().for_each(|problem| eprintln!("{problem}"));
        let fine = done.problems.is_empty();
        let Some(every) = every.filter(|_| fine) else {
            return Ok(fine);
        };
        std::thread::sleep(Duration::from_secs(every.max(1)));
    }
}

/// The charters in files, and that of the run `host` with the keys of gateways.
fn served(files: &[PathBuf], models: &executors::Models) -> anyhow::Result<Charters> {
    let charters: Result<Vec<Charter>, _> = files.iter().map(|path| Charter::load(path)).collect();
    let mut charters = charters?;
    charters.push(host_charter()?);
    Ok(Charters::new(&charters, models.executors()?)?)
}

/// Serves an endpoint and registers it. `server` is a server that has to run meanwhile.
fn host(engine: &Engine, args: Serve, mut server: Option<std::process::Child>) -> anyhow::Result<bool> {
    let charters = Arc::new(served(&args.charters, &args.models)?);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = tokio.block_on(async {
        let listener =
            TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen at {}", args.listen))?;
        let address = listener.local_addr()?;
        let url = args.public_url.unwrap_or_else(|| format!("http://{address}"));
        let serving = tokio::spawn(serve(
            Endpoint { charters: charters.clone(), engine: engine.clone() },
            listener,
            std::future::pending::<()>(),
        ));
        let (engine, shown) = (engine.clone(), url.clone());
        let registered = tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
            engine.register(&url)?;
            charters.iter().try_for_each(|(charter, blobs)| engine.put_charter(charter.stored(), blobs))?;
            Ok(())
        });
        registered.await??;
        println!("{}", json!({"endpoint": shown}));
        let down = async {
            loop {
                match server.as_mut().map(std::process::Child::try_wait) {
                    Some(Ok(Some(status))) => return status.to_string(),
                    Some(Err(error)) => return error.to_string(),
                    _ => tokio::time::sleep(Duration::from_millis(500)).await,
                }
            }
        };
        let end = tokio::select! {
            signal = tokio::signal::ctrl_c() => signal.map_err(anyhow::Error::from),
            why = down => Err(anyhow::anyhow!("the Restate server has ended: {why}")),
        };
        serving.abort();
        end
    });
    if let Some(server) = &mut server {
        let _ = server.kill();
        let _ = server.wait();
    }
    tokio.shutdown_background();
    ended.map(|()| true)
}
