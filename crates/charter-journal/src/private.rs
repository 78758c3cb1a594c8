//! Files that only their owner reads: journals contain the data of events and the secrets of
//! webhooks.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that only its owner may read and write, whatever the umask.
///
/// # Errors
/// There is such a file, or it cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create_new(true)).open(path)
}

/// Sets the mode of files that are created.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Lets those read a file beside a journal who may read the journal.
#[cfg(feature = "sqlite")]
pub(crate) fn share_like(file: &File, journal: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if let Ok(found) = std::fs::metadata(journal) {
            let mode = found.permissions().mode() & 0o666 | 0o600;
            return file.set_permissions(std::fs::Permissions::from_mode(mode));
        }
    }
    let _ = (file, journal);
    Ok(())
}

/// The mode of a file that its group or others may read.
#[must_use]
pub fn shared_mode(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
        (mode & 0o044 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
