//! The program `canister-build`: builds the canister and its interface, for people, scripts and
//! `icp build`.

use std::path::PathBuf;
use std::process::ExitCode;

use charter_canister_build::{BuildError, Built, Crate, write_atomically};

/// The crate of the canister.
const PACKAGE: &str = "charter-canister";
/// The name of the output files.
const NAME: &str = "automaton";
/// The committed interface, relative to the root of the workspace.
const DID: &str = "crates/charter-canister/automaton.did";
/// Maximum size of a message of the Internet Computer, in bytes; larger modules are installed in
/// chunks.
const MAX_MESSAGE: usize = 2 * 1024 * 1024;

const HELP: &str = "\
canister-build               build the canister: target/canister/automaton.wasm, .wasm.gz, .did
canister-build did --check   build it, and fail if the committed .did differs
canister-build did --write   build it, and write the committed .did

With ICP_WASM_OUTPUT_PATH set, the gzipped module is also written there (`icp build` sets it).";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => make().map(|()| true),
        ["did", "--check"] => check(),
        ["did", "--write"] => write().map(|()| true),
        ["--help" | "-h" | "help"] => {
            println!("{HELP}");
            Ok(true)
        }
        other => {
            eprintln!("canister-build: unknown arguments `{}`\n\n{HELP}", other.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("canister-build: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<(), BuildError> {
    let (package, built) = build()?;
    let target = package.target();
    let wasm_gz = target.join(format!("{NAME}.wasm.gz"));
    write_atomically(&target.join(format!("{NAME}.wasm")), &built.wasm)?;
    write_atomically(&wasm_gz, &built.wasm_gz)?;
    write_atomically(&target.join(format!("{NAME}.did")), built.did.as_bytes())?;
    println!("{}: {} bytes, {} before gzip", wasm_gz.display(), built.wasm_gz.len(), built.wasm.len());
    if built.wasm_gz.len() > MAX_MESSAGE {
        println!("note: larger than one message of {MAX_MESSAGE} bytes: it can only be installed in chunks");
    }
    if let Some(path) = std::env::var_os("ICP_WASM_OUTPUT_PATH") {
        let path = PathBuf::from(path);
        write_atomically(&path, &built.wasm_gz)?;
        println!("{}: a copy", path.display());
    }
    Ok(())
}

fn check() -> Result<bool, BuildError> {
    let (package, built) = build()?;
    let path = package.workspace().join(DID);
    let committed = std::fs::read_to_string(&path).map_err(|source| BuildError::File { path, source })?;
    match charter_canister_build::difference(&committed, &built.did) {
        None => {
            println!("{DID}: up to date");
            Ok(true)
        }
        Some(difference) => {
            eprintln!(
                "{DID}, {difference}\nIf the change is intended, run `canister-build did --write` and commit it."
            );
            Ok(false)
        }
    }
}

fn write() -> Result<(), BuildError> {
    let (package, built) = build()?;
    write_atomically(&package.workspace().join(DID), built.did.as_bytes())?;
    println!("{DID}: {} lines", built.did.lines().count());
    Ok(())
}

fn build() -> Result<(Crate, Built), BuildError> {
    let package = Crate::new(PACKAGE)?.shown();
    let built = package.build()?;
    Ok((package, built))
}
