//! Event streams that are open: so many for each person or token, each cut when whoever opened it may not stay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures::{StreamExt as _, stream};

use crate::identity::{Identity, Subject, Who};

/// Tabs of one person.
const OF_PERSON_MAX: usize = 50;
/// Leases of one token, each with its stream.
const OF_TOKEN_MAX: usize = 20_000;

/// Streams by who opened them.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<String, usize>>>);

/// Whether an answer is an event stream, which stays open.
pub fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

impl Streams {
    /// The same stream, which ends with the right to it; or how many are open already.
    pub(super) fn open(
        &self,
        response: Response,
        identity: Arc<Identity>,
        who: Who,
    ) -> Result<Response, usize> {
        let max = match who.subject {
            Subject::Token { .. } => OF_TOKEN_MAX,
            Subject::Person { .. } | Subject::Anonymous => OF_PERSON_MAX,
        };
        let place = self.take(who.id(), max).ok_or(max)?;
        let (parts, body) = response.into_parts();
        let gone = async move {
            identity.gone(&who).await;
        };
        let mut rest = body.into_data_stream().take_until(Box::pin(gone));
        let body = Body::from_stream(stream::poll_fn(move |cx| {
            let _held = &place;
            rest.poll_next_unpin(cx)
        }));
        Ok(Response::from_parts(parts, body))
    }

    fn take(&self, id: &str, max: usize) -> Option<Place> {
        let mut open = self.lock();
        let count = open.entry(id.to_owned()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Place {
            streams: self.clone(),
            id: id.to_owned(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given back when the stream is dropped.
struct Place {
    streams: Streams,
    id: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(count) = open.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_the_most_is_refused_and_one_that_ends_makes_room() {
        // Two of one, while another has their own count; nobody is remembered who has none open.
        let streams = Streams::default();
        let first = streams.take("ada", 2).unwrap();
        let second = streams.take("ada", 2).unwrap();
        assert!(streams.take("ada", 2).is_none());
        let other = streams.take("bob", 2).unwrap();
        drop(first);
        let third = streams.take("ada", 2).unwrap();
        drop((second, third, other));
        assert!(streams.lock().is_empty());
    }
}
