//! The files of the charter's folder that a command names.

use std::path::Path;

use crate::error::{ConfigError, FolderError};
use crate::executor::Fault;
use crate::folder::Folder;
use crate::kept::NamedFile;
use crate::place::Found;

/// Returns the files that a command names: its program, if it is a path, and every argument or
/// value of a variable that is the path of a file or of a subfolder, also behind a `=`. `dir` is
/// the folder in which the command runs. Programs on `PATH` and paths that lead out of the folder
/// are not included. Names of files that do not exist need no entry: [`check_command`] refuses a
/// file that is in no manifest.
///
/// # Errors
/// The program is a relative path that leaves the folder, or no such file exists; an argument is
/// the charter's folder itself, or neither a file nor a folder.
pub fn command_files<'a>(
    words: &'a [String],
    values: impl IntoIterator<Item = &'a str>,
    dir: &'a str,
    folder: &'a Folder,
) -> Result<Vec<NamedFile>, ConfigError> {
    let mut files = Vec::new();
    if let Some(program) = program(words, dir) {
        match (folder.place(&program), Path::new(&program).is_absolute()) {
            (Ok(None), true) => {}
            (Ok(None), false) => return Err(FolderError::Outside(program).into()),
            (Ok(Some(place)), _) if place.found() != Found::File => return Err(FolderError::NotFound(place.key).into()),
            (Ok(Some(_)), _) => files.push(NamedFile::InPlace(program)),
            // Without a folder in the file system, nothing runs.
            (Err(_), _) if !folder.is_file(&program)? => return Err(FolderError::NotFound(program).into()),
            (Err(_), _) => files.push(NamedFile::InPlace(program)),
        }
    }
    for name in arguments(words, values, dir) {
        let Ok(Some(place)) = folder.place(&name) else {
            continue;
        };
        match place.found() {
            Found::Nothing => {}
            Found::Folder if place.key.is_empty() => return Err(FolderError::Itself(name).into()),
            Found::File | Found::Folder => files.push(NamedFile::InPlace(name)),
            Found::Other => return Err(FolderError::NotAFile(name).into()),
        }
    }
    Ok(files)
}

/// Checks, before a command starts, that the files it names are those of the run's manifest, and
/// that what did not exist when the run started does not exist now.
///
/// # Errors
/// A file or a folder has another content than when the run started (code `actor-changed`).
pub fn check_command<'a>(
    words: &'a [String],
    values: impl IntoIterator<Item = &'a str>,
    dir: &'a str,
    folder: &'a Folder,
) -> Result<(), Fault> {
    let Folder::Kept(kept) = folder else {
        return Ok(());
    };
    if let Some(program) = program(words, dir) {
        kept.check_program(&program)?;
    }
    arguments(words, values, dir).try_for_each(|name| kept.check_argument(&name))
}

/// The program of a command, if it is a path.
fn program(words: &[String], dir: &str) -> Option<String> {
    words.first().filter(|program| program.contains('/')).map(|program| joined(dir, program))
}

/// The arguments and values that may be paths.
fn arguments<'a>(
    words: &'a [String],
    values: impl IntoIterator<Item = &'a str>,
    dir: &'a str,
) -> impl Iterator<Item = String> {
    let words = words.iter().skip(1).map(String::as_str).chain(values);
    let parts = words.flat_map(|word| [Some(word), word.split_once('=').map(|(_, value)| value)]);
    parts.flatten().filter(|word| !word.is_empty()).map(move |word| joined(dir, word))
}

/// A path relative to the charter's folder, of one in its folder `dir`.
fn joined(dir: &str, path: &str) -> String {
    match (dir, Path::new(path).is_absolute()) {
        ("." | "", _) | (_, true) => path.to_owned(),
        _ => format!("{dir}/{path}"),
    }
}
