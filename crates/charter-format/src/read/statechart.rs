//! `statechart: {import: FILE, format: xstate | scxml}`: the states come from another file,
//! everything else from the charter.

use std::sync::Arc;

use charter_kernel::Definition;

use super::context::Context;
use super::{Document, ReadOptions};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, codes};
use crate::import::{Import, ImportFormat};
use crate::source::{Entry, Node};

/// The keys that the other file provides.
const STATES: [&str; 9] = ["type", "initial", "states", "on", "always", "after", "entry", "exit", "invoke"];

/// Imports the statechart that `entry` names into the definition; returns the imported document.
pub(super) fn import(
    cx: &mut Context,
    root: &Node,
    entry: &Entry,
    definition: &mut Definition,
    options: &ReadOptions<'_>,
) -> Option<Arc<Document>> {
    let part = |key: &str| entry.value.entry(key);
    let (file, format) = (part("import")?, part("format")?);
    let name = file.value.text().unwrap_or_default();
    for key in STATES.iter().filter_map(|key| root.entry(key)) {
        let message = format!("`{}` conflicts with the imported statechart", key.key.text);
        cx.report(
            Diagnostic::error(codes::CONFLICT, key.key.span, message)
                .help(format!("remove it, or define the statechart here instead of in `{name}`")),
        );
    }
    let text = match (options.files)(name) {
        Ok(text) => text,
        Err(why) => {
            let message = format!("cannot read `{name}`: {why}");
            cx.report(Diagnostic::error(codes::FILE, file.value.span, message));
            return None;
        }
    };
    // SCXML and XState ignore events that a charter refuses, so an imported statechart is not
    // strict by default.
    definition.strict = root.get("strict").is_some_and(|strict| strict.json() == true);
    let format = match format.value.text() {
        Some("scxml") => ImportFormat::Scxml,
        _ => ImportFormat::Xstate,
    };
    let import = Import { format, source: &text, name, charter: definition, files: options.files };
    match options.importer.import(import) {
        Ok(mut document) => {
            for warning in &document.warnings {
                report(cx, file, name, warning);
            }
            *definition = std::mem::take(&mut document.definition);
            cx.at("root", |cx| cx.mark(file.value.span));
            Some(Arc::new(document))
        }
        Err(Diagnostics { list, omitted, .. }) => {
            for problem in &list {
                report(cx, file, name, problem);
            }
            (0..omitted).for_each(|_| cx.sink.omit());
            None
        }
    }
}

/// Reports a problem of the imported file at the place that names the file.
fn report(cx: &mut Context, file: &Entry, name: &str, problem: &Diagnostic) {
    let message = format!("{}: {}", place(name, problem), problem.message);
    let mut shown = match problem.severity {
        Severity::Error => Diagnostic::error(problem.code, file.value.span, message),
        Severity::Warning => Diagnostic::warning(problem.code, file.value.span, message),
    };
    shown.help.clone_from(&problem.help);
    cx.report(shown);
}

/// `FILE:LINE:COLUMN (path)` in the imported file.
pub(super) fn place(name: &str, problem: &Diagnostic) -> String {
    let place = format!("{name}:{}:{}", problem.line, problem.column);
    match problem.path.as_str() {
        "" => place,
        path => format!("{place} (`{path}`)"),
    }
}
