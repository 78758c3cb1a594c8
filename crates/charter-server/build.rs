//! Lists the files of `page/`, so that the binary contains them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Adds the files below a folder, without tests and without declarations for the type checker.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("page/tests") {
                collect(&path, files)?;
            }
        } else if !path.to_string_lossy().ends_with(".d.ts") {
            files.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let page = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("page");
    let mut files = Vec::new();
    collect(&page, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&page).map_err(io::Error::other)?;
        let name = name.to_str().ok_or_else(|| io::Error::other("a file of page/ has a name that is not UTF-8"))?;
        let name = name.replace('\\', "/");
        writeln!(list, "    ({name:?}, include_bytes!({file:?}) as &[u8]),").map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("page.rs"), list)
}
