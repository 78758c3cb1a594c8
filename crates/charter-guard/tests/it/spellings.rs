//! Spellings with which strangers have passed the guard, one a line.

use std::fs;
use std::os::unix::fs::symlink;

use charter_guard::{Description, Does};

use crate::folder::Folder;

/// The lines of a table whose description does not say what it must.
fn missed(folder: &Folder, lines: &[&str], said: fn(&Does) -> bool) -> Vec<(String, Description)> {
    let described = lines.iter().map(|line| ((*line).to_owned(), folder.bash(line)));
    described.filter(|(_, description)| !said(&description.does)).collect()
}

/// Asserts that each line of a table says what it must.
#[track_caller]
pub fn assert_all(folder: &Folder, lines: &[&str], said: fn(&Does) -> bool) {
    let missed = missed(folder, lines, said);
    let shown: Vec<_> = missed.iter().map(|(line, description)| (line, &description.reasons)).collect();
    assert!(missed.is_empty(), "{shown:#?}");
}

#[test]
fn the_target_of_a_redirection_is_expanded_like_an_argument() {
    let folder = Folder::new();
    symlink("/", folder.root().join("lnk")).unwrap();
    let lines = [
        "echo '{}' > .c{l..l}aude/settings.json",
        "echo '{}' >> .c{l..l}aude/settings.json",
        "echo '{}' >| .c{l..l}aude/settings.json",
        "echo '{}' &> .c{l..l}aude/settings.json",
        "echo '{}' &>> .c{l..l}aude/settings.json",
        "echo '{}' 2> .c{l..l}aude/settings.json",
        "echo '{}' >& .c{l..l}aude/settings.json",
        "cat <> .c{l..l}aude/settings.json",
        ": > .c{l..l}aude/settings.json",
        "> .c{l..l}aude/settings.json",
        "exec > .c{l..l}aude/settings.json",
        "exec 3> .c{l..l}aude/settings.json",
        "cat > .c{l..l}aude/settings.json <<EOF\n{}\nEOF",
        "cat <<< '{}' > .c{l..l}aude/settings.json",
        "{ echo '{}'; } > .c{l..l}aude/settings.json",
        "(echo '{}') > .c{l..l}aude/settings.json",
        "while :; do break; done > .c{l..l}aude/settings.json",
        "if :; then ls; fi > .c{l..l}aude/settings.json",
        "f() { ls; }; f > .c{l..l}aude/settings.json",
        "echo x > .c{laude,}/settings.json",
        "echo x > .claud{e,}/settings.json",
        "echo x > .c*/settings.json",
        "echo x > .c?aude/settings.json",
        "echo x > .c[l]aude/settings.json",
        "echo x > .g{i..i}t/hooks/pre-commit",
        "echo x > .g{i,}t/config",
        "echo x > ../state/charter.d{b..b}",
        "echo x > ../state/charter.d{b,}",
        "echo x > lnk/e{t..t}c/x",
        "cat <.e{n..n}v",
        "cat < .en{v,}",
        "cat < .e*",
        "{ cat; } <.e{n..n}v",
        "(cat) <.e{n..n}v",
        "while read x; do echo \"$x\"; done <.e{n..n}v",
        "bash -c 'cat <.e{n..n}v'",
        "echo \"$(<.e{n..n}v)\"",
        "echo x > .{c..c}laude/$(ls)",
        "cargo test --all >& .claude/settings.json",
        "cargo test --all >&.git/hooks/pre-commit",
    ];
    assert_all(&folder, &lines, |does| does.opaque || does.guard || does.secret);
    let harmless = ["echo x > {}", "echo x > a{b}c", "echo x > 'a{b,c}'", "ls > out.txt 2>&1", "cat < a.txt"];
    assert_all(&folder, &harmless, |does| !does.opaque && !does.guard && !does.secret);
    // All of them are written, as one shell does it.
    let several = folder.bash("echo x > {a,b}.txt");
    assert_eq!(several.paths.len(), 2, "{:?}", several.paths);
    assert!(!fs::exists(folder.root().join("{}")).unwrap());
}

#[test]
fn old_contents_and_outputs_go_where_the_description_says() {
    let folder = Folder::new();
    fs::create_dir_all(folder.root().join("charters")).unwrap();
    let lines = [
        "sed -i'.claude/*' 's/a/b/' settings.json",
        "sed -i.claude/* 's/a/b/' settings.json",
        "sed --in-place='.claude/*' 's/a/b/' settings.json",
        "sed --in-place='/tmp/x/outside-*' 's/a/b/' a.txt",
        "sed -n -i'/x' p a.txt",
        "sed -ni'.claude/*' p settings.json",
        "sed -Ei'*.d/x' p a.txt",
        "sed -i.db s/a/b/ ../state/charter",
        "cd ../state && sed -i.db s/a/b/ charter",
        "sed -ie s/a/b/ ../state/charter.db-wal",
        "sed -n '/a/w .claude/settings.json' a.txt",
        "sed 's/a/b/w .claude/settings.json' a.txt",
        "sed 'r .env' a.txt",
        "sed R.env a.txt",
        "sed '1e touch x' a.txt",
        "sed --in-place=.x -f s a.txt",
        "cp -S .db a.txt ../state/charter",
        "cp --suffix=.db a.txt b.txt",
        "cp -b a.txt b.txt",
        "cp --backup=simple a.txt b.txt",
        "mv -S .db a.txt b.txt",
        "mv --suffix .db a.txt b.txt",
        "mv -b a.txt b.txt",
        "ln -S .db -s a.txt b.txt",
        "install -S .db a.txt b.txt",
        "install -b a.txt b.txt",
        "install --suffix=.db a.txt b.txt",
        "patch -b -z /x < p",
        "patch -B .claude/ < p",
        "patch -o .claude/x < p",
        "sort -o .claude/settings.json a.txt",
        "sort -uo.claude/settings.json a.txt",
        "sort --output=.claude/settings.json a.txt",
        "uniq a.txt .claude/settings.json",
        "xxd -r a.txt .claude/settings.json",
        "tee .c{l..l}aude/settings.json < a.txt",
        "perl -i.claude/* -pe s/a/b/ settings.json",
        "awk '{print > \".claude/settings.json\"}' a.txt",
        "awk -i inplace 1 .claude/settings.json",
        "gawk -o.claude/settings.json 1 a.txt",
        "find . -fprintf .claude/settings.json x",
        "find . -fprint .claude/settings.json",
        "find . -fls .claude/settings.json",
        "tree -o .claude/settings.json",
        "split a.txt .claude/settings",
        "shuf -o .claude/settings.json a.txt",
        "git diff --output=.claude/settings.json",
        "git archive -o .claude/settings.json HEAD",
    ];
    assert_all(&folder, &lines, |does| does.opaque || does.guard);
    let harmless = ["sed -i s/a/b/ a.txt", "sed -i.bak s/a/b/ a.txt", "sed -i.bak s/a/b/ *.txt", "sed -ni p a.txt"];
    assert_all(&folder, &harmless, |does| !does.opaque && !does.guard && does.write && !does.write_outside);
    let kept = folder.bash("sed -i.bak s/a/b/ a.*");
    assert!(kept.paths.iter().any(|path| path.relative.as_deref() == Some("a.txt.bak")), "{:?}", kept.paths);
}

#[test]
fn only_the_test_command_word_for_word_runs() {
    let folder = Folder::new();
    let lines = [
        "cargo test --all push",
        "cargo test --all SHELL=/tmp/x",
        "cargo test --all -C /tmp",
        "cargo test --all --config x",
        "cargo test --all x || true",
        "cd src && cargo test --all",
        "cd ../outside && cargo test --all",
        "cd ../outside && cargo build",
        "(cd ../outside; cargo build)",
    ];
    assert_all(&folder, &lines, |does| does.opaque && !does.test);
    // They may run, as a change, and never count as passed tests.
    let run = ["cargo test --all || true", "cargo test --all | tail -5", "cargo test --all; true", "cargo build -v"];
    assert_all(&folder, &run, |does| !does.opaque && does.run && !does.test);
    assert_all(&folder, &["cargo test --all", "cargo test --all 2>&1"], |does| does.test && !does.opaque);
}

#[test]
fn a_variable_with_the_name_of_a_secret_is_one() {
    let folder = Folder::new();
    let lines = [
        "echo $AWS_SECRET_ACCESS_KEY",
        "echo \"$AWS_SECRET_ACCESS_KEY\"",
        "echo x${AWS_SECRET_ACCESS_KEY}y",
        "echo ${AWS_SECRET_ACCESS_KEY:0:4}",
        "echo ${AWS_SECRET_ACCESS_KEY%x}",
        "echo ${AWS_SECRET_ACCESS_KEY:-none}",
        "printf '%s' \"$GITHUB_TOKEN\"",
        "X=$GITHUB_TOKEN; echo $X",
        "X=$GITHUB_TOKEN ls",
        "cat <<< $GITHUB_TOKEN",
        "cat <<EOF\n$GITHUB_TOKEN\nEOF",
        "ls > $GITHUB_TOKEN",
        "case $GITHUB_TOKEN in a*) ls;; esac",
        "[[ $GITHUB_TOKEN == a* ]]",
        "for x in $GITHUB_TOKEN; do echo $x; done",
        "bash -c 'echo $PGPASSWORD'",
        "eval 'echo $PGPASSWORD'",
        "echo $(echo $DATABASE_URL)",
        "if false; then API_KEY=x; fi; echo $API_KEY",
        "API_KEY=x true; echo $API_KEY",
        "bash <<'EOF'\necho $OPENAI_API_KEY\nEOF",
        "printenv AWS_SECRET_ACCESS_KEY",
        "declare -p",
        "echo $db_password",
    ];
    assert_all(&folder, &lines, |does| does.secret || does.opaque);
    assert_all(&folder, &lines[..8], |does| does.secret);
    let harmless = [
        "echo $HOME $PWD $USER $KEYBOARD $OLDPWD $PATH $MONKEY",
        "KEY=a; echo $KEY",
        "for key in a b; do echo \"$key\"; done",
        "echo '$AWS_SECRET_ACCESS_KEY'",
    ];
    assert_all(&folder, &harmless, |does| !does.secret);
}
