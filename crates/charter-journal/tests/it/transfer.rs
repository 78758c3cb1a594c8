//! A run as a file: out, in, and checked by a script of another language.

use std::process::Command;

use crate::common::*;
use charter_journal::{
    Anchor, Difference, MemoryStore, SqliteStore, Store, StoreError, TransferError, export, export_header, import,
    load, replay, verify, verify_export,
};
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

/// A run as a host exports it that has dropped the records up to `at`.
fn exported_after(store: &dyn Store, run: &str, at: u64) -> Option<String> {
    let info = store.run(run).unwrap().unwrap();
    let charter = store.charter(info.charter).unwrap().unwrap();
    let machine = charter_journal::machine(store, info.charter).unwrap();
    let snapshot = replay(store, &machine, run, Some(at)).unwrap()?;
    let records = store.records(run, at, usize::MAX).unwrap();
    let after = (records[0].text().to_owned(), machine.snapshot_text(&snapshot));
    let mut text = export_header(run, info.seq + 1, info.hash, &charter, Some(after)) + "\n";
    for record in &records[1..] {
        text.push_str(record.text());
        text.push('\n');
    }
    Some(text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A file is verified as it lies there, whole or from any record on; and a byte that is changed is found.
    #[test]
    fn a_file_is_verified_from_where_it_begins(
        acts in prop::collection::vec(any_act(), 5..25), cut in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>(),
    ) {
        let store = MemoryStore::new();
        let runs = fill(&store, &acts, "r");
        for records in &runs {
            let run = records[0].run.as_ref();
            let head = records.last().unwrap().hash;
            let whole = exported(&store, run);
            let report = verify_export(&mut whole.as_bytes(), &[]).unwrap();
            prop_assert!(report.is_verified(), "{:?}", report.findings);
            prop_assert_eq!((report.runs[0].first, report.runs[0].records, report.runs[0].hash), (0, records.len() as u64, head));
            let at = cut.index(records.len());
            let Some(text) = exported_after(&store, run, at as u64) else { continue };
            let known = |seq: u64, hash| [Anchor { run: run.to_owned(), seq, hash }];
            let report = verify_export(&mut text.as_bytes(), &known(at as u64, records[at].hash)).unwrap();
            prop_assert!(report.is_verified(), "{:?}", report.findings);
            prop_assert_eq!((report.runs[0].first, report.runs[0].records), (at as u64 + 1, (records.len() - at - 1) as u64));
            let report = verify_export(&mut text.as_bytes(), &known(at as u64, charter_journal::GENESIS)).unwrap();
            prop_assert_eq!(report.findings[0].what, Difference::Anchor);
            let refused = import(&MemoryStore::new(), &mut text.as_bytes()).unwrap_err().to_string();
            prop_assert!(refused.contains("it can be verified, not taken in"), "{}", refused);
            // Any byte: of the charter's source and name nothing is known, everything else is covered.
            let mut bytes = text.clone().into_bytes();
            let place = flip.index(bytes.len());
            let unknown = text.find("\",\"name\":\"").unwrap()..text.find("\"},\"head\":\"").unwrap();
            bytes[place] = if bytes[place] == b'7' { b'8' } else { b'7' };
            if !unknown.contains(&place) {
                let verified = verify_export(&mut bytes.as_slice(), &[]).is_ok_and(|r| r.is_verified());
                prop_assert!(!verified, "byte {} of {}", place, text);
            }
        }
    }
}

#[test]
fn nothing_is_imported_that_does_not_verify() {
    let store = MemoryStore::new();
    fill(&store, &some_acts(6), "r");
    let text = exported(&store, "r0");
    let folder = Folder::new("import");
    let target = SqliteStore::open(&folder.file()).unwrap();
    let refused = |text: &str| import(&target, &mut text.as_bytes()).unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    let without = |at: usize| {
        lines.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, l)| format!("{l}\n")).collect::<String>()
    };
    assert_eq!(refused(""), "line 1: the file is empty");
    assert!(refused("{}\n").starts_with("line 1: it is not the first line of an exported run"));
    assert!(
        refused(&text.replacen("\"journal\":1", "\"journal\":2", 1))
            .starts_with("line 1: version 2 of the format is not known")
    );
    assert!(
        refused(&without(2))
            .starts_with("line 3: run `r0`: record 2 does not follow: the last one is 0, so 1 comes next")
    );
    assert!(refused(&without(lines.len() - 1)).contains("the file ends too early or too late"));
    assert!(refused(lines[0]).contains("the file has no records"));
    assert!(
        refused(&text.replacen("\\\"id\\\":\\\"desk\\\"", "\\\"id\\\":\\\"disk\\\"", 1))
            .contains("its text has the digest")
    );
    let forged = text.replacen("\"kind\":\"start\"", "\"kind\":\"Start\"", 1);
    assert!(refused(&forged).starts_with("line 2: this is not a record"), "{}", refused(&forged));
    let forged = text.replacen("\"n\":1", "\"n\":2", 1);
    assert!(refused(&forged).starts_with("the run is not imported, because it does not verify: run `r0`, record 0: its content does not give its hash"), "{}", refused(&forged));
    assert_eq!(target.run("r0").unwrap(), None);
    assert_eq!(target.charters().unwrap(), []);
    import(&target, &mut text.as_bytes()).unwrap();
    assert!(matches!(import(&target, &mut text.as_bytes()), Err(TransferError::Store(StoreError::Conflict { .. }))));
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
        let output = Command::new("python3").arg(script).arg(&file).output().unwrap();
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
            (Some(0), format!("FILE: run {run}: {} records, head {}: the chain is whole\n", head.seq + 1, head.hash))
        );
        // From where a host begins that has dropped the records before.
        if let Some(text) = exported_after(&store, run, head.seq / 2) {
            let (code, said) = check("later", &text);
            assert_eq!(code, Some(0), "{said}");
            let (code, said) = check("cut", &text.replacen("\"seq\":", "\"seq\":1", 1));
            assert_eq!(code, Some(1), "{said}");
        }
        let (code, said) = check("forged", &text.replacen("\"n\":1", "\"n\":2", 1));
        assert_eq!((code, said.contains("line 2: its content does not give its hash")), (Some(1), true), "{said}");
        let cut: String = text.lines().enumerate().filter(|(i, _)| *i != 3).map(|(_, l)| format!("{l}\n")).collect();
        let (code, said) = check("cut", &cut);
        assert_eq!((code, said.contains("line 4: its number is 3, not 2")), (Some(1), true), "{said}");
        let (code, said) = check("short", &text[..text[..text.len() - 1].rfind('\n').unwrap() + 1]);
        assert_eq!((code, said.contains("the file ends too early or too late")), (Some(1), true), "{said}");
    }
    // Numbers and strings, as RFC 8785 writes them: its own self-test.
    let output = Command::new("python3").arg(script).arg("--self-test").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The two write every double alike.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let doubles: Vec<f64> = (0..2_000)
        .map(|_| f64::from_bits(any::<u64>().new_tree(&mut runner).unwrap().current()))
        .filter(|d| d.is_finite())
        .collect();
    let expected: String =
        doubles.iter().map(|d| charter_kernel::digest::canonical(&serde_json::json!(d)) + "\n").collect();
    let file = folder.0.join("doubles");
    std::fs::write(&file, doubles.iter().map(|d| format!("{d:e}\n")).collect::<String>()).unwrap();
    let output = Command::new("python3").arg(script).arg("--numbers").arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

use proptest::strategy::ValueTree as _;
