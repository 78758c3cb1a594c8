//! Applying changesets: all or nothing at every interruption, nothing outside the workspace,
//! nothing without an approval.

mod rules;

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};

use charter_workspace::{Applied, ApplyRecovery, ApplyRequest, Changeset, ChangesetApproval, Error, Unwatched, Watch};

use crate::folder::{Folder, image};

/// Runs a hook before the n-th write.
struct At<F: FnMut() -> std::io::Result<()>> {
    n: usize,
    seen: usize,
    then: F,
    /// Whether to run the hook at every write from the n-th on, not only once.
    always: bool,
}

impl<F: FnMut() -> std::io::Result<()>> Watch for At<F> {
    fn before(&mut self, _: &'static str, _: &str) -> std::io::Result<()> {
        self.seen += 1;
        if self.seen == self.n || self.always && self.seen > self.n {
            return (self.then)();
        }
        Ok(())
    }
}

fn at<F: FnMut() -> std::io::Result<()>>(n: usize, then: F) -> At<F> {
    At { n, seen: 0, then, always: false }
}

fn full() -> std::io::Result<()> {
    Err(std::io::ErrorKind::StorageFull.into())
}

fn apply(folder: &Folder, changeset: &Changeset, watch: &mut dyn Watch) -> Result<Applied, Error> {
    let approval =
        ChangesetApproval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
    folder.open(watch)?.apply(ApplyRequest { key: "run/1", changeset, approval: &approval, verify: None }, watch)
}

/// Counts the writes of one apply.
fn writes() -> usize {
    let folder = Folder::new();
    let mut watch = at(0, || Ok(()));
    apply(&folder, &folder.changeset(), &mut watch).unwrap();
    watch.seen
}

#[test]
fn an_apply_is_complete_and_can_be_rolled_back() {
    for folder in [Folder::new(), Folder::on_disk()] {
        apply_and_roll_back(&folder);
    }
}

fn apply_and_roll_back(folder: &Folder) {
    let before = image(&folder.workspace);
    let applied = apply(folder, &folder.changeset(), &mut Unwatched).unwrap();
    assert_eq!(image(&folder.workspace), folder.after());
    assert_eq!(applied.changed.len(), 5);
    // A second apply under the same key returns the first result.
    assert_eq!(apply(folder, &folder.changeset(), &mut Unwatched).unwrap(), applied);
    let workspace = folder.open(&mut Unwatched).unwrap();
    assert_eq!(workspace.roll_back("run/1", &mut Unwatched).unwrap().len(), 5);
    assert_eq!(image(&folder.workspace), before);
    assert!(workspace.roll_back("run/1", &mut Unwatched).unwrap().is_empty(), "once");
    drop(workspace);
    assert_eq!(apply(folder, &folder.changeset(), &mut Unwatched).unwrap_err().code(), "stopped");
}

/// The process is killed at every single write; the next start finds either all changes or none,
/// and reports which.
#[test]
fn killed_at_every_write() {
    if let Ok(n) = std::env::var("CHARTER_TEST_KILL_AT") {
        let folder = Folder::at(std::env::var("CHARTER_TEST_FOLDER").unwrap().into());
        let mut kill = at(n.parse().unwrap(), || std::process::abort());
        let _ = apply(&folder, &folder.changeset(), &mut kill);
        return;
    }
    let (mut undone, mut finished) = (0, 0);
    for n in 1..=writes() {
        let folder = Folder::new();
        let before = image(&folder.workspace);
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "apply::killed_at_every_write"])
            .env("CHARTER_TEST_KILL_AT", n.to_string())
            .env("CHARTER_TEST_FOLDER", &folder.root)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "killed at {n}");
        let workspace = folder.open(&mut Unwatched).unwrap();
        match workspace.recovery() {
            ApplyRecovery::Finished { .. } => {
                finished += 1;
                assert_eq!(image(&folder.workspace), folder.after(), "killed at {n}");
            }
            ApplyRecovery::Failed { reason } => panic!("killed at {n}: {reason}"),
            recovery => {
                undone += usize::from(matches!(recovery, ApplyRecovery::Undone { .. }));
                let done = workspace.applied("run/1").unwrap().is_some();
                assert_eq!(
                    image(&folder.workspace),
                    if done { folder.after() } else { before },
                    "killed at {n}: {recovery:?}"
                );
            }
        }
        drop(workspace);
        apply(&folder, &folder.changeset(), &mut Unwatched).unwrap();
        assert_eq!(image(&folder.workspace), folder.after(), "killed at {n}, then done");
    }
    assert!(undone > 10 && finished > 1, "{undone} undone, {finished} finished");
}

/// The apply is interrupted at every write, and its recovery at every one of its own writes: still
/// all or nothing.
#[test]
fn interrupted_while_recovering() {
    let interrupt = |n| at(n, || std::panic::resume_unwind(Box::new("interrupted")));
    for n in 1..=writes() {
        for m in 1.. {
            let folder = Folder::new();
            let before = image(&folder.workspace);
            catch_unwind(AssertUnwindSafe(|| apply(&folder, &folder.changeset(), &mut interrupt(n)))).unwrap_err();
            let again = catch_unwind(AssertUnwindSafe(|| folder.open(&mut interrupt(m)).map(drop)));
            folder.open(&mut Unwatched).unwrap();
            let now = image(&folder.workspace);
            assert!(now == before || now == folder.after(), "interrupted at {n}, then at {m}: {now:?}");
            if again.is_ok() {
                break; // the recovery has no m-th write
            }
        }
    }
}

#[test]
fn a_full_disk_at_every_write_leaves_all_or_nothing() {
    for n in 1..=writes() {
        let folder = Folder::new();
        let before = image(&folder.workspace);
        // Space is available again at once, so the apply is undone immediately.
        match apply(&folder, &folder.changeset(), &mut at(n, full)) {
            Ok(_) => assert_eq!(image(&folder.workspace), folder.after(), "full at {n}"),
            Err(error) => {
                assert_eq!(error.code(), "io", "full at {n}: {error}");
                assert_eq!(image(&folder.workspace), before, "full at {n}");
                assert_eq!(folder.open(&mut Unwatched).unwrap().dirty().unwrap(), None);
            }
        }
        // The disk stays full; the next start, when there is space, repairs everything.
        let folder = Folder::new();
        let mut watch = At { n, seen: 0, then: full, always: true };
        let ended = apply(&folder, &folder.changeset(), &mut watch);
        let workspace = folder.open(&mut Unwatched).unwrap();
        let done = workspace.applied("run/1").unwrap().is_some();
        assert_eq!(
            image(&folder.workspace),
            if done { folder.after() } else { before.clone() },
            "full from {n} on: {ended:?}"
        );
    }
}

#[test]
#[allow(clippy::type_complexity)] // what another program does to the file of that name
fn concurrent_changes_are_never_overwritten() {
    let changes: [(&str, &dyn Fn(&Folder)); 6] = [
        ("a.txt", &|f| f.write("a.txt", "theirs\n")),
        ("a.txt", &|f| fs::remove_file(f.workspace.join("a.txt")).unwrap()),
        ("gone.txt", &|f| f.write("gone.txt", "theirs\n")),
        ("top.txt", &|f| f.write("top.txt", "theirs\n")),
        ("sub/b.sh", &|f| fs::remove_dir_all(f.workspace.join("sub")).unwrap()),
        ("new/deep/c.txt", &|f| f.write("new", "a file\n")),
    ];
    for (name, change) in changes {
        let folder = Folder::new();
        let changeset = folder.changeset();
        change(&folder);
        let theirs = image(&folder.workspace);
        let error = apply(&folder, &changeset, &mut Unwatched).unwrap_err();
        assert!(["conflict", "escape"].contains(&error.code()), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(image(&folder.workspace), theirs, "{name}");
    }
}

/// Another program writes between any two writes of an apply: its content is in place afterwards,
/// never lost or partial.
#[test]
fn a_concurrent_write_at_every_step_of_an_apply() {
    let (mut refused, mut applied) = (0, 0);
    for file in ["a.txt", "gone.txt", "top.txt", "new/deep/c.txt"] {
        for n in 1..=writes() {
            let folder = Folder::new();
            let changeset = folder.changeset();
            let target = folder.workspace.join(file);
            let mut wrote = false;
            let ended = apply(
                &folder,
                &changeset,
                &mut at(n, || {
                    // Write as editors do: a new file, which is then renamed.
                    if target.parent().is_some_and(|p| p.is_dir()) {
                        fs::write(folder.root.join("theirs"), "theirs\n")?;
                        fs::rename(folder.root.join("theirs"), &target)?;
                        wrote = true;
                    }
                    Ok(())
                }),
            );
            match ended {
                Ok(_) => applied += 1,
                Err(_) => refused += 1,
            }
            if wrote {
                assert_eq!(
                    fs::read(&target).unwrap_or_default(),
                    b"theirs\n",
                    "{file} at {n}: {:?}",
                    folder.open(&mut Unwatched)
                );
            }
        }
    }
    assert!(refused > 50 && applied > 10, "{refused} refused, {applied} applied");
}

#[test]
fn symbolic_links_are_not_followed() {
    let folder = Folder::new();
    let changeset = folder.changeset();
    let outside = folder.root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(outside.join("b.sh"), "echo b\n").unwrap();
    let untouched = image(&outside);

    // The file itself is a link to exactly the content that was approved.
    fs::remove_file(folder.workspace.join("a.txt")).unwrap();
    symlink("../outside/a.txt", folder.workspace.join("a.txt")).unwrap();
    assert_eq!(apply(&folder, &changeset, &mut Unwatched).unwrap_err().code(), "conflict");
    // A parent folder is a link.
    let folder = Folder::new();
    fs::rename(folder.workspace.join("sub"), folder.root.join("moved")).unwrap();
    symlink(&outside, folder.workspace.join("sub")).unwrap();
    let error = apply(&folder, &changeset, &mut Unwatched).unwrap_err();
    assert_eq!(error.to_string(), "`sub/b.sh`: `sub` is a symbolic link, not a folder");
    // A link stands where a file is to be created.
    let folder = Folder::new();
    symlink(outside.join("fresh"), folder.workspace.join("top.txt")).unwrap();
    assert_eq!(apply(&folder, &changeset, &mut Unwatched).unwrap_err().code(), "conflict");
    assert_eq!(image(&outside), untouched);
}

/// A folder or file is replaced by a link between any two writes.
#[test]
fn symbolic_links_swapped_in_at_every_step_are_not_followed() {
    for (name, is_folder) in
        [("sub", true), ("a.txt", false), ("gone.txt", false), ("new", true), (".charter-apply", true)]
    {
        for n in 1..=writes() {
            let folder = Folder::new();
            let outside = folder.root.join("outside");
            fs::create_dir_all(outside.join("deep")).unwrap();
            for file in ["a.txt", "gone.txt", "b.sh"] {
                fs::write(outside.join(file), "outside\n").unwrap();
            }
            let untouched = image(&outside);
            let (target, aside) = (folder.workspace.join(name), folder.root.join("aside"));
            let to = if is_folder { outside.clone() } else { outside.join(name) };
            let _ = apply(
                &folder,
                &folder.changeset(),
                &mut at(n, || {
                    let _ = fs::rename(&target, &aside);
                    symlink(&to, &target)
                }),
            );
            let _ = folder.open(&mut Unwatched);
            assert_eq!(image(&outside), untouched, "{name} at {n}");
        }
    }
}

#[test]
fn special_files_are_refused() {
    let folder = Folder::new();
    let changeset = folder.changeset();
    fs::remove_file(folder.workspace.join("a.txt")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.workspace.join("a.txt")).status().unwrap();
    assert!(made.success());
    let error = apply(&folder, &changeset, &mut Unwatched).unwrap_err();
    assert_eq!(error.to_string(), "`a.txt`: is a pipe; a changeset can change regular files only");
}
