//! Commands of `git`, in a repository: what they may change, commit and print, one a line.

use std::fs;
use std::process::Command;

use crate::folder::Folder;
use crate::spellings::assert_all;

/// Runs `git` in the workspace, without the settings of the user.
pub fn git(folder: &Folder, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=u", "-c", "user.email=u@example.org"]).args(args).current_dir(folder.root());
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let out = git.output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A workspace with a commit of two files, a stash of one, and a branch and a tag.
pub fn repository() -> Folder {
    let folder = Folder::new();
    fs::remove_dir_all(folder.root().join(".git")).unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["add", "a.txt", "src/main.rs"]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    fs::write(folder.root().join("a.txt"), "y\n").unwrap();
    git(&folder, &["stash", "-q"]);
    git(&folder, &["branch", "side"]);
    git(&folder, &["tag", "v1"]);
    folder
}

#[test]
fn files_that_a_command_of_git_does_not_name_are_not_known() {
    let folder = repository();
    let lines = [
        "git stash",
        "git stash -u",
        "git stash -a",
        "git stash push",
        "git stash push .claude/settings.json",
        "git stash push -- '.c*'",
        "git stash pop",
        "git stash apply",
        "git stash drop",
        "git stash --include-untracked -m x",
        "git restore .",
        "git restore ./",
        "git restore :/",
        "git restore ':(top)'",
        "git restore '.c*'",
        "git restore '.claud?/settings.json'",
        "git restore '.[c]laude'",
        "git restore '.claude\\/settings.json'",
        "git restore ../work",
        "git restore .claude",
        "git restore .claude/settings.json",
        "git restore -W -S .claude",
        "git restore -s HEAD~1 src",
        "git restore --source=v1 src",
        "git restore --pathspec-from-file=list",
        "git restore -p",
        "git checkout .",
        "git checkout -- .",
        "git checkout -- '.c*'",
        "git checkout -- :/",
        "git checkout -- \"$X\"",
        "git checkout .claude",
        "git checkout HEAD -- .claude",
        "git checkout v1 -- src",
        "git checkout v1 src",
        "git checkout --pathspec-from-file=list",
        "git checkout side",
        "git checkout -",
        "git checkout -f",
        "git checkout -f side",
        "git checkout v1",
        "git checkout -b x v1",
        "git checkout -B x side",
        "git checkout --orphan x side",
        "git switch side",
        "git switch -",
        "git switch -c x side",
        "git switch --orphan x",
        "git switch -d v1",
        "git reset --hard",
        "git reset --hard HEAD",
        "git reset --hard HEAD~1",
        "git reset --merge",
        "git reset --keep HEAD~1",
        "git rm -f '.c*/settings.json'",
        "git rm -r ':/'",
        "git rm -r .",
        "git rm -r .claude",
        "git rm --pathspec-from-file=list",
        "git clean -fd",
        "git clean -fdx",
        "git clean -fd .claude",
        "git clean -fd '.c*'",
        "git clean -fdq :/",
        "git clean -fde x",
        "git apply x.patch",
        "git apply < x.patch",
        "git am x.patch",
        "git pull",
        "git pull --rebase",
        "git merge side",
        "git merge --abort",
        "git rebase side",
        "git cherry-pick side",
        "git revert HEAD",
        "git read-tree -u -m side",
        "git checkout-index -af",
        "git submodule update",
        "git sparse-checkout set x",
        "git bisect start",
        "git -C src checkout ..",
        "cd src && git checkout ../.claude",
    ];
    assert_all(&folder, &lines, |does| does.opaque || does.guard);
    let known = [
        "git status",
        "git status --short",
        "git diff",
        "git diff --cached",
        "git diff --stat HEAD~1",
        "git diff main..side -- src",
        "git log -p",
        "git log --oneline -5",
        "git show HEAD",
        "git show HEAD:a.txt",
        "git show v1",
        "git blame a.txt",
        "git grep fn",
        "git cat-file -p HEAD",
        "git ls-files -s",
        "git add a.txt",
        "git add src",
        "git commit -m x",
        "git checkout -- a.txt",
        "git checkout a.txt",
        "git checkout HEAD -- a.txt",
        "git checkout HEAD~1 a.txt",
        "git checkout src",
        "git checkout -b topic",
        "git checkout -b topic HEAD",
        "git switch -c topic",
        "git restore a.txt",
        "git restore -- src/main.rs",
        "git restore src",
        "git restore --staged .",
        "git restore --staged a.txt",
        "git restore --source=HEAD~1 a.txt",
        "git reset",
        "git reset a.txt",
        "git reset HEAD a.txt",
        "git reset -q -- a.txt",
        "git reset --soft HEAD~1",
        "git reset HEAD~1",
        "git rm a.txt",
        "git rm --cached a.txt",
        "git rm -r src",
        "git mv a.txt b.txt",
        "git clean -n",
        "git clean -fd src",
        "git stash list",
        "git stash show",
        "git branch",
        "git branch -a",
        "git branch --merged main",
        "git branch topic",
        "git branch topic v1",
        "git tag v2",
        "git tag -l 'v*'",
        "git symbolic-ref --short HEAD",
        "git reflog",
        "git worktree list",
        "git remote -v",
        "git config --get user.name",
        "git fetch",
        "git fetch origin main",
    ];
    assert_all(&folder, &known, |does| !does.opaque && !does.guard && !does.secret);
    // What is restored is known to be in the index, also what is not there at the moment.
    fs::create_dir_all(folder.root().join("src/.codex")).unwrap();
    fs::write(folder.root().join("src/.codex/hooks.json"), "{}").unwrap();
    git(&folder, &["add", "src/.codex"]);
    fs::remove_dir_all(folder.root().join("src/.codex")).unwrap();
    assert_all(&folder, &["git restore src", "git checkout -- src", "git checkout src/"], |does| does.guard);
    assert_all(&folder, &["git restore src/main.rs"], |does| !does.guard && !does.opaque);
    // A word may be a path now and a revision when the command runs.
    fs::write(folder.root().join("stash"), "").unwrap();
    fs::write(folder.root().join("side"), "").unwrap();
    fs::write(folder.root().join("0123abcd"), "").unwrap();
    let later = [
        "rm stash; git checkout stash",
        "git checkout stash",
        "git checkout side",
        "git checkout 0123abcd",
        "git checkout topic-1-g0123abcd",
        "git checkout stash a.txt",
        "git branch a.txt side && git checkout a.txt",
        "git restore --staged -s side . && git restore src",
        "git restore --staged . && git diff",
    ];
    assert_all(&folder, &later, |does| does.opaque);
    assert_all(&folder, &["rm stash; git reset --soft stash", "git reset stash"], |does| does.commit);
    assert_all(&folder, &["git checkout -- stash", "git checkout ./side"], |does| !does.opaque);
    fs::remove_file(folder.root().join("a.txt")).unwrap();
    assert_all(&folder, &["git restore a.txt", "git checkout a.txt"], |does| !does.guard && !does.opaque);
}

#[test]
fn a_branch_that_gets_a_commit_is_a_commit() {
    let folder = repository();
    let lines = [
        "git reset --hard stash@{0}",
        "git reset --soft stash@{0}",
        "git reset --soft stash",
        "git reset --soft refs/stash",
        "git reset --soft stash^2",
        "git reset stash@{0}",
        "git reset 0123abcd",
        "git reset HEAD@{1}",
        "git reset ORIG_HEAD",
        "git reset 'HEAD^{/x}'",
        "git reset main-1-g0123abcd",
        "git reset \"$X\"",
        "git stash && git reset --hard stash@{0}",
        "git checkout -B master stash@{0}",
        "git checkout -b evil stash@{0}",
        "git checkout stash@{0}",
        "git checkout --detach stash@{0}",
        "git checkout FETCH_HEAD",
        "git checkout 0123abcd",
        "git checkout --orphan x stash@{0}",
        "git switch -C main stash@{0}",
        "git switch -c evil stash@{0}",
        "git switch --detach stash@{0}",
        "git switch -d 0123abcd",
        "git branch evil stash@{0}",
        "git branch -f main stash@{0}",
        "git branch -v evil stash@{0}",
        "git branch --track evil stash@{0}",
        "git branch evil refs/stash",
        "git branch evil stash",
        "git branch evil 0123abcd",
        "git branch evil $X",
        "git tag evil stash@{0}",
        "git tag -f v1 stash@{0}",
        "git tag -a evil -m x stash@{0}",
        "git stash branch evil",
        "git update-ref refs/heads/main stash@{0}",
        "git commit-tree -m x stash^{tree}",
        "git fetch . stash:main",
        "git fetch . refs/stash:refs/heads/main",
        "git fetch . +stash:main",
        "git fetch --update-head-ok . stash:main",
        "git fetch --refmap= . stash",
        "git fetch --stdin .",
        "git fast-import",
        "git symbolic-ref HEAD refs/stash",
        "git symbolic-ref -d HEAD",
        "git worktree add ../wt stash@{0}",
        "git worktree add -b evil ../wt stash@{0}",
        "git notes add -m x",
        "git replace HEAD stash@{0}",
        "git filter-branch -- --all",
        "git push . stash@{0}:main",
        "git push ./ stash@{0}:main",
        "git push .git stash@{0}:main",
        "git push src stash@{0}:main",
        "git push file:///x stash@{0}:main",
        "git push --repo=. stash@{0}:main",
        "git pull . stash",
        "git merge stash@{0}",
        "git merge --ff-only stash@{0}",
        "git rebase stash@{0}",
        "git cherry-pick stash@{0}",
        "git revert HEAD",
        "git am x",
        "git bisect start",
        "git send-pack . stash:main",
        "git receive-pack .",
        "git subtree split",
        "git some-alias",
        "git --git-dir=.git update-ref refs/heads/main stash",
        "git -c user.name=x commit -m x",
        "git $X refs/heads/main stash",
        "git \"$X\"",
        "git commit --amend --no-edit",
    ];
    assert_all(&folder, &lines, |does| does.commit && !does.commit_tree);
    let others = [
        "git reset --soft HEAD~1",
        "git reset --soft main",
        "git reset a.txt",
        "git branch topic",
        "git branch topic HEAD~1",
        "git branch topic side",
        "git branch -d topic",
        "git branch -m topic other",
        "git tag v2 v1",
        "git tag -a v2 -m x",
        "git checkout side",
        "git checkout -b topic",
        "git checkout -b topic side~1",
        "git switch side",
        "git switch -c topic v1",
        "git fetch origin",
        "git push origin main",
        "git push -u origin HEAD:main",
        "git stash",
        "git gc",
        "git -c color.ui=never diff",
    ];
    assert_all(&folder, &others, |does| !does.commit);
    git(&folder, &["pack-refs", "--all"]);
    assert_all(&folder, &["git branch topic side", "git tag v2 v1"], |does| !does.commit);
    assert_all(&folder, &["git branch evil stash", "git branch evil refs/stash"], |does| does.commit);
}

#[test]
fn the_digest_of_the_files_has_what_a_commit_has() {
    let folder = repository();
    let root = folder.root();
    let digest = || charter_guard::tree_digest(&root).unwrap();
    let (write, before) = (|name: &str, text: &str| fs::write(root.join(name), text).unwrap(), digest());
    write(".gitignore", "x.txt\n");
    write(".ignore", "y.txt\n");
    let ignored = digest();
    assert_ne!(before, ignored);
    write("x.txt", "1");
    assert_eq!(digest(), ignored);
    write("y.txt", "1");
    let searched = digest();
    assert_ne!(searched, ignored, "git does not look at `.ignore`");
    git(&folder, &["add", "-f", "x.txt"]);
    let added = digest();
    assert_ne!(added, searched, "it was added although it is ignored");
    write("x.txt", "2");
    assert_ne!(digest(), added);
    let does = folder.bash("git add -A -f && git commit -m x").does;
    assert!(does.commit && !does.commit_tree, "what is ignored may be added");
}
