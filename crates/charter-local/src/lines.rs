//! Lines of text on a stream, with limits of size and time.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// How long a peer may take to accept a line.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// Bytes to read at a time.
const CHUNK: usize = 16 << 10;

/// Why no line was read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("the line is longer than {0} bytes")]
    TooLong(usize),
    #[error("the line is not valid UTF-8")]
    NotText,
    #[error("the peer is too slow")]
    Slow,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads lines. Dropping a future loses no data.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    from: R,
    buffer: Vec<u8>,
    /// The bytes of the buffer that contain no line feed.
    scanned: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(from: R) -> LineReader<R> {
        LineReader { from, buffer: Vec::new(), scanned: 0 }
    }

    /// Waits for the first bytes of a line; returns false at the end of the stream.
    pub(crate) async fn begins(&mut self) -> Result<bool, LineError> {
        Ok(!self.buffer.is_empty() || self.fill().await? > 0)
    }

    /// Reads a line without its line feed; `None` at the end of the stream, even in the middle of a
    /// line.
    pub(crate) async fn next(&mut self, max: usize) -> Result<Option<String>, LineError> {
        loop {
            let rest = self.buffer.get(self.scanned..).unwrap_or_default();
            if let Some(at) = rest.iter().position(|b| *b == b'\n') {
                let end = self.scanned.saturating_add(at);
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                self.scanned = 0;
                line.pop();
                return String::from_utf8(line).map(Some).map_err(|_| LineError::NotText);
            }
            self.scanned = self.buffer.len();
            if self.scanned > max {
                return Err(LineError::TooLong(max));
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn fill(&mut self) -> Result<usize, LineError> {
        self.buffer.reserve(CHUNK);
        Ok(self.from.read_buf(&mut self.buffer).await?)
    }
}

/// Writes a line.
pub(crate) async fn write_line(to: &mut (impl AsyncWrite + Unpin), mut line: String) -> Result<(), LineError> {
    line.push('\n');
    let write = async {
        to.write_all(line.as_bytes()).await?;
        to.flush().await
    };
    match tokio::time::timeout(WRITE_TIME, write).await {
        Ok(written) => Ok(written?),
        Err(_) => Err(LineError::Slow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_in_pieces_and_within_the_limit() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut lines = LineReader::new(far);
        near.write_all(b"one\ntw").await.unwrap();
        assert_eq!(lines.next(10).await.unwrap().unwrap(), "one");
        // A future that is dropped loses nothing.
        assert!(tokio::time::timeout(Duration::from_millis(1), lines.next(10)).await.is_err());
        near.write_all(b"o\n\xff\n").await.unwrap();
        assert_eq!(lines.next(10).await.unwrap().unwrap(), "two");
        assert!(matches!(lines.next(10).await, Err(LineError::NotText)));
        near.write_all(b"01234567890").await.unwrap();
        assert!(matches!(lines.next(10).await, Err(LineError::TooLong(10))));
        drop(near);
        let mut ended = LineReader::new(&b"half"[..]);
        assert!(ended.begins().await.unwrap());
        assert_eq!(ended.next(10).await.unwrap(), None);
    }
}
