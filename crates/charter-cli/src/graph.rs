//! `charter graph`: pictures and exports of a charter.

use std::path::PathBuf;

use charter_format::Overlay;

use crate::io::{Exit, Failure, Io};
use crate::load::{load, plain};

/// Draws a charter, or writes it in another format.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    file: String,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    format: Format,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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
    let loaded = load(&args.file)?;
    let (definition, overlay) = (&loaded.document.definition, Overlay::default());
    let mut text = match args.format {
        Format::Mermaid => charter_format::mermaid(definition, &overlay),
        Format::Dot => charter_format::dot(definition, &overlay),
        Format::Svg => charter_format::svg(definition, &overlay),
        Format::Charter => {
            charter_format::json(definition).map_err(|e| Failure::new(e.to_string()))?
        }
        Format::Xstate => charter_format::export::xstate(&loaded.machine),
        Format::Scxml => charter_format::export::scxml(&loaded.machine),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match &args.output {
        None => io.out.write_all(text.as_bytes())?,
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e)))
        })?,
    }
    Ok(Exit::Yes)
}
