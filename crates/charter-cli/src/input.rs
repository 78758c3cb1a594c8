//! Parses arguments that name data: JSON or `@file`, and a file of lines or `-`.

use std::io::{BufRead, BufReader};
use std::path::Path;

use charter_expr::strict_json;
use serde_json::Value as Json;

use crate::io::{Failure, Io};
use crate::load::{plain, text_of};
use crate::pipe;

/// Parses JSON from the command line, or reads it from `@file`.
///
/// # Errors
/// The file cannot be read, or the text is not JSON.
pub(crate) fn json_or_file(option: &str, text: &str) -> Result<Json, Failure> {
    let example = format!("{option} '{{\"name\": \"ana\"}}'");
    json_like(option, text, &example, &format!("{option} @file.json"))
}

/// Parses the data of an event or an answer from the command line: JSON, or `@file`. `command` is
/// the command without the data, for an example.
///
/// # Errors
/// The file cannot be read, or the text is not JSON.
pub(crate) fn event_data(text: &str, command: &str) -> Result<Json, Failure> {
    let example = format!("{command} '{{\"name\": \"ana\"}}'");
    json_like("DATA", text, &example, &format!("{command} @file.json"))
}

fn json_like(name: &str, text: &str, example: &str, from_file: &str) -> Result<Json, Failure> {
    let (from, text) = match text.strip_prefix('@') {
        Some(path) => (format!("`{path}`"), text_of(Path::new(path))?),
        None => (format!("`{name}`"), text.to_owned()),
    };
    strict_json::from_str(&text).map_err(|e| {
        if strict_json::is_too_large(&e) {
            return Failure::new(format!("{from}: {}", strict_json::without_place(&e)));
        }
        Failure::with_help(format!("{from} is not valid JSON: {e}"), format!("e.g. `{example}`, or `{from_file}`"))
    })
}

/// Converts the typed line to the requested type; the schema validates it afterwards. Where only
/// text is accepted, the line is the text; `""` is an empty one. Elsewhere the line is JSON, and
/// what is not JSON is text; an error is about a duplicate key.
pub(crate) fn typed(line: &str, kind: &str) -> Result<Json, serde_json::Error> {
    match (kind, line.to_lowercase().as_str()) {
        ("string", "\"\"") => Ok("".into()),
        ("string", _) => Ok(line.into()),
        ("boolean", "y" | "yes" | "true") => Ok(true.into()),
        ("boolean", "n" | "no" | "false") => Ok(false.into()),
        _ => match strict_json::from_str(line) {
            Err(why) if strict_json::is_duplicate_key(&why) => Err(why),
            read => Ok(read.unwrap_or_else(|_| line.into())),
        },
    }
}

/// Parses a whole number from the command line.
pub(crate) fn whole<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| {
        match !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
            true => "the number is too large",
            false => "expected a whole number, 0 or more",
        }
        .to_owned()
    })
}

/// Opens a file of lines; `-` is standard input. `of` names the lines in messages.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn open<'i>(name: &str, of: &str, io: &mut Io<'i>) -> Result<Box<dyn BufRead + 'i>, Failure> {
    if name == "-" {
        return Ok(std::mem::replace(&mut io.input, Box::new(std::io::empty())));
    }
    let path = Path::new(name);
    if path.is_dir() {
        return Err(Failure::new(format!("`{name}` is a folder, not a file of {of}")));
    }
    let file = pipe::open(path).map_err(|e| Failure::new(format!("cannot read `{name}`: {}", plain(&e))))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}
