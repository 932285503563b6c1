//! The port through which pages get their data: plain domain data in and out. The server
//! implements it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::backend::BackendView;
use domain::contention::ContentionPage;
use domain::fencing_rejections::FencingPage;
use domain::lock_detail::{LockCharts, LockDetail};
use domain::name_tree::PrefixNode;
use domain::names::{BackendName, Source};
use domain::overview::{Overview, OverviewCharts};
use domain::query::{InventoryPage, InventoryQuery, QueryError};
use domain::waits::page::WaitsPage;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub type ConsoleFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ConsoleError>> + Send + 'a>>;

/// Data of charts; `None` if the console has no history.
pub type ConsoleCharts<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// Type of the port in Leptos' context.
pub type SharedConsole = Arc<dyn Console>;

pub trait Console: Send + Sync {
    fn overview(&self) -> ConsoleFuture<'_, Overview>;
    fn inventory(&self, query: InventoryQuery) -> ConsoleFuture<'_, InventoryPage>;
    /// Children of the text form of a prefix, over all backends.
    fn prefixes(&self, prefix: String) -> ConsoleFuture<'_, PrefixNode>;
    /// `resource` is a text form; `source` is required only if two sources have the same name.
    fn lock(
        &self,
        backend: BackendName,
        source: Option<Source>,
        resource: String,
    ) -> ConsoleFuture<'_, LockDetail>;
    /// Last observation of a lock that [`lock`](Self::lock) did not find; `None` without any.
    fn past(
        &self,
        _backend: BackendName,
        _source: Option<Source>,
        _resource: String,
    ) -> ConsoleFuture<'_, Option<LockDetail>> {
        Box::pin(async { Ok(None) })
    }
    fn backends(&self) -> ConsoleFuture<'_, Vec<BackendView>>;
    /// Charts of a lock that the caller may see; `search` is the page's query string, with its
    /// time range. Never fails: charts report read errors themselves.
    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> ConsoleCharts<'a, LockCharts>;
    fn overview_charts<'a>(
        &'a self,
        overview: &'a Overview,
        search: &'a str,
    ) -> ConsoleCharts<'a, OverviewCharts>;
    /// `search` is the page's query string.
    fn contention(&self, _search: String) -> ConsoleFuture<'_, ContentionPage> {
        Box::pin(async { Err(ConsoleError::without_history()) })
    }
    /// Who waits for whom, over all backends.
    fn waits(&self) -> ConsoleFuture<'_, WaitsPage> {
        Box::pin(async { Ok(WaitsPage::default()) })
    }
    /// `search` is the page's query string.
    fn fencing(&self, _search: String) -> ConsoleFuture<'_, FencingPage> {
        Box::pin(async { Err(ConsoleError::without_history()) })
    }
}

/// Errors of the port. Texts for display, without internals.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleError {
    #[error("{0}")]
    BadQuery(QueryError),
    #[error("{what}")]
    NotFound { what: String },
    /// Two sources of one backend have this name: the request must name one.
    #[error("this name is held in several sources: {}", .sources.iter().map(Source::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous { sources: Vec<Source> },
    /// The limit of concurrent searches is reached.
    #[error(
        "the limit of concurrent searches is reached: try again in {retry_after_s} s, or narrow the search"
    )]
    Busy { retry_after_s: u32 },
    /// The caller may not read this: the label of the missing permission.
    #[error("this needs the permission {permission}")]
    Forbidden { permission: String },
    /// The data cannot be read now.
    #[error("{what}")]
    Unavailable { what: String },
    /// No scan has read this part of the backend: it is unknown whether the lock is held.
    #[error("{what}")]
    Unread { what: String },
}

impl ConsoleError {
    fn without_history() -> Self {
        Self::Unavailable {
            what: "this console has no history".to_owned(),
        }
    }
}
