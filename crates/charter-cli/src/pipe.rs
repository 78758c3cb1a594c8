//! Files to read that may be pipes, as in `charter import <(ssh host charter export r)`.

use std::fs::File;
use std::io::{Chain, Cursor, Read};
use std::path::Path;

/// A file that is open for reading.
pub(crate) type Opened = Chain<Cursor<Vec<u8>>, File>;

/// Opens a file for reading. A pipe needs a process that writes to it, or the command would wait
/// forever.
///
/// # Errors
/// The file cannot be opened, or no process writes to the pipe.
pub(crate) fn open(path: &Path) -> std::io::Result<Opened> {
    #[cfg(unix)]
    if fifo::is(path) {
        return fifo::open(path);
    }
    Ok(Cursor::new(Vec::new()).chain(File::open(path)?))
}

/// Whether a file can be read only once.
pub(crate) fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

#[cfg(unix)]
mod fifo {
    use std::fs::OpenOptions;
    use std::io::{Cursor, Error, ErrorKind, Read as _};
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::Opened;

    /// How long a pipe may have no process that writes to it.
    const PATIENCE: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(10);

    pub(super) fn is(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
    }

    pub(super) fn open(path: &Path) -> std::io::Result<Opened> {
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let mut file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
        let begin = Instant::now();
        let mut first = [0; 1];
        let first = loop {
            match file.read(&mut first) {
                // No process has it open for writing, or had and has written nothing.
                Ok(0) if begin.elapsed() > PATIENCE => {
                    return Err(Error::new(ErrorKind::TimedOut, "it is a pipe, and no process writes to it"));
                }
                Ok(0) => std::thread::sleep(PAUSE),
                Ok(_) => break first.to_vec(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break Vec::new(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        };
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok(Cursor::new(first).chain(file))
    }
}
