//! A small workspace with a store beside it, and a changeset that uses every operation.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // the unit tests include this file and use a part of it

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use charter_kernel::Digest;
use charter_workspace::{Change, Changeset, Error, RelPath, Store, Watch, Workspace};

pub struct Folder {
    pub root: PathBuf,
    pub workspace: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Folder {
    pub fn new() -> Folder {
        // In memory if possible: these tests sync a lot.
        let memory = Path::new("/dev/shm");
        let temporary = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        Folder::filled(temporary)
    }

    pub fn on_disk() -> Folder {
        Folder::filled(tempfile::tempdir().unwrap())
    }

    fn filled(temporary: tempfile::TempDir) -> Folder {
        let mut folder = Folder::at(temporary.path().to_owned());
        folder._temporary = Some(temporary);
        fs::create_dir_all(folder.workspace.join("sub")).unwrap();
        folder.write("a.txt", "one\ntwo\n");
        folder.write("sub/b.sh", "echo b\n");
        folder.write("gone.txt", "old\n");
        folder.write("other.txt", "stays\n");
        fs::set_permissions(folder.workspace.join("sub/b.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    pub fn at(root: PathBuf) -> Folder {
        Folder { workspace: root.join("workspace"), root, _temporary: None }
    }

    pub fn open(&self, watch: &mut dyn Watch) -> Result<Workspace, Error> {
        Workspace::open(&self.workspace, &Store::open(&self.root.join("store"))?, "run-1", watch)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.workspace.join(name), text).unwrap();
    }

    pub fn changeset(&self) -> Changeset {
        let digest = |text: &str| Digest::of_bytes(text.as_bytes());
        let changes = vec![
            Change::modify(path("a.txt"), digest("one\ntwo\n"), "one\n2\n"),
            Change::create(path("new/deep/c.txt"), "c\n"),
            Change::delete(path("gone.txt"), Some(digest("old\n"))),
            Change::modify(path("sub/b.sh"), digest("echo b\n"), "echo c\n"),
            Change::create(path("top.txt"), vec![0xff, 0x00]),
        ];
        Changeset::new("does everything", changes).unwrap()
    }

    /// Returns the expected workspace after the changeset is applied.
    pub fn after(&self) -> BTreeMap<String, String> {
        let file = |mode: u32, text: &str| format!("{mode:o} {text:?}");
        let text = |t: &str| file(0o644, t);
        BTreeMap::from([
            ("a.txt".into(), text("one\n2\n")),
            ("new/".into(), String::new()),
            ("new/deep/".into(), String::new()),
            ("new/deep/c.txt".into(), text("c\n")),
            ("sub/".into(), String::new()),
            ("sub/b.sh".into(), file(0o755, "echo c\n")),
            ("other.txt".into(), text("stays\n")),
            ("top.txt".into(), text("\u{fffd}\0")),
        ])
    }
}

pub fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// Lists every path below a folder, with permissions and content.
pub fn image(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    add(folder, "", &mut all);
    all
}

fn add(folder: &Path, at: &str, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{at}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            add(&entry.path(), &format!("{name}/"), all);
            all.insert(format!("{name}/"), String::new());
        } else if kind.is_symlink() {
            all.insert(name, format!("-> {}", fs::read_link(entry.path()).unwrap().display()));
        } else if kind.is_file() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            all.insert(name, format!("{mode:o} {:?}", String::from_utf8_lossy(&fs::read(entry.path()).unwrap())));
        } else {
            all.insert(name, "special".into());
        }
    }
}
