//! `charter sql DB "SELECT ..."` queries a journal file on a read-only connection; `charter rebuild
//! DB` rebuilds its projections.

use std::path::PathBuf;
use std::time::Duration;

use charter_actors::BoxFuture;
use charter_journal::{QueryClock, SelectError, SelectLimits, SqliteStore};
use charter_local::Client;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value as Json, json};

use super::access::{self, Operation, perform_with};
use super::table::Table;
use super::{apart, exists, head_of, open, usual};
use crate::bundled::{self, Bundled};
use crate::io::{Exit, Failure, Io, Paint};
use crate::run::setup;

/// Queries a journal.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Journal file
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// One SQL statement that only reads
    #[arg(allow_hyphen_values = true)]
    query: String,
    /// Maximum time of the query, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// With `--json`: print the names of the columns, then each row, as arrays
    #[arg(long)]
    arrays: bool,
    /// Do not read `host_state`, which has what a host keeps for itself
    #[arg(long)]
    no_host_state: bool,
}

/// Maximum memory of a query in bytes.
const MAX_MEMORY_BYTES: u64 = 256 << 20;

/// Maximum size of the text in a table, in bytes. With `--json`, rows are printed one by one.
const MAX_TABLE_BYTES: usize = 64 << 20;

/// Rebuilds the projections.
#[derive(Debug, clap::Args)]
pub struct RebuildArgs {
    /// Journal file; the environment variable CHARTER_DB sets the default
    #[arg(value_name = "DB", default_value_os_t = usual())]
    db: PathBuf,
    /// Accept that records are missing that were acknowledged, or were replaced, for example
    /// because you have restored an older copy; the reason is recorded
    #[arg(long, value_name = "REASON", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    accept_head: Option<String>,
}

/// Runs `sql`. With `--json`, prints one object per row.
///
/// # Errors
/// The statement is not valid.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = open(&args.db, "pass the file first: `charter sql DB \"SELECT ...\"`")?;
    let limits = SelectLimits {
        timeout: Duration::from_secs(args.timeout),
        memory_bytes: MAX_MEMORY_BYTES,
        host_state: !args.no_host_state,
    };
    let (query, arrays, clock) = (args.query.clone(), args.arrays, QueryClock::default());
    if machine_output {
        let printed = apart::run(&clock.clone(), limits.timeout, io.out, move |rows| {
            store.select(&query, &limits, &clock, &mut |names, row| rows.send(&line(names, row, arrays)))
        });
        return printed.map(|()| Exit::Yes).map_err(|e| failure(e, args));
    }
    let table = apart::run(&clock.clone(), limits.timeout, io.out, move |_| {
        let mut table = Table::new(&[]);
        let mut bytes = 0usize;
        store.select(&query, &limits, &clock, &mut |names, row| {
            let Some(row) = row else {
                table = Table::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
                return Ok(());
            };
            bytes = bytes.saturating_add(table.row(row.iter().map(|cell| text(*cell)).collect()));
            match bytes > MAX_TABLE_BYTES {
                true => Err(std::io::ErrorKind::FileTooLarge.into()),
                false => Ok(()),
            }
        })?;
        Ok(table)
    });
    table.map_err(|e| failure(e, args))?.write(io.out, Paint(io.color_out))?;
    Ok(Exit::Yes)
}

/// Returns the line that is printed for the names of the columns, or for a row.
fn line(names: &[String], row: Option<&[ValueRef<'_>]>, arrays: bool) -> String {
    match row {
        None if arrays => format!("{}\n", json!(names)),
        None => String::new(),
        Some(row) if arrays => format!("{}\n", Json::from_iter(row.iter().map(|cell| json(*cell)))),
        Some(row) => {
            let object: Map<String, Json> = names.iter().cloned().zip(row.iter().map(|cell| json(*cell))).collect();
            format!("{}\n", Json::Object(object))
        }
    }
}

/// Says what to do about a query that was not answered.
fn failure(error: SelectError, args: &Args) -> Failure {
    let message = error.to_string();
    match error {
        SelectError::Visitor(e) if e.kind() == std::io::ErrorKind::FileTooLarge => Failure::with_help(
            format!("the result has more than {} MiB as a table", MAX_TABLE_BYTES >> 20),
            "add `LIMIT`, or print the rows one by one with `--json`",
        ),
        SelectError::Visitor(e) => Failure::Io(e),
        SelectError::Empty => {
            Failure::with_help(message, "e.g. `charter sql charter.db \"SELECT run, status FROM runs\"`")
        }
        SelectError::TimeOut(_) => {
            let longer = args.timeout.saturating_mul(6);
            Failure::with_help(message, format!("`--timeout {longer}` lets it take {longer} s"))
        }
        SelectError::Memory(_) => Failure::with_help(message, "sort or group fewer rows, or add `LIMIT`"),
        SelectError::NotReading => Failure::new("`charter sql` is read-only: only queries (`SELECT`) are allowed"),
        SelectError::Several | SelectError::Hidden => Failure::new(message),
        SelectError::Failed(_) if let Some((view, charter)) = bundled_view(&message) => Failure::with_help(
            message.as_str(),
            format!(
                "`{view}` is a view of the bundled charter `{charter}`; a journal has it once it has a run of that charter"
            ),
        ),
        _ => {
            Failure::with_help(message, "docs/sql.md describes the tables; `SELECT name FROM sqlite_schema` lists them")
        }
    }
}

/// The view that a query has not found, and the bundled charter that declares it.
fn bundled_view(message: &str) -> Option<(&str, &'static str)> {
    let view = message.strip_prefix("no such table: ")?;
    let declares = |charter: &&Bundled| {
        let read = setup::charter(charter.name).ok();
        read.is_some_and(|read| read.machine().definition().projections.contains_key(view))
    };
    Some((view, bundled::ALL.iter().find(declares)?.name))
}

fn text(value: ValueRef<'_>) -> String {
    match json(value) {
        Json::String(text) => text,
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

fn json(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(i) => i.into(),
        ValueRef::Real(r) => r.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into(),
    }
}

/// Runs `rebuild`.
///
/// # Errors
/// The journal is in use, or a record cannot be read.
pub fn rebuild(args: &RebuildArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if args.accept_head.is_none() || args.db.metadata().is_ok_and(|found| found.len() > 0) {
        exists(&args.db, "pass another file as an argument: `charter rebuild DB`")?;
    }
    let open = || access::open_to_repair(&args.db, args.accept_head.as_deref());
    perform_with(&args.db, &mut Rebuild, open)?;
    if machine_output {
        writeln!(io.out, "{}", json!({"journal": head_of(&args.db)}))?;
    }
    let done = Paint(io.color_err).faint("projections rebuilt from the records");
    writeln!(io.err, "{done}")?;
    Ok(Exit::Yes)
}

struct Rebuild;

impl Operation for Rebuild {
    type Output = ();

    fn own(&mut self, store: &SqliteStore, _: bool) -> Result<(), Failure> {
        Ok(store.rebuild()?)
    }

    fn other<'a>(&'a mut self, client: &'a Client, _: bool) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { Ok(client.rebuild().await?) })
    }
}
