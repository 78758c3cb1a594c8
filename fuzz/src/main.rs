//! Runs the target that the environment variable `FUZZ_TARGET` names, with libFuzzer
//! (<https://llvm.org/docs/LibFuzzer.html>), whose options are the arguments.
#![no_main]
#![allow(missing_docs)] // the macro defines an undocumented function

use std::sync::LazyLock;

use charter_fuzz::{Target, target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        eprintln!("FUZZ_TARGET={name}: no such target; start it with `fuzz/run`");
        std::process::exit(2)
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
