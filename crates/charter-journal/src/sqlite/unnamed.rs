//! Blobs that were stored for a record that is not written yet. Until then nothing names them, but
//! the deletion of a run that names them, too, must not remove them.

use std::collections::BTreeSet;

use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::delete::digests;

/// Maximum number of blobs of each generation.
const MAX_BLOBS: usize = 50_000;

/// How often each blob was stored without a record that named it afterwards.
#[derive(Debug, Default)]
pub(super) struct Unnamed {
    /// The latest ones, and those before them. Some are never named: what stored them has failed.
    generations: [FxHashMap<String, u32>; 2],
    /// What the records of this transaction name.
    named: Vec<String>,
}

impl Unnamed {
    /// Notes that a blob was stored, or was there already.
    pub(super) fn stored(&mut self, digest: String) {
        let [new, old] = &mut self.generations;
        if new.len() >= MAX_BLOBS {
            *old = std::mem::take(new);
        }
        let times = new.entry(digest).or_default();
        *times = times.saturating_add(1);
    }

    /// Whether a record that is not written yet may name a blob.
    pub(super) fn contains(&self, digest: &str) -> bool {
        self.generations.iter().any(|all| all.contains_key(digest))
    }

    /// Notes a record of this transaction.
    pub(super) fn record(&mut self, text: &str) {
        if self.generations.iter().any(|all| !all.is_empty()) {
            let mut found = BTreeSet::new();
            digests(text.as_bytes(), &mut found);
            found.retain(|digest| self.contains(digest));
            self.named.extend(found);
        }
    }

    /// Takes note of the commit: what its records name, and what these blobs name, is named now.
    pub(super) fn committed(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        while let Some(digest) = self.named.pop() {
            if !self.take(&digest) {
                continue;
            }
            let mut found = BTreeSet::new();
            let mut select = connection.prepare_cached("SELECT data FROM blobs WHERE digest = ?1")?;
            let mut rows = select.query([&digest])?;
            if let Some(row) = rows.next()? {
                digests(row.get_ref(0)?.as_bytes()?, &mut found);
            }
            found.retain(|inner| self.contains(inner));
            self.named.extend(found);
        }
        Ok(())
    }

    /// Takes note of a rollback.
    pub(super) fn rolled_back(&mut self) {
        self.named.clear();
    }

    fn take(&mut self, digest: &str) -> bool {
        let Some((all, times)) = self.generations.iter_mut().find_map(|all| {
            let times = all.get(digest).copied()?;
            Some((all, times))
        }) else {
            return false;
        };
        match times {
            ..=1 => drop(all.remove(digest)),
            _ => drop(all.insert(digest.to_owned(), times.saturating_sub(1))),
        }
        true
    }
}
