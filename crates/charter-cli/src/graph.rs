//! `charter graph`: pictures and exports of a charter.

use std::collections::BTreeMap;
use std::path::PathBuf;

use charter_diagram::{Marks, Overlay};
use charter_journal::Store as _;
use charter_kernel::Machine;

use crate::io::{Exit, Failure, Io};
use crate::journal::{self, Db, spare};
use crate::load::{load, plain};

/// Draws a charter, or writes it in another format.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    #[arg(required_unless_present = "run")]
    file: Option<String>,
    /// Lay a run over the picture: what is active, what was taken
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    format: Format,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    db: Db,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A Mermaid state diagram
    Mermaid,
    /// DOT, for Graphviz
    Dot,
    /// A picture
    Svg,
    /// An XState v5 config
    Xstate,
    /// An SCXML document
    Scxml,
    /// The charter itself, as JSON
    Charter,
}

/// Runs the command.
///
/// # Errors
/// The charter cannot be read, or the file cannot be written.
pub fn run(args: &Args, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let (machine, overlay) = match (&args.file, &args.run) {
        (file, Some(run)) => overlaid(file.as_deref(), run, &args.db)?,
        (Some(file), None) => (load(file)?.machine, Overlay::default()),
        (None, None) => return Err(Failure::new("nothing to draw")),
    };
    let definition = machine.definition();
    let mut text = match args.format {
        Format::Mermaid => charter_diagram::mermaid(definition, &overlay),
        Format::Dot => charter_diagram::dot(definition, &overlay),
        Format::Svg => charter_diagram::svg(definition, &overlay),
        Format::Charter => charter_format::json(definition).map_err(|e| Failure::new(e.to_string()))?,
        Format::Xstate => charter_interop::export::xstate(&machine),
        Format::Scxml => charter_interop::export::scxml(&machine),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match &args.output {
        None => io.out.write_all(text.as_bytes())?,
        Some(path) => {
            spare(path)?;
            std::fs::write(path, text)
                .map_err(|e| Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e))))?;
        }
    }
    Ok(Exit::Yes)
}

/// A run's machine, and what the run has done.
fn overlaid(file: Option<&str>, run: &str, db: &Db) -> Result<(Machine, Overlay), Failure> {
    let store = db.read()?;
    let run = journal::find(&store, run)?;
    let (machine, snapshot) = journal::at(&store, &run, None)?;
    if let Some(file) = file {
        let named = load(file)?.machine.digest();
        if named != run.charter {
            return Err(Failure::with_help(
                format!("run `{}` follows another charter than `{file}`, or an earlier version of it", run.run),
                "leave the file out: the journal has the charter that the run follows",
            ));
        }
    }
    let mut overlay = Overlay::default();
    for actor in snapshot.actors() {
        let marks = marks(&mut overlay, actor.machine());
        marks.active.extend(actor.state().map(str::to_owned));
    }
    let machines: BTreeMap<&str, &str> = snapshot.actors().map(|a| (a.id(), a.machine())).collect();
    let mut next = 0;
    loop {
        let page = store.records(&run.run, next, 1_000)?;
        let Some(last) = page.last() else { break };
        next = last.seq.saturating_add(1);
        for record in &page {
            for name in &record.transitions {
                // Of another actor than the one addressed, with its id in front.
                let (actor, name) = name.split_once(':').unwrap_or((&record.to, name));
                // An actor that is gone: an invoked machine is called as the machine, unless it was given another id.
                let of = machines.get(actor).copied().unwrap_or(actor);
                marks(&mut overlay, of).taken.insert(name.to_owned());
            }
        }
    }
    Ok((machine, overlay))
}

fn marks<'o>(overlay: &'o mut Overlay, machine: &str) -> &'o mut Marks {
    match machine {
        "root" => &mut overlay.root,
        machine => overlay.machines.entry(machine.to_owned()).or_default(),
    }
}
