//! The socket. Without Unix sockets, opening one is an error, and everything else compiles.

#[cfg(unix)]
pub(crate) use unix::{Listener, Stream, connect, foreign, listen, own_user, peer};

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    use std::path::Path;

    pub(crate) use tokio::net::{UnixListener as Listener, UnixStream as Stream};

    /// Connections that may wait to be accepted.
    #[cfg(target_os = "linux")]
    const BACKLOG: i32 = 4096;

    /// Creates a socket that only its owner may use. A socket that a killed process has left at
    /// this path is replaced; another file is not.
    pub(crate) fn listen(path: &Path) -> io::Result<Listener> {
        if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        let listener = bind(path)?;
        // Until then, the peers of other users are refused by their user id.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// On Linux, the file gets the mode that the socket has, so it is never open to others.
    #[cfg(target_os = "linux")]
    pub(super) fn bind(path: &Path) -> io::Result<Listener> {
        use rustix::fs::{Mode, fchmod};
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, BACKLOG)?;
        Listener::from_std(socket.into())
    }

    #[cfg(not(target_os = "linux"))]
    fn bind(path: &Path) -> io::Result<Listener> {
        Listener::bind(path)
    }

    pub(crate) async fn connect(path: &Path) -> io::Result<Stream> {
        Stream::connect(path).await
    }

    /// The user id and the process id of the peer, from the kernel.
    pub(crate) fn peer(stream: &Stream) -> io::Result<(u32, Option<i32>)> {
        stream.peer_cred().map(|c| (c.uid(), c.pid()))
    }

    /// The user id of this process.
    pub(crate) fn own_user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// The other user whose socket refuses the connections of this one.
    pub(crate) fn foreign(path: &Path, e: &io::Error) -> Option<u32> {
        use std::os::unix::fs::MetadataExt as _;
        let owner = std::fs::metadata(path).ok().filter(|_| e.kind() == io::ErrorKind::PermissionDenied)?.uid();
        (owner != own_user()).then_some(owner)
    }
}

#[cfg(not(unix))]
pub(crate) use elsewhere::{Listener, Stream, connect, foreign, listen, own_user, peer};

#[cfg(not(unix))]
mod elsewhere {
    use std::io;
    use std::path::Path;

    pub(crate) use tokio::io::DuplexStream as Stream;

    pub(crate) struct Listener;

    impl Listener {
        pub(crate) async fn accept(&self) -> io::Result<(Stream, ())> {
            std::future::pending().await
        }
    }

    pub(crate) fn listen(_: &Path) -> io::Result<Listener> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) async fn connect(_: &Path) -> io::Result<Stream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn peer(_: &Stream) -> io::Result<(u32, Option<i32>)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn own_user() -> u32 {
        0
    }

    pub(crate) fn foreign(_: &Path, _: &io::Error) -> Option<u32> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    /// Somebody may look, or connect, at any moment.
    #[test]
    fn a_socket_is_closed_to_others_from_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let _listener = super::unix::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
}
