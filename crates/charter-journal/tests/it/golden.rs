//! Golden journals: a run of each bundled charter, created and exported by Charter with record
//! version 2. Every later version of Charter must read and verify them, so these files never
//! change.

use charter_journal::{MemoryStore, Record, Store, export, import, verify};
use charter_kernel::Machine;

const JOURNALS: [(&str, &str, &str, u64); 5] = [
    (
        "automaton",
        include_str!("../golden/automaton.jsonl"),
        "sha256:b9ef1441785b77cbcdcda732cf5798ab24a45a15321b2f52d6b12e6ca8a31054",
        9,
    ),
    (
        "feijoa",
        include_str!("../golden/feijoa.jsonl"),
        "sha256:2873ced22454ac0ff15eb02c1b43c831b63c38105343bb020c759dfa4c8b9b0e",
        22,
    ),
    (
        "fred",
        include_str!("../golden/fred.jsonl"),
        "sha256:c792f72af0f1d617b626a6d82dd85353c2c2503d03730a1a4a94e6c2db4d5597",
        13,
    ),
    (
        "omen",
        include_str!("../golden/omen.jsonl"),
        "sha256:c7887cb3a9b78c32a7d69506e11dec63baf193349a669026858c413cd0d61c49",
        20,
    ),
    (
        "sentinel",
        include_str!("../golden/sentinel.jsonl"),
        "sha256:d8824ad98414e473b340b361fa092b44cb060ebfee44d5a862cd7d22cd5c8af0",
        10,
    ),
];

#[test]
fn golden_journals_import_verify_and_keep_their_heads() {
    for (run, file, head, records) in JOURNALS {
        let store = MemoryStore::new();
        let info = import(&store, &mut file.as_bytes()).unwrap_or_else(|e| panic!("{run}: {e}"));
        assert_eq!((info.hash.to_string().as_str(), info.seq + 1), (head, records), "{run}");
        let report = verify(&store, None).unwrap();
        assert!(report.is_verified(), "{run}: {:?}", report.findings);
        let mut again = Vec::new();
        export(&store, run, &mut again).unwrap();
        assert!(again == file.as_bytes(), "{run}: the export differs from the file");
    }
}

#[test]
fn refusals_of_golden_journals_can_be_explained() {
    let mut refused = 0;
    for (run, file, _, records) in JOURNALS {
        let store = MemoryStore::new();
        let info = import(&store, &mut file.as_bytes()).unwrap();
        let machine: Machine = charter_journal::machine(&store, info.charter).unwrap();
        for record in store.records(run, 0, records as usize).unwrap() {
            let Some(refusal) = record.refusal.as_deref() else { continue };
            refused += 1;
            for machine in [Some(&machine), None] {
                let explanation = record.explanation(machine).unwrap();
                assert_eq!((explanation.code, &explanation.rule), (refusal.code, &refusal.rule));
                assert!(!explanation.message.is_empty(), "{record}");
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn records_of_version_1_are_refused() {
    let (_, file, ..) = JOURNALS[2];
    let old = file.replace("\"v\":2,\"verdict\"", "\"v\":1,\"verdict\"");
    let expected = "journal made by a pre-release of Charter (record version 1); it cannot be read";
    let record = old.lines().nth(1).unwrap();
    assert_eq!(Record::read(record).unwrap_err().to_string(), expected);
    let error = import(&MemoryStore::new(), &mut old.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), format!("line 2: {expected}"));
}
