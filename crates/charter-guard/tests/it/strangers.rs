//! Command lines with which strangers have passed the guard.

use std::fs;

use crate::folder::Folder;

#[test]
fn what_runs_commands_in_disguise_is_opaque() {
    let folder = Folder::new();
    for command in [
        "jobs -x touch x",
        "jobs -x git commit -am x",
        "builtin jobs -x git push",
        "sleep 0& wait -n -p 'a[$(touch x)]'",
        "sleep 0& wait -p 'a[$(touch x)]' $!",
        "OPTIND='a[$(touch x)]'",
        "SRANDOM='a[`touch x`]'",
        "COLUMNS=x",
        "whatever='a[$(touch x)]'",
        "gawk 1 /inet/tcp/0/example.org/80",
    ] {
        assert!(folder.bash(command).does.opaque, "{command}");
    }
    for command in ["jobs", "jobs -l", "wait", "sleep 1 & wait", "wait 12 %1", "OPTIND=1"] {
        assert!(!folder.bash(command).does.opaque, "{command}");
    }
}

#[test]
fn a_folder_that_git_takes_for_a_repository_is_opaque() {
    let folder = Folder::new();
    let evil = folder.root().join("src/evil");
    for name in ["objects", "refs"] {
        fs::create_dir_all(evil.join(name)).unwrap();
    }
    fs::write(evil.join("HEAD"), "ref: refs/heads/m").unwrap();
    for command in ["git -C src/evil status", "cd src/evil; git diff", "cd src/evil/refs && git log"] {
        assert!(folder.bash(command).does.opaque, "{command}");
    }
    assert!(!folder.bash("git status").does.opaque && !folder.bash("cd src && git status").does.opaque);
}

#[test]
fn git_grep_reads_what_it_searches() {
    let folder = Folder::new();
    fs::write(folder.root().join(".env"), "KEY=1").unwrap();
    assert!(folder.bash("git grep --no-index KEY").does.secret);
    assert!(folder.bash("git grep --untracked KEY").does.secret || folder.bash("git grep --untracked KEY").does.opaque);
    assert!(!folder.bash("git grep KEY").does.opaque);
}

#[test]
fn a_commit_with_paths_is_not_the_whole_tree() {
    let folder = Folder::new();
    for command in [
        "git commit -m part a.txt",
        "git commit -am new-files-stay-out",
        "git add -A && git commit -m x a.txt",
        "git commit -C HEAD --amend -- a.txt",
    ] {
        let does = folder.bash(command).does;
        assert!(does.commit && !does.commit_tree, "{command}");
    }
    for command in ["git add -A && git commit -am all", "git add -A && git commit -m all"] {
        assert!(folder.bash(command).does.commit_tree, "{command}");
    }
}

#[test]
fn credentials_in_folders_are_secrets() {
    let folder = Folder::new();
    for name in [
        "/home/u/.config/gcloud/x.db",
        "/home/u/.kube/config",
        "/home/u/.docker/config.json",
        "/home/u/.claude/.credentials.json",
        "/home/u/.codex/auth.json",
        "/home/u/.config/gh/hosts.yml",
        "/run/secrets/x",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "prod.env",
        "deploy_rsa",
        ".envrc",
        "/home/u/.bash_history",
    ] {
        assert!(folder.bash(&format!("cat {name}")).does.secret, "{name}");
    }
    assert!(!folder.bash("cat .env.example environment.md").does.secret);
}

#[test]
fn settings_of_git_are_read_freely_and_never_changed() {
    let folder = Folder::new();
    for command in [
        "git config user.name",
        "git config --global user.name",
        "git config --show-origin core.hooksPath",
        "git config get user.name",
        "git config list",
        "git config --get-all remote.origin.url",
        "git config --local --list",
        "git remote",
        "git remote get-url origin",
    ] {
        let said = folder.bash(command);
        assert!(said.does.read && !said.does.write && !said.does.opaque, "{command}: {:?}", said.reasons);
    }
    for command in [
        "git config user.name x",
        "git config user.name ''",
        "git config --global core.pager x",
        "git config --unset user.name",
        "git config -e",
        "git config edit",
        "git config unset user.name",
        "git config set user.name x",
        "git config get user.name x",
        "git config --add user.name x",
        "git config --replace-all user.name",
        "git config -f x user.name",
        "git config --edit.x",
        "git config",
        "git config \"$X\"",
        "git remote add x https://example.com",
        "git remote set-url origin https://example.com",
        "git remote get-url --push origin x",
    ] {
        assert!(folder.bash(command).does.guard, "{command}");
    }
}
