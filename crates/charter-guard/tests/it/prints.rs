//! Contents that commands of `git` print, where the index lists a secret.

use std::fs;

use crate::repositories::{git, repository};
use crate::spellings::assert_all;

#[test]
fn contents_of_tracked_secrets_are_secrets() {
    let folder = repository();
    // An untracked secret: what would add it, and nothing else.
    let adding = ["git add -A", "git add --all", "git add .", "git add :/", "git add ':(top)'", "git add '.e*'"];
    assert_all(&folder, &adding, |does| does.secret);
    assert_all(&folder, &["git add -A && git diff --cached", "cd src && git add -A"], |does| does.secret);
    let harmless =
        ["git add -u", "git add -u .", "git diff", "git log -p", "git grep x", "git show -p", "git diff --cached"];
    assert_all(&folder, &harmless[..1], |does| !does.secret);
    assert_all(&folder, &harmless[2..], |does| !does.secret && !does.opaque);
    // Only searches look at this file.
    fs::write(folder.root().join(".ignore"), ".env\n").unwrap();
    assert_all(&folder, &["git add .", "git add -A"], |does| does.secret);
    fs::write(folder.root().join(".gitignore"), ".env\n").unwrap();
    assert_all(&folder, &["git add .", "git add -A", "git add -u"], |does| !does.secret);
    git(&folder, &["add", "-f", ".env"]);
    for version in ["2", "4"] {
        git(&folder, &["update-index", "--index-version", version]);
        let lines = [
            "git log -p",
            "git log -p -- '.e*'",
            "git log -p -- .",
            "git log -p -- .env",
            "git log -u",
            "git log -U1",
            "git log --cc",
            "git log -p HEAD",
            "git log -p a.txt",
            "git show",
            "git show HEAD",
            "git show HEAD -- '.e*'",
            "git show HEAD -- :/",
            "git show --stat 0123abcd",
            "git show --name-only HEAD 0123abcd",
            "git show -s side~1:",
            "git show --stat -p HEAD",
            "git show 0123abcd -- a.txt",
            "git show HEAD:.env",
            "git show :.env",
            "git show :0:.env",
            "git show HEAD:./.env",
            "git show HEAD:a.txt HEAD",
            "git show 'HEAD^{/x:a.txt}'",
            "git diff",
            "git diff --cached",
            "git diff HEAD~1",
            "git diff 0123abcd 4567abcd -- a.txt",
            "git diff -- . ':!a.txt'",
            "git diff -- '*'",
            "git diff -- '.en[v]'",
            "git diff ..side",
            "git diff --stat -p",
            "git diff --check",
            "git diff-tree -p HEAD",
            "git diff-index -p HEAD",
            "git cat-file -p 0123abcd",
            "git cat-file blob :.env",
            "git cat-file -p HEAD:.env",
            "git grep x",
            "git grep x -- '.e*'",
            "git grep -e -- x",
            "git grep x HEAD",
            "git grep -A 3 a.txt",
            "git blame .env",
            "git blame HEAD .env",
            "git whatchanged -p",
            "git range-diff a b c",
            "git status -v",
            "git stash show -p",
            "git stash show -p stash@{0}",
            "git reflog show -p",
            "git archive HEAD",
            "git format-patch HEAD~1",
            "git bundle create x HEAD",
            "git add .env",
            "git -C src diff",
            "cd src && git log -p",
            "git commit --dry-run -v",
        ];
        assert_all(&folder, &lines, |does| does.secret || does.opaque);
        let harmless = [
            "git log",
            "git log --stat",
            "git log --oneline",
            "git status",
            "git diff --stat",
            "git diff --name-only HEAD",
            "git show --stat",
            "git show --name-only HEAD",
            "git show -s",
            "git show --name-status HEAD~1 -- src",
            "git whatchanged --stat",
            "git diff -- src",
            "git diff HEAD -- src a.txt",
            "git diff main..side -- src",
            "git diff -- . ':!.env'",
            "git diff -- ':(exclude).env'",
            "git log -p -- src",
            "git log -p 0123abcd -- src",
            "git show HEAD -- src/main.rs",
            "git show HEAD:a.txt",
            "git grep x -- src",
            "git blame src/main.rs",
            "git ls-files -s",
            "git cat-file -t 0123abcd",
            "git add src a.txt",
            // What they add is tracked already.
            "git add -u",
            "git add -A",
            "git add .",
        ];
        assert_all(&folder, &harmless, |does| !does.secret && !does.opaque);
    }
    let said = folder.bash("git diff");
    let secrets: Vec<_> = said.paths.iter().filter(|path| path.secret).map(|path| path.relative.clone()).collect();
    assert_eq!(secrets, [Some(".env".to_owned())]);
    // What cannot be read is not taken for empty.
    fs::write(folder.root().join(".git/index"), "DIRC").unwrap();
    assert_all(&folder, &["git diff", "git add -f .", "git restore src"], |does| does.opaque);
}
