//! HTTP client for the OIDC library: the client limits time, this module limits size.

use futures::future::BoxFuture;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use thiserror::Error;

use super::OidcSetupError;
use crate::bounded_body::{self, BoundedBodyError};
use crate::identity::limits::{PROVIDER_ANSWER_BYTES_MAX, PROVIDER_TIMEOUT};
use config::OidcConfig;

#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error(transparent)]
    Body(#[from] BoundedBodyError),
    #[error(transparent)]
    Broken(#[from] openidconnect::http::Error),
}

pub(super) struct Http(pub(super) reqwest::Client);

/// A client for this provider, with its CA if one is configured.
pub(super) fn client(config: &OidcConfig) -> Result<Http, OidcSetupError> {
    // A redirect would lead to an address that is not configured.
    let mut http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PROVIDER_TIMEOUT);
    let wrong = |error: &dyn std::error::Error| OidcSetupError::from_error("ca_file", error);
    if let Some(path) = &config.ca_file {
        let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
        let authority = reqwest::Certificate::from_pem(&pem).map_err(|error| wrong(&error))?;
        http = http.tls_certs_merge([authority]);
    }
    Ok(Http(http.build().map_err(|error| wrong(&error))?))
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = FetchError;
    type Future = BoxFuture<'c, Result<HttpResponse, FetchError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.fetch(request))
    }
}

impl Http {
    async fn fetch(&self, request: HttpRequest) -> Result<HttpResponse, FetchError> {
        let (parts, body) = request.into_parts();
        let request = self
            .0
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body);
        let mut answer = request.send().await?;
        let bytes = bounded_body::read(&mut answer, PROVIDER_ANSWER_BYTES_MAX).await?;
        let mut response = openidconnect::http::Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            *headers = std::mem::take(answer.headers_mut());
        }
        Ok(response.body(bytes)?)
    }
}
