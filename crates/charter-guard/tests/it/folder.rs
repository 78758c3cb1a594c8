//! A workspace for tests.

use std::fs;
use std::path::{Path, PathBuf};

use charter_guard::{Description, ToolCall, Workspace, describe};
use serde_json::{Value, json};

/// A folder with a workspace `work`, a home `home`, a journal in `state`, and something outside.
pub struct Folder {
    _temporary: tempfile::TempDir,
    pub base: PathBuf,
    pub workspace: Workspace,
}

impl Folder {
    pub fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path().canonicalize().unwrap();
        for folder in ["work/src", "work/made/gen", "work/.git/hooks", "work/.claude", "home/.ssh", "state", "outside"]
        {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        for file in [
            "work/src/main.rs",
            "work/a.txt",
            "work/.env",
            "work/made/gen/api.md",
            "work/.claude/settings.json",
            "work/.git/config",
            "home/.ssh/id_rsa",
            "state/charter.db",
            "state/charter.db-wal",
            "outside/victim",
        ] {
            fs::write(base.join(file), "x\n").unwrap();
        }
        let input = json!({
            "workspace": base.join("work"), "test": "cargo test --all", "commands": ["cargo build", "npm run lint"],
            "protected": ["made/gen/"], "secrets": ["*.vault"],
        });
        let workspace = Workspace::from_input(&input)
            .unwrap()
            .with_home(&base.join("home"))
            .with_guarded([base.join("state/charter.db")]);
        Self { _temporary: temporary, base, workspace }
    }

    pub fn root(&self) -> PathBuf {
        self.base.join("work")
    }

    pub fn call(&self, tool: &str, input: Value) -> Description {
        self.call_in(&self.root(), tool, input)
    }

    pub fn call_in(&self, cwd: &Path, tool: &str, input: Value) -> Description {
        let call = ToolCall {
            tool: tool.into(),
            input,
            cwd: cwd.into(),
            client: "claude".into(),
            session: "s1".into(),
            call: "c1".into(),
        };
        describe(&call, &self.workspace)
    }

    pub fn bash(&self, command: &str) -> Description {
        self.call("Bash", json!({"command": command}))
    }
}
