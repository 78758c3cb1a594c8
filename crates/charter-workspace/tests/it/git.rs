//! Commits of changesets: what is in them, in a folder of a repository, and after an interruption.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use charter_kernel::Digest;
use charter_workspace::{Change, Changeset, CommitRequest, RelPath, Repository, Store, Unwatched};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=ana", "-c", "user.email=ana@a.invalid"]).args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
}

#[test]
fn a_commit_has_exactly_the_changes_and_is_made_once() {
    let temporary = tempfile::tempdir().unwrap();
    let (top, folder) = (temporary.path().join("top"), temporary.path().join("top/sub"));
    fs::create_dir_all(&folder).unwrap();
    assert!(Repository::find(&folder).unwrap().is_none());
    git(&top, &["init", "-q", "-b", "main"]);
    let repository = Repository::find(&folder).unwrap().unwrap();
    assert!(repository.branch().unwrap_err().to_string().contains("no branch with a commit is checked out"));
    for (name, text) in [("top.txt", "top\n"), ("sub/old", "old\r\n"), ("sub/kept", "kept\n"), ("sub/auto", "a\r\n")] {
        fs::write(top.join(name), text).unwrap();
    }
    fs::write(top.join(".gitattributes"), "auto text\n").unwrap();
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "first"]);
    assert_eq!(repository.uncommitted().unwrap(), Vec::<String>::new());
    fs::write(top.join("top.txt"), "mine\n").unwrap();
    fs::write(top.join("sub/kept"), "mine\n").unwrap();
    assert_eq!(repository.uncommitted().unwrap(), ["/top.txt", "kept"]);

    let store = Store::open(&temporary.path().join("store")).unwrap();
    let path = |path: &str| RelPath::parse(path).unwrap();
    for text in ["old\r\n", "a\r\n", "kept\n"] {
        store.put(text.as_bytes(), &mut Unwatched).unwrap();
    }
    let changeset = |change| Changeset::new("s", vec![change]).unwrap();
    let refused = |change| repository.can_commit("b/1", &changeset(change), &store).unwrap_err().to_string();
    let delete = |name, text: &str| Change::delete(path(name), Some(Digest::of_bytes(text.as_bytes())));
    assert!(refused(delete("kept", "kept\n")).contains("`kept` has changes that are not committed"));
    // Git has it with other line ends, so a commit of its bytes would change every line.
    assert!(refused(delete("auto", "a\r\n")).contains("a filter of Git, such as LFS, changes it"));
    assert!(refused(Change::create(path("old"), "x")).contains("is in the last commit, but not in the folder"));

    let script = Change { executable: Some(true), ..Change::create(path("new/run"), "#!/bin/sh\r\n") };
    let made = Changeset::new("Runs", vec![script, delete("old", "old\r\n")]).unwrap();
    repository.can_commit("b/1", &made, &store).unwrap();
    fs::create_dir(folder.join("new")).unwrap();
    fs::write(folder.join("new/run"), "#!/bin/sh\r\n").unwrap();
    fs::set_permissions(folder.join("new/run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(folder.join("old")).unwrap();
    // No value begins another line.
    let trailers = [("Approved-by", "ana\nApproved-by: bo".to_owned())];
    let order = CommitRequest { branch: "b/1", changeset: &made, trailers: &trailers };
    let first = repository.commit(order).unwrap();
    assert_eq!(git(&top, &["diff", "--raw", "--abbrev=4", "--no-renames", "main", "b/1"]).lines().count(), 2);
    assert!(git(&top, &["ls-tree", "-r", "b/1"]).contains("100755 blob"));
    assert_eq!(git(&top, &["show", "b/1:sub/new/run"]), "#!/bin/sh\r");
    assert_eq!(git(&top, &["status", "--porcelain"]), " M sub/kept\n M top.txt");
    assert!(git(&top, &["log", "-1", "--format=%B"]).contains("\nApproved-by: ana Approved-by: bo\nBase: main"));
    // An attempt after an interruption, before the branch was checked out.
    git(&top, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    assert_eq!(repository.commit(order).unwrap(), first);
    assert_eq!(git(&top, &["branch", "--show-current"]), "b/1");
    let other = [("Approved-by", "bo".to_owned())];
    assert!(repository.commit(CommitRequest { trailers: &other, ..order }).is_err());
    // Where the base has moved on, nothing is checked out.
    assert!(!repository.leave("b/1", &other).unwrap());
    git(&top, &["branch", "-f", "main", "b/1"]);
    assert!(!repository.leave("b/1", &trailers).unwrap());
    git(&top, &["branch", "-f", "main", "b/1^"]);
    assert!(repository.leave("b/1", &trailers).unwrap());
    assert_eq!(git(&top, &["branch", "--show-current"]), "main");
    assert!(git(&top, &["diff", "--cached", "--name-only"]).is_empty());
}
