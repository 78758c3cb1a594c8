//! The tools of the clients, and the data of the event.

use charter_guard::{Act, MAX_INPUT_BYTES, Workspace, WorkspaceError, tree_digest};
use serde_json::json;

use crate::folder::Folder;

#[test]
fn each_client_has_a_shell_and_files() {
    let folder = Folder::new();
    for tool in ["Bash", "bash", "shell", "run_shell_command", "developer__shell", "run_terminal_cmd"] {
        let said = folder.call(tool, json!({"command": "git push"}));
        assert!(said.act == Act::Command && said.does.push, "{tool}");
    }
    let listed = folder.call("shell", json!({"command": ["bash", "-lc", "git push"]}));
    assert!(listed.does.push && !listed.does.opaque, "{:?}", listed.reasons);
    let elsewhere = folder.call("exec_command", json!({"cmd": "rm x", "workdir": "../outside"}));
    assert!(elsewhere.does.delete_outside);
    for (tool, input) in [
        ("Write", json!({"file_path": "x"})),
        ("Edit", json!({"file_path": "x"})),
        ("MultiEdit", json!({"file_path": "x", "edits": []})),
        ("NotebookEdit", json!({"notebook_path": "x"})),
        ("write_file", json!({"file_path": "x"})),
        ("replace", json!({"file_path": "x"})),
        ("create", json!({"path": "x"})),
        ("edit", json!({"filePath": "x"})),
        ("developer__text_editor", json!({"command": "write", "path": "x"})),
        ("edit_file", json!({"target_file": "x"})),
    ] {
        let said = folder.call(tool, input);
        assert!(said.does.write && !said.does.opaque && said.paths[0].relative.as_deref() == Some("x"), "{tool}");
    }
    for (tool, input) in [
        ("Read", json!({"file_path": "a.txt"})),
        ("read_file", json!({"absolute_path": "a.txt"})),
        ("view", json!({"path": "a.txt"})),
        ("str_replace_editor", json!({"command": "view", "path": "a.txt"})),
    ] {
        let said = folder.call(tool, input);
        assert!(said.does.read && !said.does.write && !said.does.opaque, "{tool}");
    }
    assert!(folder.call("Glob", json!({"pattern": "**/*.rs"})).does.search);
    assert!(folder.call("Glob", json!({"pattern": "/etc/*"})).does.read_outside);
    assert!(folder.call("Glob", json!({"pattern": "*/../../outside/*"})).does.opaque);
    assert!(folder.call("delete_file", json!({"target_file": "a.txt"})).does.delete);
    assert_eq!(folder.call("WebFetch", json!({"url": "https://Docs.rs/x"})).hosts, ["docs.rs"]);
    assert_eq!(folder.call("WebSearch", json!({"query": "x"})).hosts, ["*"]);
    assert!(folder.call("TodoWrite", json!({})).does.ask);
    for own in ["mcp__charter__send", "mcp_charter_why_not", "charter-permit_ask", "charter_tests_run", "MCP:send"] {
        assert!(folder.call(own, json!({"type": "plan.propose"})).does.ask, "{own}");
    }
    // Another server can have any name.
    for other in ["mcp__charter__deploy", "charter_", "charter-rm", "MCP:deploy", "MCP:permit_ask"] {
        let said = folder.call(other, json!({}));
        assert!(said.does.other && !said.does.ask, "{other}");
    }
}

#[test]
fn the_charter_of_the_next_session_belongs_to_the_guard() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.root().join("charters/coder")).unwrap();
    std::fs::write(folder.root().join("charters/coder/charter.yaml"), "id: coder").unwrap();
    let file = "charters/coder/charter.yaml";
    for (tool, input) in [
        ("Write", json!({"file_path": file})),
        ("Edit", json!({"file_path": "./charters/../charters/Coder/charter.yaml"})),
        ("delete_file", json!({"target_file": "charters/coder"})),
        ("move", json!({"source": "charters/coder", "destination": "old"})),
        ("move", json!({"source": "mine", "destination": "charters/coder"})),
        ("Bash", json!({"command": format!("echo x > {file}")})),
        ("Bash", json!({"command": format!("sed -i s/a/b/ {file}")})),
        ("Bash", json!({"command": "cd charters && rm -rf coder"})),
        ("Bash", json!({"command": "rm -rf charters"})),
        ("Bash", json!({"command": "mv charters x"})),
        ("Bash", json!({"command": "cp -r mine/. charters/coder"})),
        ("apply_patch", json!({"input": format!("*** Begin Patch\n*** Delete File: {file}\n*** End Patch")})),
    ] {
        let said = folder.call(tool, input.clone());
        assert!(said.does.guard, "{tool} {input}: {:?}", said.does);
    }
    for (tool, input) in [
        ("Read", json!({"file_path": file})),
        ("Write", json!({"file_path": "charters/other/charter.yaml"})),
        ("Write", json!({"file_path": "coder/charter.yaml"})),
        ("Write", json!({"file_path": "charters/coders.md"})),
    ] {
        assert!(!folder.call(tool, input.clone()).does.guard, "{tool} {input}");
    }
}

#[test]
fn files_and_commands_at_other_places_are_not_overlooked() {
    let folder = Folder::new();
    for (tool, input) in [
        ("list_directory", json!({"args": {"path": "/etc"}})),
        ("Glob", json!({"pattern": "*", "options": {"directory": "/etc"}})),
        ("Grep", json!({"pattern": "x", "args": [{"path": "/etc"}]})),
        ("Grep", json!({"pattern": "x", "folder": "/etc"})),
        ("Grep", json!({"pattern": "x", "root": "~/.ssh"})),
        ("Grep", json!({"pattern": "x", "uri": "file:///etc"})),
        ("Grep", json!({"pattern": "x", "base": "a/../.."})),
        ("Grep", json!("x")),
        ("move", json!({"args": {"from": "/etc/x", "to": "x"}})),
        ("Write", json!({"file_path": "x", "edits": [{"filePath": "/etc/passwd"}]})),
        ("MultiEdit", json!({"file_path": "x", "edits": [{"file_path": "../outside/y"}]})),
        ("Bash", json!({"command": "ls", "cmd": "git push"})),
        ("Bash", json!({"command": "ls", "workdir": "sub", "cwd": "/"})),
        ("Bash", json!({"command": "ls", "options": {"cwd": "/"}})),
        ("apply_patch", json!({"input": PATCH, "patch": "*** Begin Patch\n*** Delete File: b\n*** End Patch"})),
        ("apply_patch", json!({"input": PATCH, "args": {"patch": "x"}})),
    ] {
        let said = folder.call(tool, input.clone());
        assert!(said.does.opaque, "{tool} {input}: {:?}", said.does);
    }
    for (tool, input) in [
        ("Grep", json!({"pattern": "/api/../x", "output_mode": "content", "-n": true})),
        ("search_file_content", json!({"pattern": "x", "include": "*.rs"})),
        ("MultiEdit", json!({"file_path": "x", "edits": [{"old_string": "/etc", "new_string": "../y"}]})),
        ("Bash", json!({"command": "ls", "cmd": "ls", "description": "/etc"})),
        ("Bash", json!({"command": "ls", "cmd": null})),
        ("apply_patch", json!({"input": PATCH, "patch": PATCH})),
        ("apply_patch", json!(PATCH)),
    ] {
        let said = folder.call(tool, input.clone());
        assert!(!said.does.opaque && !said.does.read_outside, "{tool} {input}: {:?}", said.reasons);
    }
    let many = folder.call("read_many_files", json!({"include": ["*.txt", "/etc/passwd"]}));
    assert!(many.does.read_outside && !many.does.opaque, "{:?}", many.reasons);
    // One file where several may be, and patterns that leave the folder.
    assert!(folder.call("read_many_files", json!({"paths": "/etc/passwd"})).does.read_outside);
    assert!(folder.call("search_file_content", json!({"pattern": "x", "include": "/etc/*"})).does.read_outside);
    assert!(folder.call("search_file_content", json!({"pattern": "x", "include": ["a", "/etc/*"]})).does.read_outside);
}

const PATCH: &str = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";

#[test]
fn what_the_guard_does_not_know_is_said() {
    let folder = Folder::new();
    for tool in ["mcp__github__merge", "Teleport", "", "Bash2", "mcp__charters__x"] {
        assert!(folder.call(tool, json!({"command": "ls"})).does.other, "{tool}");
    }
    for (tool, input) in [
        ("Bash", json!({})),
        ("Bash", json!("ls")),
        ("Bash", json!({"command": 7})),
        ("Bash", json!({"command": ["ls", 1]})),
        ("Write", json!({"content": "x"})),
        ("Write", json!({"file_path": ["x"]})),
        ("powershell", json!({"command": "ls"})),
        ("write_stdin", json!({"chars": "rm -rf .\n"})),
        ("apply_patch", json!({"input": "nothing"})),
        ("apply_patch", json!({"input": "*** Begin Patch\n*** Rename File: a\n*** End Patch"})),
    ] {
        assert!(folder.call(tool, input.clone()).does.opaque, "{tool} {input}");
    }
}

#[test]
fn a_patch_names_its_files() {
    let folder = Folder::new();
    let text = "*** Begin Patch\n*** Add File: src/new.rs\n+x\n*** Update File: a.txt\n*** Move to: ../outside/a\n@@\n-x\n+y\n\
                *** Delete File: .claude/settings.json\n*** End Patch\n";
    let said = folder.call("apply_patch", json!({"input": text}));
    assert!(said.does.write && said.does.write_outside && said.does.delete && said.does.guard && !said.does.opaque);
    let here = format!("apply_patch <<'EOF'\n{text}EOF\n");
    let by_shell = folder.bash(&here);
    assert!(by_shell.does.write_outside && by_shell.does.guard && !by_shell.does.opaque, "{:?}", by_shell.reasons);
    let unified = "--- a/a.txt\n+++ b/.git/hooks/x\n@@ -1 +1 @@\n-x\n+y\n";
    assert!(folder.call("patch", json!({"patchText": unified})).does.guard);
}

#[test]
fn a_test_in_the_background_is_not_awaited() {
    let folder = Folder::new();
    assert!(folder.call("Bash", json!({"command": "cargo test --all"})).does.test);
    assert!(!folder.call("Bash", json!({"command": "cargo test --all", "run_in_background": true})).does.test);
    assert!(!folder.call("bash", json!({"command": "cargo test --all", "mode": "async"})).does.test);
    for (name, value) in [
        ("block_until_ms", json!(0)),
        ("block_until_ms", json!("0")),
        ("yield_time_ms", json!(0)),
        ("initial_wait", json!(0)),
        ("is_background", json!("true")),
        ("isBackground", json!(1)),
        ("async", json!(true)),
        ("detach", json!(true)),
        ("mode", json!(["async"])),
    ] {
        let said = folder.call("Shell", json!({"command": "cargo test --all", name: value}));
        assert!(!said.does.test, "{name}");
    }
    for (name, value) in [
        ("block_until_ms", json!(30_000)),
        ("run_in_background", json!(false)),
        ("mode", json!("sync")),
        ("timeout", json!(1000)),
        ("description", json!("Test it")),
        ("shell", json!("/bin/bash")),
        ("login", json!(true)),
        ("env", json!({})),
        ("env", json!(null)),
    ] {
        let said = folder.call("Shell", json!({"command": "cargo test --all", name: value}));
        assert!(said.does.test && !said.does.opaque, "{name}: {:?}", said.reasons);
    }
}

#[test]
fn an_argument_that_may_change_what_runs_is_not_overlooked() {
    let folder = Folder::new();
    for (name, value) in [
        ("shell", json!("./evil")),
        ("shell", json!("/bin/true")),
        ("shell", json!("/bin/./bash")),
        ("shell", json!("python3")),
        ("shell", json!(["bash"])),
        ("env", json!({"PATH": "x"})),
        ("environment", json!(["PATH=x"])),
        ("stdin", json!("x")),
        ("args", json!(["x"])),
        ("interpreter", json!("x")),
        ("pre_command", json!("x")),
        ("run_as", json!(1)),
    ] {
        for (tool, key) in [("exec_command", "cmd"), ("Bash", "command")] {
            for line in ["ls", "cargo test --all"] {
                let said = folder.call(tool, json!({key: line, name: value}));
                assert!(said.does.opaque && !said.does.test, "{tool} {line} {name}");
            }
        }
    }
}

#[test]
fn the_event_has_an_upper_limit() {
    let folder = Folder::new();
    let big = folder.call("Write", json!({"file_path": "x", "content": "y".repeat(MAX_INPUT_BYTES)})).event_data();
    assert!(big["input"]["sha256"].is_string() && big["input"]["bytes"].as_u64().unwrap() > 16_000);
    assert_eq!(big["digest"], big["input"]["sha256"]);
    let small = folder.call("Write", json!({"file_path": "x", "content": "y"})).event_data();
    assert_eq!(small["input"]["content"], "y");
    assert_eq!((&small["does"]["write"], &small["act"]), (&json!(true), &json!("write")));
    let many = folder.bash(&format!("rm {}", (0..5_000).map(|i| format!("f{i} ")).collect::<String>()));
    assert!(many.does.opaque && many.does.delete && many.paths.len() <= 200);
    assert!(many.event_data().to_string().len() < 400_000);
    let loud = folder.bash(&"echo x; ".repeat(5_000));
    assert!(loud.does.opaque && loud.event_data().to_string().len() < 200_000);
}

#[test]
fn the_digest_of_the_files_changes_with_every_file() {
    let folder = Folder::new();
    let root = folder.root();
    let first = tree_digest(&root).unwrap();
    assert_eq!(tree_digest(&root).unwrap(), first);
    std::fs::write(root.join("src/main.rs"), "y\n").unwrap();
    let second = tree_digest(&root).unwrap();
    assert_ne!(first, second);
    std::fs::write(root.join(".gitignore"), "target/\n").unwrap();
    let third = tree_digest(&root).unwrap();
    std::fs::create_dir(root.join("target")).unwrap();
    std::fs::write(root.join("target/x"), "built").unwrap();
    std::fs::write(root.join(".git/index"), "staged").unwrap();
    assert_eq!(tree_digest(&root).unwrap(), third, "what is built and what is staged do not count");
    std::os::unix::fs::symlink("a.txt", root.join("b.txt")).unwrap();
    assert_ne!(tree_digest(&root).unwrap(), third);
    assert_eq!(folder.bash("git commit -am x").tree, tree_digest(&root));
}

#[test]
fn a_workspace_is_described_by_the_input_of_the_run() {
    assert_eq!(Workspace::from_input(&json!({})).unwrap_err(), WorkspaceError::NoRoot);
    assert_eq!(Workspace::from_input(&json!({"workspace": "relative"})).unwrap_err(), WorkspaceError::NoRoot);
    let gone = Workspace::from_input(&json!({"workspace": "/nowhere/at/all"})).unwrap_err();
    assert!(gone.to_string().starts_with("cannot resolve the workspace `/nowhere/at/all`"), "{gone}");
    let list = Workspace::from_input(&json!({"workspace": "/", "secrets": "x"})).unwrap_err();
    assert_eq!(list.to_string(), "`secrets` in the run's input is not a list of strings");
}

#[test]
fn a_call_names_the_narrowest_permits_that_cover_it() {
    let folder = Folder::new();
    let asks = |line: &str| folder.call("Bash", json!({"command": line})).event_data()["asks"].clone();
    let push = |scope: &str| json!([{"kind": "push", "scope": scope}]);
    assert_eq!(asks("git push origin main"), push("git push origin main"));
    assert_eq!(asks("git push --force origin a:main"), push("git push --force origin a:main"));
    assert_eq!(asks("git push origin a && git push origin b"), push("git push origin a; git push origin b"));
    assert_eq!(asks("git push 'origin' \"main; x\""), push("git push origin 'main; x'"));
    assert_eq!(asks("git push"), push("git push"));
    let unknown = asks("git push origin $BRANCH");
    assert_eq!(unknown[0], json!({"kind": "push", "scope": "*"}));
    assert_eq!(unknown[1]["kind"], "opaque");
    let long = asks(&format!("git push origin {}", "x".repeat(600)));
    assert!(long[0]["scope"].as_str().unwrap().starts_with("sha256:"), "{long}");
    let outside = folder.call("Write", json!({"file_path": "../outside/x"})).event_data();
    assert_eq!(outside["asks"][0]["scope"], outside["paths"][0]["resolved"]);
    let two = asks("rm ../outside/a/b ../outside/c");
    assert!(two[0]["kind"] == "delete" && two[0]["scope"].as_str().unwrap().ends_with("/outside"), "{two}");
    assert_eq!(asks("curl https://docs.rs/x"), json!([{"kind": "network", "scope": "docs.rs"}]));
    assert_eq!(asks("ls"), json!([]));
    let tool = folder.call("mcp__x__y", json!({}));
    assert_eq!(tool.event_data()["asks"], json!([{"kind": "tool", "scope": "mcp__x__y"}]));
}
