//! Folders and files, accessed through handles. Each folder of a path is opened separately without
//! following links, so replacing a folder with a link during an operation does not redirect it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use charter_kernel::Digest;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::error::{Context as _, Error};
use crate::path::RelPath;

/// An open folder of the workspace.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    device: u64,
    /// Whether two names may be exchanged atomically; tests disable this to simulate file systems
    /// that do not support it.
    exchanges: bool,
}

/// What a name refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Absent,
    File {
        size: u64,
        mode: u32,
        /// User and group.
        owner: (u32, u32),
    },
    Link {
        target: String,
    },
    Folder,
    /// A device, pipe or socket, or a folder on another file system.
    Other(&'static str),
}

impl Node {
    /// Describes the node, for a message: the text follows "is".
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Node::Absent => "missing",
            Node::File { .. } => "a file",
            Node::Link { .. } => "a symbolic link",
            Node::Folder => "a folder",
            Node::Other(what) => what,
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Dir {
    /// Opens the root: the folder that a person named, following links.
    pub(crate) fn root(path: &Path) -> Result<Dir, Error> {
        let doing = || format!("open the workspace `{}`", path.display());
        let fd = rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty()).context(doing)?;
        let device = device(&rustix::fs::fstat(&fd).context(doing)?);
        Ok(Dir { fd, device, exchanges: true })
    }

    /// Duplicates the handle of the folder.
    pub(crate) fn again(&self) -> Result<Dir, Error> {
        let fd = self.fd.try_clone().context(|| "duplicate a folder handle".into())?;
        Ok(Dir { fd, device: self.device, exchanges: self.exchanges })
    }

    /// The device and the number of the open folder.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // the type differs between systems
    pub(crate) fn identity(&self) -> Result<(u64, u64), Error> {
        let stat = rustix::fs::fstat(&self.fd).context(|| "inspect the workspace".into())?;
        Ok((device(&stat), stat.st_ino as u64))
    }

    #[cfg(test)]
    pub(crate) fn without_exchange(&mut self) {
        self.exchanges = false;
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.fd
    }

    /// Opens a subfolder: a real folder on the same file system; returns `None` if it is missing.
    pub(crate) fn enter(&self, name: &str, path: &str) -> Result<Option<Dir>, Error> {
        let fd = match rustix::fs::openat(&self.fd, name, FOLDER, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let what = self.node(name, path)?;
                return Err(escape(path, &format!("`{name}` is {}, not a folder", what.describe())));
            }
            Err(e) => return Err(e).context(|| format!("open the folder `{name}` of `{path}`")),
        };
        let stat = rustix::fs::fstat(&fd).context(|| format!("inspect `{name}`"))?;
        if device(&stat) != self.device {
            return Err(escape(path, &format!("`{name}` is on another file system")));
        }
        Ok(Some(Dir { fd, device: self.device, exchanges: self.exchanges }))
    }

    /// Opens the parent folder of a path; returns it with the path's last name, or `None` if a
    /// folder is missing.
    pub(crate) fn parent<'p>(&self, path: &'p RelPath) -> Result<Option<(Dir, &'p str)>, Error> {
        let (folders, name) = path.split();
        let mut dir = self.again()?;
        for folder in folders {
            match dir.enter(folder, path.as_str())? {
                Some(below) => dir = below,
                None => return Ok(None),
            }
        }
        Ok(Some((dir, name)))
    }

    /// Returns what a name refers to, without following links.
    pub(crate) fn node(&self, name: &str, path: &str) -> Result<Node, Error> {
        let stat = match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Node::Absent),
            Err(e) => return Err(e).context(|| format!("inspect `{path}`")),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => file_node(&stat),
            FileType::Symlink => {
                let target =
                    rustix::fs::readlinkat(&self.fd, name, Vec::new()).context(|| format!("read the link `{path}`"))?;
                match target.into_string() {
                    Ok(target) => Node::Link { target },
                    Err(_) => Node::Other("a link whose target is not UTF-8"),
                }
            }
            FileType::Directory if device(&stat) == self.device => Node::Folder,
            FileType::Directory => Node::Other("a folder on another file system"),
            FileType::Fifo => Node::Other("a pipe"),
            FileType::Socket => Node::Other("a socket"),
            _ => Node::Other("a device"),
        })
    }

    /// Opens a regular file for reading; anything else is an error.
    pub(crate) fn open_file(&self, name: &str, path: &str) -> Result<(File, Node), Error> {
        // Without NONBLOCK, opening a pipe would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::LOOP) => {
                return Err(escape(path, "is a symbolic link, which is not followed"));
            }
            Err(e) => return Err(e).context(|| format!("open `{path}`")),
        };
        let stat = rustix::fs::fstat(&fd).context(|| format!("inspect `{path}`"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(escape(path, "is not a regular file"));
        }
        if device(&stat) != self.device {
            return Err(escape(path, "is on another file system"));
        }
        Ok((File::from(fd), file_node(&stat)))
    }

    /// Returns the content and mode of a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, name: &str, path: &str, limit: u64) -> Result<(Vec<u8>, u32), Error> {
        let (file, node) = self.open_file(name, path)?;
        let Node::File { size, mode, .. } = node else {
            return Err(escape(path, "is not a regular file"));
        };
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or_default());
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).context(|| format!("read `{path}`"))?;
        if bytes.len() as u64 > limit {
            return Err(Error::TooLarge(format!("`{path}` is larger than {limit} bytes")));
        }
        Ok((bytes, mode))
    }

    /// Computes the SHA-256 of a regular file.
    pub(crate) fn digest(&self, name: &str, path: &str) -> Result<Digest, Error> {
        let (mut file, _) = self.open_file(name, path)?;
        let (mut hasher, mut buffer) = (Sha256::new(), vec![0u8; 64 << 10]);
        loop {
            let n = file.read(&mut buffer).context(|| format!("read `{path}`"))?;
            if n == 0 {
                return Ok(Digest(hasher.finalize().into()));
            }
            hasher.update(buffer.get(..n).unwrap_or_default());
        }
    }

    /// Writes and syncs a new file, of another owner if one is given.
    pub(crate) fn write_new(
        &self,
        name: &str,
        bytes: &[u8],
        mode: u32,
        owner: Option<(u32, u32)>,
        path: &str,
    ) -> Result<(), Error> {
        let doing = || format!("write `{path}`");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600)).context(doing)?;
        let mut file = File::from(fd);
        file.write_all(bytes).context(doing)?;
        let stat = rustix::fs::fstat(&file).context(|| format!("inspect `{path}`"))?;
        if let Some((user, group)) = owner.filter(|owner| *owner != (stat.st_uid, stat.st_gid)) {
            let keep = || format!("keep the owner of `{path}` (user {user}, group {group})");
            rustix::fs::fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).context(keep)?;
        }
        // Changing the owner clears some bits of the mode.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777)).context(doing)?;
        file.sync_all().context(doing)
    }

    /// Syncs the names in this folder to disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        rustix::fs::fsync(&self.fd).context(|| "sync a folder".into())
    }

    /// Creates a folder; returns `false` if it exists.
    pub(crate) fn create_folder(&self, name: &str, path: &str) -> Result<bool, Error> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(e).context(|| format!("create the folder `{path}`")),
        }
    }

    pub(crate) fn link(&self, target: &str, name: &str, path: &str) -> Result<(), Error> {
        rustix::fs::symlinkat(target, &self.fd, name).context(|| format!("create the link `{path}`"))
    }

    /// Removes a name that is not a folder, if it exists.
    pub(crate) fn remove(&self, name: &str, path: &str) -> Result<(), Error> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e).context(|| format!("remove `{path}`")),
        }
    }

    /// Removes an empty folder; returns `false` if it is not empty or does not exist.
    pub(crate) fn remove_empty(&self, name: &str, path: &str) -> Result<bool, Error> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(e) => Err(e).context(|| format!("remove the folder `{path}`")),
        }
    }

    /// Moves a file to an unused name in `there`; returns `false` if the name is in use.
    pub(crate) fn move_new(&self, name: &str, there: &Dir, to: &str, path: &str) -> Result<bool, Error> {
        let doing = || format!("move `{path}` into place");
        let moved = if self.exchanges {
            rustix::fs::renameat_with(&self.fd, name, &there.fd, to, RenameFlags::NOREPLACE)
        } else {
            Err(Errno::NOSYS)
        };
        match moved {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            Err(e) => return Err(e).context(doing),
        }
        // File systems without NOREPLACE: creating a hard link also fails if the name is in use.
        match rustix::fs::linkat(&self.fd, name, &there.fd, to, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(e) => return Err(e).context(doing),
        }
        self.remove(name, path).map(|()| true)
    }

    /// Moves a file to a name in `there`, replacing an existing file.
    pub(crate) fn move_over(&self, name: &str, there: &Dir, to: &str, path: &str) -> Result<(), Error> {
        rustix::fs::renameat(&self.fd, name, &there.fd, to).context(|| format!("move `{path}`"))
    }

    /// Exchanges two names atomically; returns `false` if the file system does not support it.
    pub(crate) fn exchange(&self, name: &str, there: &Dir, to: &str, path: &str) -> Result<bool, Error> {
        let exchanged = if self.exchanges {
            rustix::fs::renameat_with(&self.fd, name, &there.fd, to, RenameFlags::EXCHANGE)
        } else {
            Err(Errno::NOSYS)
        };
        match exchanged {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(e) => Err(e).context(|| format!("move `{path}` into place")),
        }
    }

    /// Lists the names in the folder, sorted, and separately the names that are not UTF-8.
    pub(crate) fn names(&self, path: &str) -> Result<(Vec<String>, Vec<String>), Error> {
        let doing = || format!("list the folder `{path}`");
        let (mut names, mut invalid) = (Vec::new(), Vec::new());
        for entry in rustix::fs::Dir::read_from(self.fd.as_fd()).context(doing)? {
            let entry = entry.context(doing)?;
            match entry.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(name) => names.push(name.to_owned()),
                Err(_) => invalid.push(entry.file_name().to_string_lossy().into_owned()),
            }
        }
        names.sort();
        invalid.sort();
        Ok((names, invalid))
    }
}

#[allow(clippy::useless_conversion)] // the type differs between systems
fn file_node(stat: &Stat) -> Node {
    Node::File {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        mode: u32::from(Mode::from_raw_mode(stat.st_mode).bits()) & 0o7777,
        owner: (stat.st_uid, stat.st_gid),
    }
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // the type differs between systems
fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

pub(crate) fn escape(path: &str, why: &str) -> Error {
    Error::Escape { path: path.to_owned(), why: why.to_owned() }
}
