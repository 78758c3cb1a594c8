//! A client that does little itself: one connection, one request after the other.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A server, and the key for it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) secret: String,
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: TcpStream,
    head: String,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> Connection {
        let stream = TcpStream::connect(target.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", target.address, target.secret);
        Connection { stream, head, buffer: Vec::new() }
    }

    pub(crate) async fn send_event(&mut self, run: &str) {
        let status = self.post(&format!("/v1/runs/{run}/events"), &crate::event()).await;
        assert_eq!(status, 200);
    }

    /// Sends a request, and reads its answer; returns its status.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> u16 {
        let request = format!(
            "POST {path} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer().await
    }

    async fn answer(&mut self) -> u16 {
        self.buffer.clear();
        loop {
            assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0, "the server closes the connection");
            let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&self.buffer[..end]).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let all = end + 4 + length.parse::<usize>().unwrap();
            while self.buffer.len() < all {
                assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0);
            }
            return head.split(' ').nth(1).unwrap().parse().unwrap();
        }
    }

    /// Follows a stream, and forgets what it reads; returns when the first bytes have arrived.
    pub(crate) async fn follow(mut self, path: &str) -> tokio::task::JoinHandle<()> {
        let request = format!("GET {path} HTTP/1.1\r\n{}\r\n", self.head);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = [0u8; 512];
        let read = self.stream.read(&mut bytes).await.unwrap();
        assert!(bytes[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes[..read]));
        tokio::spawn(async move { while self.stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {} })
    }
}
