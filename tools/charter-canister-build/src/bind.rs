//! Binds the WASI imports of a module to the polyfill inside it, and removes everything that a
//! canister may not have.

use std::collections::{BTreeMap, BTreeSet};

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{CodeSection, ExportSection, FunctionSection, ImportSection, Module, SectionId, StartSection};
use wasmparser::{
    CodeSectionReader, CustomSectionReader, Export, FunctionBody, FunctionSectionReader, ImportSectionReader, Parser,
    Validator, WasmFeatures,
};

use crate::BuildError;
use crate::scan::{Found, POLYFILL};

/// The function that runs the constructors; it runs first.
const INITIALIZE: &str = "_initialize";

/// Rewrites a module for the Internet Computer. Each `wasi_*` import becomes the polyfill's
/// function `__ic_custom_NAME` of the same module, `_initialize` becomes the start function, and of
/// the exports only the memory, `canister_*` and `get_candid_pointer` remain. Functions that
/// nothing uses anymore, names and debug information are removed. Functions are ordered by name, so
/// that instances of a generic function are neighbors: the module compresses better.
///
/// # Errors
/// The module is invalid, has two start functions, or has an import that neither the Internet
/// Computer nor the polyfill provides.
pub fn bind(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    validate(module)?;
    let mut binding = Binding::read(module)?;
    let mut bound = Module::new();
    binding.parse_core_module(&mut bound, Parser::new(0), module).map_err(|error| invalid(&error))?;
    let bound = bound.finish();
    validate(&bound)?;
    Ok(bound)
}

/// Validates a module for the Internet Computer: WebAssembly 2 with a 32-bit memory.
pub(crate) fn validate(module: &[u8]) -> Result<(), BuildError> {
    Validator::new_with_features(WasmFeatures::WASM2).validate_all(module).map(|_| ()).map_err(|error| invalid(&error))
}

fn invalid(error: &dyn std::error::Error) -> BuildError {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    BuildError::Module(format!("{error}{cause}"))
}

/// Maps functions of the old module to functions of the new one.
struct Binding {
    /// The new index of each old function; for WASI imports, the index of the polyfill's function.
    functions: Vec<u32>,
    /// The functions that the new module defines, as indices into those of the old module.
    order: Vec<usize>,
    /// The old index of the start function.
    start: Option<u32>,
    start_written: bool,
}

impl Binding {
    fn read(module: &[u8]) -> Result<Binding, BuildError> {
        let mut found = Found::default();
        for payload in Parser::new(0).parse_all(module) {
            found.note(payload.map_err(|error| invalid(&error))?).map_err(|error| invalid(&error))?;
        }
        found.binding()
    }

    fn index(&self, old: u32) -> Option<u32> {
        self.functions.get(usize::try_from(old).ok()?).copied()
    }

    fn write_start(&mut self, module: &mut Module) -> Result<(), Error<std::convert::Infallible>> {
        if let (Some(start), false) = (self.start, self.start_written) {
            self.start_written = true;
            module.section(&StartSection { function_index: self.function_index(start)? });
        }
        Ok(())
    }
}

impl Found<'_> {
    fn binding(self) -> Result<Binding, BuildError> {
        let mut missing = BTreeSet::new();
        let mut foreign: BTreeSet<String> =
            self.other_imports.iter().map(|(module, name)| format!("`{module}.{name}`")).collect();
        // The target of each removed import: the old index of the polyfill's function.
        let mut targets = BTreeMap::new();
        for (old, (module, name, _)) in (0_u32..).zip(&self.imports) {
            if *module == "ic0" {
                continue;
            }
            if !module.starts_with("wasi_") {
                foreign.insert(format!("`{module}.{name}`"));
                continue;
            }
            match self.polyfill(name) {
                None => {
                    missing.insert(format!("`{name}`"));
                }
                Some(target) if self.signature(target) != self.signature(old) => {
                    return Err(BuildError::Module(format!(
                        "`{POLYFILL}{name}` does not have the signature of the import `{module}.{name}`: the polyfill is for another version of WASI"
                    )));
                }
                Some(target) => {
                    targets.insert(old, target);
                }
            }
        }
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        if !foreign.is_empty() {
            return Err(BuildError::Module(format!(
                "it imports {}; a canister may import only functions of `ic0` (is a crate for browsers linked?)",
                list(foreign)
            )));
        }
        if !missing.is_empty() {
            return Err(BuildError::Module(format!(
                "it imports {} of WASI, and no `{POLYFILL}...` is exported for it; is `ic-wasi-polyfill` linked in, and its `init` called?",
                list(missing)
            )));
        }
        let start = match (self.start, self.exports.get(INITIALIZE)) {
            (Some(_), Some(_)) => {
                return Err(BuildError::Module(format!(
                    "it has a start function and exports `{INITIALIZE}`: remove one of them"
                )));
            }
            (start, initialize) => start.or(initialize.copied()),
        };
        let exports = self.exports.iter().filter(|(name, _)| exported(name)).map(|(_, function)| *function);
        let reachable = self.reachable(exports.chain(start), &targets);
        let imports = self.imports.len();
        let mut order: Vec<usize> = (0..self.defined.len()).collect();
        order.retain(|defined| reachable.get(imports.saturating_add(*defined)) == Some(&true));
        order.sort_by_key(|defined| self.name(imports.saturating_add(*defined)));
        // Imports of `ic0` come first, in their order. A function that is removed has no new index.
        let all = u32::try_from(reachable.len()).unwrap_or(u32::MAX);
        let remaining = (0..all).take(imports).filter(|old| !targets.contains_key(old));
        let defined = order.iter().filter_map(|defined| u32::try_from(imports.saturating_add(*defined)).ok());
        let new: BTreeMap<u32, u32> = remaining.chain(defined).zip(0..).collect();
        let functions = (0..all).map(|old| new.get(targets.get(&old).unwrap_or(&old)).copied().unwrap_or(u32::MAX));
        let functions = functions.collect();
        Ok(Binding { functions, order, start, start_written: false })
    }
}

/// Whether a canister may export this name.
fn exported(name: &str) -> bool {
    name == "memory" || name == "get_candid_pointer" || name.starts_with("canister_")
}

impl Reencode for Binding {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, old: u32) -> Result<u32, Error<Self::Error>> {
        self.index(old).ok_or(Error::InvalidConstExpr)
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        for import in section.into_imports() {
            let import = import?;
            if import.module == "ic0" {
                utils::parse_import(self, imports, import)?;
            }
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        let types = section.into_iter().collect::<Result<Vec<u32>, _>>()?;
        for defined in self.order.clone() {
            if let Some(ty) = types.get(defined) {
                functions.function(self.type_index(*ty)?);
            }
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        let bodies = section.into_iter().collect::<Result<Vec<FunctionBody<'_>>, _>>()?;
        for defined in self.order.clone() {
            if let Some(body) = bodies.get(defined) {
                self.parse_function_body(code, body.clone())?;
            }
        }
        Ok(())
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error<Self::Error>> {
        if exported(export.name) { utils::parse_export(self, exports, export) } else { Ok(()) }
    }

    fn parse_custom_section(&mut self, _: &mut Module, _: CustomSectionReader<'_>) -> Result<(), Error<Self::Error>> {
        Ok(())
    }

    fn intersperse_section_hook(
        &mut self,
        module: &mut Module,
        _: Option<SectionId>,
        before: Option<SectionId>,
    ) -> Result<(), Error<Self::Error>> {
        match before {
            // The module has a start section, which is rewritten in place.
            Some(SectionId::Start) => self.start_written = true,
            Some(SectionId::Element | SectionId::DataCount | SectionId::Code | SectionId::Data) | None => {
                self.write_start(module)?;
            }
            _ => {}
        }
        Ok(())
    }
}
