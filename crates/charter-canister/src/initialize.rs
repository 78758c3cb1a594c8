//! The start function of the module: runs constructors once.
//!
//! Without `_initialize`, the linker would wrap every export in calls of the constructors, and
//! SQLite's file system would be created again for each message. The build makes `_initialize` the
//! start function, which runs at install and upgrade. This crate uses `unsafe` only here, to export
//! a symbol and to call a symbol of the linker.
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
