//! The rules of an apply: approvals, the `verify` command, locks, dirty workspaces, permissions.

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};

use charter_kernel::Digest;
use charter_workspace::{
    ApplyRecovery, ApplyRequest, Change, Changeset, ChangesetApproval, Error, Unwatched, VerifyCommand,
};

use super::{apply, at, writes};
use crate::folder::{Folder, image, path};

#[test]
fn an_apply_needs_an_approval_of_exactly_this_changeset_by_another_person() {
    let folder = Folder::new();
    let before = image(&folder.workspace);
    let whole = folder.changeset();
    let part = whole.subset(&["a.txt"]).unwrap();
    let workspace = folder.open(&mut Unwatched).unwrap();
    let order = |changeset, approved: &Changeset, approver: &str| {
        let approval =
            ChangesetApproval { changeset: approved.digest(), approver: approver.into(), proposer: "agent".into() };
        workspace.apply(ApplyRequest { key: "k", changeset, approval: &approval, verify: None }, &mut Unwatched)
    };
    for (changeset, approved, approver) in [
        (&whole, &part, "ana"),
        (&part, &whole, "ana"),
        (&whole, &whole, "agent"),
        (&whole, &whole, "Agent "),
        (&whole, &whole, "model:a\u{200b}gent"),
        (&whole, &whole, ""),
    ] {
        assert_eq!(order(changeset, approved, approver).unwrap_err().code(), "unapproved");
    }
    assert_eq!(image(&folder.workspace), before);
    order(&part, &part, "ana").unwrap();
    assert_eq!(fs::read_to_string(folder.workspace.join("a.txt")).unwrap(), "one\n2\n");
    assert_eq!(order(&whole, &whole, "ana").unwrap_err().code(), "unapproved", "a key applies one changeset");
}

#[test]
fn a_verify_command_decides_before_the_workspace_changes() {
    let sh = |script: &str| VerifyCommand {
        time_limit: std::time::Duration::from_millis(500),
        output_limit: 100_000,
        ..VerifyCommand::new(["/bin/sh", "-c", script].map(String::from).to_vec())
    };
    let run = |script: &str| {
        let folder = Folder::new();
        symlink("a.txt", folder.workspace.join("inside")).unwrap();
        symlink(&folder.workspace, folder.workspace.join("outside")).unwrap();
        let before = image(&folder.workspace);
        let changeset = folder.changeset();
        let approval =
            ChangesetApproval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
        let verify = sh(script);
        let workspace = folder.open(&mut Unwatched).unwrap();
        let ended = workspace.apply(
            ApplyRequest { key: "k", changeset: &changeset, approval: &approval, verify: Some(&verify) },
            &mut Unwatched,
        );
        if ended.is_err() {
            assert_eq!(image(&folder.workspace), before);
            assert_eq!(workspace.dirty().unwrap(), None);
        }
        ended
    };
    // The command runs in a copy. It sees the changes, all other files, and links that stay inside.
    let script = "grep -q 2 a.txt && grep -q 2 inside && test ! -e gone.txt && test -f new/deep/c.txt && test -x sub/b.sh && test ! -e outside && touch made && pwd";
    let applied = run(script).unwrap();
    assert!(applied.verification.unwrap().accepted);
    let refused = |script: &str| match run(script) {
        Err(Error::Verify { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("exit 1"), "it exited with code 1");
    assert_eq!(refused("sleep 100"), "it ran longer than 0.5 s and was killed");
    // The command is not kept waiting by a program that has left the process group and keeps the
    // output open.
    let started = std::time::Instant::now();
    let _ = run("setsid sleep 5 & exit 0");
    assert!(started.elapsed().as_secs() < 4, "{:?}", started.elapsed());
    assert_eq!(refused("while :; do echo more; done"), "it printed more than 100000 bytes and was killed");
}

#[test]
fn a_workspace_has_one_user_at_a_time() {
    let folder = Folder::new();
    let first = folder.open(&mut Unwatched).unwrap();
    let error = folder.open(&mut Unwatched).unwrap_err();
    assert_eq!(error.code(), "locked");
    assert!(error.to_string().contains("in use by `run-1`; wait"), "{error}");
    // Another store is refused too.
    let other = charter_workspace::Store::open(&folder.root.join("other")).unwrap();
    assert_eq!(
        charter_workspace::Workspace::open(&folder.workspace, &other, "run-2", &mut Unwatched).unwrap_err().code(),
        "locked"
    );
    drop(first);
    folder.open(&mut Unwatched).unwrap();
}

#[test]
fn an_interrupted_apply_of_another_database_is_reported() {
    let folder = Folder::new();
    let stage = |n: usize| {
        catch_unwind(AssertUnwindSafe(|| {
            apply(&folder, &folder.changeset(), &mut at(n, || std::panic::resume_unwind(Box::new(()))))
        }))
    };
    stage(writes() / 2).unwrap_err();
    assert!(folder.workspace.join(".charter-apply/origin").exists());
    let other = charter_workspace::Store::open(&folder.root.join("other")).unwrap();
    let error = charter_workspace::Workspace::open(&folder.workspace, &other, "run-2", &mut Unwatched).unwrap_err();
    assert_eq!(error.code(), "interrupted");
    assert!(error.to_string().contains("store"), "{error}");
    assert!(matches!(folder.open(&mut Unwatched).unwrap().recovery(), ApplyRecovery::Undone { .. }));
    charter_workspace::Workspace::open(&folder.workspace, &other, "run-2", &mut Unwatched).unwrap();
}

#[test]
fn a_failed_restore_marks_the_workspace_dirty_until_it_is_cleared() {
    let folder = Folder::new();
    apply(&folder, &folder.changeset(), &mut Unwatched).unwrap();
    folder.write("a.txt", "theirs\n");
    let workspace = folder.open(&mut Unwatched).unwrap();
    let error = workspace.roll_back("run/1", &mut Unwatched).unwrap_err();
    assert_eq!(error.code(), "dirty");
    assert!(error.to_string().contains("cannot restore `a.txt`: it has changed since the apply"), "{error}");
    assert_eq!(fs::read_to_string(folder.workspace.join("a.txt")).unwrap(), "theirs\n");
    assert!(folder.workspace.join("gone.txt").exists(), "the other files are restored");
    drop(workspace);
    // The next start tries again; nothing else is allowed until the mark is cleared.
    let workspace = folder.open(&mut Unwatched).unwrap();
    assert!(workspace.dirty().unwrap().is_some());
    assert_eq!(workspace.curate(&Default::default()).unwrap_err().code(), "dirty");
    let (digest, changeset) = (Digest::of_bytes(b"theirs\n"), |d| {
        Changeset::new("s", vec![Change::modify(path("a.txt"), d, "mine\n")]).unwrap()
    });
    let changeset = changeset(digest);
    let approval =
        ChangesetApproval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
    let order = ApplyRequest { key: "run/2", changeset: &changeset, approval: &approval, verify: None };
    assert_eq!(workspace.apply(order, &mut Unwatched).unwrap_err().code(), "dirty");
    let kept = workspace.clear_dirty(&mut Unwatched).unwrap();
    assert!(kept.values().all(|digest| workspace.store().get(*digest).is_ok()));
    workspace.apply(order, &mut Unwatched).unwrap();
    assert_eq!(fs::read_to_string(folder.workspace.join("a.txt")).unwrap(), "mine\n");
}

#[test]
fn permissions_and_links_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    symlink("a.txt", folder.workspace.join("link")).unwrap();
    fs::set_permissions(folder.workspace.join("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = image(&folder.workspace);
    let old = Digest::of_bytes(&fs::read(folder.workspace.join("a.txt")).unwrap());
    let changeset =
        Changeset::new("s", vec![Change::delete(path("link"), None), Change::modify(path("a.txt"), old, "x")]).unwrap();
    apply(&folder, &changeset, &mut Unwatched).unwrap();
    assert!(fs::symlink_metadata(folder.workspace.join("link")).is_err());
    assert_eq!(fs::metadata(folder.workspace.join("a.txt")).unwrap().permissions().mode() & 0o777, 0o640);
    folder.open(&mut Unwatched).unwrap().roll_back("run/1", &mut Unwatched).unwrap();
    assert_eq!(image(&folder.workspace), before);
}

/// Somebody saves a file while the changes are verified or made: it stays as they have saved it,
/// the others are put back, and nobody has to look at the workspace unless the changes had been
/// made to that very file.
#[test]
fn a_file_that_is_saved_meanwhile_stays_and_nothing_else_changes() {
    let mut refused = 0;
    for n in 1..writes() {
        let folder = Folder::new();
        let mut before = image(&folder.workspace);
        let (file, mut was_changed) = (folder.workspace.join("sub/b.sh"), false);
        let ended = apply(
            &folder,
            &folder.changeset(),
            &mut at(n, || {
                was_changed = fs::read_to_string(&file).unwrap() == "echo c\n";
                fs::write(&file, "theirs\n")
            }),
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n", "at {n}");
        let dirty = folder.open(&mut Unwatched).unwrap().dirty().unwrap();
        match ended {
            Ok(_) => assert!(was_changed, "at {n}"),
            Err(error) => {
                assert_eq!((error.code(), dirty), ("conflict", None), "at {n}: {error}");
                refused += 1;
                before.insert("sub/b.sh".into(), image(&folder.workspace)["sub/b.sh"].clone());
                assert_eq!(image(&folder.workspace), before, "at {n}");
            }
        }
    }
    assert!(refused > 5, "{refused}");
}
