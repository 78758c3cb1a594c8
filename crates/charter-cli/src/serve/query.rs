//! Queries of administrators, each answered by a process of its own: `SQLite`'s limit of memory is
//! one of the whole process, and the server has the journal open for writing.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use charter_actors::BoxFuture;
use charter_server::{JournalFile, QueryError, Rows};
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Maximum number of rows of an answer.
const MAX_ROWS: usize = 1_000;
/// Maximum size of an answer in bytes, as JSON.
const MAX_BYTES: u64 = 2 << 20;
/// Maximum size of what an error says.
const MAX_ERROR_BYTES: u64 = 16 << 10;
/// Time that a query may take, in seconds; its process ends soon after, and is killed if it does
/// not.
const SECONDS: u64 = 10;
const ALL: Duration = Duration::from_secs(SECONDS + 5);

/// A journal file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
}

impl JournalFile for File {
    fn bytes(&self) -> Option<u64> {
        let size = |suffix: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            std::fs::metadata(path).map(|found| found.len())
        };
        let file = size("").ok()?;
        // Both are there only while a process has the journal open.
        Some(["-wal", "-shm"].iter().filter_map(|suffix| size(suffix).ok()).fold(file, u64::saturating_add))
    }

    fn select(&self, query: String) -> BoxFuture<'_, Result<Rows, QueryError>> {
        Box::pin(async move {
            let mut child = self.start(&query).map_err(|e| QueryError::Journal(e.to_string()))?;
            match tokio::time::timeout(ALL, answer(&mut child)).await {
                Ok(answer) => answer,
                Err(_) => Err(QueryError::Query(format!("the query was stopped after {ALL:?}"))),
            }
        })
    }
}

impl File {
    fn start(&self, query: &str) -> std::io::Result<Child> {
        // The program itself, also if its file was replaced meanwhile.
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        Command::new(program)
            .args(["--json", "sql", "--arrays", "--no-host-state", "--timeout", &SECONDS.to_string(), "--"])
            .arg(&self.path)
            .arg(query)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// Reads what the process prints, as far as it is wanted.
async fn answer(child: &mut Child) -> Result<Rows, QueryError> {
    let journal = |e: &dyn std::fmt::Display| QueryError::Journal(e.to_string());
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(QueryError::Journal("its process has no output".into()));
    };
    let mut found = Rows::default();
    let mut lines = BufReader::new(out.take(MAX_BYTES)).lines();
    let mut named = false;
    while let Some(line) = lines.next_line().await.map_err(|e| journal(&e))? {
        let Ok(Json::Array(cells)) = serde_json::from_str(&line) else {
            // The last line is cut off.
            found.more = true;
            break;
        };
        if !named {
            found.columns = cells.iter().filter_map(Json::as_str).map(str::to_owned).collect();
            named = true;
        } else if found.rows.len() < MAX_ROWS {
            found.rows.push(cells);
        } else {
            found.more = true;
            break;
        }
    }
    if found.more {
        let _ = child.kill().await;
        return Ok(found);
    }
    let mut said = Vec::new();
    err.take(MAX_ERROR_BYTES).read_to_end(&mut said).await.map_err(|e| journal(&e))?;
    let status = child.wait().await.map_err(|e| journal(&e))?;
    if status.success() {
        // Exactly as much as fits was read: there may be more.
        found.more = lines.get_ref().get_ref().limit() == 0;
        return Ok(found);
    }
    let message = serde_json::from_slice::<Json>(&said).ok();
    let message = message.as_ref().and_then(|said| said.pointer("/error/message")).and_then(Json::as_str);
    match message {
        Some(message) => Err(QueryError::Query(message.to_owned())),
        None => Err(QueryError::Journal(format!("its process ended with {status}"))),
    }
}
