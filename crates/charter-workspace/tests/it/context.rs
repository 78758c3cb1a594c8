//! Listing and reading files for an agent; insights.

use std::fs;
use std::os::unix::fs::symlink;

use crate::folder::{Folder, path};
use charter_kernel::Digest;
use charter_workspace::{
    ApplyRequest, Change, Changeset, ChangesetApproval, CurateOptions, CycleOutcome, FileKind, Insight, Store,
    Unwatched, Workspace,
};
use serde_json::json;

fn listed(workspace: &Workspace, patterns: &[&str]) -> Vec<String> {
    let curate =
        CurateOptions { patterns: patterns.iter().map(|p| (*p).to_owned()).collect(), ..CurateOptions::default() };
    workspace.curate(&curate).unwrap().files.into_iter().map(|f| f.path).collect()
}

#[test]
fn files_are_listed_by_pattern_and_ignore_rules() {
    let folder = Folder::new();
    for (name, text) in [
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("target/x", ""),
        ("a.log", ""),
        ("keep.log", ""),
        ("sub/.gitignore", "b.sh\n/only-here\n"),
        ("sub/only-here", ""),
        ("only-here", ""),
        (".git/config", ""),
        ("sub/.git/config", ""),
    ] {
        fs::create_dir_all(folder.workspace.join(name).parent().unwrap()).unwrap();
        folder.write(name, text);
    }
    let workspace = folder.open(&mut Unwatched).unwrap();
    let all = [".gitignore", "a.txt", "gone.txt", "keep.log", "only-here", "other.txt", "sub/.gitignore"];
    assert_eq!(listed(&workspace, &[]), all);
    assert_eq!(listed(&workspace, &["*.txt", "!gone.*"]), ["a.txt", "other.txt"]);
    assert_eq!(listed(&workspace, &["sub/**"]), ["sub/.gitignore"]);
    let bad = CurateOptions { patterns: vec!["a[".into()], ..CurateOptions::default() };
    assert!(workspace.curate(&bad).unwrap_err().to_string().starts_with("invalid pattern `a[`: "));
    let few = CurateOptions { max_files: 3, ..CurateOptions::default() };
    assert_eq!(
        workspace.curate(&few).unwrap_err().to_string(),
        "more than 3 files; narrow the selection with patterns such as `src/**`"
    );
}

#[test]
fn skipped_files_are_reported() {
    let folder = Folder::new();
    symlink("a.txt", folder.workspace.join("link")).unwrap();
    symlink("/etc", folder.workspace.join("etc")).unwrap();
    fs::write(folder.workspace.join("large"), vec![b'x'; 2 << 20]).unwrap();
    fs::write(folder.workspace.join("binary"), [0, 1]).unwrap();
    folder.write("odd\u{202e}name", "");
    let workspace = folder.open(&mut Unwatched).unwrap();
    let listing = workspace.curate(&CurateOptions::default()).unwrap();
    let skipped: Vec<_> = listing.skipped.iter().map(|(p, why)| format!("{p:?}: {why}")).collect();
    assert_eq!(
        skipped,
        [
            "\"etc\": symbolic link, not followed",
            "\"large\": 2097152 bytes; the limit is 1048576",
            "\"link\": symbolic link, not followed",
            "\"odd\\u{202e}name\": its path contains a control character or one that changes the text direction",
        ]
    );
    let kind = |name: &str| listing.files.iter().find(|f| f.path == name).unwrap().kind;
    assert_eq!((kind("binary"), kind("a.txt")), (FileKind::Binary, FileKind::Text));
}

#[test]
fn a_bundle_has_the_approved_contents_or_fails() {
    let folder = Folder::new();
    let workspace = folder.open(&mut Unwatched).unwrap();
    let approved: Vec<_> = workspace
        .curate(&CurateOptions::default())
        .unwrap()
        .files
        .iter()
        .map(|f| (path(&f.path), Digest::parse(&f.sha256).unwrap()))
        .collect();
    let bundle = workspace.bundle(&approved).unwrap();
    assert_eq!(bundle.files[&path("a.txt")], b"one\ntwo\n");
    assert_eq!(bundle.digests().len(), 4);
    assert_eq!(bundle.digest(), workspace.bundle(&approved).unwrap().digest());
    let refused = |change: &dyn Fn()| {
        change();
        workspace.bundle(&approved).unwrap_err().to_string()
    };
    assert!(
        refused(&|| folder.write("a.txt", "changed")).starts_with("`a.txt` has changed since the context was approved")
    );
    assert!(
        refused(&|| fs::remove_file(folder.workspace.join("a.txt")).unwrap()).starts_with("`a.txt` no longer exists")
    );
    assert!(
        refused(&|| symlink("other.txt", folder.workspace.join("a.txt")).unwrap())
            .starts_with("`a.txt`: is now a symbolic link")
    );
}

#[test]
fn insights_are_stored_once_and_survive_a_truncated_line() {
    let folder = Folder::new();
    let insight = |text: &str| Insight {
        outcome: CycleOutcome::Failed,
        category: "verification".into(),
        description: text.into(),
        tags: vec!["tests".into()],
        evidence: json!({"exit": 1}),
    };
    let workspace = folder.open(&mut Unwatched).unwrap();
    workspace.learn("run-1/1", &[insight("a"), insight("b")], &mut Unwatched).unwrap();
    workspace.learn("run-1/1", &[insight("a"), insight("b")], &mut Unwatched).unwrap();
    let texts = |w: &Workspace| w.learned().unwrap().into_iter().map(|l| l.insight.description).collect::<Vec<_>>();
    assert_eq!(texts(&workspace), ["a", "b"]);
    let file = walk(&folder.root.join("store")).into_iter().find(|p| p.ends_with("insights.jsonl")).unwrap();
    let text = fs::read(&file).unwrap();
    fs::write(&file, &text[..text.len() - 9]).unwrap();
    assert_eq!(texts(&workspace), ["a"]);
    workspace.learn("run-1/1", &[insight("a"), insight("b")], &mut Unwatched).unwrap();
    workspace.learn("run-1/2", &[insight("c")], &mut Unwatched).unwrap();
    assert_eq!(texts(&workspace), ["a", "b", "c"]);
    let large = insight(&"x".repeat(100_000));
    assert_eq!(workspace.learn("run-1/3", &[large], &mut Unwatched).unwrap_err().code(), "too-large");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { walk(&p) } else { vec![p] }).collect()
}

#[test]
fn a_journal_inside_the_workspace_stays_out_of_it() {
    let folder = Folder::new();
    let names = ["sub/j.db", "sub/j.db-wal", "sub/j.dbx", "j.db"];
    names.iter().for_each(|name| folder.write(name, "x"));
    let store = Store::open(&folder.workspace.join("sub/j.db-files")).unwrap();
    let workspace = Workspace::open(&folder.workspace, &store, "run-1", &mut Unwatched).unwrap();
    let listing = workspace.curate(&CurateOptions::default()).unwrap();
    let files: Vec<_> = listing.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(files, ["a.txt", "gone.txt", "j.db", "other.txt", "sub/b.sh", "sub/j.dbx"]);
    let left: Vec<_> = listing.skipped.into_iter().collect();
    let journal = |path: &str| (path.to_owned(), "belongs to the journal of the run".to_owned());
    assert_eq!(left, [journal("sub/j.db"), journal("sub/j.db-files"), journal("sub/j.db-wal")]);
    let digest = Digest::of_bytes(b"x");
    let refused = workspace.bundle(&[(path("sub/j.db"), digest)]).unwrap_err();
    assert_eq!(refused.code(), "escape", "{refused}");
    for change in [
        Change::modify(path("sub/j.db"), digest, "y"),
        Change::create(path("sub/j.db-files/objects/x"), "y"),
        Change::delete(path("sub/j.db-wal"), Some(digest)),
        Change::create(path("sub/j.db-new"), "y"),
    ] {
        let changeset = Changeset::new("attack", vec![change]).unwrap();
        let approval =
            ChangesetApproval { changeset: changeset.digest(), approver: "ana".into(), proposer: "model".into() };
        let request = ApplyRequest { key: "run-1/1", changeset: &changeset, approval: &approval, verify: None };
        let refused = workspace.apply(request, &mut Unwatched).unwrap_err();
        assert_eq!(refused.code(), "escape", "{refused}");
    }
    assert_eq!(fs::read_to_string(folder.workspace.join("sub/j.db")).unwrap(), "x");
}
