//! From what stands on the command line to a machine: a path or the name of a bundled charter; a charter, an XState config or SCXML.
//!
//! This is the one place that knows the formats of `FILE`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use charter_expr::nearest;
use charter_format::{Diagnostics, Document, ReadOptions};
use charter_interop::import::Importer;
use charter_kernel::{Definition, Machine};

use crate::bundled;
use crate::io::Failure;

/// The largest source text that is read, in bytes (06, "published limits").
pub const MAX_BYTES: u64 = 16 << 20;

/// A machine and the document it was read from.
#[derive(Debug)]
pub struct Loaded {
    /// Where it comes from, for people.
    pub name: String,
    /// Where it lies; none: it is bundled.
    pub path: Option<PathBuf>,
    /// The charter with its places.
    pub document: Document,
    /// Compiled.
    pub machine: Machine,
}

/// A source text.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where it comes from, for people; its end tells the format.
    pub name: String,
    /// Where it lies; none: it is bundled.
    pub path: Option<PathBuf>,
    /// The text.
    pub text: String,
}

/// Reads and compiles.
///
/// # Errors
/// The file cannot be read, or what is wrong with it, with places.
pub fn load(what: &str) -> Result<Loaded, Failure> {
    compile(read(find(what)?)?)
}

/// The text of a path or of a bundled charter.
///
/// # Errors
/// There is no such thing, or it is no text.
pub fn find(what: &str) -> Result<Source, Failure> {
    let path = Path::new(what);
    if path.is_dir() {
        let inside = path.join("charter.yaml");
        if inside.is_file() {
            return from_path(&inside);
        }
        if bundled::find(what).is_none() {
            return Err(Failure::with_help(
                format!("`{what}` is a folder without a `charter.yaml`"),
                "name a file, or a folder with a `charter.yaml`",
            ));
        }
    } else if path.exists() {
        return from_path(path);
    }
    match bundled::find(what) {
        Some(charter) => Ok(Source {
            name: format!("charters/{}/charter.yaml", charter.name),
            path: None,
            text: charter.source.to_owned(),
        }),
        None => Err(unknown(what)),
    }
}

fn unknown(what: &str) -> Failure {
    let names = || bundled::ALL.iter().map(|charter| charter.name);
    // What looks like a path was not meant as the name of a bundled charter.
    if what.contains(['/', '\\', '.']) {
        return Failure::new(format!("there is no file `{what}`"));
    }
    let message = format!("there is no file `{what}`, and no bundled charter of that name");
    if let Some(near) = nearest(what, names()) {
        return Failure::with_help(message, format!("did you mean `{near}`?"));
    }
    let list: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    match list.is_empty() {
        true => Failure::new(message),
        false => Failure::with_help(message, format!("bundled are {}", list.join(", "))),
    }
}

fn from_path(path: &Path) -> Result<Source, Failure> {
    Ok(Source { name: path.display().to_string(), path: Some(path.to_owned()), text: text_of(path)? })
}

/// The text of a file of at most [`MAX_BYTES`].
///
/// # Errors
/// Says why it cannot be read.
pub fn text_of(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::new(format!("`{name}` is a folder, not a file")));
    }
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read `{name}`: {}", plain(&e)));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    // One byte more than is allowed shows that there is more.
    let more = MAX_BYTES.saturating_add(1);
    file.take(more).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::new(format!("`{name}` is larger than 16 MiB, which is the most that is read")));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Failure::new(format!("`{name}` is no text: byte {at} is not UTF-8"))
    })
}

/// What the system says, without its numbers.
#[must_use]
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Reads a source text in its format.
///
/// # Errors
/// Everything that is wrong with it, with places.
pub fn read(source: Source) -> Result<(Source, Document), Failure> {
    let files = |name: &str| beside(&source, name);
    let (text, name) = (&source.text, &source.name);
    let read = match Format::of(&source) {
        Format::Charter => {
            let options = ReadOptions { files: &files, importer: &Importer, ..ReadOptions::default() };
            charter_format::read(text, name, &options)
        }
        Format::Scxml => charter_interop::import::scxml(text, name, &files),
        Format::Xstate => charter_interop::import::xstate(text, name, &Definition::default()),
    };
    match read {
        Ok(document) => Ok((source, document)),
        Err(wrong) => Err(Failure::Source(Box::new(wrong))),
    }
}

/// The text of a file that a document names, relative to where that document lies.
fn beside(source: &Source, name: &str) -> std::io::Result<String> {
    match source.path.as_deref().and_then(Path::parent) {
        Some(folder) => text_of(&folder.join(name)).map_err(|e| {
            let text = e.to_string();
            // Who asks says which file it was.
            let why = text.split_once("`: ").filter(|_| text.starts_with("cannot read"));
            std::io::Error::other(why.map_or(text.as_str(), |(_, why)| why))
        }),
        None => charter_format::import::no_files(name),
    }
}

/// Compiles what was read.
///
/// # Errors
/// What the kernel refuses, at its place in the source.
pub fn compile((source, document): (Source, Document)) -> Result<Loaded, Failure> {
    match Machine::compile(document.definition.clone()) {
        Ok(machine) => Ok(Loaded { name: source.name, path: source.path, document, machine }),
        Err(problems) => {
            let mut list: Vec<_> = problems.iter().map(|p| document.diagnose(p)).collect();
            list.sort_by_key(|d| (d.span.start, d.span.end));
            Err(Failure::Source(Box::new(Diagnostics {
                name: document.name.clone(),
                source: Arc::clone(&document.source),
                list,
                omitted: 0,
            })))
        }
    }
}

/// What a source text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Charter,
    Xstate,
    Scxml,
}

impl Format {
    fn of(source: &Source) -> Format {
        let name = source.name.to_ascii_lowercase();
        if name.ends_with(".scxml") || source.text.trim_start().starts_with('<') {
            return Format::Scxml;
        }
        if name.ends_with(".json") && is_xstate(&source.text) {
            return Format::Xstate;
        }
        Format::Charter
    }
}

/// A JSON object that is no charter, but has what XState configs have.
fn is_xstate(text: &str) -> bool {
    use serde::de::IgnoredAny;
    use std::collections::BTreeMap;
    let Ok(keys) = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text) else {
        return false;
    };
    !keys.contains_key("charter")
        && ["states", "initial", "on", "type", "invoke", "always"].iter().any(|key| keys.contains_key(*key))
}
