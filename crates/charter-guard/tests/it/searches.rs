//! Searches that read more than it seems.

use std::fs;

use serde_json::json;

use crate::folder::Folder;
use crate::spellings::assert_all;

#[test]
fn grep_in_a_folder_reads_what_is_below_it() {
    // In the shell of Claude Code, `grep` searches a folder without `-r`.
    let folder = Folder::new();
    let reads = [
        "grep TOKEN .",
        "grep -n TOKEN ./",
        "egrep TOKEN .",
        "fgrep TOKEN .",
        "grep TOKEN src ..",
        "grep -e TOKEN .",
        "grep TOKEN",
        "grep TOKEN > /dev/null",
        "cat a.txt; grep TOKEN",
        "command grep TOKEN .",
        "/usr/bin/grep TOKEN .",
    ];
    assert_all(&folder, &reads, |does| does.secret && does.read);
    let harmless = [
        "grep TOKEN a.txt",
        "grep TOKEN src",
        "cat a.txt | grep TOKEN",
        "git log | grep x | grep y",
        "cat a.txt | (grep x; true)",
        "cat a.txt | { grep x && true; }",
        "cat a.txt | while read -r l; do grep x; done",
        "grep TOKEN < a.txt",
        "grep TOKEN <<< x",
        "grep TOKEN <<EOF\nx\nEOF",
        "{ grep x; } < a.txt",
    ];
    assert_all(&folder, &harmless, |does| !does.secret);
}

#[test]
fn a_pattern_for_files_brings_back_what_is_ignored() {
    let folder = Folder::new();
    fs::write(folder.root().join(".gitignore"), ".env\nkeys\n").unwrap();
    fs::create_dir(folder.root().join("keys")).unwrap();
    fs::write(folder.root().join("keys/a.pem"), "x").unwrap();
    for (tool, input) in [
        ("Grep", json!({"pattern": ".", "glob": ".env", "output_mode": "content"})),
        ("Grep", json!({"pattern": ".", "glob": "**/.e*"})),
        ("Grep", json!({"pattern": ".", "glob": "*"})),
        ("Grep", json!({"pattern": ".", "glob": "*.env"})),
        ("Grep", json!({"pattern": ".", "glob": "*.{rs,pem}"})),
        ("Grep", json!({"pattern": ".", "glob": "*.PEM"})),
        ("Grep", json!({"pattern": ".", "glob": "*.md", "path": ".env"})),
        ("Grep", json!({"pattern": ".", "glob": "[.]env"})),
        ("Grep", json!({"pattern": ".", "glob": "!*.rs"})),
        ("Grep", json!({"pattern": ".", "glob": "*.rs .env"})),
        ("Grep", json!({"pattern": ".", "glob": "*.rs,.env"})),
        ("Grep", json!({"pattern": ".", "glob": ["*.rs", ".env"]})),
        ("Grep", json!({"pattern": ".", "globs": "*"})),
        ("Grep", json!({"pattern": ".", "hidden": true, "noIgnore": true})),
        ("Grep", json!({"pattern": ".", "args": ["--no-ignore"]})),
        ("Grep", json!({"pattern": ".", "glob": "*.pem", "path": "keys"})),
        ("search_file_content", json!({"pattern": ".", "include": ".env"})),
        ("grep_search", json!({"pattern": ".", "include": ".env", "no_ignore": true})),
        ("grep_search", json!({"pattern": ".", "include_pattern": ".env"})),
        ("grep_search", json!({"pattern": ".", "no_ignore": true})),
        ("grep", json!({"pattern": ".", "glob": ".env"})),
        ("grep", json!({"pattern": ".", "include": ".env"})),
        ("codebase_search", json!({"query": ".", "target_directories": ["keys"]})),
        ("Bash", json!({"command": "rg -g .env ."})),
        ("Bash", json!({"command": "rg --glob '*.pem' x"})),
        ("Bash", json!({"command": "rg -g '*' x"})),
        ("Bash", json!({"command": "rg --iglob '*.PEM' x"})),
        ("Bash", json!({"command": "rg -g \"$X\" x"})),
        ("Bash", json!({"command": "rg -u x"})),
    ] {
        let said = folder.call(tool, input.clone());
        assert!(said.does.secret || said.does.opaque, "{tool} {input}: {said:?}");
    }
    for (tool, input) in [
        ("Grep", json!({"pattern": "."})),
        ("Grep", json!({"pattern": ".", "glob": "*.rs"})),
        ("Grep", json!({"pattern": ".", "glob": "**/*.{rs,md}"})),
        ("Grep", json!({"pattern": ".", "glob": "src/**/*.rs", "-A": 3, "-i": true, "head_limit": 5})),
        ("Grep", json!({"pattern": ".", "glob": "*", "path": "src"})),
        ("Grep", json!({"pattern": ".", "type": "rust", "output_mode": "count", "multiline": true, "-n": true})),
        ("search_file_content", json!({"pattern": ".", "include": "*.ts"})),
        ("grep_search", json!({"pattern": ".", "include": "*.ts", "no_ignore": false})),
        ("Bash", json!({"command": "rg x"})),
        ("Bash", json!({"command": "rg -g '*.rs' x"})),
    ] {
        let said = folder.call(tool, input.clone());
        assert!(!said.does.secret && !said.does.opaque, "{tool} {input}: {said:?}");
    }
    // The narrowest scope is the file.
    let said = folder.call("Grep", json!({"pattern": ".", "glob": "*.pem"})).event_data();
    let file = folder.root().join("keys/a.pem");
    assert_eq!(said["asks"], json!([{"kind": "secret", "scope": file}]));
    // Outside of a repository, searches read no `.gitignore`.
    fs::remove_dir_all(folder.root().join(".git")).unwrap();
    for (tool, input) in [("Grep", json!({"pattern": "."})), ("Bash", json!({"command": "rg x"}))] {
        assert!(folder.call(tool, input).does.secret, "{tool}");
    }
}
