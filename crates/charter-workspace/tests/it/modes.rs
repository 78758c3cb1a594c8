//! Modes and owners of files: what is approved is what is there afterwards.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use charter_kernel::Digest;
use charter_workspace::{ApplyRequest, Change, Changeset, ChangesetApproval, FileDiff, Unwatched, dogs, json};

use crate::folder::{Folder, image, path};

fn apply(folder: &Folder, changeset: &Changeset, key: &str) -> Result<(), charter_workspace::Error> {
    let workspace = folder.open(&mut Unwatched)?;
    let approval =
        ChangesetApproval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
    workspace.apply(ApplyRequest { key, changeset, approval: &approval, verify: None }, &mut Unwatched).map(drop)
}

fn with(executable: bool, change: Change) -> Changeset {
    Changeset::new("s", vec![Change { executable: Some(executable), ..change }]).unwrap()
}

#[test]
fn a_script_can_be_created_executable_and_it_is_part_of_what_is_approved() {
    let folder = Folder::new();
    let script = with(true, Change::create(path("run.sh"), "#!/bin/sh\n"));
    let text = dogs::write(&script);
    assert!(text.contains("\nexecutable: true\n"), "{text}");
    assert_eq!(dogs::read(text.as_bytes()).unwrap(), script);
    assert_eq!(json::read(json::write(&script).as_bytes()).unwrap(), script);
    assert_eq!(script.manifest()["changes"][0]["executable"], true);
    let plain = Changeset::new("s", vec![Change::create(path("run.sh"), "#!/bin/sh\n")]).unwrap();
    assert_ne!(script.digest(), plain.digest());
    let shown = FileDiff::of(&script.changes()[0], None).to_text();
    assert!(shown.contains("the file is executable afterwards"), "{shown}");
    apply(&folder, &script, "one").unwrap();
    assert_eq!(image(&folder.workspace)["run.sh"], "755 \"#!/bin/sh\\n\"");
    let back = with(false, Change::modify(path("run.sh"), Digest::of_bytes(b"#!/bin/sh\n"), "x\n"));
    apply(&folder, &back, "two").unwrap();
    assert_eq!(image(&folder.workspace)["run.sh"], "644 \"x\\n\"");
    // Putting it back restores the mode, too.
    folder.open(&mut Unwatched).unwrap().roll_back("two", &mut Unwatched).unwrap();
    assert_eq!(image(&folder.workspace)["run.sh"], "755 \"#!/bin/sh\\n\"");
}

#[test]
fn owner_and_special_bits_survive() {
    let folder = Folder::new();
    let file = folder.workspace.join("a.txt");
    // Only root may give a file away.
    let given = std::os::unix::fs::chown(&file, Some(1_234), Some(1_235)).is_ok();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).unwrap();
    let look = || {
        let now = fs::metadata(&file).unwrap();
        (now.permissions().mode() & 0o7777, now.uid(), now.gid())
    };
    let before = look();
    assert!(!given || before == (0o6755, 1_234, 1_235));
    let old = Digest::of_bytes(b"one\ntwo\n");
    let change = Changeset::new("s", vec![Change::modify(path("a.txt"), old, "1\n")]).unwrap();
    apply(&folder, &change, "one").unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), look()), ("1\n", before));
    folder.open(&mut Unwatched).unwrap().roll_back("one", &mut Unwatched).unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), look()), ("one\ntwo\n", before));
}
