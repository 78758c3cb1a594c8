//! The user of a process of this machine that is connected over TCP. Without keys, only the user of
//! the server is let in, as at its socket.

use std::net::SocketAddr;

/// Whether a connection comes from a process of the user of this process. Where the system does not
/// tell, it counts as one.
#[cfg(target_os = "linux")]
pub(crate) fn is_own_user(peer: SocketAddr, own: SocketAddr) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(me) = std::fs::metadata("/proc/self").map(|found| found.uid()) else { return true };
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts: Vec<String> = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok()).collect();
    match texts.is_empty() {
        true => true,
        // A connection that is not listed was closed by its peer.
        false => texts.iter().find_map(|text| user(text, peer, own)) == Some(me),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_own_user(_: SocketAddr, _: SocketAddr) -> bool {
    true
}

/// The user of a connection from `local` to `remote`, in a table of `/proc/net`.
#[cfg(target_os = "linux")]
fn user(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let port = |text: &str| text.rsplit(':').next().and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let mut found = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (from, to) = (fields.next()?, fields.next()?);
        let user = fields.nth(4)?.parse().ok()?;
        // Both ends are on this machine's loopback, where two ports name a connection.
        (port(from) == Some(local.port()) && port(to) == Some(remote.port())).then_some(user)
    });
    found.next()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_connection_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(own).unwrap();
        let peer = client.local_addr().unwrap();
        assert!(is_own_user(peer, own));
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert!(user(&table, peer, own).is_some());
        assert_eq!(user(&table, own, "127.0.0.1:1".parse().unwrap()), None);
        let other = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:9C40 0100007F:1BCD 01 00000000:00000000 00:00000000 00000000 65534        0 1 1\n";
        assert_eq!(user(other, "127.0.0.1:40000".parse().unwrap(), "127.0.0.1:7117".parse().unwrap()), Some(65534));
    }
}
