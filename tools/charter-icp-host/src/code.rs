//! Prepares a module: unpacks it, validates it as the Internet Computer does, and exports its
//! entire state.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{ExportKind, ExportSection, RawSection, SectionId};
use wasmi::{CompilationMode, Config, CustomFuelCosts, Engine, Linker, Module};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

use crate::BadModule;
use crate::entry::Entry;
use crate::env::Env;

/// Names under which the state of a module is exported for the host.
pub(crate) const MEMORY: &str = "charter-icp-host memory";
pub(crate) const TABLE: &str = "charter-icp-host table";
pub(crate) const START: &str = "charter-icp-host start";
const GLOBAL: &str = "charter-icp-host global ";

/// Maximum size of a module in bytes, gzipped or not.
const MAX_MODULE_BYTES: u64 = 100 * 1024 * 1024;
/// Functions that the system calls by name, apart from methods.
const HOOKS: [&str; 7] = [
    "canister_init",
    "canister_pre_upgrade",
    "canister_post_upgrade",
    "canister_inspect_message",
    "canister_heartbeat",
    "canister_global_timer",
    "canister_on_low_wasm_memory",
];

/// The interpreter and the system functions, shared by all canisters of a process.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Env>,
}

impl Machine {
    /// # Errors
    /// The system functions cannot be defined, which is a bug in this crate.
    pub(crate) fn get() -> Result<&'static Machine, BadModule> {
        static MACHINE: OnceLock<Result<Machine, BadModule>> = OnceLock::new();
        MACHINE
            .get_or_init(|| {
                let mut config = Config::default();
                // Compile eagerly, so that the first call of a function costs the same number of
                // instructions as the second.
                config.consume_fuel(true).compilation_mode(CompilationMode::Eager);
                config.fuel_cost(CustomFuelCosts {
                    bytes_copied_per_fuel: 1,
                    fuel_per_bytes_translated: 0,
                    fuel_per_bytes_validated: 0,
                });
                config.set_max_recursion_depth(20_000).set_max_stack_height(64 * 1024 * 1024);
                let engine = Engine::new(&config);
                let linker = crate::api::linker(&engine)?;
                Ok(Machine { engine, linker })
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// The kind of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Update,
    Query,
    CompositeQuery,
}

impl Method {
    /// The name of the method's export.
    pub(crate) fn export(self, name: &str) -> String {
        match self {
            Method::Update => format!("canister_update {name}"),
            Method::Query => format!("canister_query {name}"),
            Method::CompositeQuery => format!("canister_composite_query {name}"),
        }
    }
}

/// A prepared module.
pub(crate) struct Code {
    pub(crate) module: Module,
    /// Number of mutable globals that are exported for the host.
    pub(crate) globals: usize,
    pub(crate) has_start: bool,
    methods: BTreeMap<String, Method>,
    hooks: BTreeSet<&'static str>,
}

impl Code {
    /// Loads a module, gzipped or not. The same bytes are compiled once per process; concurrent
    /// callers wait.
    pub(crate) fn load(bytes: &[u8]) -> Result<Arc<Code>, BadModule> {
        static LOADED: OnceLock<Mutex<HashMap<Vec<u8>, Arc<Code>>>> = OnceLock::new();
        let loaded = LOADED.get_or_init(Mutex::default);
        let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = loaded.get(bytes) {
            return Ok(Arc::clone(code));
        }
        let code = Arc::new(Code::read(&unpacked(bytes)?)?);
        loaded.insert(bytes.to_vec(), Arc::clone(&code));
        Ok(code)
    }

    fn read(wasm: &[u8]) -> Result<Code, BadModule> {
        let surface = Surface::read(wasm).map_err(BadModule::new)?;
        let (methods, hooks) = surface.entry_points()?;
        let prepared = prepare(wasm, &surface).map_err(BadModule::new)?;
        let module = Module::new(&Machine::get()?.engine, &prepared).map_err(BadModule::new)?;
        Ok(Code { module, globals: surface.globals.len(), has_start: surface.start.is_some(), methods, hooks })
    }

    pub(crate) fn method(&self, name: &str) -> Option<Method> {
        self.methods.get(name).copied()
    }

    /// Whether the module exports this hook.
    pub(crate) fn has(&self, hook: &str) -> bool {
        self.hooks.contains(hook)
    }

    /// The name of the export for an entry point without a method.
    pub(crate) fn hook(entry: Entry) -> &'static str {
        match entry {
            Entry::Init => "canister_init",
            Entry::PreUpgrade => "canister_pre_upgrade",
            Entry::PostUpgrade => "canister_post_upgrade",
            Entry::Inspect => "canister_inspect_message",
            Entry::Timer => "canister_global_timer",
            _ => START,
        }
    }

    /// The name under which the `index`th mutable global is exported.
    pub(crate) fn global(index: usize) -> String {
        format!("{GLOBAL}{index}")
    }
}

/// Unpacks a gzipped module.
fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, BadModule> {
    let too_large = || BadModule::new(format!("the module is larger than {MAX_MODULE_BYTES} bytes"));
    if !bytes.starts_with(&[0x1f, 0x8b, 0x08]) {
        if u64::try_from(bytes.len()).is_ok_and(|size| size <= MAX_MODULE_BYTES) {
            return Ok(bytes.to_vec());
        }
        return Err(too_large());
    }
    let mut wasm = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .take(MAX_MODULE_BYTES.saturating_add(1))
        .read_to_end(&mut wasm)
        .map_err(|error| BadModule::new(format!("the module cannot be gunzipped: {error}")))?;
    if u64::try_from(wasm.len()).is_ok_and(|size| size <= MAX_MODULE_BYTES) { Ok(wasm) } else { Err(too_large()) }
}

/// The parts of a module that the host needs.
#[derive(Default)]
struct Surface<'a> {
    exports: Vec<(&'a str, ExternalKind)>,
    /// Indices of the mutable globals.
    globals: Vec<u32>,
    imported_globals: u32,
    memories: u32,
    tables: u32,
    start: Option<u32>,
    refusals: Vec<String>,
}

impl<'a> Surface<'a> {
    fn read(wasm: &'a [u8]) -> Result<Surface<'a>, wasmparser::Error> {
        let mut surface = Surface::default();
        for payload in Parser::new(0).parse_all(wasm) {
            surface.note(payload?)?;
        }
        Ok(surface)
    }

    fn note(&mut self, payload: Payload<'a>) -> Result<(), wasmparser::Error> {
        match payload {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    if !matches!(import.ty, TypeRef::Func(_)) || import.module != "ic0" {
                        self.refusals.push(format!("it imports `{}.{}`", import.module, import.name));
                    }
                }
            }
            Payload::GlobalSection(section) => {
                for (index, global) in (self.imported_globals..).zip(section) {
                    let ty = global?.ty;
                    if ty.mutable && matches!(ty.content_type, wasmparser::ValType::Ref(_)) {
                        self.refusals.push("it has a mutable global that is a reference".to_string());
                    } else if ty.mutable {
                        self.globals.push(index);
                    }
                }
            }
            Payload::MemorySection(section) => self.memories = section.count(),
            Payload::TableSection(section) => self.tables = section.count(),
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    self.exports.push((export.name, export.kind));
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            _ => {}
        }
        Ok(())
    }

    /// Collects methods and hooks; rejects what the Internet Computer rejects.
    fn entry_points(&self) -> Result<(BTreeMap<String, Method>, BTreeSet<&'static str>), BadModule> {
        if let Some(refusal) = self.refusals.first() {
            return Err(BadModule::new(format!("{refusal}: a canister cannot")));
        }
        let (mut methods, mut hooks) = (BTreeMap::new(), BTreeSet::new());
        for (name, kind) in &self.exports {
            if !name.starts_with("canister_") {
                continue;
            }
            let method = match name.split_once(' ') {
                Some(("canister_update", method)) => Some((method, Method::Update)),
                Some(("canister_query", method)) => Some((method, Method::Query)),
                Some(("canister_composite_query", method)) => Some((method, Method::CompositeQuery)),
                _ => None,
            };
            let hook = HOOKS.iter().find(|hook| *hook == name);
            match (method, hook) {
                (None, None) => {
                    return Err(BadModule::new(format!(
                        "it exports `{name}`, which is not an entry point of a canister"
                    )));
                }
                _ if *kind != ExternalKind::Func => {
                    return Err(BadModule::new(format!("its export `{name}` is not a function")));
                }
                (Some((method, kind)), _) => {
                    if methods.insert(method.to_string(), kind).is_some() {
                        return Err(BadModule::new(format!("it exports the method `{method}` more than once")));
                    }
                }
                (None, Some(hook)) => {
                    hooks.insert(*hook);
                }
            }
        }
        Ok((methods, hooks))
    }
}

/// Exports memory, table, mutable globals and the start function. The start function no longer runs
/// automatically: the host calls it at install and upgrade, but not when it creates another
/// instance.
fn prepare(wasm: &[u8], surface: &Surface<'_>) -> Result<Vec<u8>, wasmparser::Error> {
    let mut module = wasm_encoder::Module::new();
    let mut exports = ExportSection::new();
    let mut written = false;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        let after_exports = matches!(
            payload,
            Payload::StartSection { .. }
                | Payload::ElementSection(_)
                | Payload::DataCountSection { .. }
                | Payload::CodeSectionStart { .. }
                | Payload::DataSection(_)
                | Payload::End(_)
        );
        if let Payload::ExportSection(section) = &payload {
            for export in section.clone() {
                let export = export?;
                // Canisters have no exports of other kinds; the interpreter rejects references to
                // them.
                if let Ok(kind) = RoundtripReencoder.export_kind(export.kind) {
                    exports.export(export.name, kind, export.index);
                }
            }
        }
        if !written && (after_exports || matches!(payload, Payload::ExportSection(_))) {
            if surface.memories > 0 {
                exports.export(MEMORY, ExportKind::Memory, 0);
            }
            if surface.tables > 0 {
                exports.export(TABLE, ExportKind::Table, 0);
            }
            for (index, global) in surface.globals.iter().enumerate() {
                exports.export(&Code::global(index), ExportKind::Global, *global);
            }
            if let Some(start) = surface.start {
                exports.export(START, ExportKind::Func, start);
            }
            module.section(&exports);
            written = true;
        }
        match payload {
            Payload::ExportSection(_) | Payload::StartSection { .. } | Payload::CustomSection(_) => {}
            other => {
                if let Some((id, range)) = other.as_section() {
                    let range =
                        usize::try_from(range.start).unwrap_or(usize::MAX)..usize::try_from(range.end).unwrap_or(0);
                    if let Some(data) = wasm.get(range) {
                        module.section(&RawSection { id, data });
                    }
                }
            }
        }
    }
    debug_assert!(written, "every module ends ({:?})", SectionId::Export);
    Ok(module.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::Code;

    #[test]
    fn concurrent_loads_of_the_same_bytes_compile_once() {
        let wasm = wat::parse_str("(module (func (export \"canister_init\")))").unwrap();
        let (together, wasm) = (Barrier::new(4), &wasm);
        let codes: Vec<Arc<Code>> = std::thread::scope(|scope| {
            let load = || {
                together.wait();
                Code::load(wasm).unwrap()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(codes.windows(2).all(|two| Arc::ptr_eq(&two[0], &two[1])));
    }
}
