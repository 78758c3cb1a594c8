//! How long `charter hook` takes, from the start of the process to its end, as a client sees it:
//! with a server that has the journal open, and without.
//!
//!     cargo bench -p charter-cli --bench hook
//!
//! Goals: 15 ms with a server, 60 ms without.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

const CHARTER: &str = "
charter: 1
id: guarded
roles: {agent: {}}
events: {tool.call: {by: agent}}
initial: look
states: {look: {on: {tool.call: {when: '!event.does.write'}}}}
";
const CALLS: usize = 200;

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
    command.current_dir(folder).env_remove("CHARTER_DB").env_remove("CHARTER_SERVER").env_remove("XDG_RUNTIME_DIR");
    command
}

fn call(folder: &Path, id: &str, tool: &str) -> Duration {
    let input = json!({"file_path": folder.join("a.yaml"), "content": "x"});
    let request = json!({
        "session_id": "s", "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input,
        "tool_use_id": id,
    });
    let began = Instant::now();
    let mut command = program(folder);
    command.args(["hook", "r", "--client", "claude"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    began.elapsed()
}

fn measure(folder: &Path, what: &str) {
    for (kind, tool) in [("legal", "Read"), ("refused", "Write")] {
        let mut times: Vec<_> = (0..CALLS).map(|n| call(folder, &format!("{what}-{kind}-{n}"), tool)).collect();
        times.sort();
        let at = |part: usize| times[times.len() * part / 100];
        println!("{what:<15} {kind:<8} p50 {:>8.2?}  p95 {:>8.2?}", at(50), at(95));
    }
}

fn main() {
    let folder = std::env::temp_dir().join(format!("charter-bench-hook-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    std::fs::write(folder.join("a.yaml"), CHARTER).unwrap();
    let input = json!({"workspace": folder}).to_string();
    let mut start = program(&folder);
    let started = start.args(["run", "a.yaml", "--run", "r", "--input", &input]).output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    measure(&folder, "without server");
    let mut serve = program(&folder);
    serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = serve.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    measure(&folder, "with server");
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
