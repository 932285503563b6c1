//! `x-request-id`: a client may choose it, within bounds; otherwise it is random.

use axum::extract::Request as AxumRequest;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use tower_http::request_id::{MakeRequestId, RequestId};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Visible ASCII characters of an id that a client chose.
const CHARS_MAX: usize = 64;

/// 16 random bytes as hex.
#[derive(Clone, Copy)]
pub(super) struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        Some(RequestId::new(random()))
    }
}

/// Hex is always valid in a header.
fn random() -> HeaderValue {
    HeaderValue::try_from(runtime::random::id()).unwrap_or(HeaderValue::from_static("none"))
}

/// Removes an invalid id, because logs and audit entries contain it; a random one replaces it.
pub(super) fn remove_invalid(mut request: AxumRequest) -> AxumRequest {
    if client_id(request.headers()).is_none() {
        request.headers_mut().remove(&REQUEST_ID);
    }
    request
}

/// The client's id, or a random one, which it puts into the headers.
pub(super) fn ensure(headers: &mut HeaderMap) -> HeaderValue {
    if let Some(id) = client_id(headers) {
        return id.clone();
    }
    let id = random();
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// The client's id, if it is valid.
fn client_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut ids = headers.get_all(&REQUEST_ID).iter();
    let id = ids.next().filter(|id| is_valid(id))?;
    ids.next().is_none().then_some(id)
}

fn is_valid(id: &HeaderValue) -> bool {
    (1..=CHARS_MAX).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_visible_ids_are_kept() {
        // The longest, one more, white space, other bytes, nothing, and two at once.
        let is_accepted = |ids: &[&[u8]]| {
            let mut request = AxumRequest::default();
            for id in ids {
                let id = HeaderValue::from_bytes(id).unwrap();
                request.headers_mut().append(REQUEST_ID, id);
            }
            remove_invalid(request).headers().contains_key(REQUEST_ID)
        };
        assert!(is_accepted(&[b"abc-123"]) && is_accepted(&[&[b'a'; 64]]));
        assert!(
            !is_accepted(&[&[b'a'; 65]])
                && !is_accepted(&[b"a b"])
                && !is_accepted(&[b"\xfe"])
                && !is_accepted(&[b""])
        );
        assert!(!is_accepted(&[b"a", b"b"]) && !is_accepted(&[]));
    }
}
