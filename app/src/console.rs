//! The port through which pages get their data: plain domain data in and out. The server implements it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::backend::BackendView;
use domain::detail::{LockCharts, LockDetail};
use domain::names::{BackendName, Source};
use domain::overview::{Overview, OverviewCharts};
use domain::query::{InventoryPage, InventoryQuery, QueryError};
use domain::segments::PrefixNode;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ConsoleError>> + Send + 'a>>;

pub type Drawn<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How the port travels in Leptos' context.
pub type SharedConsole = Arc<dyn Console>;

pub trait Console: Send + Sync {
    fn overview(&self) -> Answer<'_, Overview>;
    fn inventory(&self, query: InventoryQuery) -> Answer<'_, InventoryPage>;
    /// Children of the text form of a prefix, all backends together.
    fn prefixes(&self, prefix: String) -> Answer<'_, PrefixNode>;
    /// `resource` is a text form; `source` is needed only where two sources hold the same name.
    fn lock(&self, backend: BackendName, source: Option<Source>, resource: String) -> Answer<'_, LockDetail>;
    /// What is remembered of a lock that [`lock`](Self::lock) did not find; none where nothing is.
    fn past(
        &self,
        _backend: BackendName,
        _source: Option<Source>,
        _resource: String,
    ) -> Answer<'_, Option<LockDetail>> {
        Box::pin(async { Ok(None) })
    }
    fn backends(&self) -> Answer<'_, Vec<BackendView>>;
    /// Charts of a lock that the caller was shown; `search` is the page's query string, with its time range. Never fails:
    /// what cannot be read is said in the chart.
    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> Drawn<'a, LockCharts>;
    fn overview_charts<'a>(&'a self, overview: &'a Overview, search: &'a str) -> Drawn<'a, OverviewCharts>;
}

/// What the port answers when it cannot answer. Carries text for people, never internals.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleError {
    #[error("{0}")]
    BadQuery(QueryError),
    #[error("{what}")]
    NotFound { what: String },
    /// Two sources of one backend hold this name: the caller must say which.
    #[error("this name is held in several sources: {}", .sources.iter().map(Source::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous { sources: Vec<Source> },
    /// As many searches run as this server takes at once.
    #[error(
        "this server runs as many searches as it can at once: try again in {retry_after_s} s, or narrow the search"
    )]
    Busy { retry_after_s: u32 },
}
