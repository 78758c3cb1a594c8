//! Files of options in TOML.

use std::io::Read as _;
use std::path::Path;

use charter_expr::nearest;
use charter_format::{Diagnostic, Diagnostics, Span, codes};
use serde::de::DeserializeOwned;

use crate::io::Failure;
use crate::load::plain;
use crate::pipe;

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file.
///
/// # Errors
/// The file cannot be read, is not TOML, or has an unknown key or a wrong value.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display().to_string();
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read `{name}`: {}", plain(&e)));
    let mut text = String::new();
    let file = pipe::open(path).map_err(cannot)?;
    file.take(MAX_BYTES.saturating_add(1)).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Failure::new(format!(
            "`{name}` has more than {} MiB; it is not a file of options",
            MAX_BYTES >> 20
        )));
    }
    toml::from_str(&text).map_err(|e| invalid(&name, &text, &e))
}

/// Whether a value is a word or a number, which quotes make a string.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
}

/// The place of an error, as errors in charters have it.
fn invalid(name: &str, text: &str, error: &toml::de::Error) -> Failure {
    let span = error.span().unwrap_or(0..text.len());
    let word = text.get(span.clone()).unwrap_or_default().trim_matches(['"', '\'']);
    let span = Span { start: span.start, end: span.end };
    let said = error.message().trim_end();
    let diagnostic = match said.starts_with("unknown field") {
        true => {
            // The message quotes the key, and then those that may be there.
            let keys: Vec<&str> = said.split('`').skip(3).step_by(2).collect();
            let help = match nearest(word, keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are `{}`", keys.join("`, `")),
            };
            Diagnostic::error(codes::UNKNOWN_KEY, span, format!("unknown key `{word}`")).help(help)
        }
        false => {
            let found = Diagnostic::error(codes::VALUE, span, said.replace('\n', ": "));
            match said.starts_with("invalid type:") && said.ends_with("expected a string") && is_plain(word) {
                true => found.help(format!("write `\"{word}\"`")),
                false => found,
            }
        }
    };
    Failure::Source(Box::new(Diagnostics {
        name: name.to_owned(),
        source: text.into(),
        list: vec![diagnostic.located(text)],
        omitted: 0,
    }))
}
