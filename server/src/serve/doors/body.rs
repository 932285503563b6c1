//! A request's body that must come to its end in time, however slowly it drips.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use thiserror::Error;
use tokio::time::{Sleep, sleep};

#[derive(Debug, Error)]
pub(super) enum BodyFault {
    #[error("the body did not end within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

/// Nearly every body is there when it is asked for: only one that is waited for gets a timer.
pub(super) struct Timed {
    inner: Incoming,
    max: Duration,
    late: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    pub(super) fn new(inner: Incoming, max: Duration) -> Self {
        Self {
            inner,
            max,
            late: None,
        }
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let max = self.max;
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyFault::from)));
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(max)));
        late.as_mut()
            .poll(cx)
            .map(|()| Some(Err(BodyFault::TooSlow(max))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
