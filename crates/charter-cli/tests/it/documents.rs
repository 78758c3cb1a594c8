//! The documentation works: examples pass `charter check` and `charter test`, commands run in a
//! folder with the files of `docs/examples`, shown output is what they print, and every page can be
//! found.

use std::path::PathBuf;
#[cfg(unix)]
use std::process::Command;

use crate::support::{Scratch, charter};

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates a folder with the files of `docs/examples`.
fn examples(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let entries = std::fs::read_dir(root().join("docs/examples")).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| path.is_file()) {
        std::fs::copy(&path, scratch.0.join(path.file_name().unwrap())).unwrap();
    }
    scratch
}

/// Returns the blocks of a page in `docs/` that begin with this info string.
fn blocks(page: &str, info: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let begin = format!("```{info}\n");
    page.split(begin.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn id(charter: &str) -> &str {
    charter.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().split_whitespace().next().unwrap()
}

#[test]
fn the_charters_of_the_reference_have_no_findings() {
    let scratch = examples("reference");
    let blocks: Vec<String> =
        ["language.md", "scenarios.md", "actors.md"].iter().flat_map(|page| self::blocks(page, "yaml")).collect();
    let charters = blocks.iter().filter(|block| block.starts_with("charter: 1"));
    assert!(charters.clone().count() > 15);
    for block in charters {
        let checked = charter(&["check", &scratch.file(&format!("{}.yaml", id(block)), block)]);
        assert_eq!(checked.code, 0, "{}{}\n{block}", checked.out, checked.err);
        let says = |what: &str| checked.out.contains(what);
        assert!(says(": no findings; explored ") || says(": no errors or warnings, "), "{}\n{block}", checked.out);
    }
}

#[test]
fn the_scenarios_of_the_reference_pass() {
    let (scratch, mut tested) = (Scratch::new("reference-scenarios"), 0);
    for block in blocks("scenarios.md", "yaml") {
        if block.starts_with("charter: 1") {
            scratch.file(&format!("{}.yaml", id(&block)), &block);
        } else {
            let ran = charter(&["test", &scratch.file("test.yaml", &block)]);
            assert_eq!(ran.code, 0, "{}{}\n{block}", ran.out, ran.err);
            tested += 1;
        }
    }
    assert!(tested > 0);
}

/// The pages with commands for users.
const PAGES: [&str; 4] = ["README.md", "docs", "charters", "crates/charter-cli/README.md"];

/// Returns the paths of all pages, relative to the root, sorted.
fn pages() -> Vec<String> {
    let (mut waiting, mut found) = (PAGES.map(PathBuf::from).to_vec(), Vec::new());
    while let Some(path) = waiting.pop() {
        let full = root().join(&path);
        if full.is_dir() && !path.ends_with("codes") {
            waiting.extend(std::fs::read_dir(full).unwrap().map(|entry| path.join(entry.unwrap().file_name())));
        } else if path.extension().is_some_and(|e| e == "md") && !path.ends_with("decisions.md") {
            found.push(path.display().to_string());
        }
    }
    // `scenarios`, `prompts` and `skills` have Markdown files that are not pages.
    found.retain(|page| !page.starts_with("charters") || page.ends_with("README.md"));
    found.sort();
    found
}

/// A command of a page, and the output that the page shows for it.
#[cfg(unix)]
struct Shown {
    command: String,
    output: Vec<String>,
}

/// A command without its quoted parts and its comment.
#[cfg(unix)]
fn unquoted(command: &str) -> String {
    let (mut open, mut text) = (None, String::new());
    for c in command.split(" #").next().unwrap().chars() {
        match open {
            None if c == '"' || c == '\'' => open = Some(c),
            None => text.push(c),
            Some(quote) if c == quote => open = None,
            Some(_) => {}
        }
    }
    text
}

/// Returns the commands in the indented blocks of a page. The output of a command that begins with
/// `$ ` follows it.
#[cfg(unix)]
fn commands(page: &str) -> Vec<Shown> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (mut found, mut open): (Vec<Shown>, bool) = (Vec::new(), false);
    for line in text.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            open = false;
            continue;
        };
        let command = line.strip_prefix("$ ").unwrap_or(line);
        let command = command.replace("cargo run --bin charter -- ", "charter ");
        if command.starts_with("charter ") {
            found.push(Shown { command, output: Vec::new() });
            open = line.starts_with("$ ");
        } else if open {
            found.last_mut().unwrap().output.push(line.to_owned());
        }
    }
    // These need a key, or minutes. A word in capitals stands for something.
    let stands_for = |word: &str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase());
    found.retain(|shown| {
        let unquoted = unquoted(&shown.command);
        let sends = unquoted.starts_with("charter send ");
        let mut words = unquoted.split(' ').enumerate();
        !words.any(|(n, word)| stands_for(word) && !(sends && n == 3))
            && !shown.command.contains("--model ")
            && !shown.command.contains("--wait")
    });
    found
}

/// Whether the output has these lines in this order; `...` stands for any lines.
#[cfg(unix)]
fn shows(output: &str, expected: &[String]) -> bool {
    let (mut lines, mut skip) = (output.lines(), false);
    for wanted in expected {
        let wanted = wanted.trim_end();
        match wanted {
            "..." => skip = true,
            _ if skip && lines.any(|line| line.trim_end() == wanted) => skip = false,
            _ if !skip && lines.next().is_some_and(|line| line.trim_end() == wanted) => {}
            _ => return false,
        }
    }
    skip || lines.next().is_none()
}

/// The first digest in a text.
#[cfg(unix)]
fn digest(text: &str) -> Option<&str> {
    let is_digest = |part: &&str| part.get(..64).is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    text.split("sha256:").skip(1).find(is_digest).map(|part| &part[..64])
}

/// Runs the commands of a page in a folder, as pasted into a shell; returns what is wrong.
#[cfg(unix)]
fn wrong(page: &str) -> Vec<String> {
    let (scratch, mut wrong, mut printed) = (examples("page"), Vec::new(), String::new());
    let program = PathBuf::from(env!("CARGO_BIN_EXE_charter"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    for Shown { command, output } in commands(page) {
        // A page shows `sha256:...` for the digest that the last command has printed.
        let line = match digest(&printed) {
            Some(digest) => command.replace("sha256:...", &format!("sha256:{digest}")),
            None => command.clone(),
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&scratch.0).env_clear().env("PATH", &path);
        let ran = shell.stdin(std::process::Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        // The recordings have items that are refused.
        let recording = command.starts_with("charter conform ") || command.starts_with("charter step ");
        let refuses = recording && ran.status.code() == Some(1);
        if !ran.status.success() && !refuses {
            wrong.push(format!("{page}: {line}\n{:?} {err}{out}", ran.status.code()));
        }
        if !output.is_empty() && !shows(&out, &output) {
            wrong.push(format!("{page}: {line}\nprints:\n{out}"));
        }
        if digest(&out).is_some() {
            printed = out;
        }
    }
    wrong
}

#[cfg(unix)]
#[test]
fn every_command_of_the_pages_works_as_pasted() {
    let pages = pages();
    let count: usize = pages.iter().map(|page| commands(page).len()).sum();
    assert!(pages.len() > 20 && count > 34, "{} pages, {count} commands", pages.len());
    let wrong: Vec<String> = pages.iter().flat_map(|page| wrong(page)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_queries_of_the_pages_work() {
    let scratch = Scratch::new("queries");
    let db = scratch.0.join("charter.db").display().to_string();
    let input = r#"{"userId": "u1", "message": "Should we raise prices by 20 % for new customers?"}"#;
    let ran = charter(&["run", "fred", "--run", "r1", "--input", input, "--yes", "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let (mut count, pages) = (0, ["sql.md", "models.md"]);
    for block in pages.iter().flat_map(|page| blocks(page, "sql")) {
        for query in block.split_terminator(";\n") {
            // A leading SQL comment is not an option.
            let ran = charter(&["sql", &db, &format!("\n{query}")]);
            assert_eq!(ran.code, 0, "{query}\n{}", ran.err);
            count += 1;
        }
    }
    assert!(count > 4);
}

#[test]
fn the_readme_and_the_index_link_every_page() {
    for (from, prefix) in [("README.md", "docs/"), ("docs/README.md", "")] {
        let text = std::fs::read_to_string(root().join(from)).unwrap();
        for entry in std::fs::read_dir(root().join("docs")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_index = prefix.is_empty() && name == "README.md";
            if name.ends_with(".md") && !is_index || name == "codes" {
                assert!(text.contains(&format!("]({prefix}{name}")), "{from} has no link to docs/{name}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn the_first_example_of_the_actors_runs() {
    let (charters, commands) = (blocks("actors.md", "yaml"), blocks("actors.md", "python"));
    let example = |name: &str| std::fs::read_to_string(root().join("docs/examples").join(name)).unwrap();
    assert_eq!((&charters[0], &commands[0]), (&example("greeting.yaml"), &example("greet.py")));
    let scratch = examples("greeting");
    let (file, db) = (scratch.0.join("greeting.yaml"), scratch.0.join("g.db").display().to_string());
    let ran = charter(&["run", file.to_str().unwrap(), "--run", "g", "--input", r#"{"name": "Ana"}"#, "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let shown = charter(&["show", "g", "--db", &db]);
    assert!(shown.out.contains("Hello, Ana!"), "{}{}", shown.out, shown.err);
}

#[test]
fn the_charter_of_the_readme_is_the_example() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let example = std::fs::read_to_string(root().join("docs/examples/payment.yaml")).unwrap();
    assert!(readme.contains(&format!("```yaml\n{example}```\n")), "docs/examples/payment.yaml");
}
