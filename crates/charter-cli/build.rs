//! Embeds the charters of `charters/` and the pages of `docs/codes/` in the binary, through
//! generated lists of `include_str!`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("bundled_charters.rs"), charters(&root.join("charters"))?)?;
    fs::write(out.join("bundled_codes.rs"), pages(&root.join("docs/codes"))?)
}

/// Generates `&[Bundled { name, source, scenarios: &[(file, text)], files: &[(path, text)] }]`.
fn charters(folder: &Path) -> io::Result<String> {
    let mut list = String::from("&[\n");
    for charter in entries(folder)? {
        let file = charter.join("charter.yaml");
        if !file.is_file() {
            continue;
        }
        let mut scenarios = String::new();
        for scenario in entries(&charter.join("scenarios"))? {
            if has_extension(&scenario, &["yaml", "yml", "json"]) {
                let _ = write!(scenarios, "({:?}, include_str!({:?})), ", name(&scenario), scenario.canonicalize()?);
            }
        }
        // The files that its actors read: prompts, skills, scripted answers.
        let mut texts = entries(&charter.join("prompts"))?;
        texts.extend(entries(&charter.join("skills"))?);
        let texts = texts.iter().filter(|p| has_extension(p, &["md", "txt"]));
        let beside = entries(&charter)?;
        let beside = beside.iter().filter(|p| has_extension(p, &["yaml", "json"]) && **p != file);
        let mut files = String::new();
        let example = below(&charter.join("example"))?;
        for path in texts.chain(beside).chain(&example) {
            let inside = path.strip_prefix(&charter).unwrap_or(path);
            let _ = write!(files, "({:?}, include_str!({:?})), ", inside.display().to_string(), path.canonicalize()?);
        }
        let _ = writeln!(
            list,
            "    Bundled {{ name: {:?}, source: include_str!({:?}), scenarios: &[{scenarios}], files: &[{files}] }},",
            name(&charter),
            file.canonicalize()?
        );
    }
    Ok(list + "]\n")
}

/// Lists all files below a folder.
fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in entries(folder)? {
        match path.is_dir() {
            true => files.extend(below(&path)?),
            false => files.push(path),
        }
    }
    Ok(files)
}

/// Generates `&[(code, page)]`, sorted by code.
fn pages(folder: &Path) -> io::Result<String> {
    let mut list = String::from("&[\n");
    for page in entries(folder)? {
        if has_extension(&page, &["md"]) {
            let code = name(&page).trim_end_matches(".md").to_owned();
            let _ = writeln!(list, "    ({code:?}, include_str!({:?})),", page.canonicalize()?);
        }
    }
    Ok(list + "]\n")
}

/// Lists the entries of a folder, sorted; empty if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    // Do not watch a missing folder: Cargo would rebuild every time.
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.is_file() && path.extension().is_some_and(|e| wanted.iter().any(|w| e == *w))
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}
