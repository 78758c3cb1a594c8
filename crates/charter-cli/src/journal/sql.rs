//! `charter sql DB "SELECT ..."` queries a journal file on a read-only connection; `charter rebuild
//! DB` rebuilds its projections.

use std::path::PathBuf;

use charter_actors::BoxFuture;
use charter_journal::{SqliteStore, StoreError};
use charter_local::Client;
use rusqlite::ErrorCode;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value as Json, json};

use super::access::{self, Operation, perform};
use super::table::Table;
use super::{exists, head_of, open, usual};
use crate::io::{Exit, Failure, Io, Paint};

/// Queries a journal.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Journal file
    #[arg(value_name = "DB")]
    db: PathBuf,
    /// One SQL statement; the connection is read-only
    #[arg(allow_hyphen_values = true)]
    query: String,
}

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
    let (names, rows) = query(&store, &args.query)?.ok_or_else(|| {
        Failure::with_help("empty SQL statement", "e.g. `charter sql charter.db \"SELECT run, status FROM runs\"`")
    })?;
    if machine_output {
        for row in rows {
            let object: Map<String, Json> = names.iter().cloned().zip(row).collect();
            writeln!(io.out, "{}", Json::Object(object))?;
        }
        return Ok(Exit::Yes);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(&names);
    for row in rows {
        let cell = |value: Json| match value {
            Json::String(text) => text,
            Json::Null => String::new(),
            other => other.to_string(),
        };
        table.row(row.into_iter().map(cell).collect());
    }
    table.write(io.out, Paint(io.color_out))?;
    Ok(Exit::Yes)
}

type Rows = (Vec<String>, Vec<Vec<Json>>);

/// Returns the rows; `None` if the statement is empty or only a comment.
fn query(store: &SqliteStore, query: &str) -> Result<Option<Rows>, Failure> {
    let mut refused = None;
    let rows = store.query(|connection| {
        let mut statement = connection.prepare(query).inspect_err(|e| {
            if matches!(e, rusqlite::Error::MultipleStatement) {
                refused = Some(Failure::new("only one statement at a time is allowed"));
            }
        })?;
        if !statement.readonly() {
            refused = Some(Failure::new("`charter sql` is read-only: only queries (`SELECT`) are allowed"));
            return Ok(None);
        }
        let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut all = Vec::new();
        let mut rows = statement.query([])?;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::ApiMisuse) => return Ok(None),
                Err(e) => return Err(e),
            };
            let cells = (0..names.len()).map(|i| Ok(json(row.get_ref(i)?)));
            all.push(cells.collect::<rusqlite::Result<Vec<Json>>>()?);
        }
        Ok(Some((names, all)))
    });
    if let Some(refused) = refused {
        return Err(refused);
    }
    rows.map_err(|e| match e {
        StoreError::Failed { reason, .. } => {
            Failure::with_help(reason, "docs/sql.md describes the tables; `SELECT name FROM sqlite_schema` lists them")
        }
        other => other.into(),
    })
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
    match &args.accept_head {
        Some(reason) => access::open_accepting(&args.db, reason)?.rebuild()?,
        None => perform(&args.db, &mut Rebuild)?,
    }
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
