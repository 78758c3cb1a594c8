//! The reflection store: what was learned in good and failed cycles, append-only, for the planning of the next.
//!
//! One JSON object per line beside the database, per workspace. The same insights stand in the journal (the answer of the actor that
//! reflects), where SQL finds them; this file is what another run on the same workspace reads.

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
pub enum CycleOutcome {
    /// As intended.
    Success,
    /// Some of it.
    Partial,
    /// Not at all.
    Failed,
}

/// Something learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insight {
    /// How the cycle ended that taught it.
    pub outcome: CycleOutcome,
    /// What kind of thing it is: `verification`, `conflict`, `style`, ...
    pub category: String,
    /// What was learned, in a sentence.
    pub description: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What shows it: paths, digests, output.
    #[serde(default)]
    pub evidence: Json,
}

/// An insight and the cycle it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredInsight {
    /// What the caller calls the cycle; insights under a key that is there already are not added again.
    pub key: String,
    /// The insight.
    pub insight: Insight,
}

/// Bytes of an insight as JSON.
const MAX_BYTES: usize = 64 << 10;
const FILE: &str = "insights.jsonl";

impl Workspace {
    /// Adds the insights of a cycle. Adding them again under the same key changes nothing.
    ///
    /// # Errors
    /// When they are too large or cannot be written.
    pub fn learn(&self, key: &str, insights: &[Insight], watch: &mut dyn Watch) -> Result<(), Error> {
        let path = self.state.join(FILE);
        let doing = || format!("write `{}`", path.display());
        // A crash may have kept the first of them only.
        let known = self.learned()?.iter().filter(|l| l.key == key).count();
        if known >= insights.len() {
            return Ok(());
        }
        // A line that a crash has cut stays without its line feed: the next begins on a line of its own.
        let mut text = if cut(&path) { "\n".to_owned() } else { String::new() };
        for insight in insights.iter().skip(known) {
            let line = serde_json::to_string(&StoredInsight { key: key.to_owned(), insight: insight.clone() });
            let line = line.map_err(|e| Error::Damaged(e.to_string()))?;
            if line.len() > MAX_BYTES {
                return Err(Error::TooLarge(format!("an insight has {} bytes, more than {MAX_BYTES}", line.len())));
            }
            text.push_str(&line);
            text.push('\n');
        }
        watch.before("write", FILE).context(doing)?;
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        opened.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all())).context(doing)?;
        store::sync(&self.state)
    }

    /// All insights about this workspace, oldest first. Lines that a crash has cut are passed over.
    ///
    /// # Errors
    /// When they cannot be read.
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
fn cut(path: &std::path::Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes.last().is_some_and(|b| *b != b'\n'))
}
