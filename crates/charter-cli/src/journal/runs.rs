//! `charter runs`: the runs in a journal file, the latest first.

use std::collections::hash_map::Entry;

use charter_journal::{RunFilter, UsageFilter};
use charter_kernel::Status;
use rustc_hash::FxHashMap;
use serde_json::json;

use super::overdue::{has_no_holder, overdue};
use super::table::Table;
use super::text::{count, seconds};
use super::{Db, charter_of, show, usage};
use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};
use charter_scenario::timestamp;

/// Lists runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only runs of this charter
    #[arg(long, value_name = "ID")]
    charter: Option<String>,
    /// Only runs with this status
    #[arg(long, value_name = "STATUS", value_parser = ["active", "paused", "done", "failed", "cancelled", "refused"])]
    status: Option<String>,
    /// Upper limit for the runs to list; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true, value_parser = whole::<usize>)]
    limit: usize,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The journal file cannot be read.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let has_no_holder = has_no_holder(&args.db);
    let store = args.db.read_and_warn(io)?;
    let mut runs = store.runs(&RunFilter::default())?;
    let mut charters: FxHashMap<_, String> = FxHashMap::default();
    for run in &runs {
        if let Entry::Vacant(unknown) = charters.entry(run.charter) {
            unknown.insert(charter_of(store.as_ref(), run.charter)?.definition()?.id.clone());
        }
    }
    let id = |digest| charters.get(&digest).map_or("", String::as_str);
    let word = |status: Option<Status>| status.map_or("refused", Status::word);
    runs.retain(|r| args.status.as_deref().is_none_or(|s| s == word(r.status)));
    runs.retain(|r| args.charter.as_deref().is_none_or(|c| c == id(r.charter)));
    runs.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| b.run.cmp(&a.run)));
    let all = runs.len();
    if args.limit > 0 {
        runs.truncate(args.limit);
    }
    let overdue = overdue(store.as_ref(), has_no_holder)?;
    let mut asked = Vec::new();
    for run in &runs {
        asked.push(store.usage(&UsageFilter::run(&run.run))?);
    }
    let mut columns = vec!["RUN", "CHARTER", "STATUS", "STATE", "RECORDS"];
    let tokens = asked.iter().any(|totals| totals.questions > 0);
    let money = asked.iter().any(|totals| usage::cost(totals).is_some());
    columns.extend(tokens.then_some("TOKENS"));
    columns.extend(money.then_some("COST"));
    columns.push("LAST (UTC)");
    let mut table = Table::new(&columns);
    for (run, asked) in runs.iter().zip(&asked) {
        let last = store.records(&run.run, run.seq, 1)?;
        let state = last.first().map(|r| r.state.clone()).unwrap_or_default();
        let origin = charter_journal::origin(store.as_ref(), &run.run)?;
        if machine_output {
            let mut line = json!({
                "run": run.run, "charter": id(run.charter), "digest": run.charter,
                "status": word(run.status), "state": state, "records": run.seq + 1,
                "started": timestamp::text(run.started), "updated": timestamp::text(run.updated), "hash": run.hash,
            });
            if let (Some(due), Some(line)) = (overdue.get(&run.run), line.as_object_mut()) {
                line.insert("overdue".into(), timestamp::text(*due).into());
            }
            if let Some(line) = line.as_object_mut() {
                line.extend(show::origin_members(origin.as_ref()));
                line.extend(usage::json(asked).map(|totals| ("usage".to_owned(), totals)));
            }
            writeln!(io.out, "{line}")?;
        } else {
            let dry = if show::is_dry(origin.as_ref()) { ", dry" } else { "" };
            let shared = origin.map(|origin| format!(" ({} shared)", origin.seq + 1)).unwrap_or_default();
            let status = match overdue.get(&run.run) {
                Some(due) => format!("{}, overdue since {}", word(run.status), seconds(*due)),
                None => word(run.status).to_owned(),
            };
            let mut row = vec![
                run.run.clone(),
                id(run.charter).to_owned(),
                format!("{status}{dry}"),
                state.join(", "),
                format!("{}{shared}", run.seq + 1),
            ];
            let of = |text: String| if asked.questions > 0 { text } else { String::new() };
            row.extend(tokens.then(|| of(usage::grouped(asked.tokens()))));
            row.extend(money.then(|| usage::cost(asked).unwrap_or_default()));
            row.push(seconds(run.updated));
            table.row(row);
        }
    }
    if machine_output {
        return Ok(Exit::Yes);
    }
    if runs.is_empty() {
        let none = match is_unfiltered(args) {
            true => "no runs yet: `charter run CHARTER` starts one",
            false => "no matching runs",
        };
        writeln!(io.out, "{none}")?;
        return Ok(Exit::Yes);
    }
    table.write(io.out, Paint(io.color_out))?;
    let more = all.saturating_sub(runs.len());
    if more > 0 {
        let more = count(more as u64, "more run");
        writeln!(io.out, "and {more} (`--limit 0` shows all)")?;
    }
    Ok(Exit::Yes)
}

fn is_unfiltered(args: &Args) -> bool {
    args.charter.is_none() && args.status.is_none()
}
