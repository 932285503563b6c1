//! Activity of a connection: a request is in progress, or the client reads bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use domain::tick::Tick;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use tokio_util::sync::CancellationToken;

use super::limits::Limits;
use runtime::clock::Clock;

/// State of one connection.
#[derive(Debug)]
pub(super) struct IdleTracker {
    clock: Clock,
    /// The headers of a request were complete.
    has_asked: AtomicBool,
    /// Requests without a response yet.
    under_way: AtomicUsize,
    /// Open event streams.
    streams: AtomicUsize,
    /// Cancelled when another connection gets the slot.
    closed: CancellationToken,
    /// Monotonic time at which a response began or a byte was written.
    moved_at: AtomicI64,
}

/// A request in progress, until its response begins.
pub(super) struct RequestInFlight(Arc<IdleTracker>);

impl RequestInFlight {
    /// The response is an event stream.
    pub(super) fn stream(&self) -> Streaming {
        self.0.stream()
    }
}

/// An event stream, until it ends.
pub(super) struct Streaming(Arc<IdleTracker>);

/// Activity of a connection and its last time, in the order in which connections are closed for others.
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

impl IdleTracker {
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

    pub(super) fn request(self: &Arc<Self>) -> RequestInFlight {
        self.has_asked.store(true, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        RequestInFlight(self.clone())
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

    /// Closes the connection in favour of another.
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

    fn record_activity(&self) {
        self.moved_at.store(self.clock.tick().0, Ordering::Relaxed);
    }

    /// Resolves when the connection is idle for too long. Checks only when that is possible.
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

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.record_activity();
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that records written bytes.
pub(super) struct TrackedIo<S> {
    pub(super) inner: S,
    pub(super) idle: Arc<IdleTracker>,
}

impl<S> TrackedIo<S> {
    fn record_written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(1..)) = written {
            self.idle.record_activity();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.record_written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.record_written(written)
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
