//! The start of the wasm: constructors run once.
//!
//! A library for WASI that exports no `_initialize` has every export wrapped in calls of its constructors: SQLite's file system would be
//! made anew with each message. This one is called when the canister is installed or upgraded (the build makes it the start function).
//! Exporting a symbol, and calling the linker's, are the only `unsafe` in this crate's own words.
#![allow(unsafe_code)]

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// Runs the constructors.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _initialize() {
    // SAFETY: the function that the linker makes takes nothing and is called once, before anything else.
    unsafe { __wasm_call_ctors() }
}
