//! Options of `git` that start a program, read a file or talk to a server, however they are
//! written.

use std::fs;

use crate::repositories::repository;
use crate::spellings::assert_all;

#[test]
fn an_option_that_starts_a_program_is_one_in_any_cluster() {
    let folder = repository();
    let lines = [
        "git grep -nO./e.sh good",
        "git grep -nOid x",
        "git grep -inOid x",
        "git grep -Oid x",
        "git grep -O x",
        "git grep -lO x",
        "git grep --open-files-in-pager x",
        "git grep --open-files-in-pager=./e.sh x",
        "git grep --open x",
        "git grep --ext-grep x",
        "git grep --textconv x",
        "git log --ext-diff -p",
        "git diff --ext",
        "git show --textconv",
        "git cat-file --textconv HEAD:a.txt",
        "git cat-file --filters HEAD:a.txt",
        "git log -pOx",
        "git log -L1,2:a.txt",
        "git log -p --full-diff -- src",
        "git log --remerge-diff",
        "git diff --outpu=x",
        "git diff --output x",
        "git help -w add",
        "git help -i add",
        "git ls-remote --upload-p=./e.sh .",
        "git ls-remote --upload-p ./e.sh .",
        "git ls-remote --exec=./e.sh .",
        "git push --receive-p=./e.sh . x",
        "git push --exe ./e.sh . x",
        "git push --rece ./e.sh",
        "git push --signed origin",
        "git tag -v v1",
        "git tag --verif v1",
        "git status --colum=x --unknown",
    ];
    assert_all(&folder, &lines, |does| does.opaque);
    assert_all(&folder, &["git push -o x src stash:main", "git push --rep=src stash:main"], |does| does.commit);
    let harmless = [
        "git grep -n fn",
        "git grep -in -A3 fn -- src",
        "git grep -lw -e fn -e x",
        "git grep -nC 2 fn HEAD -- src",
        "git grep -hoE 'f.' --max-depth 2",
        "git log -n5 -p -U1 -- src",
        "git log -5 --oneline --graph --decorate --all",
        "git log --format='%h %s' --since=2.days --author x",
        "git log -Sfn -G x",
        "git diff -U0 -w -M90% --stat",
        "git diff --cached --name-only",
        "git show -s --format=%H",
        "git shortlog -sne",
        "git blame -w -L 1,3 a.txt",
        "git blame -C -C -M5 -L1,1 -- a.txt",
        "git status -sb -uno",
        "git status --porcelain=v2 --branch",
        "git ls-files -oz --exclude-standard",
        "git rev-parse --abbrev-ref HEAD",
        "git describe --tags --always",
        "git push -u origin HEAD",
        "git push --force-with-lease origin topic",
        "git ls-remote --tags origin",
    ];
    assert_all(&folder, &harmless, |does| !does.opaque && !does.secret && !does.guard);
}

#[test]
fn a_file_that_an_option_names_is_read() {
    let folder = repository();
    fs::create_dir_all(folder.base.join("home/.aws")).unwrap();
    let lines = [
        "git config list -f .env",
        "git config -l -f.env",
        "git config -lf.env",
        "git config -lzf .env",
        "git config -f .env -l",
        "git config --file=.env --list",
        "git config --file .env --get K",
        "git config --fil=.env --list",
        "git config --get-all K -f.env",
        "git config get K -f .env",
        "git config get -f .env K",
        "git config -l -f ~/.aws/credentials",
        "git config -l --file ~/.ssh/id_rsa",
        "git config -l --blob HEAD:.env",
        "git blame -S .env a.txt",
        "git blame -S.env a.txt",
        "git blame -wS.env a.txt",
        "git annotate -S .env a.txt",
        "git blame --contents .env a.txt",
        "git blame --contents=.env a.txt",
        "git blame --content=.env a.txt",
        "git blame --ignore-revs-file=.env a.txt",
        "git blame --ignore-revs .env a.txt",
        "git grep -nf.env x",
        "git grep -f.env x",
        "git grep -f .env",
        "git ls-files -oX.env",
        "git ls-files -o --exclude-from=.env",
        "git ls-files -o --exclude-per-directory=.env",
        "git diff -O.env",
        "git log -p -O .env",
        "git log -U .env",
        "git cat-file --batch < .env",
        "git check-ignore --stdin < .env",
        "git rev-parse --stdin < .env",
        "git shortlog --stdin < .env",
        "git add --pathspec-from-file=.env",
        "git commit -F.env",
        "git commit -qF .env",
        "git commit -am x -t .env",
        "git tag -aF.env v2",
        "git notes add -F .env",
    ];
    assert_all(&folder, &lines, |does| does.opaque || does.secret);
    let harmless = [
        "git config --get user.name",
        "git config --list",
        "git config -l --show-origin",
        "git config get user.name",
        "git config list --name-only",
        "git config --local --get-regexp 'x.*'",
        "git config -f a.txt -l",
    ];
    assert_all(&folder, &harmless, |does| !does.opaque && !does.secret && !does.guard);
    assert_all(&folder, &["git config -f.gitmodules x y", "git config --glo x y"], |does| does.opaque && does.guard);
}

#[test]
fn a_remote_that_is_asked_is_the_network() {
    let folder = repository();
    let lines = [
        "git remote update",
        "git remote -v update",
        "git remote -vv update",
        "git remote --verbose update",
        "git remote --verb update",
        "git remote -v show origin",
        "git remote show origin",
        "git remote prune origin",
        "git remote -v prune -n origin",
        "git remote add -f x https://x.org",
        "git remote set-head origin -a",
        "git remote show ext::sh",
    ];
    assert_all(&folder, &lines, |does| does.network);
    let local = ["git remote", "git remote -v", "git remote --verbose", "git remote show", "git remote get-url origin"];
    assert_all(&folder, &local, |does| !does.network && !does.opaque && !does.guard && does.read);
    assert_all(&folder, &["git remote add x y", "git remote -v rename a b", "git remote x"], |does| does.guard);
}
