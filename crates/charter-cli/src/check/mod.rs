//! `charter check`: errors and likely mistakes in a charter, and how much of its behavior was
//! explored.

pub mod actors;
mod witness;

use std::collections::BTreeMap;

use charter_check::{Finding, Options, Report, Severity, Verdict};
use charter_format::{Diagnostic, Diagnostics, Span};
use serde_json::json;

use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::count;
use crate::load::{Loaded, compile, find, read};

/// Maximum number of `info` findings with the same code in the text output.
const MAX_INFOS: usize = 5;

/// Checks a charter.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    #[arg(value_name = "CHARTER")]
    file: String,
    /// Exit with 1 for warnings, too
    #[arg(long)]
    deny_warnings: bool,
    /// Exit with 1 if a property, or whether a state or a transition can be reached, is not decided
    #[arg(long, conflicts_with = "no_explore")]
    require_proof: bool,
    /// Validate and lint only; do not explore
    #[arg(long)]
    no_explore: bool,
    /// Upper limit for the states to explore
    #[arg(long, value_name = "N", default_value_t = Options::default().max_states, allow_negative_numbers = true, value_parser = whole::<usize>)]
    max_states: usize,
    /// Upper limit for the work, in steps; what is not clear by then is not decided
    #[arg(long, value_name = "N", default_value_t = Options::default().effort, allow_negative_numbers = true, value_parser = whole::<usize>)]
    effort: usize,
}

/// Runs the command.
///
/// # Errors
/// The file cannot be read. Errors in its content are findings.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let loaded = match find(&args.file).and_then(read).and_then(compile) {
        Ok(loaded) => loaded,
        Err(Failure::Source(errors)) => return invalid(&errors, machine_output, io),
        Err(other) => return Err(other),
    };
    let options =
        Options { explore: !args.no_explore, max_states: args.max_states, effort: args.effort, ..Options::default() };
    let mut report = charter_check::check(&loaded.document, &loaded.machine, &options);
    actors::add(&loaded, &mut report)?;
    if machine_output {
        writeln!(io.out, "{}", report.json(&loaded.document))?;
    } else {
        print(&loaded, &report, args.no_explore, io)?;
    }
    let warned =
        report.findings.iter().any(|f| f.severity == Severity::Warning) || !loaded.document.warnings.is_empty();
    let unproved = args.require_proof && report.is_undecided();
    match report.has_errors() || (args.deny_warnings && warned) || unproved {
        true => Ok(Exit::No),
        false => Ok(Exit::Yes),
    }
}

/// Reports a source text that is not a valid charter; its errors are the findings.
fn invalid(errors: &Diagnostics, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if machine_output {
        let explored = json!({"states": 0, "edges": 0, "principals": 0, "data": 0, "complete": false});
        let all = json!({"findings": errors, "explored": explored});
        writeln!(io.out, "{all}")?;
        return Ok(Exit::No);
    }
    write!(io.out, "{}", errors.render(io.color_out))?;
    let severities = errors.list.iter().map(|d| match d.severity {
        charter_format::Severity::Error => Severity::Error,
        _ => Severity::Warning,
    });
    let paint = Paint(io.color_out);
    let count = counted(severities, errors.omitted, paint);
    writeln!(io.out, "{}: {count}", paint.strong(&errors.name))?;
    Ok(Exit::No)
}

fn print(loaded: &Loaded, report: &Report, no_explore: bool, io: &mut Io<'_>) -> Result<(), Failure> {
    let (source, paint) = (&loaded.document.source, Paint(io.color_out));
    for warning in &loaded.document.warnings {
        let text = warning.render(source, &loaded.name, io.color_out);
        writeln!(io.out, "{text}\n")?;
    }
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &report.findings {
        let of_its_kind = shown.entry(finding.code).or_default();
        *of_its_kind += 1;
        if finding.severity != Severity::Info || *of_its_kind <= MAX_INFOS {
            show(finding, loaded, io)?;
        }
    }
    // An exploration that was cut short may report most of a charter as unreached.
    for (code, count) in shown {
        let more = count.saturating_sub(MAX_INFOS);
        if more > 0 && report.findings.iter().any(|f| f.code == code && f.severity == Severity::Info) {
            let kind = paint.help(&format!("info[{code}]"));
            writeln!(io.out, "{kind}: {more} more (`--json` lists them all)\n")?;
        }
    }
    let read = loaded.document.warnings.iter().map(|_| Severity::Warning);
    let severities = report.findings.iter().map(|f| f.severity).chain(read);
    let mut line = counted(severities, 0, paint);
    let explored = &report.explored;
    // Without exploration, there is no coverage to report.
    if !no_explore && explored.states > 0 {
        line.push_str(&format!(
            "; explored {} and {}, {}",
            count(explored.states as u64, "state"),
            count(explored.edges as u64, "event"),
            if explored.complete { "which is all behavior" } else { "which is not all behavior" },
        ));
        for why in &explored.cut {
            line.push_str(&format!("\n  not covered: {why}"));
        }
    }
    if let Some(verdicts) = verdicts(report) {
        line.push_str(&format!("\n  properties: {verdicts}"));
    }
    writeln!(io.out, "{}: {line}", paint.strong(&loaded.name))?;
    Ok(())
}

/// Renders `2 proved, 1 not decided`; `None` without properties.
fn verdicts(report: &Report) -> Option<String> {
    let of = |verdict| {
        let about = |f: &&Finding| f.code.starts_with("property-") && f.verdict == Some(verdict);
        report.findings.iter().filter(about).count()
    };
    let words = [(Verdict::Proved, "proved"), (Verdict::Violated, "violated"), (Verdict::Undecided, "not decided")];
    let counts = words.iter().map(|(verdict, word)| (of(*verdict), word)).filter(|(n, _)| *n > 0);
    let parts: Vec<String> = counts.map(|(n, word)| format!("{n} {word}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Prints a finding as rustc would, with the events that lead to it.
fn show(finding: &Finding, loaded: &Loaded, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.color_out);
    if finding.severity == Severity::Info {
        writeln!(
            io.out,
            "{}: {}\n --> {}:{}:{}",
            paint.help(&format!("info[{}]", finding.code)),
            paint.strong(&finding.message),
            finding.file.as_ref().map_or(&loaded.name, |file| &file.name),
            finding.line,
            finding.column
        )?;
    } else {
        let diagnostic = Diagnostic {
            severity: match finding.severity {
                Severity::Error => charter_format::Severity::Error,
                _ => charter_format::Severity::Warning,
            },
            code: finding.code,
            message: finding.message.clone(),
            path: finding.path.clone(),
            span: Span { start: finding.span.0, end: finding.span.1 },
            line: finding.line,
            column: finding.column,
            help: finding.help.clone(),
            paste: None,
            notes: Vec::new(),
            file: finding.file.clone(),
        };
        let text = diagnostic.render(&loaded.document.source, &loaded.name, io.color_out);
        writeln!(io.out, "{text}")?;
    }
    witness::print(finding, io)?;
    Ok(writeln!(io.out)?)
}

/// Renders `2 errors, 1 warning`, `no errors or warnings, 1 remark`, or `no findings`.
fn counted(all: impl Iterator<Item = Severity>, omitted: usize, paint: Paint) -> String {
    let (mut errors, mut warnings, mut remarks) = (omitted, 0_usize, 0_usize);
    for severity in all {
        match severity {
            Severity::Error => errors += 1,
            Severity::Warning => warnings += 1,
            _ => remarks += 1,
        }
    }
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(paint.error(&count(errors as u64, "error")));
    }
    if warnings > 0 {
        parts.push(paint.warning(&count(warnings as u64, "warning")));
    }
    match (parts.is_empty(), remarks) {
        (true, 0) => paint.good("no findings"),
        (true, remarks) => format!("{}, {}", paint.good("no errors or warnings"), count(remarks as u64, "remark")),
        (false, _) => parts.join(", "),
    }
}
