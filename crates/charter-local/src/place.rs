//! Where the socket is: beside the journal file if the path is short enough for a socket, else in a
//! folder that only its owner can enter.

use std::io;
use std::path::{Path, PathBuf};

use charter_kernel::Digest;

use crate::transport::{Listener, listen};

/// Maximum length of the path of a socket, in bytes: `sun_path` has 104 on some systems.
const MAX_PATH_BYTES: usize = 100;

/// Creates the socket of a journal file. `folders` are tried in order if it cannot be beside the
/// file; they are created with access for their owner only.
pub(crate) fn bind(journal: &Path, folders: &[PathBuf]) -> io::Result<(Listener, PathBuf)> {
    let mut beside = journal.as_os_str().to_owned();
    beside.push("-socket");
    let mut failure = match fits(Path::new(&beside)) {
        true => match listen(Path::new(&beside)) {
            Ok(listener) => return Ok((listener, beside.into())),
            // The file system may not support sockets.
            Err(e) => e,
        },
        false => io::Error::new(io::ErrorKind::InvalidInput, "the path of the journal file is too long for a socket"),
    };
    let name = Digest::of_bytes(journal.as_os_str().as_encoded_bytes()).to_string();
    let name: String = name.chars().filter(char::is_ascii_hexdigit).rev().take(24).collect();
    for folder in folders {
        let path = folder.join(format!("{name}.sock"));
        match private(folder).and_then(|()| if fits(&path) { listen(&path) } else { Err(too_long()) }) {
            Ok(listener) => return Ok((listener, path)),
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "its path is too long for a socket")
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= MAX_PATH_BYTES
}

/// Creates a folder for its owner only, or checks that it is one.
fn private(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
        match std::fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let found = std::fs::symlink_metadata(folder)?;
        let own = found.is_dir() && found.uid() == crate::transport::own_user() && found.mode() & 0o077 == 0;
        match own {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("`{}` is not a folder of this user that is closed to others", folder.display()),
            )),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Err(io::ErrorKind::Unsupported.into())
    }
}
