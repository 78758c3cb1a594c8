//! Golden files of the output of the binary. `TRYCMD=overwrite` rewrites them; read the diff as a
//! user would.

#[test]
fn commands_print_what_the_golden_files_say() {
    trycmd::TestCases::new().case("tests/it/cmd/*.trycmd");
}

/// The digest of a context is not the same in two folders, because the inode is part of it. It is
/// taken from the output of the first command, and stands as `[CONTEXT]` in the golden file.
#[test]
#[cfg(unix)]
fn a_cycle_of_sentinel_by_commands() {
    use std::path::Path;
    use std::process::{Command, Stdio};

    let scratch = crate::support::Scratch::new("cycle");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cmd");
    let greeting = Path::new("ws/greeting.txt");
    std::fs::create_dir(scratch.0.join("ws")).unwrap();
    std::fs::copy(files.join("sentinel.in").join(greeting), scratch.0.join(greeting)).unwrap();
    let golden = std::fs::read_to_string(files.join("sentinel.md")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_charter")).parent().unwrap();
    let search = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let (mut shown, mut context, mut output) = (String::new(), None, false);
    for line in golden.lines() {
        output &= line != "```";
        if output {
            continue;
        }
        shown += &format!("{line}\n");
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let command = command.replace("[CONTEXT]", context.as_deref().unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command} 2>&1")]).current_dir(&scratch.0).env("PATH", &search);
        let ran = shell.env_remove("CHARTER_DB").stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        let digest = said.split_once("\"digest\":\"").and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned()));
        context = context.or(digest);
        if !ran.status.success() {
            shown += &format!("? {}\n", ran.status.code().unwrap());
        }
        shown += &said;
        output = true;
    }
    let mut redactions = snapbox::Redactions::new();
    redactions.insert("[CWD]", scratch.0.canonicalize().unwrap()).unwrap();
    redactions.insert("[CONTEXT]", context.unwrap()).unwrap();
    snapbox::Assert::new()
        .action_env("TRYCMD")
        .redact_with(redactions)
        .eq(shown, snapbox::Data::read_from(&files.join("sentinel.md"), None));
    for name in ["greeter.txt", "greeting.txt"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join("ws").join(name)).unwrap();
        assert_eq!(read(&scratch.0), read(&files.join("sentinel.out")));
    }
}
