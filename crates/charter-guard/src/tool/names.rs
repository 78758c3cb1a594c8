//! The names that clients give their tools.

use crate::data::Act;

/// What a tool does with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Shell,
    /// A shell whose language is not read.
    ForeignShell,
    /// Text for a command that runs already.
    Input,
    Read,
    List,
    /// Finds names.
    Find,
    /// Finds text in files.
    Grep,
    Write,
    Delete,
    Move,
    /// One tool that views and edits, by its argument `command`.
    Editor,
    Patch,
    Network,
    Ask,
    Other,
}

impl Tool {
    pub(super) fn act(self) -> Act {
        match self {
            Self::Shell | Self::ForeignShell | Self::Input => Act::Command,
            Self::Read => Act::Read,
            Self::List | Self::Find | Self::Grep => Act::Search,
            Self::Write | Self::Editor | Self::Patch | Self::Move => Act::Write,
            Self::Delete => Act::Delete,
            Self::Network => Act::Network,
            Self::Ask => Act::Ask,
            Self::Other => Act::Other,
        }
    }
}

/// Names in lower case, of Claude Code, Codex, Gemini CLI, Copilot CLI, opencode, Cursor and goose.
const NAMES: &[(Tool, &[&str])] = &[
    (
        Tool::Shell,
        &[
            "bash",
            "shell",
            "local_shell",
            "exec_command",
            "shell_command",
            "container.exec",
            "run_shell_command",
            "run_terminal_cmd",
            "run_terminal_command",
            "execute_command",
            "developer__shell",
            "terminal",
            "exec",
            "shellexecution",
            "run_in_terminal",
        ],
    ),
    (Tool::ForeignShell, &["powershell", "pwsh", "cmd", "monitor", "repl"]),
    (Tool::Input, &["write_stdin", "write_bash", "write_powershell", "send_input"]),
    (Tool::Read, &["read", "read_file", "view", "view_image", "notebookread", "read_many_files", "open_file"]),
    (Tool::List, &["ls", "list", "list_dir", "list_directory", "list_files"]),
    (Tool::Find, &["glob", "find_files", "file_search", "glob_file_search"]),
    (Tool::Grep, &["grep", "rg", "grep_search", "search_file_content", "grep_files", "codebase_search", "search"]),
    (
        Tool::Write,
        &[
            "write",
            "write_file",
            "edit",
            "multiedit",
            "notebookedit",
            "replace",
            "create",
            "create_file",
            "edit_file",
            "str_replace",
            "insert",
            "edit_notebook",
            "search_replace",
            "write_to_file",
            "multi_edit",
        ],
    ),
    (Tool::Delete, &["delete", "delete_file"]),
    (Tool::Move, &["move", "move_file", "rename", "rename_file"]),
    (Tool::Editor, &["str_replace_editor", "str_replace_based_edit_tool", "text_editor", "developer__text_editor"]),
    (Tool::Patch, &["apply_patch", "patch"]),
    (Tool::Network, &["webfetch", "web_fetch", "fetch", "websearch", "web_search", "google_web_search"]),
    (
        Tool::Ask,
        &[
            "task",
            "agent",
            "todowrite",
            "todoread",
            "todo_write",
            "todo_read",
            "write_todos",
            "update_todo",
            "update_plan",
            "exitplanmode",
            "exit_plan_mode",
            "enterplanmode",
            "askuserquestion",
            "ask_user",
            "question",
            "report_intent",
            "bashoutput",
            "read_bash",
            "stop_bash",
            "list_bash",
            "killshell",
            "killbash",
            "taskoutput",
            "taskstop",
            "toolsearch",
        ],
    ),
];

/// How clients name the tools of the server `charter`.
const SERVER: &[&str] = &["mcp__charter__", "mcp_charter_", "charter__", "charter_", "charter-"];
/// The tools that the server always has.
const STATIC: &[&str] = &["send", "legal", "status", "why_not"];
/// Those for the events that an agent sends to the charter `coder`. For events of other charters
/// there is `send`.
const EVENTS: &[&str] = &["plan_propose", "permit_ask", "permit_withdraw", "tests_run"];

/// Whether a tool is one of the guard's own server: what it is told goes through the charter. Other
/// tools are not, whatever the name of their server.
fn is_own(name: &str) -> bool {
    let of_server = SERVER.iter().find_map(|prefix| name.strip_prefix(prefix));
    // Cursor does not name the server.
    of_server.is_some_and(|tool| STATIC.contains(&tool) || EVENTS.contains(&tool))
        || name.strip_prefix("mcp:").is_some_and(|tool| STATIC.contains(&tool))
}

/// Finds what a tool does by its name.
pub(super) fn find(name: &str) -> Tool {
    let name = name.to_ascii_lowercase();
    if is_own(&name) {
        return Tool::Ask;
    }
    NAMES.iter().find(|(_, names)| names.contains(&name.as_str())).map_or(Tool::Other, |(tool, _)| *tool)
}
