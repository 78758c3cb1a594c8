//! The log that an earlier process has left.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rusqlite::Connection;

/// How much is written again at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// Writes the log that an earlier process has left again, as it is, and makes it durable.
///
/// If a sync of that process failed, its log can be read, but may not be on the disk, and no later
/// sync writes it: after the failure, Linux takes it for written
/// (<https://lwn.net/Articles/752063/>). What is appended to it, and a file into which a part of it
/// was moved, would then be lost or damaged by a power cut.
pub(super) fn write_again(connection: &Connection, path: &Path) -> rusqlite::Result<io::Result<()>> {
    let mut log = super::head::without_links(path).into_os_string();
    log.push("-wal");
    let log = Path::new(&log);
    if std::fs::metadata(log).map_or(0, |found| found.len()) == 0 {
        return Ok(Ok(()));
    }
    // Nobody else appends to it meanwhile.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let written = rewrite(log);
    connection.execute_batch("ROLLBACK")?;
    #[cfg(test)]
    if written.is_ok() {
        charter_test_disk::written_again(log);
    }
    Ok(written)
}

fn rewrite(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut at = 0;
    loop {
        chunk.clear();
        let read = (&file).take(CHUNK as u64).read_to_end(&mut chunk)?;
        if read == 0 {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&chunk)?;
        at = file.stream_position()?;
    }
    file.sync_all()?;
    // Its name, too.
    if cfg!(unix)
        && let Some(folder) = path.parent()
    {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
