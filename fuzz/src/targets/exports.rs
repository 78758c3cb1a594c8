//! Exported runs.

use charter_journal::{Anchor, MemoryStore, Verified, export, verify, verify_export};

use crate::base::{self, RUN};

pub(crate) fn run(data: &[u8]) {
    if let Ok(verified) = Verified::read(&mut &*data) {
        let store = MemoryStore::new();
        let run = verified.info().run.clone();
        let records = verified.info().seq + 1;
        verified.write(&store).unwrap_or_else(|e| panic!("verified, but not written: {e}"));
        let report = verify(&store, None).unwrap();
        assert!(report.is_verified(), "imported, but: {:?}", report.findings);
        assert_eq!(report.records(), records);
        let mut once = Vec::new();
        export(&store, &run, &mut once).unwrap();
        let again = Verified::read(&mut &*once).unwrap_or_else(|e| panic!("exported, but not read: {e}"));
        assert_eq!(again.info().run, run);
    }
    let original = base::records();
    let last = original.last().unwrap();
    let anchor = Anchor { run: RUN.into(), seq: last.seq, hash: last.hash };
    if let Ok(report) = verify_export(&mut &*data, &[anchor])
        && report.is_verified()
    {
        let lines = data.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty());
        let given: Vec<&[u8]> = lines.collect();
        let first = original.len().checked_sub(given.len()).unwrap_or_else(|| panic!("{} records", given.len()));
        for (line, record) in given.iter().zip(&original[first..]) {
            assert_eq!(line.strip_suffix(b"\r").unwrap_or(line), record.text().as_bytes(), "verified, but changed");
        }
    }
}
