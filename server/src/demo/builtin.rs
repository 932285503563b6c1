//! The console's own lease service, over HTTP like any client of it: leases that are renewed, run out or die with
//! their worker (`leases.rs`), a line of waiters (`line.rs`), and a zombie whose late write is refused (`zombie.rs`).

pub(super) mod leases;
pub(super) mod line;
pub(super) mod zombie;

use reqwest::{Method, RequestBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::fault::Fault;

/// How workers reach the service.
#[derive(Clone)]
pub(super) struct Access {
    /// Renews by itself: for those who want to hold.
    pub(super) client: leasehold_client::Client,
    /// For those who forget to.
    http: reqwest::Client,
    base: String,
    token: SecretString,
}

impl Access {
    pub(super) fn new(base: &str, token: &str) -> Result<Self, Fault> {
        Ok(Self {
            client: leasehold_client::Client::builder(base).token(token).build()?,
            http: reqwest::Client::builder().no_proxy().build()?,
            base: base.to_owned(),
            token: token.into(),
        })
    }

    /// `Null` for an answer that is no success: the worker goes on as one whose lease is gone.
    async fn post(&self, path: &str, body: &Value) -> Result<Value, Fault> {
        let answer = self.call(Method::POST, path).json(body).send().await?;
        if answer.status().is_server_error() {
            return Err(Fault::LeaseGone);
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
