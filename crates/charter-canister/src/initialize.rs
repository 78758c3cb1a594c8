//! The start function of the module: runs constructors once.
//!
//! Without `_initialize`, the linker wraps every export in calls of the constructors, and SQLite's
//! file system would be created again for each message. The build makes this function the start
//! function, which runs at install and upgrade. Exporting a symbol and calling one of the linker
//! are the only uses of `unsafe` in this crate.
#![allow(unsafe_code)]

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// Runs the constructors.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _initialize() {
    // SAFETY: the linker generates this function; it has no parameters and is called once, before
    // anything else.
    unsafe { __wasm_call_ctors() }
}
