//! Damage to a journal file, its log and its head. An input is a list of changes, each of 8 bytes
//! and the bytes to write: which file and what to do (1 byte), where (4 bytes), how much (1 byte),
//! two bytes without a meaning.

use charter_journal::{SqliteStore, Store, VerifyOptions, verify_with};

use crate::base::{self, Files, RUN};

/// Maximum number of changes of an input.
const CHANGES: usize = 32;

pub(crate) fn run(data: &[u8]) {
    let base = base::files();
    let mut files = base.files.clone();
    change(&mut files, data);
    let folder = base::folder();
    for (name, content) in &files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let file = folder.path().join("journal.db");
    let original = base::records();
    for write in [false, true] {
        let opened = if write { SqliteStore::open(&file) } else { SqliteStore::open_read_only(&file) };
        let store = match opened {
            Ok(store) => store,
            Err(e) => {
                assert!(!e.to_string().is_empty());
                continue;
            }
        };
        let anchor = (base.head.entries, base.head.hash);
        let options = VerifyOptions { heads: vec![anchor], ..VerifyOptions::default() };
        match verify_with(&store, &options) {
            Ok(report) if report.is_verified() => {
                let records = store.records(RUN, 0, usize::MAX).unwrap_or_else(|e| panic!("verified, but: {e}"));
                assert_eq!(records, original, "verified, but changed");
            }
            Ok(_) | Err(_) => {}
        }
    }
}

fn change(files: &mut Files, mut data: &[u8]) {
    let names: Vec<String> = files.keys().cloned().collect();
    for _ in 0..CHANGES {
        let Some((head, rest)) = data.split_at_checked(8) else {
            return;
        };
        let name = &names[usize::from(head[0] % 4) % names.len()];
        let at = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let content = files.get_mut(name).unwrap();
        let at = at % (content.len() + 1);
        let len = usize::from(head[5]);
        data = rest;
        match head[0] / 4 % 5 {
            // Bytes are replaced by those that follow.
            0 | 1 => {
                let (new, rest) = rest.split_at(len.min(rest.len()));
                data = rest;
                content.iter_mut().skip(at).zip(new).for_each(|(old, new)| *old = *new);
            }
            2 => content.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (len % 8)),
            3 => content.truncate(at),
            // A page is copied over another one.
            _ => {
                let from = at / 4_096 * 4_096;
                let page: Vec<u8> = content.iter().skip(from).take(4_096).copied().collect();
                content.iter_mut().skip(len * 4_096).zip(page).for_each(|(old, new)| *old = new);
            }
        }
    }
}
