//! What a confined command can reach: attacks, each tried by a child of this test that is not
//! confined, too, where it succeeds.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use charter_process::Confinement;

/// How many attacks there are.
const ATTACKS: usize = 14;

/// The attacks, by what they try.
fn attacks(root: &Path) -> Vec<(&'static str, bool)> {
    let near = root.join("near");
    let changed = fs::OpenOptions::new().append(true).open(near.join("file")).is_ok();
    let parent = rustix::process::getppid().unwrap().as_raw_nonzero();
    vec![
        ("connect to a local socket", UnixStream::connect(root.join("socket")).is_ok()),
        ("send without a connection", UnixDatagram::unbound().is_ok()),
        ("send by a pair", UnixDatagram::pair().is_ok()),
        ("listen", std::net::TcpListener::bind("127.0.0.1:0").is_ok()),
        ("read a hidden file", fs::read(root.join("hidden/secret")).is_ok()),
        ("read it by a link", fs::read(near.join("link")).is_ok()),
        ("list a hidden folder", fs::read_dir(root.join("hidden")).is_ok()),
        ("change a file", changed),
        ("cut a file off", fs::File::options().write(true).truncate(true).open(near.join("other")).is_ok()),
        ("make a file", fs::write(near.join("new"), "").is_ok()),
        ("remove a file", fs::remove_file(near.join("gone")).is_ok()),
        ("move a file away", fs::rename(near.join("moved"), root.join("copy/moved")).is_ok()),
        (
            "read the environment of the parent",
            fs::read(format!("/proc/{parent}/environ")).is_ok_and(|read| !read.is_empty()),
        ),
        ("read the memory of the parent", fs::File::open(format!("/proc/{parent}/mem")).is_ok()),
    ]
}

/// Is run by the tests below in a process of its own.
#[test]
fn child() {
    let Some(root) = std::env::var_os("CONFINED").map(PathBuf::from) else {
        return;
    };
    for (name, reached) in attacks(&root) {
        println!("{} {name}", if reached { "YES" } else { "NO" });
    }
    // What a command needs works all the same.
    fs::write(root.join("copy/made"), fs::read(root.join("near/file")).unwrap()).unwrap();
    fs::create_dir_all(root.join("copy/a/b")).unwrap();
    writeln!(fs::File::options().write(true).open("/dev/null").unwrap(), "x").unwrap();
    UnixStream::pair().unwrap();
    assert!(Command::new("/bin/sh").args(["-c", "exit 0"]).status().unwrap().success());
    println!("DONE");
}

/// A folder with a socket, a hidden folder, one that can be read, and one that may be changed.
fn folder() -> (tempfile::TempDir, UnixListener) {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    for name in ["hidden", "near", "copy"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    for name in ["hidden/secret", "near/file", "near/other", "near/gone", "near/moved"] {
        fs::write(root.join(name), "text").unwrap();
    }
    std::os::unix::fs::symlink("../hidden/secret", root.join("near/link")).unwrap();
    let listener = UnixListener::bind(root.join("socket")).unwrap();
    (temporary, listener)
}

fn run(root: &Path, confined: bool) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "confine::child", "--nocapture", "--test-threads=1"]);
    command.env("CONFINED", root).stdout(Stdio::piped()).stderr(Stdio::piped());
    let confinement =
        Confinement { hidden: vec![root.join("hidden")], read: vec![program()], write: vec![root.join("copy")] };
    let child = if confined { confinement.spawn(&mut command) } else { command.spawn() };
    let output = child.unwrap().wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("DONE"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The folder of this program, which may be in a home.
fn program() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

#[test]
fn a_confined_command_reaches_nobody_and_changes_nothing() {
    let (temporary, listener) = folder();
    if let Err(error) = Confinement::check() {
        eprintln!("{error}");
        return;
    }
    let confined = run(temporary.path(), true);
    assert!(!confined.contains("YES"), "{confined}");
    assert_eq!(confined.matches("NO ").count(), ATTACKS, "{confined}");
    let free = run(temporary.path(), false);
    // Each attack is one: without the confinement it succeeds.
    assert_eq!(free.matches("YES").count(), ATTACKS, "{free}");
    drop(listener);
}

/// Nothing of the confinement stays with the process that starts the command.
#[test]
fn the_process_that_starts_it_is_not_confined() {
    let (temporary, _listener) = folder();
    if Confinement::check().is_err() {
        return;
    }
    let nothing = Confinement::default().spawn(Command::new("/bin/sh").args(["-c", "exit 0"]));
    assert!(nothing.unwrap().wait().unwrap().success());
    UnixStream::connect(temporary.path().join("socket")).unwrap();
    fs::write(temporary.path().join("hidden/secret"), "changed").unwrap();
}
