//! Documents to import.

use charter_format::import::no_files;
use charter_interop::{export, import};
use charter_kernel::{Definition, Machine};

use super::charter::{checked, compiled, steps};

pub(crate) fn scxml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let read = |text: &str| import::scxml(text, "document.scxml", &no_files);
    if let Some(machine) = checked(text, read(text)).and_then(compiled) {
        steps(&machine);
        same(&machine, &export::scxml(&machine), read);
    }
}

pub(crate) fn xstate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let nothing = Definition::default();
    let read = |text: &str| import::xstate(text, "config.json", &nothing);
    if let Some(machine) = checked(text, read(text)).and_then(compiled) {
        steps(&machine);
        same(&machine, &export::xstate(&machine), read);
    }
}

/// Checks that an export is imported as the same charter.
fn same(
    machine: &Machine,
    exported: &str,
    read: impl FnOnce(&str) -> Result<charter_format::Document, charter_format::Diagnostics>,
) {
    let again =
        read(exported).unwrap_or_else(|e| panic!("exported, but not imported: {}\n{exported}", e.render(false)));
    let again = Machine::compile(again.definition).unwrap_or_else(|e| panic!("not compiled: {e:?}\n{exported}"));
    assert_eq!(again.digest(), machine.digest(), "{exported}");
}
