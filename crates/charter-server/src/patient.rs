//! A connection whose peer has to take what is written to it: one that reads nothing is closed, so
//! that it does not hold a place among the connections for ever.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection that fails with `TimedOut` once nothing could be written to it for `patience`.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    inner: S,
    patience: Duration,
    /// Ends the connection; `None` while the peer reads.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S, patience: Duration) -> Patient<S> {
        Patient { inner, patience, end: None }
    }

    /// Starts to wait when nothing can be written, and stops when something was.
    fn watched<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let end = Instant::now().checked_add(self.patience);
        let Some(until) = end else { return Poll::Pending };
        let sleep = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.watched(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.watched(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.watched(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up_and_a_slow_one_is_not() {
        let (own, mut peer) = tokio::io::duplex(4);
        let mut connection = Patient::new(own, Duration::from_secs(30));
        // A byte every 20 s is slow, but something.
        let slow = tokio::spawn(async move {
            let mut byte = [0u8; 1];
            for _ in 0..12 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                peer.read_exact(&mut byte).await.unwrap();
            }
            peer
        });
        connection.write_all(b"twelve bytes").await.unwrap();
        let _peer = slow.await.unwrap();
        connection.write_all(b"1234").await.unwrap();
        let began = Instant::now();
        let stuck = connection.write_all(b"5").await.unwrap_err();
        assert_eq!((stuck.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
    }
}
