//! `charter verify DB [RUN]`: recomputes every hash and replays every event, in a journal file or
//! in an exported file.

use std::io::{BufRead, BufReader};
use std::path::Path;

use charter_journal::{Anchor, Difference, Report, VerifyOptions, verify_with};
use charter_kernel::Digest;
use charter_runtime::verify_export;
use serde_json::json;

use super::text::{clean, count};
use super::{Db, is_journal, open};
use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;
use crate::pipe::{self, Opened};

/// Maximum number of runs listed in the text output.
const MAX_RUNS: usize = 20;

/// Verifies a journal file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Journal file, or a file written by `charter export` (or by a canister); a run, if no file
    /// has this name [default: the file of `--db`]
    #[arg(value_name = "DB")]
    file: Option<String>,
    /// Verify only this run
    run: Option<String>,
    #[command(flatten)]
    db: Db,
    /// An anchor, kept outside the file, to compare with: the hash of a record, as
    /// `RUN/SEQ=sha256:...`, or the head that the journal had after a number of entries, as
    /// `ENTRIES=sha256:...` (repeatable)
    #[arg(long, value_name = "RUN/SEQ=HASH|ENTRIES=HASH", value_parser = anchor)]
    anchor: Vec<AnyAnchor>,
}

/// The hash of a record, or the head of the journal after a number of entries.
#[derive(Debug, Clone)]
enum AnyAnchor {
    Record(Anchor),
    Head(u64, Digest),
}

fn anchor(text: &str) -> Result<AnyAnchor, String> {
    let read = || {
        let (place, hash) = text.split_once('=')?;
        let hash = Digest::parse(hash)?;
        Some(match place.rsplit_once('/') {
            Some((run, seq)) => AnyAnchor::Record(Anchor { run: run.to_owned(), seq: seq.parse().ok()?, hash }),
            None => AnyAnchor::Head(place.parse().ok()?, hash),
        })
    };
    read().ok_or_else(|| "expected `RUN/SEQ=sha256:...` or `ENTRIES=sha256:...`".to_owned())
}

/// Runs the command.
///
/// # Errors
/// The file cannot be read. Findings are a result, not an error.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (path, run) = args.subject();
    // A file that is named is meant, whatever the environment says.
    if path == args.db.db {
        args.db.file_only("verify")?;
    }
    let report = match export(path)? {
        Some(file) => exported(args, run, file)?,
        None => {
            let report = journal(args, path, run)?;
            super::warn_if_shared(path, io.err)?;
            report
        }
    };
    let exit = match report.is_verified() {
        true => Exit::Yes,
        false => Exit::No,
    };
    if machine_output {
        let runs = report.runs.iter();
        let runs = runs.map(|r| match r.first {
            0 => json!({"run": r.run, "records": r.records, "hash": r.hash}),
            first => json!({"run": r.run, "first": first, "records": r.records, "hash": r.hash}),
        });
        let findings = report.findings.iter();
        let findings =
            findings.map(|f| json!({"run": f.run, "seq": f.seq, "what": f.what.word(), "message": f.message}));
        let all = json!({
            "verified": report.is_verified(),
            "records": report.records(),
            "runs": runs.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
            "journal": report.head,
            "remarks": report.remarks,
        });
        writeln!(io.out, "{all}")?;
        return Ok(exit);
    }
    let paint = Paint(io.color_out);
    for finding in &report.findings {
        let kind = paint.error(&format!("{}:", kind(finding.what)));
        writeln!(io.out, "{kind} {}", clean(&finding.to_string()))?;
    }
    let sum = format!("{} of {}", count(report.records(), "record"), count(report.runs.len() as u64, "run"));
    match (exit, report.runs.as_slice()) {
        (Exit::Yes, [one]) if one.first > 0 => writeln!(
            io.out,
            "{}: {sum} from record {} on, last hash {}; earlier records are not in the file",
            paint.good("verified"),
            one.first,
            one.hash
        )?,
        (Exit::Yes, [one]) => writeln!(io.out, "{}: {sum}, last hash {}", paint.good("verified"), one.hash)?,
        (Exit::Yes, []) => writeln!(io.out, "{}: {sum}", paint.good("verified"))?,
        (Exit::Yes, _) => {
            writeln!(io.out, "{}: {sum}; the last hash of each:", paint.good("verified"))?;
            for run in report.runs.iter().take(MAX_RUNS) {
                writeln!(io.out, "  {}  {}", clean(&run.run), run.hash)?;
            }
            let more = report.runs.len().saturating_sub(MAX_RUNS);
            if more > 0 {
                writeln!(io.out, "  and {} (`--json` lists them all)", count(more as u64, "more run"))?;
            }
        }
        _ => writeln!(
            io.out,
            "{}: {}; {sum} verified",
            paint.error("not verified"),
            count(report.findings.len() as u64, "finding")
        )?,
    }
    if let (Exit::Yes, Some(head)) = (exit, report.head) {
        let entries = match head.entries {
            1 => "1 entry".to_owned(),
            many => format!("{many} entries"),
        };
        writeln!(io.out, "the head of the journal, after {entries}: {}", head.hash)?;
    }
    for remark in &report.remarks {
        writeln!(io.out, "{} {}", paint.warning("note:"), clean(remark))?;
    }
    Ok(exit)
}

/// Names the kind of a finding in the text output.
fn kind(what: Difference) -> &'static str {
    match what {
        Difference::Columns => "table `records`",
        Difference::Container => "outside the records",
        Difference::Journal => "head of the journal",
        other => other.word(),
    }
}

impl Args {
    /// Returns the file and the run. A single argument that is not the name of a file is a run.
    fn subject(&self) -> (&Path, Option<&str>) {
        match (self.file.as_deref(), self.run.as_deref()) {
            (Some(run), None) if !is_journal(run) && !run.contains('/') => (&self.db.db, Some(run)),
            (Some(file), run) => (Path::new(file), run),
            (None, run) => (&self.db.db, run),
        }
    }

    /// The anchors of records, and those of the journal's head.
    fn anchors(&self) -> (Vec<Anchor>, Vec<(u64, Digest)>) {
        let (mut records, mut heads) = (Vec::new(), Vec::new());
        for anchor in self.anchor.iter().cloned() {
            match anchor {
                AnyAnchor::Record(anchor) => records.push(anchor),
                AnyAnchor::Head(entries, hash) => heads.push((entries, hash)),
            }
        }
        (records, heads)
    }
}

fn journal(args: &Args, path: &Path, run: Option<&str>) -> Result<Report, Failure> {
    let store = open(path, "the file is the first argument: `charter verify DB [RUN]`")?;
    let run = match run {
        Some(name) => Some(Db::of_file(path).find(&store, name)?.run),
        None => None,
    };
    let (anchors, heads) = args.anchors();
    let options = VerifyOptions { run, anchors, heads };
    Ok(verify_with(&store, &options)?)
}

/// Opens an exported file, which starts with an object; a journal file starts with `SQLite format
/// 3`.
fn export(path: &Path) -> Result<Option<BufReader<Opened>>, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read `{}`: {}", path.display(), plain(&e)));
    if !path.exists() || path.is_dir() {
        return Ok(None);
    }
    let mut file = BufReader::new(pipe::open(path).map_err(cannot)?);
    let is_export = file.fill_buf().map_err(cannot)?.starts_with(b"{");
    Ok(is_export.then_some(file))
}

fn exported(args: &Args, run: Option<&str>, mut file: BufReader<Opened>) -> Result<Report, Failure> {
    let (anchors, heads) = args.anchors();
    if !heads.is_empty() {
        return Err(Failure::with_help(
            "an exported run has no head of a journal to compare with the anchor",
            "pass an anchor of a record: `--anchor RUN/SEQ=sha256:...`",
        ));
    }
    let report = verify_export(&mut file, &anchors)?;
    if let Some(name) = run
        && report.runs.iter().all(|r| !r.run.starts_with(name))
    {
        let inside = report.runs.first().map(|r| r.run.as_str());
        return Err(Failure::with_help(
            format!("run `{name}` not found in this file"),
            format!("the file contains run `{}`", inside.unwrap_or_default()),
        ));
    }
    Ok(report)
}
