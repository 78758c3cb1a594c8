//! Binds the WASI imports of a module to the polyfill inside it, and removes everything that a
//! canister may not have.

use std::collections::{BTreeMap, BTreeSet};

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{ExportSection, ImportSection, Module, SectionId, StartSection};
use wasmparser::{
    CompositeInnerType, CustomSectionReader, Export, ExternalKind, FuncType, ImportSectionReader, Parser, Payload,
    TypeRef, Validator, WasmFeatures,
};

use crate::BuildError;

/// The prefix of the polyfill's functions, followed by the name of the WASI function.
const POLYFILL: &str = "__ic_custom_";
/// The function that runs the constructors; it runs first.
const INITIALIZE: &str = "_initialize";

/// Rewrites a module for the Internet Computer. Each `wasi_*` import becomes the polyfill's
/// function `__ic_custom_NAME` of the same module, `_initialize` becomes the start function, and of
/// the exports only the memory, `canister_*` and `get_candid_pointer` remain. Names and debug
/// information are removed.
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

/// The properties of a module that rewriting needs.
#[derive(Default)]
struct Found<'a> {
    types: Vec<Option<FuncType>>,
    imports: Vec<(&'a str, &'a str, u32)>,
    other_imports: Vec<(&'a str, &'a str)>,
    defined: Vec<u32>,
    exports: BTreeMap<&'a str, u32>,
    start: Option<u32>,
}

impl<'a> Found<'a> {
    fn note(&mut self, payload: Payload<'a>) -> Result<(), wasmparser::Error> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    self.types.extend(group?.into_types().map(|ty| match ty.composite_type.inner {
                        CompositeInnerType::Func(ty) => Some(ty),
                        _ => None,
                    }));
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    match import.ty {
                        TypeRef::Func(ty) => self.imports.push((import.module, import.name, ty)),
                        _ => self.other_imports.push((import.module, import.name)),
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    self.defined.push(ty?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        self.exports.insert(export.name, export.index);
                    }
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            _ => {}
        }
        Ok(())
    }

    fn signature(&self, function: u32) -> Option<&FuncType> {
        let function = usize::try_from(function).ok()?;
        let ty = match self.imports.get(function) {
            Some((_, _, ty)) => *ty,
            None => *self.defined.get(function.checked_sub(self.imports.len())?)?,
        };
        self.types.get(usize::try_from(ty).ok()?)?.as_ref()
    }

    /// Finds the polyfill's function for a WASI function; it must not be a WASI import itself.
    fn polyfill(&self, name: &str) -> Option<u32> {
        let function = *self.exports.get(format!("{POLYFILL}{name}").as_str())?;
        let import = self.imports.get(usize::try_from(function).ok()?);
        let is_wasi = import.is_some_and(|(module, ..)| module.starts_with("wasi_"));
        (!is_wasi).then_some(function)
    }

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
        let all = u32::try_from(self.imports.len().saturating_add(self.defined.len())).unwrap_or(u32::MAX);
        // The index of a remaining function decreases by the number of removed imports before it.
        let mut next = 0_u32;
        let moved: Vec<u32> = (0..all)
            .map(|old| {
                let here = next;
                if !targets.contains_key(&old) {
                    next = next.saturating_add(1);
                }
                here
            })
            .collect();
        // Removed imports map to the new index of the polyfill's function.
        let new = |old: u32| moved.get(usize::try_from(old).ok()?);
        let functions = (0..all).zip(&moved).map(|(old, here)| {
            let target = targets.get(&old).and_then(|target| new(*target));
            *target.unwrap_or(here)
        });
        let functions = functions.collect();
        let start = match (self.start, self.exports.get(INITIALIZE)) {
            (Some(_), Some(_)) => {
                return Err(BuildError::Module(format!(
                    "it has a start function and exports `{INITIALIZE}`: remove one of them"
                )));
            }
            (start, initialize) => start.or(initialize.copied()),
        };
        Ok(Binding { functions, start, start_written: false })
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
