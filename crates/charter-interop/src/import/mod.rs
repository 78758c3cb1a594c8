//! Imports SCXML documents and XState configs as charters.
//!
//! Documents are translated, not emulated. The result has `strict: false`, because those languages
//! ignore events that a charter would refuse.

pub(crate) mod scxml;
mod xstate;

use charter_format::import::{Import, ImportFormat, StatechartImporter};
use charter_format::{Diagnostics, Document};

pub use scxml::scxml;
pub use xstate::xstate;

/// Imports statecharts for `statechart: {import, format}`. Pass it as
/// [`charter_format::ReadOptions::importer`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Importer;

impl StatechartImporter for Importer {
    fn import(&self, import: Import<'_>) -> Result<Document, Diagnostics> {
        let Import { format, source, name, charter, files, .. } = import;
        if format != ImportFormat::Scxml {
            return xstate::config(source, name, charter, Some(&import));
        }
        let mut document = scxml(source, name, files)?;
        let imported = std::mem::replace(&mut document.definition, charter.clone());
        let definition = &mut document.definition;
        let around = std::mem::replace(&mut definition.root, imported.root);
        definition.root.context.extend(around.context);
        definition.root.input = around.input;
        definition.root.output = around.output.or(definition.root.output.take());
        definition.root.context_schema = around.context_schema;
        definition.title = definition.title.take().or(imported.title);
        for (machine, chart) in imported.machines {
            definition.machines.entry(machine).or_insert(chart);
        }
        Ok(document)
    }
}

/// Derives a charter id (`[a-z][a-z0-9-]*`) from a title or a file name.
fn charter_id(text: &str) -> String {
    let stem = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let stem = stem.split('.').next().unwrap_or(stem);
    let mut id = String::new();
    for c in stem.chars().take(64) {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => id.push(c),
            _ if id.is_empty() || id.ends_with('-') => {}
            _ => id.push('-'),
        }
    }
    let id = id.trim_matches('-');
    if id.starts_with(|c: char| c.is_ascii_lowercase()) {
        id.to_owned()
    } else {
        format!("chart-{id}").trim_end_matches('-').to_owned()
    }
}
