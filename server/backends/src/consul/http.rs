//! Requests to Consul's HTTP API with a timeout. Lists are read element by element, so that a
//! large answer never is in memory as a whole.

use std::time::Duration;

use domain::duration::millis;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use super::error::ConsulError;
use super::json_elements::JsonElements;
use super::settings::ConsulSettings;
use runtime::clock::Clock;

/// Longest answer that is no list, and longest text of an error, in bytes.
const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
const INDEX_HEADER: &str = "x-consul-index";
const FILTERED_HEADER: &str = "x-consul-results-filtered-by-acls";

pub(super) struct Http {
    pub(super) settings: ConsulSettings,
    pub(super) clock: Clock,
    client: reqwest::Client,
}

/// About the answer to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerInfo {
    /// For the next blocking query.
    pub(super) index: u64,
    /// Consul left out what the token may not read (1.11 and later say so).
    pub(super) is_filtered: bool,
}

impl Http {
    pub(super) fn new(settings: ConsulSettings, clock: Clock, client: reqwest::Client) -> Self {
        Self {
            settings,
            clock,
            client,
        }
    }

    pub(super) fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.settings.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        {
            let mut pairs = url.query_pairs_mut();
            pairs.extend_pairs(query);
            pairs.extend_pairs(&self.settings.scope);
        }
        url
    }

    /// `/v1/kv/{key}`
    pub(super) fn key_url(&self, key: &str, query: &[(&str, &str)]) -> Url {
        let path: Vec<&str> = ["v1", "kv"].into_iter().chain(key.split('/')).collect();
        self.url(&path, query)
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends; an error status is an error, except `also`.
    async fn send(&self, request: RequestBuilder, also: Option<StatusCode>) -> Result<Response, ConsulError> {
        let answer = request
            .send()
            .await
            .map_err(|error| ConsulError::from_error(&error))?;
        let status = answer.status();
        if status.is_success() || Some(status) == also {
            return Ok(answer);
        }
        let text = bounded(answer).await?;
        Err(ConsulError::from_status(status, &String::from_utf8_lossy(&text)))
    }

    /// The answer as JSON.
    pub(super) async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ConsulError> {
        let work = async {
            let answer = self.send(request, None).await?;
            parse(&bounded(answer).await?)
        };
        self.within(self.settings.timeout, work).await
    }

    /// Status and body of an answer that may be a conflict.
    pub(super) async fn conflict_or_json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, ConsulError> {
        let work = async {
            let answer = self.send(request, Some(StatusCode::CONFLICT)).await?;
            parse(&bounded(answer).await?)
        };
        self.within(self.settings.timeout, work).await
    }

    /// A read of keys: each element of the list goes to `take`; no keys is an empty list. The
    /// first bytes must come within `first`, and the next ones each within the timeout.
    pub(super) async fn list(
        &self,
        url: Url,
        first: Duration,
        mut take: impl FnMut(&[u8]) -> Result<(), ConsulError>,
    ) -> Result<AnswerInfo, ConsulError> {
        let request = self.request(Method::GET, url);
        let sent = self.send(request, Some(StatusCode::NOT_FOUND));
        let mut answer = self.within(first, sent).await?;
        let Some(info) = info(&answer) else {
            return Err(ConsulError::protocol(
                "the answer lacks X-Consul-Index, so this is not Consul",
            ));
        };
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(info);
        }
        let mut elements = JsonElements::default();
        loop {
            let chunk = async {
                answer
                    .chunk()
                    .await
                    .map_err(|error| ConsulError::from_error(&error))
            };
            match self.within(self.settings.timeout, chunk).await? {
                Some(bytes) => elements.push(&bytes, &mut take)?,
                None if elements.is_complete() => return Ok(info),
                None => return Err(ConsulError::protocol("the answer ends in the middle")),
            }
        }
    }

    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, ConsulError>>,
    ) -> Result<T, ConsulError> {
        let answer = tokio::time::timeout(limit, work).await;
        answer.unwrap_or_else(|_| Err(ConsulError::no_answer(millis(limit))))
    }
}

fn info(answer: &Response) -> Option<AnswerInfo> {
    let header = |name: &str| answer.headers().get(name)?.to_str().ok();
    Some(AnswerInfo {
        index: header(INDEX_HEADER)?.parse().ok()?,
        is_filtered: header(FILTERED_HEADER) == Some("true"),
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ConsulError> {
    serde_json::from_slice(body)
        .map_err(|error| ConsulError::protocol(format!("the answer is not Consul's: {error}")))
}

async fn bounded(mut answer: Response) -> Result<Vec<u8>, ConsulError> {
    let mut body = Vec::new();
    while let Some(bytes) = answer
        .chunk()
        .await
        .map_err(|error| ConsulError::from_error(&error))?
    {
        if body.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(ConsulError::protocol(format!(
                "the answer is larger than {ANSWER_BYTES_MAX} bytes"
            )));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}
