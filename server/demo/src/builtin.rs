//! Workload on the console's own lease service, over HTTP: leases that are renewed, expire, or lose their worker
//! (`leases.rs`), a wait queue (`queue.rs`), and a stale writer whose late write is rejected (`stale_writer.rs`).

pub(super) mod leases;
pub(super) mod queue;
pub(super) mod stale_writer;

use reqwest::{Method, RequestBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::fault::WorkloadError;

/// Access of workers to the service.
#[derive(Clone)]
pub(super) struct Access {
    /// Renews by itself.
    pub(super) client: leasehold_client::Client,
    /// Without renewal, for workers that forget it.
    http: reqwest::Client,
    base: String,
    token: SecretString,
}

impl Access {
    pub(super) fn new(base: &str, token: &str) -> Result<Self, WorkloadError> {
        Ok(Self {
            client: leasehold_client::Client::builder(base).token(token).build()?,
            http: reqwest::Client::builder().no_proxy().build()?,
            base: base.to_owned(),
            token: token.into(),
        })
    }

    /// `Null` for an error response: the worker continues as if its lease were lost.
    async fn post(&self, path: &str, body: &Value) -> Result<Value, WorkloadError> {
        let answer = self.call(Method::POST, path).json(body).send().await?;
        if answer.status().is_server_error() {
            return Err(WorkloadError::LeaseGone);
        }
        Ok(answer.json().await?)
    }

    fn call(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(self.token.expose_secret())
            .timeout(super::leases::ANSWER_MAX)
    }
}
