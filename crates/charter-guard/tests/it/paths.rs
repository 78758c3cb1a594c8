//! Hostile paths.

use std::fs;
use std::os::unix::fs::symlink;

use charter_guard::Description;
use proptest::prelude::*;
use serde_json::json;

use crate::folder::Folder;

fn write(folder: &Folder, path: &str) -> Description {
    folder.call("Write", json!({"file_path": path, "content": "x"}))
}

#[test]
fn a_path_inside_is_inside_however_it_is_spelled() {
    let folder = Folder::new();
    let root = folder.root();
    let absolute = root.join("src/new.rs").to_string_lossy().into_owned();
    for path in ["src/new.rs", "./src/new.rs", "src//new.rs", "made/../src/new.rs", absolute.as_str()] {
        let said = write(&folder, path);
        assert!(said.does.write && !said.does.write_outside && !said.does.opaque, "{path}: {:?}", said.paths);
        assert_eq!(said.paths[0].relative.as_deref(), Some("src/new.rs"), "{path}");
    }
}

#[test]
fn a_path_that_leaves_the_workspace_is_outside() {
    let folder = Folder::new();
    let root = folder.root();
    symlink("../outside", root.join("link")).unwrap();
    symlink(folder.base.join("outside/new"), root.join("dangling")).unwrap();
    symlink("link", root.join("chain")).unwrap();
    let sibling = format!("{}2/x", root.display());
    for path in [
        "../outside/x",
        "/etc/passwd",
        "src/../../outside/x",
        "link/x",
        "dangling",
        "chain/x",
        "~/x",
        "~",
        "/",
        "..",
        sibling.as_str(),
    ] {
        let said = write(&folder, path);
        assert!(said.does.write_outside, "{path}: {:?}", said.paths);
    }
}

#[test]
fn what_cannot_be_resolved_is_opaque() {
    let folder = Folder::new();
    let root = folder.root();
    symlink("loop2", root.join("loop1")).unwrap();
    symlink("loop1", root.join("loop2")).unwrap();
    fs::create_dir(folder.base.join("outside/deep")).unwrap();
    symlink("../outside/deep", root.join("up")).unwrap();
    symlink("/proc/self", root.join("me")).unwrap();
    let long = "a/".repeat(5_000);
    let wide = "a".repeat(2_000);
    for path in [
        "loop1/x",
        "",
        "a\0b",
        "a\rb",
        "~root/x",
        "/proc/self/cwd/x",
        "/proc/self/root/etc/passwd",
        "/proc/1/root/x",
        "/dev/fd/3",
        "up/../x",
        "me/cwd/x",
        "file:///etc/passwd",
        "https://example.org/x",
        long.as_str(),
        wide.as_str(),
    ] {
        let said = write(&folder, path);
        assert!(said.does.opaque && said.does.write_outside, "{path:?}: {:?}", said.paths);
    }
}

#[test]
fn the_control_of_agents_is_recognized_in_any_spelling() {
    let folder = Folder::new();
    let root = folder.root();
    symlink(".claude", root.join("innocent")).unwrap();
    symlink("../state/charter.db", root.join("notes.db")).unwrap();
    fs::hard_link(folder.base.join("state/charter.db"), root.join("hard.db")).unwrap();
    for path in [
        ".claude/settings.json",
        ".claude",
        ".Claude/Settings.json",
        ".CLAUDE/x",
        ".claude./x",
        ".claude /x",
        ".claude::$DATA",
        ".cl\u{200b}aude/x",
        "CLAUDE~1/settings.json",
        "src/../.claude/settings.json",
        "innocent/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".github/hooks/x.json",
        ".github/copilot/settings.json",
        ".cursor/hooks.json",
        ".opencode/plugin/x.js",
        ".agents/plugins/x",
        ".mcp.json",
        "sub/.claude/settings.local.json",
        "~/.claude.json",
        "~/.config/opencode/x",
        "/etc/claude-code/managed-settings.json",
        "../state/charter.db",
        "../state/charter.db-wal",
        "../state/charter.db-files/x",
        "notes.db",
        "hard.db",
        ".git/hooks/pre-commit",
        ".git/config",
    ] {
        let said = write(&folder, path);
        assert!(said.does.guard, "{path}: {:?}", said.paths);
    }
    for path in ["claude.md", "src/claude.rs", "CLAUDE.md", "github/hooks.md", "charter.db.md"] {
        assert!(!write(&folder, path).does.guard, "{path}");
    }
    // To read configuration is not to change it; the journal and keys are nobody's to read.
    let read = folder.call("Read", json!({"file_path": ".claude/settings.json"}));
    assert!(!read.does.guard && !read.does.secret);
    assert!(folder.call("Read", json!({"file_path": "../state/charter.db"})).does.secret);
}

#[test]
fn a_link_made_after_the_workspace_was_read_is_followed() {
    let folder = Folder::new();
    assert!(!write(&folder, "src/sub/x").does.write_outside);
    symlink(folder.base.join("outside"), folder.root().join("src/sub")).unwrap();
    assert!(write(&folder, "src/sub/x").does.write_outside);
}

#[test]
fn deleting_a_link_deletes_the_link() {
    let folder = Folder::new();
    let root = folder.root();
    symlink("../src", root.join("made/.cursor")).unwrap();
    assert!(folder.bash("rm made/.cursor").does.guard, "the link is the configuration");
    assert!(folder.bash("rm -r made").does.guard, "and so is what is in a folder");
    assert!(folder.bash("rm -rf .").does.guard);
    assert!(folder.bash("rm -rf ..").does.guard);
    assert!(folder.bash("mv .git elsewhere").does.guard);
}

#[test]
fn protected_and_secret_files_are_recognized() {
    let folder = Folder::new();
    for path in ["made/gen/api.md", "made/gen/new", "MADE/GEN/x", ".git/HEAD", "made/gen"] {
        assert!(write(&folder, path).does.protected, "{path}");
    }
    assert!(!write(&folder, "made/generated.md").does.protected);
    for path in [
        ".env",
        ".env.local",
        ".ENV",
        "sub/.env",
        "key.pem",
        "x.vault",
        "~/.ssh/id_rsa",
        "~/.aws/credentials",
        "/etc/shadow",
        "~/.netrc",
    ] {
        assert!(folder.call("Read", json!({"file_path": path})).does.secret, "{path}");
    }
    for path in [".env.example", "src/main.rs", "environment.rs", "src/env.rs"] {
        assert!(!folder.call("Read", json!({"file_path": path})).does.secret, "{path}");
    }
    assert!(folder.call("Grep", json!({"pattern": "KEY"})).does.secret, "a search in everything reads `.env`");
    fs::write(folder.root().join(".gitignore"), ".env\n").unwrap();
    assert!(!folder.call("Grep", json!({"pattern": "KEY"})).does.secret, "such a search leaves ignored files out");
    assert!(folder.bash("grep -r KEY .").does.secret, "this one does not");
}

#[test]
fn a_folder_with_too_many_files_is_not_looked_through() {
    let folder = Folder::new();
    let big = folder.root().join("big");
    fs::create_dir(&big).unwrap();
    for i in 0..10_050 {
        fs::write(big.join(i.to_string()), "").unwrap();
    }
    let said = folder.bash("grep -r x big");
    assert!(said.does.opaque, "{:?}", said.reasons);
    assert!(said.reasons[0].contains("too many files"), "{:?}", said.reasons);
}

#[test]
fn relative_paths_start_from_the_folder_of_the_call() {
    let folder = Folder::new();
    let outside = folder.base.join("outside");
    assert!(folder.call_in(&outside, "Write", json!({"file_path": "x"})).does.write_outside);
    assert!(!folder.call_in(&outside, "Write", json!({"file_path": "../work/x"})).does.write_outside);
    assert!(folder.call_in("relative".as_ref(), "Write", json!({"file_path": "x"})).does.opaque);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var("CHARTER_TESTS").is_ok_and(|v| v == "full") { 5_000 } else { 200 }))]

    /// The kernel and the guard agree on where a path leads.
    #[test]
    fn a_resolved_path_is_what_the_kernel_opens(
        parts in prop::collection::vec(prop::sample::select(vec!["..", ".", "src", "link", "up", "made", "gen", "new"]), 1..8)
    ) {
        let folder = Folder::new();
        let root = folder.root();
        symlink("../outside", root.join("link")).unwrap();
        symlink("made/gen", root.join("up")).unwrap();
        let path = parts.join("/");
        let said = folder.call("Read", json!({"file_path": path}));
        if let Ok(real) = root.join(&path).canonicalize() && !said.does.opaque {
            prop_assert_eq!(said.paths[0].resolved.as_deref(), real.to_str());
            prop_assert_eq!(said.does.read_outside, !real.starts_with(&root));
        }
    }
}
