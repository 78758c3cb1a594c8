fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=charter.yaml");
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(format!("{out}/charter.rs"), charter_typed::generate::from_file("charter.yaml")?)?;
    Ok(())
}
