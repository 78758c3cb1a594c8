//! `charter serve`: the runs of a journal file over HTTP.

mod config;
mod folder;
pub mod hook;
pub mod key;
mod query;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use charter_runtime::Charter;
use charter_server::{OidcOptions, Options, Server};
use serde_json::json;

use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::clean;
use crate::journal::{Db, usual};
use crate::models::Answerer;
use crate::run::answers::unanswered;
use crate::run::host::Host;
use crate::{bundled, codes, models};
use folder::CharterFolder;

/// How long requests may take that arrived before the end.
const GRACE: Duration = Duration::from_secs(10);
/// How often the folder of charters is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The address at which a server listens that is told none.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7117);

/// Serves the runs of a journal file.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// File in TOML with these options (`listen = "127.0.0.1:8000"`); what is also given here wins
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port to listen at; port 0 is any free one [default: 127.0.0.1:7117]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Folder with further charters that runs can be started of; it is read again when it changes
    /// [default: ./charters, if it exists]
    #[arg(long, value_name = "DIR")]
    charters: Option<PathBuf>,
    /// Also offer this charter, bundled or in the folder, whose actors change folders and run
    /// commands on this machine: who may start it, may do that as your user
    #[arg(long, value_name = "NAME")]
    offer: Vec<String>,
    /// Address under which clients reach the server, if it is behind a proxy
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Let administrators add webhooks over HTTP whose addresses are not public
    #[arg(long)]
    private_hooks: bool,
    /// OpenID provider whose tokens name people, as it stands in them (`iss`); needs a build with
    /// the feature `oidc`
    #[arg(long, value_name = "URL")]
    oidc_issuer: Option<String>,
    /// For whom the tokens have to be (`aud`): the id of this server at the provider
    #[arg(long, value_name = "ID")]
    oidc_client: Option<String>,
    /// Claim of the tokens that is the id of the principal [default: sub]
    #[arg(long, value_name = "NAME")]
    oidc_id_claim: Option<String>,
    /// Claim of the tokens with roles, as `charter key add --role` takes them; without it, roles
    /// are those of the person's keys
    #[arg(long, value_name = "NAME")]
    oidc_roles_claim: Option<String>,
    /// Origin of pages that may use the server besides its own: scheme, host and port
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    #[command(flatten)]
    models: models::Args,
    /// Journal file; the environment variable CHARTER_DB sets the default [default: charter.db]
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
}

/// The user of the machine who runs this program: `uid:1000`.
pub(crate) fn user() -> String {
    #[cfg(unix)]
    return format!("uid:{}", rustix::process::getuid().as_raw());
    #[cfg(not(unix))]
    return "owner".to_owned();
}

fn page(code: &str) -> Option<&'static str> {
    codes::PAGES.iter().find(|(known, _)| *known == code).map(|(_, page)| *page)
}

/// Runs the command, until a signal ends it.
///
/// # Errors
/// The journal or the address is in use, a charter is invalid, or the server would let everybody
/// in.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let args = config::complete(args)?;
    let db = Db::of_file(&args.db.clone().unwrap_or_else(usual));
    db.file_only("serve")?;
    db.check_new()?;
    more_files();
    let mut charters = Vec::new();
    for charter in bundled::ALL.iter().filter(|c| c.name != charter_server::identity::HOST_RUN) {
        let charter = crate::run::setup::hosted(&crate::load::load(charter.name)?)?;
        let id = &charter.machine().definition().id;
        if !charter_server::reaches_machine(&charter) || args.offer.contains(id) {
            charters.push(charter);
        }
    }
    let given = args.charters.clone().or_else(|| Some(PathBuf::from("charters")).filter(|dir| dir.is_dir()));
    let mut folder = given.map(|path| CharterFolder::new(path, &args.offer)).transpose()?;
    let found: Vec<_> = folder.iter_mut().flat_map(CharterFolder::changed).collect();
    let is_known = |id: &String| bundled::find(id).is_some() || folder.as_ref().is_some_and(|folder| folder.has(id));
    if let Some(unknown) = args.offer.iter().find(|id| !is_known(id)) {
        return Err(Failure::new(format!(
            "`--offer {unknown}`: no charter has this name, neither a bundled one nor one in the folder of charters"
        )));
    }
    let Some(host) = Host::open_to_stay(&db, &args.models)? else {
        let holder = crate::journal::access::holder_of(&db.db)?;
        let pid = holder.map_or_else(String::new, |h| format!(" (process {})", h.pid));
        return Err(Failure::with_help(
            format!("another process{pid} has `{}` open", db.db.display()),
            "stop it, or serve another journal with `--db FILE`",
        ));
    };
    charters = served(charters, &host, io)?;
    let options = Options {
        public_url: args.public_url.clone(),
        origins: args.origins.clone(),
        private_hooks: args.private_hooks,
        oidc: oidc(&args)?,
        code_page: page,
        workspaces: Some(charter_actors::Workspaces::new(crate::journal::backup::store_of_workspaces(&db.db))),
        journal: Some(Arc::new(query::File { path: db.db.clone() })),
        here: charter_guard::gate::Here {
            cwd: None,
            home: std::env::var_os("HOME").map(PathBuf::from),
            guarded: charter_guard::gate::guarded(&db.db),
        },
        ..Options::local(args.listen.unwrap_or(LISTEN), &user())
    };
    for (path, found) in found {
        // The others are served in spite of a broken file.
        let added = found.and_then(|charter| {
            host.threads.block_on(host.backend()?.add(charter.clone()))?;
            Ok(charter)
        });
        match added {
            Ok(charter) => charters.push(charter),
            Err(failure) => not_served(folder.as_mut(), &path, &failure, io)?,
        }
    }
    let of = |charter: &Charter| clean(&charter.machine().definition().id);
    let unanswered = charters.iter().flat_map(|c| unanswered(c).into_iter().map(|line| format!("`{}`: {line}", of(c))));
    let unanswered: Vec<String> = unanswered.collect();
    let started = host.threads.block_on(Server::start(host.backend()?, charters, options));
    let server = match started {
        Ok(server) => Arc::new(server),
        Err(e) => {
            host.close(io);
            return Err(Failure::new(e.to_string()));
        }
    };
    if let Some(folder) = &folder {
        server.set_missing(folder.missing());
    }
    host.set_page(&server.url());
    super::journal::warn_if_shared(&db.db, io.err)?;
    let ending = server.clone();
    host.end_with(Box::new(move || Box::pin(async move { ending.close(GRACE).await })));
    if machine_output {
        let line = json!({"url": server.url(), "listen": server.address().to_string(), "keys": server.has_keys()});
        writeln!(io.out, "{line}")?;
    } else {
        let paint = Paint(io.color_err);
        // In a file, the link would be read by others, or later.
        match io.terminal {
            true => {
                let link = server.login_link().map_err(|e| Failure::new(format!("no random numbers: {e}")))?;
                writeln!(io.out, "{link}")?;
                let once = format!("the link logs you in as {} once, within 10 minutes", user());
                writeln!(io.err, "{}", paint.faint(&once))?;
            }
            false => writeln!(io.out, "{}", server.url())?,
        }
        let (models, answerer) = host.models();
        let name = db.name();
        writeln!(io.err, "{}", paint.faint(&format!("serves {name}; Ctrl-C ends it in order")))?;
        if answerer.is_offline() {
            writeln!(io.err, "{}", paint.faint(&format!("models: {models}")))?;
        }
        for line in unanswered.iter().filter(|_| answerer == Answerer::NoModel) {
            writeln!(io.err, "{} {line}", paint.warning("models:"))?;
        }
        for id in folder.iter().flat_map(CharterFolder::closed) {
            let line = format!("`{}` reaches this machine: no run of it starts here without `--offer {0}`", clean(id));
            writeln!(io.err, "{}", paint.faint(&line))?;
        }
        if !server.has_keys() {
            let option = db.option();
            writeln!(
                io.err,
                "no keys yet: names are claimed with the header `Charter-As`, and no approval counts;\n`charter key add NAME --role ROLE{option}` adds a key, and from then on every request needs one"
            )?;
        }
    }
    crate::run::resumed::tell(&host, io)?;
    io.out.flush()?;
    loop {
        std::thread::sleep(LOOK);
        if host.has_ended() {
            drop(server);
            host.end();
            return Ok(Exit::Yes);
        }
        for (path, found) in folder.iter_mut().flat_map(CharterFolder::changed).collect::<Vec<_>>() {
            let put = match found {
                Ok(charter) => {
                    let id = charter.machine().definition().id.clone();
                    let put = host.threads.block_on(server.put_charter(charter));
                    put.map(|()| id).map_err(Failure::from)
                }
                Err(failure) => Err(failure),
            };
            match put {
                Ok(id) => writeln!(io.err, "charter `{id}` read again: runs that start now use it")?,
                Err(failure) => not_served(folder.as_mut(), &path, &failure, io)?,
            }
        }
        if let Some(folder) = &folder {
            server.set_missing(folder.missing());
        }
    }
}

/// Reports a file that is not served, and keeps why for who asks for its charter.
fn not_served(
    folder: Option<&mut CharterFolder>,
    path: &Path,
    failure: &Failure,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    failure.show(io.err, io.color_err)?;
    writeln!(io.err, "`{}` is not served; what it was before stays, and so do the others", path.display())?;
    if let Some(folder) = folder {
        folder.refuse(path, failure);
    }
    Ok(())
}

/// The charters that this host accepts; it says why it does not serve the others.
fn served(charters: Vec<Charter>, host: &Host, io: &mut Io<'_>) -> Result<Vec<Charter>, Failure> {
    let mut served = Vec::new();
    for charter in charters {
        let id = charter.machine().definition().id.clone();
        match host.threads.block_on(host.backend()?.add(charter.clone())) {
            Ok(_) => served.push(charter),
            Err(why) => {
                Failure::from(why).show(io.err, io.color_err)?;
                writeln!(io.err, "`{}` is not served; the others are", clean(&id))?;
            }
        }
    }
    Ok(served)
}

fn oidc(args: &Args) -> Result<Option<OidcOptions>, Failure> {
    let Args { oidc_issuer, oidc_client, oidc_id_claim, oidc_roles_claim, .. } = args.clone();
    match (oidc_issuer, oidc_client) {
        (Some(issuer), Some(client)) => {
            Ok(Some(OidcOptions { issuer, client, id_claim: oidc_id_claim, roles_claim: oidc_roles_claim }))
        }
        (None, None) if oidc_id_claim.is_none() && oidc_roles_claim.is_none() => Ok(None),
        _ => Err(Failure::new("`oidc-issuer` and `oidc-client` belong together: give both, or none of these options")),
    }
}

/// Connections and streams need descriptors: as many as the system allows this process.
fn more_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // With fewer, fewer connections are accepted at once.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
