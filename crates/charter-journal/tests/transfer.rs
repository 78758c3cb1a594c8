//! A run as a file: out, in, and checked by a script of another language.

#![cfg(feature = "sqlite")]

mod common;

use std::process::Command;

use charter_journal::{
    MemoryStore, SqliteStore, Store, StoreError, TransferError, export, import, load, verify,
};
use common::*;
use proptest::prelude::*;

fn exported(store: &dyn Store, run: &str) -> String {
    let mut out = Vec::new();
    export(store, run, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn out_and_in_is_the_same(acts in prop::collection::vec(any_act(), 0..25)) {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        let runs = fill(&from, &acts, "r");
        for (records, source) in runs.iter().zip(ALL) {
            let run = records[0].run.as_ref();
            let text = exported(&from, run);
            let info = import(&to, &mut text.as_bytes()).unwrap();
            prop_assert_eq!(Some(info), from.run(run).unwrap());
            prop_assert_eq!(&to.records(run, 0, usize::MAX).unwrap(), records);
            prop_assert_eq!(exported(&to, run), text);
            let machine = machine(source);
            prop_assert_eq!(load(&to, &machine, run).unwrap().snapshot, load(&from, &machine, run).unwrap().snapshot);
        }
        prop_assert_eq!(verify(&to, None).unwrap().findings, []);
    }
}

#[test]
fn nothing_is_imported_that_does_not_verify() {
    let store = MemoryStore::new();
    fill(&store, &some_acts(6), "r");
    let text = exported(&store, "r0");
    let folder = Folder::new("import");
    let target = SqliteStore::open(&folder.file()).unwrap();
    let refused = |text: &str| {
        import(&target, &mut text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let lines: Vec<&str> = text.lines().collect();
    let without = |at: usize| {
        lines
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, l)| format!("{l}\n"))
            .collect::<String>()
    };
    assert_eq!(refused(""), "line 1: the file is empty");
    assert!(refused("{}\n").starts_with("line 1: it is not the first line of an exported run"));
    assert!(
        refused(&text.replacen("\"journal\":1", "\"journal\":2", 1))
            .starts_with("line 1: version 2 of the format is not known")
    );
    assert!(refused(&without(2)).starts_with(
        "line 3: run `r0`: record 2 does not follow: the last one is 0, so 1 comes next"
    ));
    assert!(refused(&without(lines.len() - 1)).contains("the file ends too early or too late"));
    assert!(refused(lines[0]).contains("the file has no records"));
    assert!(
        refused(&text.replacen("\\\"id\\\":\\\"desk\\\"", "\\\"id\\\":\\\"disk\\\"", 1))
            .contains("its text has the digest")
    );
    let forged = text.replacen("\"kind\":\"start\"", "\"kind\":\"Start\"", 1);
    assert!(
        refused(&forged).starts_with("line 2: this is not a record"),
        "{}",
        refused(&forged)
    );
    let forged = text.replacen("\"n\":1", "\"n\":2", 1);
    assert!(refused(&forged).starts_with("the run is not imported, because it does not verify: run `r0`, record 0: its content does not give its hash"), "{}", refused(&forged));
    assert_eq!(target.run("r0").unwrap(), None);
    assert_eq!(target.charters().unwrap(), []);
    import(&target, &mut text.as_bytes()).unwrap();
    assert!(matches!(
        import(&target, &mut text.as_bytes()),
        Err(TransferError::Store(StoreError::Conflict { .. }))
    ));
    assert_eq!(verify(&target, None).unwrap().findings, []);
}

/// `docs/verify_chain.py` is the second reading of the format. Without Python there is nothing to compare with, and the test says so.
#[test]
fn the_script_of_the_docs_agrees() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify_chain.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("not run: there is no python3");
        return;
    }
    let folder = Folder::new("script");
    let store = MemoryStore::new();
    fill(&store, &some_acts(150), "r");
    let check = |name: &str, text: &str| {
        let file = folder.0.join(name);
        std::fs::write(&file, text).unwrap();
        let output = Command::new("python3")
            .arg(script)
            .arg(&file)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).replace(&file.display().to_string(), "FILE")
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    for run in ["r0", "r1", "r2"] {
        let text = exported(&store, run);
        let head = store.run(run).unwrap().unwrap();
        assert_eq!(
            check(run, &text),
            (
                Some(0),
                format!(
                    "FILE: run {run}: {} records, head {}: the chain is whole\n",
                    head.seq + 1,
                    head.hash
                )
            )
        );
        let (code, said) = check("forged", &text.replacen("\"n\":1", "\"n\":2", 1));
        assert_eq!(
            (
                code,
                said.contains("line 2: its content does not give its hash")
            ),
            (Some(1), true),
            "{said}"
        );
        let cut: String = text
            .lines()
            .enumerate()
            .filter(|(i, _)| *i != 3)
            .map(|(_, l)| format!("{l}\n"))
            .collect();
        let (code, said) = check("cut", &cut);
        assert_eq!(
            (code, said.contains("line 4: its number is 3, not 2")),
            (Some(1), true),
            "{said}"
        );
        let (code, said) = check(
            "short",
            &text[..text[..text.len() - 1].rfind('\n').unwrap() + 1],
        );
        assert_eq!(
            (code, said.contains("the file ends too early or too late")),
            (Some(1), true),
            "{said}"
        );
    }
    // Numbers and strings, as RFC 8785 writes them: its own self-test.
    let output = Command::new("python3")
        .arg(script)
        .arg("--self-test")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The two write every double alike.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let doubles: Vec<f64> = (0..2_000)
        .map(|_| f64::from_bits(any::<u64>().new_tree(&mut runner).unwrap().current()))
        .filter(|d| d.is_finite())
        .collect();
    let expected: String = doubles
        .iter()
        .map(|d| charter_kernel::digest::canonical(&serde_json::json!(d)) + "\n")
        .collect();
    let file = folder.0.join("doubles");
    std::fs::write(
        &file,
        doubles
            .iter()
            .map(|d| format!("{d:e}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let output = Command::new("python3")
        .arg(script)
        .arg("--numbers")
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

use proptest::strategy::ValueTree as _;
