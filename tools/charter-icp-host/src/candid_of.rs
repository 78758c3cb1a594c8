//! Reads the Candid interface from a module.

use std::sync::{Arc, Mutex, PoisonError};

use wasmi::{Config, Engine, Extern, Linker, Module, Store, Val};

use crate::BadModule;

/// Maximum size of an interface, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of instructions; reading the interface takes some millions.
const MAX_INSTRUCTIONS: u64 = 200_000_000;

/// Reads the Candid interface of a module with `ic_cdk::export_candid!()`: calls its export
/// `get_candid_pointer` on an instance in which every function of `ic0` returns zero.
///
/// # Errors
/// The export is missing, or the module traps.
pub fn candid_of(module: &[u8]) -> Result<String, BadModule> {
    let mut config = Config::default();
    config.consume_fuel(true);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, module).map_err(BadModule::new)?;
    let mut linker = Linker::new(&engine);
    let said = Arc::new(Mutex::new(String::new()));
    for import in module.imports() {
        let Some(ty) = import.ty().func().cloned() else {
            return Err(BadModule::new(format!(
                "imports `{}.{}`, which is not a function",
                import.module(),
                import.name()
            )));
        };
        let (name, said) = (import.name().to_string(), Arc::clone(&said));
        linker
            .func_new(import.module(), import.name(), ty.clone(), move |caller, values, results| {
                for (result, ty) in results.iter_mut().zip(ty.results()) {
                    *result = Val::default_for_ty(*ty);
                }
                if name == "trap" {
                    let message = text(&caller, values).unwrap_or_default();
                    *said.lock().unwrap_or_else(PoisonError::into_inner) = message;
                    return Err(wasmi::Error::new("the canister called `ic0.trap`"));
                }
                Ok(())
            })
            .map_err(BadModule::new)?;
    }
    let mut store = Store::new(&engine, ());
    store.set_fuel(MAX_INSTRUCTIONS).map_err(BadModule::new)?;
    let trapped = |error: wasmi::Error| {
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        BadModule::new(if said.is_empty() { error.to_string() } else { format!("{error}: {said}") })
    };
    let instance = linker.instantiate_and_start(&mut store, &module).map_err(trapped)?;
    let pointer = instance.get_typed_func::<(), i32>(&store, "get_candid_pointer").map_err(|_| {
        BadModule::new("no export `get_candid_pointer`: is `ic_cdk::export_candid!()` at the end of the crate?")
    })?;
    let start = pointer.call(&mut store, ()).map_err(trapped)?;
    let memory = instance.get_memory(&store, "memory").ok_or_else(|| BadModule::new("exports no memory"))?;
    let start = usize::try_from(start.cast_unsigned()).unwrap_or(usize::MAX);
    let bytes = memory
        .data(&store)
        .get(start..)
        .ok_or_else(|| BadModule::new("`get_candid_pointer` points outside the memory"))?;
    let end = bytes.iter().take(MAX_BYTES).position(|byte| *byte == 0);
    let text = end
        .and_then(|end| bytes.get(..end))
        .ok_or_else(|| BadModule::new("the text at `get_candid_pointer` has no end"))?;
    let mut text = String::from_utf8(text.to_vec())
        .map_err(|_| BadModule::new("the text at `get_candid_pointer` is not UTF-8"))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Reads the message of a trap.
fn text(caller: &wasmi::Caller<'_, ()>, values: &[Val]) -> Option<String> {
    let number = |at: usize| usize::try_from(values.get(at)?.i32()?.cast_unsigned()).ok();
    let (source, size) = (number(0)?, number(1)?);
    let memory = caller.get_export("memory").and_then(Extern::into_memory)?;
    let bytes = memory.data(caller).get(source..source.checked_add(size)?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
