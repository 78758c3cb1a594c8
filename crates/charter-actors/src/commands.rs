//! The files of the charter's folder that a command names.

use std::path::Path;

use crate::error::{ConfigError, FolderError};
use crate::executor::Fault;
use crate::folder::Folder;
use crate::kept::NamedFile;

/// Returns the files that a command names: its program, if it is a path, and every argument or
/// value of a variable that is the path of a file, also behind a `=`. `dir` is the folder in which
/// the command runs. Programs on `PATH` and absolute paths outside the folder are not included.
///
/// # Errors
/// The program is a relative path that leaves the folder, or no such file exists.
pub fn command_files<'a>(
    words: &'a [String],
    values: impl IntoIterator<Item = &'a str>,
    dir: &'a str,
    folder: &'a Folder,
) -> Result<Vec<NamedFile>, ConfigError> {
    let mut files = Vec::new();
    if let Some(program) = program(words, dir, folder) {
        if !folder.is_file(&program)? {
            return Err(FolderError::NotFound(program).into());
        }
        files.push(NamedFile::InPlace(program));
    }
    for name in arguments(words, values, dir, folder) {
        if folder.is_file(&name).unwrap_or(false) {
            files.push(NamedFile::InPlace(name));
        }
    }
    Ok(files)
}

/// Checks, before a command starts, that the files it names are those of the run's manifest.
///
/// # Errors
/// A file has another content than when the run started (code `actor-changed`).
pub fn check_command<'a>(
    words: &'a [String],
    values: impl IntoIterator<Item = &'a str>,
    dir: &'a str,
    folder: &'a Folder,
) -> Result<(), Fault> {
    let Folder::Kept(kept) = folder else {
        return Ok(());
    };
    if let Some(program) = program(words, dir, folder) {
        kept.check_in_place(&program, true)?;
    }
    arguments(words, values, dir, folder).try_for_each(|name| kept.check_in_place(&name, false))
}

/// The program of a command, if it is inside the folder.
fn program(words: &[String], dir: &str, folder: &Folder) -> Option<String> {
    let program = words.first().filter(|p| p.contains('/'))?;
    match Path::new(program).is_absolute() {
        true => below(program, folder),
        false => Some(joined(dir, program)),
    }
}

/// The arguments and values that may be files of the folder.
fn arguments<'a>(
    words: &'a [String],
    values: impl IntoIterator<Item = &'a str>,
    dir: &'a str,
    folder: &'a Folder,
) -> impl Iterator<Item = String> {
    let words = words.iter().skip(1).map(String::as_str).chain(values);
    let parts = words.flat_map(|word| [Some(word), word.split_once('=').map(|(_, value)| value)]);
    parts.flatten().filter(|word| !word.is_empty()).filter_map(move |word| match Path::new(word).is_absolute() {
        true => below(word, folder),
        false => Some(joined(dir, word)),
    })
}

/// A path in the folder `dir` of the charter's folder.
fn joined(dir: &str, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    match dir {
        "." => path.to_owned(),
        dir => format!("{dir}/{path}"),
    }
}

/// The path inside the folder of an absolute path, if it is there.
fn below(path: &str, folder: &Folder) -> Option<String> {
    let below = Path::new(path).strip_prefix(folder.dir()?).ok()?;
    below.to_str().filter(|below| !below.is_empty()).map(str::to_owned)
}
