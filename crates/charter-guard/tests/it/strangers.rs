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
fn a_repository_that_the_command_line_itself_makes_is_opaque() {
    let folder = Folder::new();
    let root = folder.root();
    fs::create_dir_all(root.join("k/objects")).unwrap();
    fs::create_dir_all(root.join("k/refs")).unwrap();
    for name in ["k/h", "k/c", "src/h"] {
        fs::write(root.join(name), "ref: refs/heads/main\n").unwrap();
    }
    let lines = [
        "mkdir -p c/objects c/refs c/wt && cp k/h c/HEAD && cp k/c c/config && git -C c status",
        "cp k/h k/HEAD && git -C k status",
        "cp k/h k/HEAD; cd k && git status",
        "cp k/h k/HEAD; cd k/refs; git diff",
        "mv k/h k/HEAD && git -C k log",
        "cat k/h > k/HEAD; git -C k status",
        "tee k/HEAD < k/h | git -C k status",
        "git -C k status & cp k/h k/HEAD",
        "(sleep 1; git -C k status) & cp k/h k/HEAD",
        "while :; do git -C k status; cp k/h k/HEAD; done",
        "f() { git -C k status; }; cp k/h k/HEAD; f",
        "cp k/h k/head && git -C k status",
        "ln -s refs/heads/main k/HEAD; git -C k status",
        "cp k/c k/commondir && cp k/h k/HEAD && git -C k status",
        "cp -r k c && mv c d && git -C d status",
        "cp -r k/. c && git -C c status",
        "cp -rT k c && git -C c status",
        "mv k c && git -C c status",
        "mv k c && cd c && git status",
        "ln -s k c && git -C c status",
        "ln -s k c && cd c && git status",
        "git mv k/h k/HEAD && git -C k status",
        "sed -i.HEAD s/x/y/ k/h; mv k/h.HEAD k/HEAD; git -C k status",
        "dd if=k/h of=k/HEAD; git -C k status",
        "install k/h k/HEAD; git -C k status",
        "touch k/HEAD; git -C k add x",
        "cp k/h k/HEAD; git -C k commit -m x",
        "cp k/h k/HEAD; git -C k push",
        "cp k/h k/HEAD; git -C k remote",
        "cp k/h k/HEAD; git -C k config -l",
        "cp k/h k/HEAD; git -C k branch",
        "cp k/h k/HEAD; git -C k version",
        "cp k/h k/HEAD; git -C k stash list",
        "cp k/h k/HEAD; (cd k; git fetch)",
        "cp k/h k/HEAD; bash -c 'cd k && git status'",
        "cp k/h k/HEAD; find k -maxdepth 0 -exec git -C k status \\;",
    ];
    for command in lines {
        assert!(folder.bash(command).does.opaque, "{command}");
    }
    for command in [
        "mkdir -p x/y && touch x/y/z && git add x",
        "echo x > src/new.rs && git add src/new.rs && git diff",
        "cd src && echo x > new.rs && git add new.rs && git status",
        "cp a.txt src/b.txt; git -C src status",
        "mv src/h src/i && cd src && git status",
        "echo x > config && git status",
        "sed -i s/a/b/ a.txt && git diff a.txt",
        "rm a.txt && git status",
    ] {
        let said = folder.bash(command);
        assert!(!said.does.opaque, "{command}: {:?}", said.reasons);
    }
    // What was made before is seen.
    fs::write(root.join("k/commondir"), "../src").unwrap();
    std::os::unix::fs::symlink("refs/heads/main", root.join("k/HEAD")).unwrap();
    for command in ["git -C k status", "cd k/refs && git log", "git -C k version", "git -C k config -l"] {
        assert!(folder.bash(command).does.opaque, "{command}");
    }
    fs::remove_file(root.join("k/commondir")).unwrap();
    assert!(folder.bash("git -C k status").does.opaque);
    // A workspace without a repository may become one itself.
    fs::remove_dir_all(root.join(".git")).unwrap();
    assert!(folder.bash("mkdir objects refs && cp k/h HEAD && git status").does.opaque);
    assert!(!folder.bash("echo x > a.txt && git status").does.opaque);
}

#[test]
fn only_a_program_that_prints_its_version_does_that() {
    let folder = Folder::new();
    for command in [
        "tclsh --version",
        "echo 'exec touch x' | tclsh --version",
        "tclsh --version < a.txt",
        "tclsh --version <<< 'exec touch x'",
        "expect --version",
        "yarn --version",
        "pnpm --version",
        "source --version",
        ". --version",
        "echo x.org | nslookup --version",
        "irb --version",
        "gh --version",
        "terraform --version",
        "nohup --version",
        "lua --version",
        "osascript --version",
        "sh --version",
        "vi --version",
        "python3 --version x.py",
        "python3 --help",
        "node -h",
        "make --help",
    ] {
        assert!(folder.bash(command).does.opaque, "{command}");
    }
    for command in ["python3 --version", "node --version && npm --version", "make --version | head -1", "git --version"]
    {
        let said = folder.bash(command);
        assert!(!said.does.opaque && !said.does.network, "{command}: {:?}", said.reasons);
    }
}

#[test]
fn a_file_that_brings_an_ignored_secret_back_is_looked_at() {
    let folder = Folder::new();
    let searches = |folder: &Folder| {
        [folder.bash("rg KEY"), folder.bash("rg KEY ."), folder.call("Grep", serde_json::json!({"pattern": "KEY"}))]
    };
    let write = |name: &str, text: &str| fs::write(folder.root().join(name), text).unwrap();
    assert!(searches(&folder).iter().all(|said| said.does.secret));
    write(".gitignore", ".env\n");
    assert!(searches(&folder).iter().all(|said| !said.does.secret && !said.does.opaque));
    write(".rgignore", "!.env\n");
    assert!(searches(&folder).iter().all(|said| said.does.secret), "`.rgignore`");
    fs::remove_file(folder.root().join(".rgignore")).unwrap();
    write(".ignore", "!.env\n");
    assert!(searches(&folder).iter().all(|said| said.does.secret), "`.ignore`");
    write(".ignore", "");
    // Without a repository, such searches do not look at `.gitignore`.
    fs::remove_dir_all(folder.root().join(".git")).unwrap();
    assert!(searches(&folder).iter().all(|said| said.does.secret), "no repository");
}

#[test]
fn a_temporary_file_is_written_outside() {
    let folder = Folder::new();
    for command in ["mktemp", "mktemp -d", "f=$(mktemp)"] {
        assert!(folder.bash(command).does.write_outside, "{command}");
    }
    let said = folder.bash("mktemp -u");
    assert!(!said.does.write && !said.does.opaque);
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
