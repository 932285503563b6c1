//! Data of one lock, held or released.

use domain::lock_detail::LockDetail;
use domain::names::{BackendName, NameError, Source};
use domain::query::QueryError;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::{Console, ConsoleError};

/// An empty `source` matches any source. `search` is the page's query string: the time range of
/// its charts.
#[server(name = GetLock, prefix = "/api", endpoint = "lock", input = GetUrl, output = EncodedResponse)]
pub async fn lock(
    backend: String,
    source: String,
    resource: String,
    search: String,
) -> Result<LockDetail, ApiError> {
    let context = crate::api::error::from_context()?;
    let found = match names(&backend, &source) {
        Ok((backend, source)) => held_or_past(&*context.console, backend, source, resource).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(mut detail) => {
            detail.charts = context.console.lock_charts(&detail, &search).await;
            context.set_status(Ok(detail))
        }
        Err(error) => context.set_status(Err(error)),
    }
}

/// A held lock, or the last observation of a released one.
///
/// # Errors
/// As the port's.
pub async fn held_or_past(
    console: &dyn Console,
    backend: BackendName,
    source: Option<Source>,
    resource: String,
) -> Result<LockDetail, ConsoleError> {
    let held = console
        .lock(backend.clone(), source.clone(), resource.clone())
        .await;
    match held {
        Err(not_held @ (ConsoleError::NotFound { .. } | ConsoleError::Unread { .. })) => {
            let past = console.past(backend, source, resource).await?;
            past.ok_or(not_held)
        }
        held => held,
    }
}

/// # Errors
/// [`ConsoleError::BadQuery`] with the invalid name.
pub fn names(backend: &str, source: &str) -> Result<(BackendName, Option<Source>), ConsoleError> {
    let bad = |field: &'static str| {
        move |error: NameError| ConsoleError::BadQuery(QueryError::new(field, error.to_string()))
    };
    let backend = BackendName::parse(backend).map_err(bad("backend"))?;
    let source = (!source.is_empty())
        .then(|| Source::parse(source))
        .transpose()
        .map_err(bad("source"))?;
    Ok((backend, source))
}
