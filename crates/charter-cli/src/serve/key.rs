//! `charter key`: adds, lists and revokes the keys of a server, in the run `host` of its journal.

use std::collections::{BTreeMap, BTreeSet};

use charter_journal::{SqliteStore, Store as _};
use charter_kernel::{PrincipalKind, parse_delay};
use charter_scenario::timestamp;
use charter_server::identity::{ADMIN, Grant, HOST_RUN, HostError, LAST_USED, NewKey, OPERATOR, Office, READER};
use serde_json::{Value as Json, json};

use super::user;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::table::Table;
use crate::journal::text::clean;
use crate::models;
use crate::run::follow::now;
use crate::run::host::{Host, Opener};

/// Keys of a server.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a key and print its secret, once
    Add(AddArgs),
    /// List the keys
    List {
        #[command(flatten)]
        db: Db,
    },
    /// Revoke a key: nobody is let in with it any more
    Revoke(RevokeArgs),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Id of the person or program that gets the key
    id: String,
    /// Role, or `CHARTER/ROLE`, or `CHARTER/RUN/ROLE`; `admin` may add keys over HTTP
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<Grant>,
    /// Limit the roles to runs of this charter
    #[arg(long, value_name = "ID")]
    charter: Option<String>,
    /// Limit the roles to this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// For a person (the default)
    #[arg(long, group = "kind")]
    person: bool,
    /// For an agent: a model, or a program that acts for one
    #[arg(long, group = "kind")]
    agent: bool,
    /// For another program
    #[arg(long, group = "kind")]
    service: bool,
    /// When it ends: a time, or a duration from now such as `90d`
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// A remark, for the list
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    db: Db,
}

#[derive(Debug, clap::Args)]
struct RevokeArgs {
    /// The id of the key, as `key list` prints it
    key: String,
    /// Why, for the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The journal cannot be opened, or the run `host` refuses the change.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match &args.command {
        Command::Add(args) => add(args, machine_output, io),
        Command::List { db } => list(db, machine_output, io),
        Command::Revoke(args) => revoke(args, machine_output, io),
    }
}

/// Opens the run `host`, here or in the process that has the journal open.
pub(crate) fn with_office<T>(
    db: &Db,
    io: &mut Io<'_>,
    work: impl FnOnce(&Host, &Office, &mut Io<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    db.file_only("key")?;
    db.check_new()?;
    let host = Host::open(db, &models::Args::default(), Opener::Here)?;
    let office = host.threads.block_on(Office::open(host.backend()?, &user())).map_err(failure);
    let result = office.and_then(|office| work(&host, &office, io));
    host.close(io);
    result
}

pub(crate) fn failure(error: HostError) -> Failure {
    match error {
        HostError::Runtime(error) => error.into(),
        other => Failure::new(other.to_string()),
    }
}

/// The time when a key ends.
fn end(text: &str) -> Result<String, Failure> {
    let at = match parse_delay(text) {
        Some(delay) => now().saturating_add(delay),
        None => timestamp::parse(text).map_err(|_| {
            Failure::new(format!(
                "`--expires {text}`: write a time such as 2027-01-31T00:00:00Z, or a duration such as 90d"
            ))
        })?,
    };
    if at <= now() {
        return Err(Failure::new(format!("`--expires {text}` is in the past")));
    }
    Ok(timestamp::text(at))
}

fn add(args: &AddArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let kind = match (args.agent, args.service) {
        (true, _) => PrincipalKind::Agent,
        (_, true) => PrincipalKind::Service,
        _ => PrincipalKind::Person,
    };
    let limited = |grant: &Grant| Grant {
        role: grant.role.clone(),
        charter: grant.charter.clone().or_else(|| args.charter.clone()),
        run: grant.run.clone().or_else(|| args.run.clone()),
    };
    let grants: Vec<Grant> = args.roles.iter().map(limited).collect();
    let expires = args.expires.as_deref().map(end).transpose()?;
    let shown: Vec<String> = grants.iter().map(ToString::to_string).collect();
    let key = NewKey { id: args.id.clone(), kind, grants, expires: expires.clone(), note: args.note.clone() };
    with_office(&args.db, io, |host, office, io| {
        let grants = key.grants.clone();
        let secret = host.threads.block_on(office.add(key, Office::owner(&user()))).map_err(failure)?;
        for why in unknown(&grants, &roles_by_charter(&args.db)?) {
            writeln!(io.err, "{} {}", Paint(io.color_err).warning("warning:"), clean(&why))?;
        }
        if machine_output {
            let line = json!({
                "key": secret.key(), "secret": secret.reveal(), "id": args.id, "kind": kind, "roles": shown, "expires": expires,
            });
            writeln!(io.out, "{line}")?;
            return Ok(Exit::Yes);
        }
        let roles = if shown.is_empty() { "no roles".to_owned() } else { shown.join(", ") };
        let until = expires.as_ref().map(|at| format!(", until {at}")).unwrap_or_default();
        writeln!(io.err, "key {} of {} ({kind}): {roles}{until}", secret.key(), clean(&args.id))?;
        writeln!(io.out, "{}", secret.reveal())?;
        writeln!(io.err, "{}", Paint(io.color_err).faint("the secret is shown this once and kept nowhere"))?;
        Ok(Exit::Yes)
    })
}

/// The roles of each charter of a journal, in all of its versions; not those of the charter `host`.
fn roles_by_charter(db: &Db) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for charter in SqliteStore::open_read_only(&db.db)?.charters()? {
        let core: Json = serde_json::from_str(&charter.core).unwrap_or_default();
        let Some(id) = core.get("id").and_then(Json::as_str).filter(|id| *id != HOST_RUN) else { continue };
        let roles = core.get("roles").and_then(Json::as_object).into_iter().flatten().map(|(role, _)| role.clone());
        all.entry(id.to_owned()).or_default().extend(roles);
    }
    Ok(all)
}

/// What the grants of a new key name that no charter knows: perhaps not yet, perhaps a typo.
fn unknown(grants: &[Grant], charters: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let hint = |name: &str, all: &mut dyn Iterator<Item = &String>| {
        let near = charter_expr::nearest(name, all.map(String::as_str));
        near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    };
    let why = |grant: &Grant| {
        let role = &grant.role;
        if [ADMIN, OPERATOR, READER].contains(&role.as_str()) && grant.charter.is_none() {
            return None;
        }
        let Some(id) = &grant.charter else {
            let known = charters.is_empty() || charters.values().any(|roles| roles.contains(role));
            let hint = hint(role, &mut charters.values().flatten());
            return (!known).then(|| format!("no charter of this journal has a role `{role}` yet{hint}"));
        };
        let Some(roles) = charters.get(id) else {
            let hint = hint(id, &mut charters.keys());
            return Some(format!("role `{grant}`: this journal has no charter `{id}` yet{hint}"));
        };
        let known = roles.contains(role) || [OPERATOR, READER].contains(&role.as_str());
        (!known)
            .then(|| format!("role `{grant}`: charter `{id}` has no role `{role}`{}", hint(role, &mut roles.iter())))
    };
    match grants {
        [] => vec!["the key has no role, so it may do nothing that needs one; `--role ROLE` gives one".to_owned()],
        grants => grants.iter().filter_map(why).collect(),
    }
}

fn list(db: &Db, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    db.check()?;
    with_office(db, io, |_, office, io| {
        let (directory, now) = (office.directory(), now());
        let used: BTreeMap<String, String> =
            SqliteStore::open_read_only(&db.db)?.host_state(LAST_USED)?.into_iter().collect();
        if machine_output {
            for (id, key) in directory.keys() {
                let line: Json = json!({
                    "key": id, "id": key.id, "kind": key.kind, "roles": key.roles(), "expires": key.expires, "note": key.note,
                    "last_used": used.get(id), "closed": key.closed(now),
                });
                writeln!(io.out, "{line}")?;
            }
            return Ok(Exit::Yes);
        }
        if !directory.has_keys() {
            writeln!(io.err, "no keys yet; `charter key add NAME --role ROLE{}` adds one", db.option())?;
            return Ok(Exit::Yes);
        }
        let mut table = Table::new(&["key", "id", "kind", "roles", "expires", "last used", "note"]);
        for (id, key) in directory.keys() {
            let expires = match key.closed(now) {
                Some(why) => why.trim_start_matches("it ").to_owned(),
                None => key.expires.clone().unwrap_or_else(|| "never".into()),
            };
            // The minute is enough; a server writes it down from time to time.
            let last = used.get(id).map_or("never", |at| at.get(..16).unwrap_or(at)).replace('T', " ");
            let note = key.note.clone().unwrap_or_default();
            let roles = clean(&key.roles().join(", "));
            table.row(vec![
                id.into(),
                clean(&key.id),
                key.kind.word().into(),
                roles,
                expires,
                clean(&last),
                clean(&note),
            ]);
        }
        table.write(io.out, Paint(io.color_out))?;
        Ok(Exit::Yes)
    })
}

fn revoke(args: &RevokeArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.check()?;
    with_office(&args.db, io, |host, office, io| {
        let revoked = office.revoke(&args.key, args.reason.as_deref(), Office::owner(&user()));
        match host.threads.block_on(revoked) {
            Ok(()) if machine_output => writeln!(io.out, "{}", json!({"revoked": args.key}))?,
            Ok(()) => writeln!(io.err, "key {} is not accepted any more", clean(&args.key))?,
            Err(HostError::Refused { why, .. }) => {
                let help = format!("`charter key list{}` lists the keys", args.db.option());
                return Err(Failure::with_help(why, help));
            }
            Err(error) => return Err(failure(error)),
        }
        Ok(Exit::Yes)
    })
}
