//! The effect of `bind` on small modules, and the modules that it rejects.

use charter_canister_build::{bind, gzip, with_candid};
use wasmparser::{Operator, Parser, Payload};

/// A module with two WASI imports between those of `ic0`, calls of each kind, a table and
/// constructors.
const MODULE: &str = r#"(module
  (import "ic0" "msg_reply" (func $reply))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "ic0" "debug_print" (func $print (param i32 i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1)
  (table (export "__indirect_function_table") 2 funcref)
  (elem (i32.const 0) $random $pick)
  (global $count (mut i32) (i32.const 0))
  (func $pick (export "canister_update pick")
    (drop (call_indirect (param i32 i32) (result i32) (i32.const 7) (i32.const 4) (i32.const 0)))
    (drop (call $yield))
    (call $print (i32.const 0) (i32.const 4))
    (call $reply))
  (func (export "_initialize") (i32.store (i32.const 0) (i32.const 1)))
  (func (export "__ic_custom_random_get") (param i32 i32) (result i32) (i32.const 42))
  (func (export "__ic_custom_sched_yield") (result i32) (global.set $count (i32.const 3)) (i32.const 0))
  (func (export "__ic_custom_fd_close") (param i32) (result i32) (i32.const 8))
  (func (export "init_seed"))
  (data (i32.const 16) "kept"))"#;

fn module(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

fn refused(text: &str) -> String {
    bind(&module(text)).unwrap_err().to_string()
}

/// Renders the imports, exports and start function of a module as text.
fn surface(module: &[u8]) -> String {
    let mut lines = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::ImportSection(section) => {
                lines.extend(section.into_imports().map(|import| format!("import {}", import.unwrap().name)));
            }
            Payload::ExportSection(section) => {
                lines.extend(
                    section
                        .into_iter()
                        .map(|export| export.unwrap())
                        .map(|export| format!("export {} {}", export.name, export.index)),
                );
            }
            Payload::StartSection { func, .. } => lines.push(format!("start {func}")),
            Payload::CustomSection(section) => lines.push(format!("section {}", section.name())),
            _ => {}
        }
    }
    lines.join("\n")
}

#[test]
fn wasi_imports_are_removed_and_only_canister_exports_remain() {
    assert_eq!(
        surface(&bind(&module(MODULE)).unwrap()),
        "import msg_reply\nimport debug_print\nexport memory 0\nexport canister_update pick 5\nstart 2"
    );
}

/// Returns the constant with which each function begins.
fn constants(module: &[u8]) -> Vec<i32> {
    let mut constants = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CodeSectionEntry(body) = payload.unwrap() {
            match body.get_operators_reader().unwrap().read().unwrap() {
                Operator::I32Const { value } => constants.push(value),
                other => panic!("{other:?}"),
            }
        }
    }
    constants
}

#[test]
fn functions_that_nothing_uses_are_removed_and_the_others_are_ordered_by_name() {
    let text = r#"(module
      (import "ic0" "msg_reply" (func $reply))
      (memory (export "memory") 1)
      (table 1 funcref)
      (elem (i32.const 0) $in_table)
      (elem declare func $referenced)
      (func $zebra (export "canister_query q") (result i32) (i32.const 1) (drop (call $ant)) (drop (ref.func $referenced)))
      (func $dead (result i32) (i32.const 2) (drop (call $dead_too)))
      (func $in_table (result i32) (i32.const 3))
      (func $ant (result i32) (i32.const 4) (drop (call $zebra)))
      (func $dead_too (export "__ic_custom_fd_close") (result i32) (i32.const 5))
      (func $referenced (result i32) (i32.const 6)))"#;
    let bound = bind(&module(text)).unwrap();
    // ant, in_table, referenced, zebra
    assert_eq!(constants(&bound), [4, 3, 6, 1]);
    assert_eq!(surface(&bound), "import msg_reply\nexport memory 0\nexport canister_query q 4");
}

#[test]
fn every_call_reaches_the_polyfill() {
    let engine = wasmi::Engine::default();
    let bound = wasmi::Module::new(&engine, bind(&module(MODULE)).unwrap()).unwrap();
    let mut linker = wasmi::Linker::new(&engine);
    linker
        .func_wrap("ic0", "msg_reply", |mut caller: wasmi::Caller<'_, Vec<&str>>| caller.data_mut().push("reply"))
        .unwrap();
    linker
        .func_wrap("ic0", "debug_print", |mut caller: wasmi::Caller<'_, Vec<&str>>, _: i32, size: i32| {
            assert_eq!(size, 4);
            caller.data_mut().push("print");
        })
        .unwrap();
    let mut store = wasmi::Store::new(&engine, Vec::new());
    let instance = linker.instantiate_and_start(&mut store, &bound).unwrap();
    let memory = instance.get_memory(&store, "memory").unwrap();
    assert_eq!(memory.data(&store)[0], 1, "the constructors ran first");
    assert_eq!(&memory.data(&store)[16..20], b"kept");
    instance.get_typed_func::<(), ()>(&store, "canister_update pick").unwrap().call(&mut store, ()).unwrap();
    assert_eq!(store.data(), &["print", "reply"]);
}

#[test]
fn the_output_is_reproducible() {
    let make = || {
        let whole = with_candid(&bind(&module(MODULE)).unwrap(), "service : {}\n").unwrap();
        (gzip(&whole).unwrap(), whole)
    };
    let (first, second) = (make(), make());
    assert_eq!(first, second);
    assert!(surface(&first.1).ends_with("section icp:public candid:service"));
    assert_eq!(first.0[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3], "no time and no name in the header");
    let mut again = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(first.0.as_slice()), &mut again).unwrap();
    assert_eq!(again, first.1);
    // Binding the result again only removes the metadata with the other custom sections.
    assert_eq!(bind(&first.1).unwrap(), bind(&module(MODULE)).unwrap());
}

#[test]
fn missing_imports_are_named() {
    let told = refused(&MODULE.replace("__ic_custom_sched_yield", "other"));
    assert_eq!(
        told,
        "the module cannot be a canister: it imports `sched_yield` of WASI, and no `__ic_custom_...` is exported for it; is `ic-wasi-polyfill` linked in, and its `init` called?"
    );
    let told = refused(r#"(module (import "env" "now" (func)) (import "wbg" "memory" (memory 1)))"#);
    assert_eq!(
        told,
        "the module cannot be a canister: it imports `env.now`, `wbg.memory`; a canister may import only functions of `ic0` (is a crate for browsers linked?)"
    );
}

#[test]
fn a_wasi_import_is_not_a_polyfill() {
    let told = refused(
        r#"(module
          (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
          (export "__ic_custom_sched_yield" (func $yield))
          (func (result i32) (i32.const 1))
          (func (export "canister_update f") (drop (call $yield))))"#,
    );
    assert!(told.contains("it imports `sched_yield` of WASI, and no"), "{told}");
}

#[test]
fn a_polyfill_for_another_version_is_rejected() {
    let told = refused(&MODULE.replace(
        r#"(func (export "__ic_custom_sched_yield") (result i32) (global.set $count (i32.const 3)) (i32.const 0))"#,
        r#"(func (export "__ic_custom_sched_yield") (result i64) (i64.const 0))"#,
    ));
    assert!(told.contains("does not have the signature of the import `wasi_snapshot_preview1.sched_yield`"), "{told}");
}

#[test]
fn two_start_functions_are_rejected() {
    let told = refused(r#"(module (func $a) (func (export "_initialize")) (start $a))"#);
    assert!(told.contains("has a start function and exports `_initialize`: remove one of them"), "{told}");
}

#[test]
fn invalid_modules_and_64_bit_memories_are_rejected() {
    assert!(bind(b"ELF").is_err());
    assert!(bind(b"\0asm\x01\0\0").is_err());
    let told = refused("(module (memory i64 1))");
    assert!(told.contains("memory64") || told.contains("64-bit"), "{told}");
}
