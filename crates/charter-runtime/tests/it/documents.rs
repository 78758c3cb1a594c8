//! The host accepts the examples in `docs/actors.md`, and the page lists every code.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::block_on;
use charter_actors::{Folder, Http};
use charter_journal::MemoryStore;
use charter_runtime::{Charter, Options, Runtime};

const PAGE: &str = include_str!("../../../../docs/actors.md");

fn blocks() -> Vec<String> {
    let fenced = PAGE.split("```yaml\n").skip(1);
    // Examples of tools are tested in `charter-models`, tests/it/tool.rs.
    fenced
        .filter(|b| !b.contains("kind: tool"))
        .map(|b| b.split("```").next().unwrap().replace("https://scores.example.org", "http://localhost"))
        .collect()
}

fn read(source: &str, folder: Folder) -> Charter {
    let document =
        charter_format::read(source, "page.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}\n{source}"));
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
    Charter::new(&document, folder).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_example_is_accepted() {
    block_on(async {
        let secret: charter_actors::FindSecret = Arc::new(|name| (name == "SCORES").then(|| "x".to_owned()));
        let options = Options::default().executor("http", Http::default().secrets(secret));
        let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (mut kinds, mut scripts) = (Vec::new(), 0);
        for block in blocks() {
            let actors = block.lines().map(|l| format!("  {l}\n")).collect::<String>();
            let around = |actors: &str| {
                format!(
                    "charter: 1\nid: page\nroles: {{planner: {{}}, reviewer: {{}}, editor: {{}}}}\nactors:\n{actors}"
                )
            };
            if block.starts_with("charter:") {
                runtime.add(read(&block, Folder::Dir(dir.path().into()))).await.unwrap();
            } else if block.starts_with("planner:\n") {
                let texts = BTreeMap::from([("script.yaml".to_owned(), block.clone())]);
                let charter = read(
                    &around("  planner: {kind: scripted, answers: script.yaml, as: planner}\n"),
                    Folder::Texts(Arc::new(texts)),
                );
                runtime.add(charter).await.unwrap_or_else(|e| panic!("{e}"));
                scripts += 1;
            } else {
                std::fs::write(dir.path().join("script.yaml"), "planner: [{output: 1}]").unwrap();
                std::fs::create_dir_all(dir.path().join("src")).unwrap();
                let charter = runtime
                    .add(read(&around(&actors), Folder::Dir(dir.path().into())))
                    .await
                    .unwrap_or_else(|e| panic!("{e}"));
                kinds.extend(charter.machine().definition().actors.values().map(|a| a.kind.clone()));
            }
        }
        for kind in charter_actors::standard().keys() {
            // Examples of workspaces are in the charter `sentinel`.
            let shown = kinds.contains(kind) || kind == "workspace";
            assert!(shown, "docs/actors.md has no example of the kind `{kind}`: add a section with one");
        }
        assert_eq!(scripts, 1);
    });
}

#[test]
fn every_code_is_on_the_page() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders =
        vec![crates.join("charter-runtime/src"), crates.join("charter-actors/src"), crates.join("charter-run/src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None => folders.push(path),
                Some(_) => sources.push(std::fs::read_to_string(path).unwrap()),
            }
        }
    }
    for source in sources {
        let flat = source.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(");
        for part in flat.split("Fault::new(\"").skip(1) {
            let code = part.split('"').next().unwrap();
            assert!(
                PAGE.lines().any(|l| l.starts_with("| `") && l.contains(&format!("`{code}`"))),
                "add a row for `{code}` to the table of errors in docs/actors.md"
            );
        }
    }
}
