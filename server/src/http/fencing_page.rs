//! `/fencing`: the token ledger as a page without a script. Parses, reads the ledger and history as far as the caller may
//! see, answers.

use std::sync::Arc;

use app::forms::chrome::Place;
use app::forms::fencing::{Found, Ledger, Rows, fencing};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use domain::access::{Right, Visible};
use domain::lease::NameRange;
use domain::ledger::LedgerAsked;
use domain::names::BackendName;

use super::form_page;
use super::pages;
use super::settings::{Settings, Viewer};
use crate::console::Sources;
use crate::identity::Who;
use crate::ledger;

/// Grants of the range that are read: to name owners by their tokens, and to show the latest.
const GRANTS_MAX: u32 = 5_000;

/// What the page asks.
struct FencingPage {
    sources: Sources,
    settings: Arc<Settings>,
}

pub fn router(sources: Sources, settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/fencing", get(show))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(FencingPage { sources, settings }))
}

async fn show(
    State(it): State<Arc<FencingPage>>,
    Viewer(who): Viewer,
    RawQuery(query): RawQuery,
) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let (status, found) = match LedgerAsked::from_pairs(&pairs) {
        Err(error) => (
            StatusCode::BAD_REQUEST,
            Found::BadQuestion(error.field, error.message),
        ),
        Ok(asked) => match it.rows(&who, asked).await {
            Some(rows) => (StatusCode::OK, Found::Rows(Box::new(rows))),
            None => (StatusCode::SERVICE_UNAVAILABLE, Found::Nothing),
        },
    };
    let shown = Ledger {
        pairs,
        backends: it.settings.backend_choices(&who, Right::View),
        found,
        may_alert: true,
    };
    let chrome = form_page::chrome(&who, Place::Fencing);
    form_page::answer(status, fencing(&chrome, &shown))
}

impl FencingPage {
    /// None: the ledger cannot be read. History alone that cannot be is no reason to show nothing.
    async fn rows(&self, who: &Who, asked: LedgerAsked) -> Option<Rows> {
        // To the end of this second: what was refused just now is in it, by the store's clock too.
        let scale = asked.range.scale((self.settings.now() / 1_000 + 1) * 1_000);
        let visible = Visible::to(&who.grants);
        let ours = visible.on(&BackendName::builtin());
        let mut rejections = match ledger::read(&self.sources.leases, scale, &ours).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!("the ledger cannot be read: {error}");
                return None;
            }
        };
        let is_cut = rejections.len() as u64 >= u64::from(ledger::ROWS_MAX);
        let (from, until) = (scale.from(), scale.until());
        let places = self.places(&visible);
        let grants = self
            .sources
            .history
            .grants(from, until, places.as_deref(), GRANTS_MAX);
        let mut grants = grants.await.unwrap_or_else(|error| {
            tracing::warn!("history cannot be read: {error}");
            Vec::new()
        });
        ledger::name_owners(&mut rejections, &grants);
        let is_unused = rejections.is_empty()
            && !ledger::is_used(&self.sources.leases, &ours)
                .await
                .unwrap_or(false);
        rejections.retain(|row| asked.fits(row));
        grants.retain(|grant| asked.fits_grant(grant));
        Some(Rows {
            scale,
            rejections,
            is_unused,
            is_cut,
            grants,
            asked,
        })
    }

    /// Ranges of names that the reader may see, backend by backend; none where that is everything.
    fn places(&self, visible: &Visible) -> Option<Vec<(BackendName, NameRange)>> {
        if visible.is_everything() {
            return None;
        }
        let names = self.settings.backends.names();
        let backends = names.iter().filter_map(|name| BackendName::parse(name).ok());
        let ranges = backends.flat_map(|backend| {
            let ranges = visible.on(&backend).ranges("");
            ranges.into_iter().map(move |range| (backend.clone(), range))
        });
        Some(ranges.collect())
    }
}
