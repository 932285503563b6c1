//! Open event streams: a limit for each principal; a stream ends when its principal loses access.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;

use crate::identity::{Identity, Principal, Subject};

/// Tabs of one user, or programs with one token, that look at the inventory.
const VIEWS_MAX: usize = 50;
/// Leases of one token, each with its stream.
const LEASES_OF_TOKEN_MAX: usize = 20_000;

/// Kind of an event stream; each kind has a separate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum StreamKind {
    View,
    Lease,
}

impl StreamKind {
    /// By the pattern of the route.
    pub(super) fn from_pattern(pattern: &str) -> Self {
        if pattern.starts_with("/v1/locks/") {
            Self::Lease
        } else {
            Self::View
        }
    }

    fn limit(self, subject: &Subject) -> usize {
        match (self, subject) {
            (Self::Lease, Subject::Token { .. }) => LEASES_OF_TOKEN_MAX,
            (Self::Lease, Subject::User { .. } | Subject::Anonymous) | (Self::View, _) => VIEWS_MAX,
        }
    }
}

type Opener = (String, StreamKind);

/// Open streams by principal and kind.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<Opener, usize>>>);

/// Whether an answer is an event stream, which stays open.
pub fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

impl Streams {
    /// The same stream, which ends when its principal loses access; or the limit, if it is reached.
    pub(super) fn open(
        &self,
        response: Response,
        identity: Arc<Identity>,
        who: Principal,
        kind: StreamKind,
    ) -> Result<Response, usize> {
        let max = kind.limit(&who.subject);
        let slot = self.reserve((who.id().to_owned(), kind), max).ok_or(max)?;
        let (parts, body) = response.into_parts();
        let access_lost = async move {
            identity.access_lost(&who).await;
        };
        let mut events = body.into_data_stream().take_until(Box::pin(access_lost));
        let body = Body::from_stream(stream::poll_fn(move |cx| {
            let _held = &slot;
            events.poll_next_unpin(cx)
        }));
        Ok(Response::from_parts(parts, body))
    }

    fn reserve(&self, opener: Opener, max: usize) -> Option<StreamSlot> {
        let mut open = self.lock();
        let count = open.entry(opener.clone()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(StreamSlot {
            streams: self.clone(),
            opener,
        })
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<Opener, usize>> {
        self.0.lock()
    }
}

/// Released when the stream is dropped.
struct StreamSlot {
    streams: Streams,
    opener: Opener,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(count) = open.get_mut(&self.opener) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.opener);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_as_many_views_as_a_user() {
        // Only streams of leases are many: a service has one for each of its leases.
        let token = Subject::Token {
            id: "t".into(),
            name: "t".into(),
        };
        assert_eq!(StreamKind::from_pattern("/v1/events").limit(&token), VIEWS_MAX);
        assert_eq!(
            StreamKind::from_pattern("/v1/locks/{leaseId}/events").limit(&token),
            LEASES_OF_TOKEN_MAX
        );
        assert_eq!(
            StreamKind::from_pattern("/v1/locks/{leaseId}/events").limit(&Subject::Anonymous),
            VIEWS_MAX
        );
    }

    #[test]
    fn a_stream_beyond_the_limit_waits_for_a_free_slot() {
        // Each user has a separate count; a user without an open stream is not stored.
        let streams = Streams::default();
        let reserve = |name: &str, kind| streams.reserve((name.to_owned(), kind), 2);
        let first = reserve("ada", StreamKind::View).unwrap();
        let second = reserve("ada", StreamKind::View).unwrap();
        assert!(reserve("ada", StreamKind::View).is_none());
        let other = reserve("bob", StreamKind::View).unwrap();
        let lease = reserve("ada", StreamKind::Lease).unwrap();
        drop(first);
        let third = reserve("ada", StreamKind::View).unwrap();
        drop((second, third, other, lease));
        assert!(streams.lock().is_empty());
    }
}
