//! `statechart: {import: FILE, format: xstate | scxml}`: the states come from another file,
//! everything else from the charter.

use std::path::Path;
use std::sync::Arc;

use charter_kernel::Definition;

use super::context::Context;
use super::{Document, ReadOptions};
use crate::diagnostic::{Diagnostic, Diagnostics, SourceFile, codes};
use crate::import::{Import, ImportFormat};
use crate::source::{Entry, Node};

/// The keys that the other file provides.
const STATES: [&str; 9] = ["type", "initial", "states", "on", "always", "after", "entry", "exit", "invoke"];

/// Imports the statechart that `entry` names into the definition of the document `importer`;
/// returns the imported document.
pub(super) fn import(
    cx: &mut Context,
    root: &Node,
    entry: &Entry,
    importer: &str,
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
    let file_of = |text: Arc<str>| self::file(importer, name, text);
    let around = cx.source;
    let import = Import { format, source: &text, name, charter: definition, files: options.files, around, root };
    match options.importer.import(import) {
        Ok(mut document) => {
            report(cx, &file_of(document.source.clone()), &document.warnings);
            *definition = std::mem::take(&mut document.definition);
            cx.at("root", |cx| cx.mark(file.value.span));
            Some(Arc::new(document))
        }
        Err(Diagnostics { list, omitted, source, .. }) => {
            report(cx, &file_of(source), &list);
            (0..omitted).for_each(|_| cx.sink.omit());
            None
        }
    }
}

/// Reports the problems of the imported file.
fn report(cx: &mut Context, file: &Arc<SourceFile>, problems: &[Diagnostic]) {
    for problem in problems {
        cx.report(Diagnostic { file: Some(file.clone()), ..problem.clone() });
    }
}

/// The imported file, whose name is relative to the folder of the importing document.
pub(super) fn file(importer: &str, name: &str, text: Arc<str>) -> Arc<SourceFile> {
    let path = Path::new(importer).with_file_name(name);
    Arc::new(SourceFile { name: path.display().to_string(), text })
}
