//! HTTP client of a running server: its paths and errors.

use std::time::Duration;

use futures::{Stream, TryStreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode, redirect};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use url::{Host, Url};

use super::api_types::{ApiProblem, Page};
use super::connection::Connection;
use super::exit_code::Exit;
use crate::bounded_body::{self, BoundedBodyError};
use domain::escape::visible;
use domain::limits::PAGE_ROWS_MAX;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// A forced unlock may take its backend up to a minute.
const ACT_TIMEOUT: Duration = Duration::from_secs(75);
/// Size limit of a response that is not an event stream. The largest is a page of locks with long names.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Error)]
pub(super) enum ClientError {
    #[error("cannot reach {server}: {why}. Check that it runs, or set --server or LEASEHOLD_SERVER")]
    Unreachable { server: String, why: String },
    #[error(
        "{server} requires authentication (401 Unauthorized): pass a token with --token or LEASEHOLD_TOKEN"
    )]
    Unauthenticated { server: String },
    #[error("{server} rejected the request: {why}")]
    BadRequest { server: String, why: String },
    #[error("{server} answers {status}: {why}")]
    Failed {
        server: String,
        status: StatusCode,
        why: String,
    },
    #[error("{server} is not a Leasehold server: {why}")]
    NotOurs { server: String, why: String },
    #[error("the token contains characters that are not allowed in a header")]
    BadToken,
    #[error(
        "--server must not contain a user name or a password: they would replace the token. Use --token or LEASEHOLD_TOKEN"
    )]
    CredentialsInAddress,
    #[error(
        "{server} is plain HTTP on another machine: the token would be readable on the network, so it is not sent. \
         Use https://, or \
         --insecure-http where the network is private"
    )]
    InsecureHttp { server: String },
    #[error("the HTTP client does not start: {0}")]
    NoClient(reqwest::Error),
}

impl ClientError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::BadRequest { .. }
            | Self::BadToken
            | Self::CredentialsInAddress
            | Self::InsecureHttp { .. } => Exit::Usage,
            Self::Unauthenticated { .. } | Self::Failed { .. } | Self::NotOurs { .. } | Self::NoClient(_) => {
                Exit::Failure
            }
        }
    }
}

/// A response: success or problem.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) is_success: bool,
    /// 5xx: of the server, or of a proxy that may have forwarded the request.
    pub(super) is_server_error: bool,
    pub(super) body: Value,
}

#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    server: Url,
}

impl Client {
    pub(super) fn new(connection: &Connection) -> Result<Self, ClientError> {
        let server = connection.server.clone();
        if !server.username().is_empty() || server.password().is_some() {
            return Err(ClientError::CredentialsInAddress);
        }
        let mut headers = HeaderMap::new();
        if let Some(token) = &connection.token {
            let is_clear = server.scheme() == "http" && !is_loopback(&server);
            if is_clear && !connection.insecure_http {
                return Err(ClientError::InsecureHttp {
                    server: name(&server),
                });
            }
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
                .map_err(|_| ClientError::BadToken)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut http = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none());
        if !connection.use_proxy || is_loopback(&server) {
            http = http.no_proxy();
        }
        Ok(Self {
            http: http.build().map_err(ClientError::NoClient)?,
            server,
        })
    }

    /// All pages of a query as one, up to `limit` rows.
    pub(super) async fn inventory(
        &self,
        query: &[(&'static str, String)],
        limit: usize,
    ) -> Result<Page, ClientError> {
        let mut all = Page {
            complete: true,
            ..Page::default()
        };
        let mut cursor = None;
        loop {
            let mut pairs = query.to_vec();
            let left = limit.saturating_sub(all.locks.len()).min(PAGE_ROWS_MAX as usize);
            pairs.push(("limit", left.to_string()));
            pairs.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page = self.page(&pairs).await?;
            let empty = page.locks.is_empty();
            merge(&mut all, page);
            cursor = all.next_cursor.take();
            // An empty page with a cursor would repeat forever.
            if cursor.is_none() || empty || all.locks.len() >= limit {
                all.locks.truncate(limit);
                return Ok(all);
            }
        }
    }

    async fn page(&self, pairs: &[(&'static str, String)]) -> Result<Page, ClientError> {
        let request = self
            .http
            .get(self.url("v1/inventory"))
            .query(pairs)
            .timeout(ANSWER_TIMEOUT);
        let body = self.read(self.send(request).await?).await?;
        serde_json::from_slice(&body).map_err(|_| self.not_ours("its response is not an inventory"))
    }

    /// A response that is not JSON, unchanged.
    pub(super) async fn text(
        &self,
        path: &str,
        query: &[(&'static str, &str)],
    ) -> Result<String, ClientError> {
        let request = self.http.get(self.url(path)).query(query).timeout(ANSWER_TIMEOUT);
        let body = self.read(self.send(request).await?).await?;
        String::from_utf8(body).map_err(|_| self.not_ours("its response is not UTF-8 text"))
    }

    /// The event stream, until the connection ends.
    pub(super) async fn events(
        &self,
    ) -> Result<impl Stream<Item = Result<Vec<u8>, ClientError>> + Send + use<>, ClientError> {
        let request = self
            .http
            .get(self.url("v1/events"))
            .header(ACCEPT, "text/event-stream");
        let answer = self.send(request).await?;
        let client = self.clone();
        Ok(answer
            .bytes_stream()
            .map_ok(|bytes| bytes.to_vec())
            .map_err(move |error| client.unreachable(&error)))
    }

    /// A request whose caller handles refusals itself. A missing sign-in is an error.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, ClientError> {
        let mut request = self.http.request(method, self.url(path)).timeout(ACT_TIMEOUT);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = self.read(answer).await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status == StatusCode::UNAUTHORIZED {
            let server = self.name();
            return Err(ClientError::Unauthenticated { server });
        }
        if !body.is_object() {
            return Err(self.not_ours(&format!("it answers {status}")));
        }
        Ok(Reply {
            is_success: status.is_success(),
            is_server_error: status.is_server_error(),
            body,
        })
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.server.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{path}"));
        url
    }

    async fn send(&self, request: RequestBuilder) -> Result<reqwest::Response, ClientError> {
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let server = self.name();
        let body = self.read(answer).await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let why = explain(&body);
        Err(match status {
            StatusCode::UNAUTHORIZED => ClientError::Unauthenticated { server },
            StatusCode::BAD_REQUEST => ClientError::BadRequest { server, why },
            _ if status.is_redirection() || (status == StatusCode::NOT_FOUND && body.is_null()) => {
                self.not_ours(&format!("it answers {status}"))
            }
            _ => ClientError::Failed { server, status, why },
        })
    }

    async fn read(&self, mut answer: reqwest::Response) -> Result<Vec<u8>, ClientError> {
        let body = bounded_body::read(&mut answer, ANSWER_BYTES_MAX).await;
        body.map_err(|error| match error {
            BoundedBodyError::Http(error) => self.unreachable(&error),
            too_large @ BoundedBodyError::TooLarge { .. } => self.not_ours(&too_large.to_string()),
        })
    }

    pub(super) fn name(&self) -> String {
        name(&self.server)
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        // The innermost cause is short: "Connection refused".
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let why = if error.is_timeout() {
            "no answer in time".to_owned()
        } else {
            cause.to_string()
        };
        ClientError::Unreachable {
            server: self.name(),
            why,
        }
    }

    fn not_ours(&self, why: &str) -> ClientError {
        ClientError::NotOurs {
            server: self.name(),
            why: why.to_owned(),
        }
    }
}

/// Without trailing slash.
pub(super) fn name(server: &Url) -> String {
    server.as_str().trim_end_matches('/').to_owned()
}

/// Rows that moved between two pages are listed once. Totals and backends come from the last page.
fn merge(all: &mut Page, page: Page) {
    let seen: std::collections::HashSet<[String; 3]> = all.locks.iter().map(identity).collect();
    all.locks.extend(
        page.locks
            .into_iter()
            .filter(|lock| !seen.contains(&identity(lock))),
    );
    all.next_cursor = page.next_cursor;
    all.total = page.total;
    all.complete &= page.complete;
    all.backends = page.backends;
}

fn identity(lock: &Value) -> [String; 3] {
    ["backend", "source", "resource"].map(|field| lock[field].as_str().unwrap_or_default().to_owned())
}

/// The detail of a problem, escaped for a terminal.
fn explain(body: &Value) -> String {
    let problem = ApiProblem::deserialize(body).unwrap_or_default();
    let mut text = problem
        .detail
        .or(problem.title)
        .unwrap_or_else(|| "no reason given".to_owned());
    if let Some(field) = problem.field.filter(|field| !text.contains(field.as_str())) {
        text = format!("{field}: {text}");
    }
    if let Some(id) = problem.request_id {
        text = format!("{text} (request {id})");
    }
    visible(&text).into_owned()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
