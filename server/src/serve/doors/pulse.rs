//! Whether a connection still does something: a request is under way, or bytes are taken by the other side.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use domain::observation::Tick;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use crate::clock::Clock;

/// Of one connection.
#[derive(Debug)]
pub(super) struct Pulse {
    clock: Clock,
    /// A request's headers came whole.
    has_asked: AtomicBool,
    /// Requests whose answer has not begun.
    under_way: AtomicUsize,
    /// Event streams that are open.
    streams: AtomicUsize,
    /// Cancelled when another connection gets its place.
    closed: CancellationToken,
    /// When an answer began, or a byte was taken, by our monotonic clock.
    moved_at: AtomicI64,
}

/// A request under way, until its answer begins.
pub(super) struct Busy(Arc<Pulse>);

impl Busy {
    /// Its answer is an event stream.
    pub(super) fn stream(&self) -> Streaming {
        self.0.stream()
    }
}

/// An event stream, until it ends.
pub(super) struct Streaming(Arc<Pulse>);

/// What a connection does, and when it did something last. In the order in which connections are closed for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    Idle(Tick),
    Streaming(Tick),
    Busy(Tick),
}

impl Activity {
    pub(super) const fn is_idle(self) -> bool {
        matches!(self, Self::Idle(_))
    }
}

impl Pulse {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        let now = clock.tick().0;
        Arc::new(Self {
            clock,
            has_asked: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            closed: CancellationToken::new(),
            moved_at: AtomicI64::new(now),
        })
    }

    pub(super) fn request(self: &Arc<Self>) -> Busy {
        self.has_asked.store(true, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    pub(super) fn stream(self: &Arc<Self>) -> Streaming {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Streaming(self.clone())
    }

    pub(super) fn activity(&self) -> Activity {
        let moved_at = Tick(self.moved_at.load(Ordering::Relaxed));
        if self.under_way.load(Ordering::Relaxed) > 0 {
            return Activity::Busy(moved_at);
        }
        if self.streams.load(Ordering::Relaxed) > 0 {
            return Activity::Streaming(moved_at);
        }
        Activity::Idle(moved_at)
    }

    /// Its place is another connection's.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    fn moved(&self) {
        self.moved_at.store(self.clock.tick().0, Ordering::Relaxed);
    }

    /// Resolves when it does nothing any more. Looks only when it could have come to that.
    pub(super) async fn silent(&self, limits: &Limits) {
        let begun = self.clock.tick();
        let mut wait = limits.first_request_max;
        loop {
            tokio::time::sleep(wait).await;
            let (since, max) = match self.has_asked.load(Ordering::Relaxed) {
                false => (begun, limits.first_request_max),
                true => (Tick(self.moved_at.load(Ordering::Relaxed)), limits.silence_max),
            };
            let quiet = Duration::from_millis(u64::try_from(self.clock.tick().since(since)).unwrap_or(0));
            let is_busy = self.under_way.load(Ordering::Relaxed) > 0;
            wait = match max.checked_sub(quiet) {
                Some(left) if !left.is_zero() => left,
                _ if is_busy => max,
                _ => return,
            };
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.moved();
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that notes what the other side takes.
pub(super) struct Beating<S> {
    pub(super) inner: S,
    pub(super) pulse: Arc<Pulse>,
}

impl<S> Beating<S> {
    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(1..)) = written {
            self.pulse.moved();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Beating<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Beating<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
