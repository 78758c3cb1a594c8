//! Embeds the charter's core form and its skills into the canister. With the core form, the
//! canister needs no YAML parser.

use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new("../../charters/automaton");
    println!("cargo:rerun-if-changed={}", folder.display());
    let path = folder.join("charter.yaml");
    let document = charter_format::read_file(&path, &charter_format::ReadOptions::default())?;
    let stored = charter_journal::StoredCharter::new(&document.definition, "", "");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder.join("skills"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            files.push(name);
        }
    }
    files.sort();
    let mut skills = String::from("&[\n");
    for name in &files {
        let text = std::fs::read_to_string(folder.join("skills").join(name))?;
        writeln!(skills, "    (\"skills/{name}\", {text:?}),")?;
    }
    skills.push(']');
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(format!("{out}/core.json"), stored.core)?;
    std::fs::write(format!("{out}/skills.rs"), skills)?;
    Ok(())
}
