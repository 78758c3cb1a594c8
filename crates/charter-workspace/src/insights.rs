//! Insights from successful and failed cycles, stored append-only and used to plan the next cycle.
//!
//! There is one file of JSON lines per workspace, in the store. The same insights are in the
//! journal (in the answer of the reflecting actor), where SQL can query them; other runs on the
//! same workspace read this file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Context as _, Error};
use crate::store;
use crate::watch::Watch;
use crate::workspace::Workspace;

/// How a cycle ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CycleOutcome {
    /// The goal was reached.
    Success,
    /// The goal was reached in part.
    Partial,
    /// The goal was not reached.
    Failed,
}

/// An insight from a cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insight {
    /// How the cycle ended.
    pub outcome: CycleOutcome,
    /// Category: `verification`, `conflict`, `style`, ...
    pub category: String,
    /// What was learned, in a sentence.
    pub description: String,
    /// Search tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Evidence: paths, digests, output.
    #[serde(default)]
    pub evidence: Json,
}

/// An insight, with the key of its cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredInsight {
    /// The caller's key of the cycle; insights are stored once per key.
    pub key: String,
    /// The insight.
    pub insight: Insight,
}

/// Maximum size of an insight as JSON, in bytes.
const MAX_BYTES: usize = 64 << 10;
const FILE: &str = "insights.jsonl";

impl Workspace {
    /// Adds the insights of a cycle. Idempotent per key.
    ///
    /// # Errors
    /// An insight is too large, or the file cannot be written.
    pub fn learn(&self, key: &str, insights: &[Insight], watch: &mut dyn Watch) -> Result<(), Error> {
        let path = self.state.join(FILE);
        let doing = || format!("write `{}`", path.display());
        // After a crash, possibly only the first ones were stored.
        let known = self.learned()?.iter().filter(|l| l.key == key).count();
        if known >= insights.len() {
            return Ok(());
        }
        // A line truncated by a crash has no line feed, so start a new line.
        let mut text = if ends_mid_line(&path) { "\n".to_owned() } else { String::new() };
        for insight in insights.iter().skip(known) {
            let line = serde_json::to_string(&StoredInsight { key: key.to_owned(), insight: insight.clone() });
            let line = line.map_err(|e| Error::Damaged(e.to_string()))?;
            if line.len() > MAX_BYTES {
                return Err(Error::TooLarge(format!("an insight has {} bytes; the limit is {MAX_BYTES}", line.len())));
            }
            text.push_str(&line);
            text.push('\n');
        }
        watch.before("write", FILE).context(doing)?;
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        opened.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all())).context(doing)?;
        store::sync(&self.state)
    }

    /// Returns all insights about this workspace, oldest first. Lines truncated by a crash are
    /// skipped.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn learned(&self) -> Result<Vec<StoredInsight>, Error> {
        let path = self.state.join(FILE);
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.context(|| format!("read `{}`", path.display()))?,
        };
        let mut all = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            let line = line.context(|| format!("read `{}`", path.display()))?;
            all.extend(serde_json::from_slice::<StoredInsight>(&line).ok());
        }
        Ok(all)
    }
}

/// Whether the last line has no line feed.
fn ends_mid_line(path: &std::path::Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.last().is_some_and(|b| *b != b'\n'))
}
