//! The last steps: the interface as metadata, and gzip.

use std::io::Write;

use wasm_encoder::{CustomSection, Encode, Section};

use crate::BuildError;

/// The custom section that the Internet Computer serves as public metadata `candid:service`.
const CANDID: &str = "icp:public candid:service";

/// Appends the interface to a module.
///
/// # Errors
/// If the module with it is invalid.
pub fn with_candid(module: &[u8], did: &str) -> Result<Vec<u8>, BuildError> {
    let mut whole = module.to_vec();
    let section = CustomSection {
        name: CANDID.into(),
        data: did.as_bytes().into(),
    };
    whole.push(section.id());
    section.encode(&mut whole);
    crate::bind::validate(&whole)?;
    Ok(whole)
}

/// Gzips a module, as small as it gets; the same bytes give the same bytes (no time, no name, no system in the header).
pub fn gzip(module: &[u8]) -> Vec<u8> {
    // Writing into memory does not fail; an empty answer would be refused by every reader.
    let mut encoder = flate2::GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), flate2::Compression::best());
    match encoder.write_all(module) {
        Ok(()) => encoder.finish().unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}
