//! `charter explain CODE`: prints the pages of `docs/codes/`, which are embedded in the binary. For
//! `charter explain RUN SEQ` see `journal::explain`.

use charter_expr::nearest;
use serde_json::json;

use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::clean;
use crate::journal::{Db, explain};

/// Code and page, sorted by code.
pub const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/bundled_codes.rs"));

/// Explains a code, or why an event was accepted or refused.
#[derive(Debug, clap::Args)]
#[command(override_usage = "charter explain [CODE]\n       charter explain RUN SEQ [--db FILE]")]
pub struct Args {
    /// A code, such as `authority` (without one, all codes are listed); or the id of a run
    #[arg(value_name = "CODE|RUN")]
    code: Option<String>,
    /// Number of a record of the run
    #[arg(allow_negative_numbers = true, value_parser = whole::<u64>)]
    seq: Option<u64>,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The code, run or record does not exist.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let Some(code) = &args.code else {
        return list(machine_output, io);
    };
    if let Some(seq) = args.seq {
        return explain::run(&args.db, code, seq, machine_output, io);
    }
    let Some((code, page)) = PAGES.iter().find(|(known, _)| known == code) else {
        let near = nearest(code, PAGES.iter().map(|(known, _)| *known));
        let is_run = || args.db.read().is_ok_and(|store| args.db.find(store.as_ref(), code).is_ok());
        if near.is_none() && is_run() {
            let run = clean(code);
            return Err(Failure::with_help(
                format!("`{run}` is a run, and `explain` needs the record to explain, too"),
                format!("`charter explain {run} SEQ` explains the record SEQ; `charter log {run}` lists them"),
            ));
        }
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`charter explain` lists all codes; `charter explain RUN SEQ` explains a record".to_owned(),
        };
        return Err(Failure::with_help(format!("unknown code `{code}`"), help));
    };
    match machine_output {
        true => writeln!(io.out, "{}", json!({"code": code, "page": page}))?,
        false => writeln!(io.out, "{}", page.trim_end())?,
    }
    Ok(Exit::Yes)
}

fn list(machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let paint = Paint(io.color_out);
    if machine_output {
        let codes = PAGES.iter().map(|(code, page)| json!({"code": code, "summary": summary(page)}));
        writeln!(io.out, "{}", json!({"codes": codes.collect::<Vec<_>>()}))?;
        return Ok(Exit::Yes);
    }
    let width = PAGES.iter().map(|(code, _)| code.len()).max().unwrap_or(0);
    for (code, page) in PAGES {
        let blanks = " ".repeat(width.saturating_sub(code.len()));
        writeln!(io.out, "{}{blanks}  {}", paint.strong(code), summary(page))?;
    }
    Ok(Exit::Yes)
}

/// Returns the first sentence after the heading and after the line with the kind of the code.
fn summary(page: &str) -> String {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with(['#', '*']);
    let lines: Vec<&str> = page.lines().skip_while(|line| !is_text(line)).take_while(is_text).collect();
    let text = lines.join(" ");
    // A colon introduces a list.
    let first = text.split_once(". ").map_or(text.as_str(), |(first, _)| first);
    format!("{}.", first.trim_end_matches(['.', ':']))
}
