//! Hosts: each test is run by those of `main.rs` in a process of its own, with a script.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use charter_process::{Tree, adopt_orphans, kill_all, run_guard, start_apart, use_guard};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn start(script: &str) -> (Tree, Child) {
    let mut command = shell(script);
    let tree = Tree::new();
    tree.prepare(&mut command);
    let child = tree.start(|| command.spawn(), |child| Some(child.id())).unwrap();
    (tree, child)
}

fn start_given() -> (Tree, Child) {
    start(&std::env::var("SCRIPT").unwrap())
}

fn wait_for(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < Duration::from_secs(10), "waited too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_pids() {
    wait_for(|| std::fs::read_to_string("pids").is_ok_and(|pids| pids.ends_with('\n')));
    // The processes take their last step: a trap, a stop, a fork.
    std::thread::sleep(Duration::from_millis(150));
}

/// The children of this process, also those that have ended.
fn children() -> Vec<i32> {
    let of = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    let lists: Vec<String> = std::fs::read_dir("/proc/self/task").unwrap().map(of).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
}

fn ended(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

#[test]
#[ignore = "a host for the other tests"]
fn ends_normally() {
    adopt_orphans();
    let (tree, mut child) = start_given();
    assert!(child.wait().unwrap().success());
    drop(tree);
    assert_eq!(children(), []);
}

#[test]
#[ignore = "a host for the other tests"]
fn kills() {
    adopt_orphans();
    let (tree, mut child) = start_given();
    wait_for_pids();
    tree.kill();
    assert!(ended(&mut child));
    drop(tree);
    assert_eq!(children(), []);
}

#[test]
#[ignore = "a host for the other tests"]
fn exits() {
    adopt_orphans();
    let (tree, mut child) = start_given();
    wait_for_pids();
    kill_all();
    assert!(ended(&mut child));
    assert_eq!(children(), []);
    std::mem::forget(tree);
}

#[test]
#[ignore = "a host for the other tests"]
fn kills_without_adopting() {
    let (tree, mut child) = start_given();
    wait_for_pids();
    tree.kill();
    assert!(ended(&mut child));
    assert_eq!(children(), []);
}

#[test]
#[ignore = "a host for the other tests"]
fn keeps_others() {
    adopt_orphans();
    let mut apart = start_apart(&mut shell("exec sleep 60")).unwrap();
    let (_first, mut one) = start("exec sleep 60");
    // An orphan of this tree has its mark, or its control group.
    let _ = std::fs::remove_file("orphan");
    let (second, mut two) = start("(setsid sh -c 'echo $$ > orphan; exec sleep 60' &); exec sleep 60");
    let (third, mut three) = start("exec sleep 60");
    wait_for(|| std::fs::read_to_string("orphan").is_ok_and(|pid| pid.ends_with('\n')));
    let orphan: i32 = std::fs::read_to_string("orphan").unwrap().trim().parse().unwrap();
    wait_for(|| children().contains(&orphan));
    drop(third);
    assert!(ended(&mut three));
    assert!(children().contains(&orphan) && !ended(&mut two));
    drop(second);
    assert!(ended(&mut two) && !children().contains(&orphan));
    assert!(!ended(&mut apart) && !ended(&mut one));
    kill_all();
    assert!(ended(&mut one) && !ended(&mut apart));
    apart.kill().unwrap();
    apart.wait().unwrap();
    assert_eq!(children(), []);
}

#[test]
#[ignore = "a host for the other tests"]
fn reaps() {
    adopt_orphans();
    let (tree, mut child) = start_given();
    let command = i32::try_from(child.id()).unwrap();
    wait_for(|| children().len() > 1);
    wait_for(|| children() == [command]);
    tree.kill();
    assert!(ended(&mut child));
}

fn dies() -> ! {
    let _tree = start_given();
    wait_for_pids();
    let _ = Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status();
    panic!("it was not killed");
}

#[test]
#[ignore = "a host for the other tests"]
fn is_killed_with_a_guard() {
    let mut guard = Command::new(std::env::current_exe().unwrap());
    guard.args(["--ignored", "--exact", "host::guards"]);
    use_guard(guard);
    dies();
}

#[test]
#[ignore = "the guard of a host"]
fn guards() {
    run_guard();
}

#[test]
#[ignore = "a host for the other tests"]
fn is_killed() {
    dies();
}

#[test]
#[ignore = "a host for the other tests"]
fn comes_later() {
    let (_tree, mut child) = start("true");
    assert!(child.wait().unwrap().success());
}
