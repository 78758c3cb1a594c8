//! `charter-restate gateway` and `key`: the server of `charter serve` for the runs of a Restate
//! server.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use charter_journal::{MemoryStore, SqliteStore, Store};
use charter_kernel::PrincipalKind;
use charter_restate::Engine;
use charter_runtime::backend::Backend;
use charter_server::identity::{Grant, NewKey, Office};
use charter_server::{Options, Server};
use serde_json::json;

use crate::executors::Models;
use crate::served;

/// How long requests may take that arrived before the end.
const GRACE: Duration = Duration::from_secs(10);
/// How long requests wait for the Restate server, which may be about to start again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the server is asked for records that this gateway has not made.
const EVERY: Duration = Duration::from_millis(500);

/// Serves the runs over HTTP.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    /// Address and port to listen at
    #[arg(long, default_value = "127.0.0.1:7117", value_name = "ADDR")]
    listen: SocketAddr,
    /// Journal file with a copy of the records, from which lists, streams and old states are read;
    /// it is created, and continued
    #[arg(long, default_value = "gateway.db", value_name = "FILE")]
    db: PathBuf,
    /// Address under which clients reach the gateway, if it is behind a proxy
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Further origin whose pages may use the API
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<String>,
    #[command(flatten)]
    owner: Owner,
    /// Files of the charters, those of the endpoints
    #[arg(required = true)]
    charters: Vec<PathBuf>,
    #[command(flatten)]
    models: Models,
}

/// Who owns the run with the keys.
#[derive(Debug, clap::Args)]
struct Owner {
    /// Who adds keys here: the owner of the run `host`, the same on all machines [default: the
    /// user, such as `uid:1000`]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

impl Owner {
    fn name(&self) -> String {
        self.owner.clone().unwrap_or_else(|| format!("uid:{}", rustix::process::getuid().as_raw()))
    }
}

/// Adds a key.
#[derive(Debug, clap::Args)]
pub(crate) struct Key {
    /// The id of who gets it
    id: String,
    /// A role: `ROLE`, `CHARTER/ROLE` or `CHARTER/RUN/ROLE`
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<Grant>,
    /// The key is for an agent
    #[arg(long, conflicts_with = "service")]
    agent: bool,
    /// The key is for a program that is not an agent
    #[arg(long)]
    service: bool,
    #[command(flatten)]
    owner: Owner,
}

/// Serves until Ctrl-C.
pub(crate) fn serve(engine: Engine, args: Gateway) -> anyhow::Result<bool> {
    let charters = Arc::new(served(&args.charters, &args.models)?);
    let copy = SqliteStore::open(&args.db).with_context(|| format!("cannot open `{}`", args.db.display()))?;
    let engine = engine.patience(PATIENCE);
    let gateway = charter_restate::Gateway::new(engine, charters.clone(), Arc::new(copy));
    let options = Options {
        public_url: args.public_url.clone(),
        origins: args.origins.clone(),
        ..Options::local(args.listen, &args.owner.name())
    };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        for problem in gateway.catch_up().await? {
            eprintln!("{problem}");
        }
        let following = tokio::spawn(gateway.clone().follow(EVERY));
        let startable = charters.iter().map(|(charter, _)| charter.clone()).filter(|charter| {
            charter.machine().definition().id != charter_server::identity::HOST_RUN
        });
        let server = Server::start(Arc::new(gateway), startable.collect(), options).await?;
        match std::io::stdout().is_terminal() {
            true => println!("{}", server.login_link()?),
            false => println!("{}", server.url()),
        }
        if !server.has_keys() {
            eprintln!("no keys yet: names are claimed, and no approval counts; `charter-restate key NAME --role ROLE` adds one");
        }
        tokio::signal::ctrl_c().await?;
        server.close(GRACE).await;
        following.abort();
        anyhow::Ok(())
    })?;
    tokio.shutdown_background();
    Ok(true)
}

/// Adds a key in the run `host`.
pub(crate) fn add(engine: Engine, args: Key) -> anyhow::Result<bool> {
    let charters = Arc::new(served(&[], &Models::none())?);
    let copy: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let backend: Arc<dyn Backend> = Arc::new(charter_restate::Gateway::new(engine, charters, copy));
    let owner = args.owner.name();
    let kind = match (args.agent, args.service) {
        (true, _) => PrincipalKind::Agent,
        (_, true) => PrincipalKind::Service,
        _ => PrincipalKind::Person,
    };
    let key = NewKey { id: args.id, kind, grants: args.roles, expires: None, note: None };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let secret = tokio.block_on(async {
        let office = Office::open(backend, &owner).await?;
        office.add(key, Office::owner(&owner)).await
    })?;
    println!("{}", secret.reveal());
    eprintln!("{}", json!({"key": secret.key()}));
    Ok(true)
}
