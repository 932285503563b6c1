//! Timeout of request bodies, and draining of bodies that a handler did not read.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::{Sleep, sleep, timeout};

use super::idle_timeout::Streaming;
use super::limits::{DRAIN_MAX, DRAINED_BYTES_MAX};

#[derive(Debug, Error)]
pub(super) enum BodyTimeoutError {
    #[error("the body did not end within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// The body of an event stream: the connection is in use until it ends.
pub(super) struct EventStreamBody {
    inner: Body,
    _streaming: Streaming,
}

impl EventStreamBody {
    pub(super) const fn new(inner: Body, streaming: Streaming) -> Self {
        Self {
            inner,
            _streaming: streaming,
        }
    }
}

impl HttpBody for EventStreamBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Most bodies are complete when they are read: only one that is waited for gets a timer.
pub(super) struct Timed {
    /// `None` after its end.
    inner: Option<Incoming>,
    max: Duration,
    late: Option<Pin<Box<Sleep>>>,
    unread: Arc<Unread>,
}

/// The body of a request whose handler dropped it before its end.
#[derive(Debug, Default)]
pub(super) struct Unread(Mutex<Option<Incoming>>);

impl Unread {
    /// Reads and drops the rest of the body, within limits: a client that sends headers and body separately then
    /// reads the response instead of a connection error.
    pub(super) async fn drain(&self) {
        let Some(mut body) = self.0.lock().take() else {
            return;
        };
        let mut drained = 0_usize;
        let rest = async {
            while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                drained = drained.saturating_add(frame.data_ref().map_or(0, Bytes::len));
                if drained > DRAINED_BYTES_MAX {
                    break;
                }
            }
        };
        // Complete or not, the response is the same.
        let _ended = timeout(DRAIN_MAX, rest).await;
    }
}

impl Timed {
    pub(super) fn new(inner: Incoming, max: Duration, unread: Arc<Unread>) -> Self {
        Self {
            inner: Some(inner),
            max,
            late: None,
            unread,
        }
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        if let Some(body) = self.inner.take().filter(|body| !body.is_end_stream()) {
            *self.unread.0.lock() = Some(body);
        }
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BodyTimeoutError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyTimeoutError>>> {
        let max = self.max;
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(inner).poll_frame(cx) {
            if !matches!(frame, Some(Ok(_))) {
                self.inner = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyTimeoutError::from)));
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(max)));
        late.as_mut()
            .poll(cx)
            .map(|()| Some(Err(BodyTimeoutError::TooSlow(max))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}
