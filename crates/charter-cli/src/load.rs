//! Loads a machine from an argument, which is a path or the name of a bundled charter. The source
//! is a charter, an XState config or SCXML. Only this module knows these formats.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use charter_expr::nearest;
use charter_format::{Document, ReadOptions};
use charter_interop::import::Importer;
use charter_kernel::{Definition, Machine};

use crate::bundled;
use crate::io::Failure;
use crate::pipe;

/// Maximum size of a source text, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// A machine and the document it was read from.
#[derive(Debug)]
pub struct Loaded {
    /// Name of the source, for messages.
    pub name: String,
    /// The path of the source; `None` for a bundled charter.
    pub path: Option<PathBuf>,
    /// The charter with its source positions.
    pub document: Document,
    /// The compiled machine.
    pub machine: Machine,
}

/// A source text.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name of the source, for messages; its extension determines the format.
    pub name: String,
    /// The path of the source; `None` for a bundled charter.
    pub path: Option<PathBuf>,
    /// The text.
    pub text: String,
}

/// Reads and compiles a charter.
///
/// # Errors
/// The file cannot be read or contains errors.
pub fn load(what: &str) -> Result<Loaded, Failure> {
    compile(read(find(what)?)?)
}

/// Reads the text of a file or of a bundled charter.
///
/// # Errors
/// Neither a file nor a bundled charter has this name, or the file is not UTF-8.
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
                "pass a file, or a folder with a `charter.yaml`",
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

/// Whether this is a file or the name of a bundled charter, or looks like a path.
pub(crate) fn is_known(what: &str) -> bool {
    what.contains(['/', '\\', '.']) || Path::new(what).exists() || bundled::find(what).is_some()
}

fn unknown(what: &str) -> Failure {
    let names = || bundled::ALL.iter().map(|charter| charter.name);
    // An argument that looks like a path is not the name of a bundled charter.
    if what.contains(['/', '\\', '.']) {
        return Failure::new(format!("file `{what}` not found"));
    }
    let message = format!("no file or bundled charter is named `{what}`");
    if let Some(near) = nearest(what, names()) {
        return Failure::with_help(message, format!("did you mean `{near}`?"));
    }
    let list: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    match list.is_empty() {
        true => Failure::new(message),
        false => Failure::with_help(message, format!("bundled charters: {}", list.join(", "))),
    }
}

fn from_path(path: &Path) -> Result<Source, Failure> {
    Ok(Source { name: path.display().to_string(), path: Some(path.to_owned()), text: text_of(path)? })
}

/// Reads the text of a file of at most [`MAX_BYTES`], without the mark at its beginning (BOM) that
/// some editors write.
///
/// # Errors
/// The file cannot be read, is too large or is not UTF-8.
pub fn text_of(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::new(format!("`{name}` is a folder, not a file")));
    }
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read `{name}`: {}", plain(&e)));
    let mut bytes = Vec::new();
    let file = pipe::open(path).map_err(cannot)?;
    // Reading one byte more than the limit shows whether the file is larger.
    let more = MAX_BYTES.saturating_add(1);
    file.take(more).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::new(format!("`{name}` is larger than the limit of 16 MiB")));
    }
    let mut text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Failure::new(format!("`{name}` is not text: byte {at} is not valid UTF-8"))
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// Returns the message of the operating system, without the error number.
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

/// Parses a source text in its format.
///
/// # Errors
/// The text has errors; the error lists all of them with their positions.
pub fn read(source: Source) -> Result<(Source, Document), Failure> {
    let files = |name: &str| beside(&source, name);
    let (text, name) = (&source.text, &source.name);
    let read = match SourceFormat::of(&source) {
        SourceFormat::Charter => {
            let options = ReadOptions { files: &files, importer: &Importer, ..ReadOptions::default() };
            charter_format::read(text, name, &options)
        }
        SourceFormat::Scxml => charter_interop::import::scxml(text, name, &files),
        SourceFormat::Xstate => charter_interop::import::xstate(text, name, &Definition::default()),
    };
    match read {
        Ok(document) => Ok((source, document)),
        Err(wrong) => Err(Failure::Source(Box::new(wrong))),
    }
}

/// Reads the text of a file that a document names, relative to that document.
fn beside(source: &Source, name: &str) -> std::io::Result<String> {
    match source.path.as_deref().and_then(Path::parent) {
        Some(folder) => {
            let path = folder.join(name);
            // Reading a pipe or a device may never end.
            if path.metadata().is_ok_and(|file| !file.is_file() && !file.is_dir()) {
                return Err(std::io::Error::other("not a regular file"));
            }
            text_of(&path).map_err(|e| {
                let text = e.to_string();
                // The caller names the file in its message.
                let why = text.split_once("`: ").filter(|_| text.starts_with("cannot read"));
                std::io::Error::other(why.map_or(text.as_str(), |(_, why)| why))
            })
        }
        None => charter_format::import::no_files(name),
    }
}

/// Compiles a document.
///
/// # Errors
/// The kernel reports errors; the error lists all of them with their positions in the source.
pub fn compile((source, document): (Source, Document)) -> Result<Loaded, Failure> {
    let machine = document.compile().map_err(|e| Failure::Source(Box::new(e)))?;
    Ok(Loaded { name: source.name, path: source.path, document, machine })
}

/// The format of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceFormat {
    Charter,
    Xstate,
    Scxml,
}

impl SourceFormat {
    fn of(source: &Source) -> SourceFormat {
        let name = source.name.to_ascii_lowercase();
        if name.ends_with(".scxml") || source.text.trim_start().starts_with('<') {
            return SourceFormat::Scxml;
        }
        if name.ends_with(".json") && is_xstate(&source.text) {
            return SourceFormat::Xstate;
        }
        SourceFormat::Charter
    }
}

/// Whether a JSON object looks like an XState config and not like a charter.
fn is_xstate(text: &str) -> bool {
    use serde::de::IgnoredAny;
    use std::collections::BTreeMap;
    let Ok(keys) = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text) else {
        return false;
    };
    !keys.contains_key("charter")
        && ["states", "initial", "on", "type", "invoke", "always"].iter().any(|key| keys.contains_key(*key))
}
