//! `charter graph`: diagrams of a charter, and conversions to other formats.

use std::path::PathBuf;

use charter_diagram::Overlay;
use charter_kernel::Machine;
use clap::ValueEnum as _;
use serde_json::json;

use crate::io::{Exit, Failure, Io};
use crate::journal::{self, Db, refuse_overwrite};
use crate::load::{load, plain};

/// Draws a charter, or converts it to another format.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    #[arg(value_name = "CHARTER", required_unless_present = "run")]
    file: Option<String>,
    /// Mark the active states and the transitions taken of a run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Mermaid)]
    format: OutputFormat,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    db: Db,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// A Mermaid state diagram
    Mermaid,
    /// DOT, for Graphviz
    Dot,
    /// An SVG image
    Svg,
    /// An XState v5 config
    Xstate,
    /// An SCXML document
    Scxml,
    /// The charter as JSON
    Charter,
}

/// Runs the command.
///
/// # Errors
/// The charter or the run cannot be read, or the file cannot be written.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (machine, overlay) = match (&args.file, &args.run) {
        (file, Some(run)) => overlaid(file.as_deref(), run, &args.db)?,
        (Some(file), None) => (load(file)?.machine, Overlay::default()),
        (None, None) => return Err(Failure::new("missing charter or run")),
    };
    let definition = machine.definition();
    let mut text = match args.format {
        OutputFormat::Mermaid => charter_diagram::mermaid(definition, &overlay),
        OutputFormat::Dot => charter_diagram::dot(definition, &overlay),
        OutputFormat::Svg => charter_diagram::svg(definition, &overlay),
        OutputFormat::Charter => charter_format::json(definition).map_err(|e| Failure::new(e.to_string()))?,
        OutputFormat::Xstate => charter_interop::export::xstate(&machine),
        OutputFormat::Scxml => charter_interop::export::scxml(&machine),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let format = args.format.to_possible_value().map(|format| format.get_name().to_owned());
    match &args.output {
        None if machine_output => writeln!(io.out, "{}", json!({"format": format, "text": text}))?,
        None => io.out.write_all(text.as_bytes())?,
        Some(path) => {
            refuse_overwrite(path)?;
            std::fs::write(path, text)
                .map_err(|e| Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e))))?;
            if machine_output {
                writeln!(io.out, "{}", json!({"format": format, "file": path.display().to_string()}))?;
            }
        }
    }
    Ok(Exit::Yes)
}

/// Returns the machine of a run, and what to mark in its diagram.
fn overlaid(file: Option<&str>, run: &str, db: &Db) -> Result<(Machine, Overlay), Failure> {
    let store = db.read()?;
    let run = db.find(store.as_ref(), run)?;
    let (machine, snapshot) = journal::at(store.as_ref(), &run, None)?;
    if let Some(file) = file {
        let named = load(file)?.machine.digest();
        if named != run.charter {
            return Err(Failure::with_help(
                format!("run `{}` belongs to a different charter than `{file}`, or to another version of it", run.run),
                "omit the file: the journal contains the charter of the run",
            ));
        }
    }
    let mut overlay = Overlay::default();
    overlay.mark_active(&snapshot);
    let mut next = 0;
    loop {
        let page = store.records(&run.run, next, 1_000)?;
        let Some(last) = page.last() else { break };
        next = last.seq.saturating_add(1);
        for record in &page {
            let names = record.transitions.iter().map(AsRef::as_ref);
            overlay.mark_taken(&snapshot, &record.to, names);
        }
    }
    Ok((machine, overlay))
}
