//! One request and the meaning of its response. Knows no schedule and no lease state.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode, Url};

use crate::dto::{AcquireBody, Acquired, BatchBody, BatchItem, BatchOperation, BatchResults, Grant, Problem};
use crate::loss::Loss;

/// Bytes of a body. No answer of a server is as long: it comes from an intermediary, and may have no end.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
const NOT_OURS: &str = "the answer is not from a Leasehold server";

/// Calls one server.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    pub(crate) http: reqwest::Client,
    pub(crate) server: Url,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server confirmed that the lease is lost.
    Lost(Loss),
    /// The lease cannot be renewed any more and ends after this time.
    LifetimeReached { remaining_ms: i64 },
    /// The same request would be refused again.
    Refused { status: u16, problem: Box<Problem> },
    /// The outcome is unknown: retry.
    Unknown {
        why: String,
        /// The server was not reached, or the connection broke; otherwise it answered with an error.
        is_unreachable: bool,
        /// There was no connection to send it on.
        is_unsent: bool,
        retry_after: Option<Duration>,
    },
}

impl CallError {
    /// For display.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Lost(loss) => loss.to_string(),
            Self::LifetimeReached { .. } => "the lease cannot live longer".to_owned(),
            Self::Refused { status, problem } => {
                describe(StatusCode::from_u16(*status).unwrap_or_default(), problem)
            }
            Self::Unknown { why, .. } => why.clone(),
        }
    }
}

impl Calls {
    pub(crate) async fn acquire(
        &self,
        body: &AcquireBody<'_>,
        key: &str,
        within: Duration,
    ) -> Result<Acquired, CallError> {
        let request = self.http.post(self.url(&["locks", "acquire"])).json(body);
        let answer: Acquired = read(request.header("idempotency-key", key), within).await?;
        with_lease(answer)
    }

    /// One result for each operation, in their order.
    pub(crate) async fn batch(
        &self,
        operations: &[BatchOperation<'_>],
        key: &str,
        within: Duration,
    ) -> Result<Vec<BatchItem>, CallError> {
        let body = BatchBody { operations };
        let request = self.http.post(self.url(&["locks", "batch"])).json(&body);
        let answer: BatchResults = read(request.header("idempotency-key", key), within).await?;
        if answer.results.len() != operations.len() {
            return Err(unknown("the answer is about another batch"));
        }
        Ok(answer.results)
    }

    /// A response about another lease is rejected.
    pub(crate) async fn renew(&self, id: &str, within: Duration) -> Result<Grant, CallError> {
        let request = self.http.post(self.url(&["locks", id, "renew"]));
        let grant: Grant = read(request, within).await?;
        if grant.lease_id != id {
            return Err(unknown("the answer is about another lease"));
        }
        Ok(grant)
    }

    /// Idempotent: afterwards the lease is not held, whichever call released it.
    pub(crate) async fn release(&self, id: &str, within: Duration) -> Result<(), CallError> {
        let request = self.http.delete(self.url(&["locks", id]));
        let answer = read::<serde::de::IgnoredAny>(request, within).await;
        match answer {
            Ok(_) | Err(CallError::Lost(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The open event stream of a lease.
    pub(crate) async fn events(&self, id: &str, within: Duration) -> Result<Response, CallError> {
        let request = self.http.get(self.url(&["locks", id, "events"]));
        let request = request.header(reqwest::header::ACCEPT, "text/event-stream");
        let opening = async {
            let response = request.send().await.map_err(|error| unreachable(&error))?;
            accept(response).await
        };
        let answer = tokio::time::timeout(within, opening).await;
        let response = answer.map_err(|_| unknown("no answer in time"))??;
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return Ok(response);
        }
        // A page of a proxy: counted as data, it would be requested again without a growing pause.
        Err(unknown("the answer is not an event stream"))
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url
    }
}

/// The result of an acquire in a batch: that of its single call.
pub(crate) fn acquired(item: BatchItem) -> Result<Acquired, CallError> {
    match item {
        BatchItem::Acquire(answer) => with_lease(answer),
        BatchItem::Problem(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or_default();
            Err(classify(status, problem, None))
        }
        BatchItem::Release(_) => Err(unknown("the answer is about another operation")),
    }
}

fn with_lease(answer: Acquired) -> Result<Acquired, CallError> {
    if answer.acquired && answer.grant.is_none() {
        return Err(unknown("the answer to acquire names no lease"));
    }
    Ok(answer)
}

async fn read<T: serde::de::DeserializeOwned>(
    request: RequestBuilder,
    within: Duration,
) -> Result<T, CallError> {
    let response = request.timeout(within).send().await;
    let response = accept(response.map_err(|error| unreachable(&error))?).await?;
    let body = read_body(response).await?;
    serde_json::from_slice(&body).map_err(|_| unknown(NOT_OURS))
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(unknown(NOT_OURS));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn accept(response: Response) -> Result<Response, CallError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let wait = response.headers().get(RETRY_AFTER);
    let wait = wait.and_then(|header| header.to_str().ok()?.parse().ok());
    let body = read_body(response).await.unwrap_or_default();
    let problem = serde_json::from_slice(&body).unwrap_or_default();
    Err(classify(status, problem, wait.map(Duration::from_secs)))
}

/// A status without one of our codes comes from an intermediary and decides nothing.
fn classify(status: StatusCode, problem: Problem, retry_after: Option<Duration>) -> CallError {
    let is_ours = !problem.code.is_empty();
    let loss = Loss::from_problem(&problem);
    match (status, loss) {
        (StatusCode::GONE | StatusCode::NOT_FOUND, Some(loss)) => CallError::Lost(loss),
        (StatusCode::CONFLICT, _) if problem.code == "lifetime_reached" => CallError::LifetimeReached {
            remaining_ms: problem.remaining_ms.unwrap_or_default(),
        },
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, _) => CallError::Unknown {
            why: describe(status, &problem),
            is_unreachable: false,
            is_unsent: false,
            retry_after,
        },
        _ if is_ours && status.is_client_error() => CallError::Refused {
            status: status.as_u16(),
            problem: Box::new(problem),
        },
        _ => CallError::Unknown {
            why: describe(status, &problem),
            is_unreachable: false,
            is_unsent: false,
            retry_after,
        },
    }
}

fn describe(status: StatusCode, problem: &Problem) -> String {
    let mut text = format!("the server answers {status}");
    if !problem.detail.is_empty() {
        text = format!("{text}: {}", problem.detail);
    }
    if !problem.request_id.is_empty() {
        text = format!("{text} (request {})", problem.request_id);
    }
    text
}

fn unknown(why: &str) -> CallError {
    CallError::Unknown {
        why: why.to_owned(),
        is_unreachable: false,
        is_unsent: false,
        retry_after: None,
    }
}

/// The innermost cause is short: "Connection refused".
fn unreachable(error: &reqwest::Error) -> CallError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let why = if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        cause.to_string()
    };
    CallError::Unknown {
        why,
        is_unreachable: true,
        is_unsent: error.is_connect(),
        retry_after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(code: &str) -> Problem {
        Problem {
            code: code.to_owned(),
            ..Problem::default()
        }
    }

    #[test]
    fn only_a_response_of_the_server_ends_a_lease() {
        // 410 and 404 with our codes are a loss; without them, as from a load balancer, they are retried.
        for code in ["expired", "revoked", "released"] {
            let answer = classify(StatusCode::GONE, problem(code), None);
            assert!(matches!(answer, CallError::Lost(loss) if loss.code() == code));
        }
        let answer = classify(StatusCode::NOT_FOUND, problem("not_found"), None);
        assert!(matches!(answer, CallError::Lost(Loss::NotFound)));
        for status in [StatusCode::GONE, StatusCode::NOT_FOUND, StatusCode::BAD_GATEWAY] {
            let answer = classify(status, problem(""), None);
            assert!(matches!(answer, CallError::Unknown { .. }), "{status}");
        }
        // A code with the wrong status is not a loss.
        let answer = classify(StatusCode::SERVICE_UNAVAILABLE, problem("expired"), None);
        assert!(matches!(answer, CallError::Unknown { .. }));
    }

    #[test]
    fn permanent_and_transient_rejections_are_distinguished() {
        // Invalid and forbidden are final; unavailable, overloaded and slow are not, and keep their Retry-After.
        let answer = classify(StatusCode::BAD_REQUEST, problem("invalid"), None);
        assert!(matches!(answer, CallError::Refused { status: 400, .. }));
        let pause = Some(Duration::from_secs(1));
        for status in [429, 408, 500, 503] {
            let answer = classify(
                StatusCode::from_u16(status).unwrap(),
                problem("overloaded"),
                pause,
            );
            assert!(
                matches!(answer, CallError::Unknown { retry_after, .. } if retry_after == pause),
                "{status}"
            );
        }
        let capped = Problem {
            remaining_ms: Some(700),
            ..problem("lifetime_reached")
        };
        let answer = classify(StatusCode::CONFLICT, capped, None);
        assert!(matches!(answer, CallError::LifetimeReached { remaining_ms: 700 }));
    }

    #[test]
    fn paths_keep_the_base_path_and_escape_ids() {
        // Below a proxy's path, with and without a slash; an id cannot leave its path segment.
        for server in ["http://h/locks-service", "http://h/locks-service/"] {
            let calls = Calls {
                http: client(),
                server: Url::parse(server).unwrap(),
            };
            let url = calls.url(&["locks", "a/../b", "renew"]);
            assert_eq!(url.as_str(), "http://h/locks-service/v1/locks/a%2F..%2Fb/renew");
        }
    }

    #[tokio::test]
    async fn a_page_of_a_proxy_is_no_event_stream() {
        // 200 with HTML, as from a sign-in page of a proxy.
        let calls = answered_by("text/html", b"hi".to_vec());
        let error = calls.events("id", Duration::from_secs(60)).await.unwrap_err();
        assert_eq!(error.sentence(), "the answer is not an event stream");
    }

    #[tokio::test]
    async fn an_endless_answer_uses_bounded_memory() {
        // A valid grant, after more white space than is read.
        let mut body = vec![b' '; BODY_BYTES_MAX];
        body.extend(br#"{"leaseId":"id","fencingToken":1,"ttlSeconds":9,"remainingMs":9000}"#);
        let calls = answered_by("application/json", body);
        let error = calls.renew("id", Duration::from_secs(60)).await.unwrap_err();
        assert_eq!(error.sentence(), NOT_OURS);
    }

    /// Calls of a server that answers one request with 200 and this body.
    fn answered_by(kind: &str, body: Vec<u8>) -> Calls {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _request_bytes = std::io::Read::read(&mut stream, &mut [0; 4_096]).unwrap();
            std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
            // Fails if the client closes the connection first.
            let _ = std::io::Write::write_all(&mut stream, &body);
            // Until the client closes the connection.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        Calls {
            http: client(),
            server: Url::parse(&server).unwrap(),
        }
    }

    fn client() -> reqwest::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::new()
    }
}
