//! Exported runs whose charter's source is compared with its definition. The digest of a charter
//! covers only the definition; people read the source.

use std::cell::Cell;
use std::io::BufRead;

use charter_format::import::no_files;
use charter_format::{Diagnostics, Document, ReadOptions};
use charter_interop::import::{Importer, scxml, xstate};
use charter_journal::{Anchor, Report, SourceCheck, StoredCharter, TransferError, Verified};
use charter_kernel::Definition;

/// Maximum size of a source, as of a file with a charter.
const MAX_SOURCE_BYTES: usize = 16 << 20;

/// Reads and verifies an exported run, and compares the source of its charter with the definition.
///
/// # Errors
/// See [`Verified::read`]. Also, the source is that of another definition.
pub fn read_export(from: &mut dyn BufRead) -> Result<Verified, TransferError> {
    Verified::read_with(from, &check_source)
}

/// Like [`charter_journal::verify_export`], but also compares the source of the charter with the
/// definition.
///
/// # Errors
/// See [`charter_journal::verify_export`].
pub fn verify_export(from: &mut dyn BufRead, anchors: &[Anchor]) -> Result<Report, TransferError> {
    charter_journal::verify_export_with(from, anchors, &check_source)
}

/// Compares the source of a charter with its definition.
fn check_source(charter: &StoredCharter) -> SourceCheck {
    let (text, name) = (charter.source.as_str(), charter.plain_name());
    if text.is_empty() {
        return SourceCheck::Matches;
    }
    if text.len() > MAX_SOURCE_BYTES {
        return SourceCheck::Differs(format!("it has {} bytes; the limit is {MAX_SOURCE_BYTES}", text.len()));
    }
    // An export does not have the other files of a charter.
    let needs_file = Cell::new(false);
    let files = |name: &str| {
        needs_file.set(true);
        no_files(name)
    };
    let options = ReadOptions { files: &files, importer: &Importer, ..ReadOptions::default() };
    let same = |read: &Result<Document, Diagnostics>| {
        read.as_ref().is_ok_and(|document| document.definition.digest() == charter.digest)
    };
    let other = |read: Result<Document, Diagnostics>| match read {
        Ok(document) => format!("it gives the definition {}, not {}", document.definition.digest(), charter.digest),
        Err(problems) => {
            let first = problems.list.first().map(|problem| problem.message.clone()).unwrap_or_default();
            format!("it cannot be read: {first}")
        }
    };
    let first = match text.trim_start().starts_with('<') {
        true => scxml(text, name, &files),
        false => charter_format::read(text, name, &options),
    };
    if same(&first) || text.trim_start().starts_with('{') && same(&xstate(text, name, &Definition::default())) {
        return SourceCheck::Matches;
    }
    match needs_file.get() {
        true => SourceCheck::Unknown,
        false => SourceCheck::Differs(other(first)),
    }
}
