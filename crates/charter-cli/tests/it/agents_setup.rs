//! `charter hook install`, `uninstall`, `charter guard init` and `doctor`.

use std::fs;
use std::path::Path;
use std::process::Command;

use charter_guard::client::Client;
use serde_json::{Value as Json, json};

use crate::agents::site;
use crate::support::processes::{Site, said};

/// Runs a command with a home folder of its own.
fn at_home(site: &Site, args: &str) -> (i32, String, String) {
    let mut command = site.command(args);
    command.env("HOME", site.path("home"));
    said(command.output().unwrap())
}

fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(tree(&path)),
            false if path.file_name().unwrap().to_string_lossy().starts_with("charter.db") => {}
            false => found.push((path.display().to_string(), fs::read_to_string(&path).unwrap_or_default())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_hook_is_installed_shown_tested_and_removed() {
    let site = site("install");
    for client in Client::ALL {
        let before = tree(&site.path(""));
        let (code, out, err) = at_home(&site, &format!("hook install {client} --run r --dry-run"));
        assert!(code == 0 && out.contains("+++ ") && err.contains("nothing was changed"), "{client}: {out}{err}");
        assert_eq!(tree(&site.path("")), before);
        let (code, shown, _) = at_home(&site, &format!("hook install {client} --run r"));
        assert_eq!((code, &shown), (0, &out), "{client}");
        let (code, out, err) = at_home(&site, &format!("hook install {client} --run r"));
        assert!(code == 0 && out.is_empty() && err.contains("nothing to change"), "{client}: {out}{err}");
        let (code, out, err) = at_home(&site, &format!("guard doctor {client}"));
        assert_eq!(code, 0, "{client}: {out}{err}");
        assert!(out.contains("advisory") && out.contains("the hook refuses: refused"), "{client}: {out}");
        let (code, out, _) = at_home(&site, &format!("hook uninstall {client}"));
        assert!(code == 0 && out.contains("--- "), "{client}: {out}");
        assert_eq!(tree(&site.path("")), before, "{client}");
        let (code, _, err) = at_home(&site, &format!("guard doctor {client}"));
        assert!(code == 2 && err.contains("no hook of Charter"), "{err}");
    }
    // The calls of the doctor are not recorded: the charter does not say that agents may do that.
    assert_eq!(site.records("r").len(), 1);
}

#[test]
fn uninstall_takes_away_what_init_wrote_but_no_journal_and_no_server_of_others() {
    let site = site("uninstall");
    fs::create_dir_all(site.path(".git/info")).unwrap();
    let own = "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"other\"}\n  },\n  \"x\": 1\n}\n";
    fs::create_dir(site.path(".gemini")).unwrap();
    fs::write(site.path(".gemini/settings.json"), own).unwrap();
    at_home(&site, "guard init claude --host-tests");
    at_home(&site, "guard uninstall claude");
    // Journal, keys, charter and the lines for Git are there from now on.
    let before = tree(&site.path(""));
    assert!(before.iter().any(|(path, _)| path.ends_with("charters/coder/charter.yaml")));
    for client in Client::ALL {
        let (code, out, err) = at_home(&site, &format!("guard init {client}"));
        assert_eq!(code, 0, "{client}: {out}{err}");
        let installed = tree(&site.path(""));
        assert_ne!(installed, before, "{client}");
        let (code, shown, err) = at_home(&site, &format!("guard uninstall {client} --dry-run"));
        assert!(code == 0 && err.contains("nothing was changed"), "{client}: {shown}{err}");
        assert_eq!(tree(&site.path("")), installed, "{client}");
        let (code, out, err) = at_home(&site, &format!("guard uninstall {client}"));
        assert_eq!((code, &out), (0, &shown), "{client}: {err}");
        assert!(err.contains("charter.db`, with its runs and keys") && err.contains("charters/coder`"), "{err}");
        assert!(err.contains(".git/info/exclude`"), "{client}: {err}");
        assert_eq!(
            err.contains("MCP server `charter`"),
            ["codex", "copilot", "goose"].contains(&client.name()),
            "{err}"
        );
        assert_eq!(tree(&site.path("")), before, "{client}");
        let (code, _, err) = at_home(&site, &format!("guard uninstall {client}"));
        assert!(code == 0 && err.contains("nothing to change"), "{client}: {err}");
    }
    assert!(site.records("coder").len() == 1 && site.run("key list").contains("person"));
    // What the other levels have is said; the server of `guard init` is not that of `hook install`.
    at_home(&site, "hook install cursor --user");
    at_home(&site, "guard init cursor");
    let (_, _, err) = at_home(&site, "hook uninstall cursor");
    assert!(err.contains("`charter guard uninstall cursor` removes both"), "{err}");
    let (_, out, err) = at_home(&site, "guard uninstall cursor");
    assert!(out.contains("mcp.json") && err.contains("`charter hook uninstall cursor --user`"), "{out}{err}");
    // A server of somebody else with the same name.
    let own = "{\"mcpServers\": {\"charter\": {\"command\": \"mine\", \"args\": [\"mcp\"]}}}\n";
    fs::write(site.path(".mcp.json"), own).unwrap();
    at_home(&site, "guard uninstall claude");
    assert_eq!(fs::read_to_string(site.path(".mcp.json")).unwrap(), own);
}

#[test]
fn uninstall_in_a_folder_of_a_repository_names_the_lines_of_the_repository() {
    let site = site("uninstall-within");
    fs::create_dir_all(site.path(".git/info")).unwrap();
    fs::create_dir_all(site.path("part")).unwrap();
    let run = |args: &str| {
        let mut command = site.command(args);
        command.env("HOME", site.path("home")).env_remove("CHARTER_DB").current_dir(site.path("part"));
        said(command.output().unwrap())
    };
    let (code, out, err) = run("guard init claude");
    assert_eq!(code, 0, "{out}{err}");
    let exclude = fs::read_to_string(site.path(".git/info/exclude")).unwrap();
    assert_eq!(exclude, "/part/charter.db\n/part/charter.db-*\n");
    let (code, _, err) = run("guard uninstall claude");
    assert!(code == 0 && err.contains(".git/info/exclude` that keep the journal out of commits"), "{err}");
}

#[test]
fn init_says_what_to_add_to_a_file_with_comments_and_does_the_rest() {
    // Gemini CLI reads comments, and has hook and server in one file.
    let site = site("comments");
    let file = site.path(".gemini/settings.json");
    fs::create_dir(site.path(".gemini")).unwrap();
    fs::write(&file, "{ // mine\n}\n").unwrap();
    let (code, _, err) = at_home(&site, "guard init gemini");
    assert_eq!(code, 1, "{err}");
    assert!(site.path("charters/coder/charter.yaml").exists() && site.records("coder").len() == 1, "{err}");
    // Exactly what it says, beside the comment.
    let parts: Vec<String> = err
        .split("left to do: ")
        .skip(1)
        .map(|part| {
            assert!(part.starts_with(&format!("`{}`", file.canonicalize().unwrap().display())), "{part}");
            let (_, what) = part.split_once("Add this yourself:\n{").unwrap();
            what.split_once("\n}\n").unwrap().0.to_owned()
        })
        .collect();
    assert_eq!(parts.len(), 2, "{err}");
    fs::write(&file, format!("{{ // mine \"\n{} /* , */\n}}\n", parts.join(","))).unwrap();
    let before = tree(&site.path(""));
    let (code, out, err) = at_home(&site, "guard init gemini");
    assert!(code == 0 && err.contains("nothing to change"), "{out}{err}");
    let (code, out, err) = at_home(&site, "guard doctor gemini");
    assert!(code == 0 && out.contains("the hook refuses"), "{out}{err}");
    let (code, out, err) = at_home(&site, "hook uninstall gemini");
    assert!(code == 2 && err.contains("Remove each entry"), "{out}{err}");
    let (code, out, err) = at_home(&site, "guard uninstall gemini");
    assert!(code == 1 && err.contains("Remove each entry") && err.contains("Remove `charter` from"), "{out}{err}");
    assert_eq!(tree(&site.path("")), before);
}

#[test]
fn a_file_that_its_client_cannot_read_is_no_hook() {
    // Seen with the real ones: they skip such a file, and use the tool.
    for (client, file) in
        [("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json"), ("copilot", ".github/hooks/charter.json")]
    {
        let site = site(&format!("unread-{client}"));
        let path = site.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{ // mine\n}\n").unwrap();
        let (code, _, err) = at_home(&site, &format!("guard init {client}"));
        assert!(code == 1 && err.contains("left to do: ") && err.contains("make it plain JSON"), "{client}: {err}");
        assert!(site.records("coder").len() == 1, "the rest is done");
        // Even with the hook in it.
        fs::write(&path, "{}").unwrap();
        at_home(&site, &format!("hook install {client}"));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen('{', "{ // mine\n", 1)).unwrap();
        let (code, out, err) = at_home(&site, &format!("guard doctor {client}"));
        assert!(code == 1 && out.contains("broken") && out.contains("cannot read it"), "{client}: {out}{err}");
        let (code, out, err) = at_home(&site, &format!("hook install {client}"));
        assert!(code == 2 && err.contains("make it plain JSON"), "{client}: {out}{err}");
    }
}

#[test]
fn what_else_is_configured_stays() {
    let site = site("install-keeps");
    let file = site.path(".claude/settings.json");
    fs::create_dir(site.path(".claude")).unwrap();
    let own = "{\n    \"model\": \"opus\",\n    \"hooks\": {\"SessionStart\": [{\"hooks\": []}]}\n}\n";
    fs::write(&file, own).unwrap();
    site.run("hook install claude --run r --stop");
    let text = fs::read_to_string(&file).unwrap();
    let read: Json = serde_json::from_str(&text).unwrap();
    assert_eq!((&read["model"], read["hooks"]["Stop"].as_array().unwrap().len()), (&json!("opus"), 1));
    site.run("hook uninstall claude");
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
    fs::write(&file, "{ // mine\n}\n").unwrap();
    let (code, _, err) = site.any("hook install claude --run r");
    assert!(code == 2 && err.contains("make it plain JSON"), "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ // mine\n}\n");
    let (code, _, err) = site.any("hook install codex --managed");
    assert!(code == 2 && err.contains("only Claude Code has"), "{err}");
    let (code, _, err) = site.any("hook install codex --run claude");
    assert!(code == 2 && err.contains("name of a client"), "{err}");
}

#[test]
fn the_doctor_finds_hooks_that_do_not_hold() {
    let site = site("doctor");
    site.run("hook install claude --run r");
    let file = site.path(".claude/settings.json");
    let text = fs::read_to_string(&file).unwrap();
    let broken = |old: &str, new: &str| {
        assert!(text.contains(old), "{old}: {text}");
        fs::write(&file, text.replace(old, new)).unwrap();
        let (code, out, err) = at_home(&site, "guard doctor");
        assert_eq!(code, 1, "{out}{err}");
        out
    };
    assert!(broken(" hook r ", " hook nobody ").contains("blocks everything"));
    assert!(broken(env!("CARGO_BIN_EXE_charter"), "true").contains("lets calls through"));
    fs::write(&file, &text).unwrap();
    for off in ["{\"disableAllHooks\": true}", "{ // mine\n\"disableAllHooks\": true,\n}"] {
        fs::write(site.path(".claude/settings.local.json"), off).unwrap();
        let (code, out, _) = at_home(&site, "guard doctor");
        assert!(code == 1 && out.contains("hooks are switched off now"), "{out}");
        assert!(out.contains("broken") && !out.contains("the hook refuses"), "{out}");
    }
}

#[test]
fn an_opencode_plugin_throws_unless_the_answer_is_a_clean_yes() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: there is no node");
        return;
    }
    let site = site("opencode");
    site.run("hook install opencode --run r");
    let plugin = site.path(".opencode/plugin/charter.js");
    fs::copy(&plugin, site.path("plugin.mjs")).unwrap();
    let script = "
import { readFileSync, writeFileSync } from 'node:fs';
const text = readFileSync('plugin.mjs', 'utf8');
const ask = async (command, tool, args) => {
  const other = command === null ? text : text.replace(/^const COMMAND = .*$/m, `const COMMAND = ${JSON.stringify(command)};`);
  const name = `./plugin-${Math.random()}.mjs`;
  writeFileSync(name, other.replace('TIMEOUT_MS = 30000', 'TIMEOUT_MS = 500'.replace('500', command === null ? '20000' : '500')));
  const hooks = await (await import(process.cwd() + '/' + name)).Charter({ directory: process.cwd() });
  try {
    await hooks['tool.execute.before']({ tool, sessionID: 's', callID: String(Math.random()) }, { args });
    return 'yes';
  } catch (error) {
    return error.message.split('\\n')[0];
  }
};
const read = ['read', { filePath: process.cwd() + '/guarded.yaml' }];
const out = [await ask(null, ...read), await ask(null, 'bash', { command: 'touch x' })];
for (const command of ['true', 'echo', 'echo \"{}x\"', 'echo null', \"echo '{\\\"a\\\": 1}'\", 'exit 1', 'exit 2', 'kill -9 $$', 'sleep 5', '/nowhere'])
  out.push(await ask(command, ...read));
out.push(await ask('cat >/dev/null; echo {}', ...read));
console.log(JSON.stringify(out));
process.exit(0);
";
    fs::write(site.path("ask.mjs"), script).unwrap();
    let ran = Command::new("node").arg("ask.mjs").current_dir(site.path("")).output().unwrap();
    let (code, out, err) = said(ran);
    assert_eq!(code, 0, "{out}{err}");
    let said: Vec<String> = serde_json::from_str(&out).unwrap();
    assert_eq!(said[0], "yes");
    assert!(said[1].starts_with("refused by the charter `guarded`"), "{said:?}");
    for denied in &said[2..said.len() - 1] {
        assert_ne!(denied, "yes", "{said:?}");
    }
    assert_eq!(said.last().unwrap(), "yes");
}
