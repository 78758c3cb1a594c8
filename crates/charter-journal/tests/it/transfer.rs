//! Tests of export, import, and the verification script in Python.

use std::process::Command;

use crate::common::*;
use charter_journal::{
    Anchor, Difference, MemoryStore, SqliteStore, Store, StoreError, TransferError, export, export_header, fork,
    import, load, replay, verify, verify_export,
};
use charter_kernel::Principal;
use charter_test_support::cases;
use proptest::prelude::*;

fn exported(store: &dyn Store, run: &str) -> String {
    let mut out = Vec::new();
    export(store, run, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(8, 20)))]

    #[test]
    fn an_exported_run_imports_unchanged(acts in prop::collection::vec(any_act(), 0..25)) {
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
fn a_fork_has_the_imported_records_of_its_past() {
    let (from, to) = (MemoryStore::new(), MemoryStore::new());
    let own = fill(&from, &some_acts(6), "r")[0].clone();
    let run = own[0].run.as_ref();
    let machine = machine(ALL[0]);
    import(&to, &mut exported(&from, run).as_bytes()).unwrap();
    let all = own.len() as u64;
    let loaded = load(&to, &machine, run).unwrap();
    let mut driver = Driver::resume(&machine, loaded.chain, loaded.snapshot, T0 + 1_000_000);
    to.append(vec![driver.send("NOTHING", serde_json::json!({}), &Principal::new("ana", &[]))]).unwrap();
    for (at, imported) in [(0, 1), (all - 1, all), (all, all)] {
        let new = format!("fork at {at}");
        fork(&to, &machine, run, at, &new, true).unwrap();
        fork(&from, &machine, run, at.min(all - 1), &new, true).unwrap();
        assert_eq!((to.imported(&new).unwrap(), from.imported(&new).unwrap()), (imported, 0), "{new}");
    }
}

/// Exports a run as a host does that has dropped the records up to `at`.
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
    #![proptest_config(ProptestConfig::with_cases(cases(8, 20)))]

    /// An exported file can be verified, whether it is complete or starts at any record, and a
    /// changed byte is detected.
    #[test]
    fn a_file_is_verified_from_its_first_record(
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
            prop_assert!(refused.contains("it can be verified, but not imported"), "{}", refused);
            // Change any byte. Verification covers everything except the source and name of the
            // charter.
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
fn a_run_that_does_not_verify_is_not_imported() {
    let store = MemoryStore::new();
    fill(&store, &some_acts(6), "r");
    let text = exported(&store, "r0");
    let folder = Folder::new();
    let target = SqliteStore::open(&folder.file("journal.db")).unwrap();
    let refused = |text: &str| import(&target, &mut text.as_bytes()).unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    let without = |at: usize| {
        lines.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, l)| format!("{l}\n")).collect::<String>()
    };
    assert_eq!(refused(""), "line 1: the file is empty");
    assert!(refused("{}\n").starts_with("line 1: not the first line of an exported run"));
    assert!(
        refused(&text.replacen("\"journal\":1", "\"journal\":2", 1))
            .starts_with("line 1: unsupported format version 2")
    );
    assert!(
        refused(&without(2))
            .starts_with("line 3: run `r0`: record 2 does not continue the chain: the last record is 0, so 1 is next")
    );
    assert!(refused(&without(lines.len() - 1)).contains("the file does not match its first line"));
    assert!(refused(lines[0]).contains("the file has no records"));
    assert!(
        refused(&text.replacen("\\\"id\\\":\\\"desk\\\"", "\\\"id\\\":\\\"disk\\\"", 1))
            .contains("its text has the digest")
    );
    for (key, before) in [("x", "\"head\":"), ("note", "\"core\":")] {
        let unknown = text.replacen(before, &format!("\"{key}\":1,{before}"), 1);
        assert!(
            refused(&unknown)
                .starts_with(&format!("line 1: not the first line of an exported run: unknown field `{key}`"))
        );
    }
    let forged = text.replacen("\"kind\":\"start\"", "\"kind\":\"Start\"", 1);
    assert!(refused(&forged).starts_with("line 2: not a record"), "{}", refused(&forged));
    let forged = text.replacen("\"n\":1", "\"n\":2", 1);
    assert!(refused(&forged).starts_with("the run was not imported because it does not verify: run `r0`, record 0: its content does not match its hash"), "{}", refused(&forged));
    assert_eq!(target.run("r0").unwrap(), None);
    assert_eq!(target.charters().unwrap(), []);
    import(&target, &mut text.as_bytes()).unwrap();
    assert!(matches!(import(&target, &mut text.as_bytes()), Err(TransferError::Store(StoreError::Conflict { .. }))));
    assert_eq!(verify(&target, None).unwrap().findings, []);
}

#[test]
fn duplicate_keys_in_a_file_are_refused_although_its_hashes_match() {
    let store = MemoryStore::new();
    fill(&store, &some_acts(6), "r");
    let text = exported(&store, "r0");
    let refused = |text: &str| {
        let verified = verify_export(&mut text.as_bytes(), &[]);
        let said = verified.map(|report| report.findings.first().map(ToString::to_string));
        (import(&MemoryStore::new(), &mut text.as_bytes()).unwrap_err().to_string(), said)
    };
    // In a record: of the two values, a parser that keeps the last one reads the right one.
    let twice = text.replacen("\"data\":{\"n\":1", "\"data\":{\"n\":2,\"n\":1", 1);
    assert_ne!(twice, text);
    let (imported, verified) = refused(&twice);
    assert!(imported.contains("run `r0`, record 0: it is not in canonical form"), "{imported}");
    assert!(verified.unwrap().unwrap().contains("record 0: it is not in canonical form"));
    let twice = text.replacen("\"verdict\":", "\"verdict\":\"ignored\",\"verdict\":", 1);
    assert!(refused(&twice).0.starts_with("line 2: not a record: duplicate field `verdict`"), "{}", refused(&twice).0);
    // In the first line.
    let twice = text.replacen("\"digest\":", "\"digest\":0,\"digest\":", 1);
    let (imported, verified) = refused(&twice);
    assert!(imported.contains("duplicate key `digest` at line 1 column"), "{imported}");
    assert!(verified.is_err());
    // In the charter, whose digest is right.
    let Some((before, rest)) = text.split_once("\"core\":\"") else { panic!("{text}") };
    let (core, after) = rest.split_once("\",\"digest\":\"").unwrap();
    let digest =
        charter_kernel::Digest::of_bytes(serde_json::from_str::<String>(&format!("\"{core}\"")).unwrap().as_bytes());
    let forged = core.replacen("\\\"roles\\\":{", "\\\"roles\\\":{\\\"boss\\\":{},", 1);
    assert_ne!(forged, core);
    let other =
        charter_kernel::Digest::of_bytes(serde_json::from_str::<String>(&format!("\"{forged}\"")).unwrap().as_bytes());
    let text =
        format!("{before}\"core\":\"{forged}\",\"digest\":\"{after}").replace(&digest.to_string(), &other.to_string());
    let imported = refused(&text).0;
    assert!(imported.contains("invalid definition: duplicate key `boss` at line 1 column"), "{imported}");
}

/// `docs/verify_chain.py` is a second implementation of the format. Skipped without Python.
#[test]
fn the_python_script_agrees() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verify_chain.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: python3 is not installed");
        return;
    }
    let folder = Folder::new();
    let store = MemoryStore::new();
    fill(&store, &some_acts(150), "r");
    let check = |name: &str, text: &str| {
        let file = folder.file(name);
        std::fs::write(&file, text).unwrap();
        let output = Command::new("python3").arg(script).arg(&file).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).replace(&file.display().to_string(), "FILE")
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let journal = folder.file("charter.db");
    std::fs::write(&journal, b"SQLite format 3\0\x8d").unwrap();
    let output = Command::new("python3").arg(script).arg(&journal).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("write one with `charter export RUN -o FILE`"));
    for run in ["r0", "r1", "r2"] {
        let text = exported(&store, run);
        let head = store.run(run).unwrap().unwrap();
        assert_eq!(
            check(run, &text),
            (Some(0), format!("FILE: run {run}: {} records, head {}: the chain is intact\n", head.seq + 1, head.hash))
        );
        // A file from a host that has dropped the first records.
        if let Some(text) = exported_after(&store, run, head.seq / 2) {
            let (code, said) = check("later", &text);
            assert_eq!(code, Some(0), "{said}");
            let (code, said) = check("cut", &text.replacen("\"seq\":", "\"seq\":1", 1));
            assert_eq!(code, Some(1), "{said}");
        }
        let (code, said) = check("forged", &text.replacen("\"n\":1", "\"n\":2", 1));
        assert_eq!((code, said.contains("line 2: its content does not match its hash")), (Some(1), true), "{said}");
        let twice = text.replacen("\"data\":{", "\"data\":{\"n\":2,\"n\":2,", 1);
        let (code, said) = check("twice", &twice);
        assert_eq!((code, said.contains("line 2: not JSON: duplicate key")), (Some(1), true), "{said}");
        let cut: String = text.lines().enumerate().filter(|(i, _)| *i != 3).map(|(_, l)| format!("{l}\n")).collect();
        let (code, said) = check("cut", &cut);
        assert_eq!((code, said.contains("line 4: `seq` is 3, expected 2")), (Some(1), true), "{said}");
        let (code, said) = check("short", &text[..text[..text.len() - 1].rfind('\n').unwrap() + 1]);
        assert_eq!((code, said.contains("the file does not match its first line")), (Some(1), true), "{said}");
    }
    // The self-test of the script checks numbers and strings against RFC 8785.
    let output = Command::new("python3").arg(script).arg("--self-test").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Both implementations serialize every double identically.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let doubles: Vec<f64> = (0..2_000)
        .map(|_| f64::from_bits(any::<u64>().new_tree(&mut runner).unwrap().current()))
        .filter(|d| d.is_finite())
        .collect();
    let expected: String =
        doubles.iter().map(|d| charter_kernel::digest::canonical(&serde_json::json!(d)) + "\n").collect();
    let file = folder.file("doubles");
    std::fs::write(&file, doubles.iter().map(|d| format!("{d:e}\n")).collect::<String>()).unwrap();
    let output = Command::new("python3").arg(script).arg("--numbers").arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

use proptest::strategy::ValueTree as _;
