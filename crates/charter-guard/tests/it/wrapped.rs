//! Effects with anything around them.

use proptest::prelude::*;

use crate::folder::Folder;

/// What a command must be said to do.
#[derive(Debug, Clone, Copy)]
struct Effect {
    line: &'static str,
    named: fn(&charter_guard::Does) -> bool,
}

fn effect() -> impl Strategy<Value = Effect> {
    prop::sample::select(vec![
        Effect { line: "git push", named: |does| does.push },
        Effect { line: "rm a.txt", named: |does| does.delete },
        Effect { line: "rm ../outside/victim", named: |does| does.delete_outside },
        Effect { line: "echo x > ../outside/y", named: |does| does.write_outside },
        Effect { line: "cat .env", named: |does| does.secret },
        Effect { line: "curl -s https://x.org", named: |does| does.network },
        Effect { line: "git commit -am m", named: |does| does.commit },
        Effect { line: "cp a.txt .claude/settings.json", named: |does| does.guard },
        Effect { line: "python3 x.py", named: |does| does.opaque },
    ])
}

/// Texts around a command that run it, perhaps among others.
fn wrapped(line: &str, how: usize) -> String {
    let single = line.replace('\'', "'\\''");
    let spaced =
        line.split(' ').map(|word| if word.contains(['>', '$']) { word.to_owned() } else { format!("'{word}'") });
    match how {
        0 => format!("({line})"),
        1 => format!("{{ {line}; }}"),
        2 => format!("true && {line}"),
        3 => format!("false || {line}"),
        4 => format!("ls; {line}"),
        5 => format!("{line} | cat"),
        6 => format!("bash -c '{single}'"),
        7 => format!("sh -c '{single}'"),
        8 => format!("echo \"$({line})\""),
        9 => format!("if true; then {line}; fi"),
        10 => format!("for i in 1 2; do {line}; done"),
        11 => format!("bash <<'EOF'\n{line}\nEOF"),
        12 => format!("eval '{single}'"),
        13 => format!("f() {{ {line}; }}; f"),
        14 => format!("cd src && cd .. && {line}"),
        15 => format!("X='{single}'; eval \"$X\""),
        16 => format!("# x\n{line} # y"),
        17 => format!("while true; do {line}; break; done"),
        18 => format!("! {line}"),
        19 => format!("cat <(cd . && {line})"),
        20 => format!("timeout 5 bash -lc '{single}'"),
        21 => format!("case $1 in *) {line} ;; esac"),
        22 => spaced.collect::<Vec<_>>().join("  "),
        23 => format!("cat <<EOF\n$({line})\nEOF"),
        24 => format!("env CI=1 sh -c '{single}' && true"),
        25 => format!("{line} &"),
        26 => format!("exec 2>&1; {line}"),
        27 => format!("X=$({line}) true"),
        _ => format!("printf x | sh -c '{single}'"),
    }
}

fn cases(few: u32, many: u32) -> ProptestConfig {
    ProptestConfig::with_cases(if std::env::var("CHARTER_TESTS").is_ok_and(|v| v == "full") { many } else { few })
}

proptest! {
    #![proptest_config(cases(300, 20_000))]

    /// However an effect is wrapped, it is named, or the call is opaque.
    #[test]
    fn no_effect_is_hidden_by_what_is_around_it(effect in effect(), ways in prop::collection::vec(0_usize..29, 0..4)) {
        let folder = shared();
        // Quoting each word is for a simple command.
        let ways: Vec<usize> = ways.into_iter().enumerate().filter(|(at, how)| *at == 0 || *how != 22).map(|(_, how)| how).collect();
        let line = ways.iter().fold(effect.line.to_owned(), |line, how| wrapped(&line, *how));
        let said = folder.bash(&line);
        prop_assert!((effect.named)(&said.does) || said.does.opaque, "{line}: {:?}", said.does);
        // A single wrapper of this kind is understood.
        if ways.len() <= 1 {
            prop_assert!((effect.named)(&said.does), "{line}: {:?} {:?}", said.does, said.reasons);
        }
    }

    /// No text makes the guard panic or take long.
    #[test]
    fn any_text_is_described(parts in prop::collection::vec(prop::sample::select(vec![
        "git", "push", "rm", "cd", "..", "$(", ")", "(", "`", "'", "\"", "\\", "\n", ";", "&&", "||", "|", "&", "<<", "EOF", ">", "<", "{", "}", ",", "$", "X", "=", "if", "then", "fi", "for", "in", "do", "done", "case",
        "esac", ";;", "[[", "]]", "*", "?", "[", "]", "#", "!", "~", "/", "eval", "bash", "-c", "find", "-exec", "{}", "é", "\u{202e}", "\t", "function", "f", "()", "while", "sed", "-i", "s/a/b/", "xargs", "env", "${", "$((", "))", "<(",
    ]), 0..40), spaces in any::<u64>()) {
        let mut line = String::new();
        for (at, part) in parts.iter().enumerate() {
            line.push_str(part);
            if spaces >> (at % 64) & 1 == 1 {
                line.push(' ');
            }
        }
        prop_assert!(shared().bash(&line).event_data().is_object());
    }
}

/// One folder for many cases; nothing in it changes.
fn shared() -> &'static Folder {
    static FOLDER: std::sync::OnceLock<Folder> = std::sync::OnceLock::new();
    FOLDER.get_or_init(Folder::new)
}
