//! Generates the bindings of the automaton charter.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let charter = "../../charters/automaton/charter.yaml";
    println!("cargo:rerun-if-changed={charter}");
    let text = charter_typed::generate::from_file(charter)?;
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(format!("{out}/bindings.rs"), text)?;
    Ok(())
}
