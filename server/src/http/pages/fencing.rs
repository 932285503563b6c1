//! `/fencing`: the fencing rejections as a page without a script. Parses, reads the ledger and history as far as the caller may
//! see, answers.

use app::server_pages::fencing::{Ledger, RejectionsResult, Rows, fencing};
use app::server_pages::layout::PageSection;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::{Permission, Visible};
use domain::fencing_rejections::RejectionFilter;
use domain::lease::NameRange;
use domain::names::BackendName;

use crate::fencing_rejections;
use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::http::state::{AppState, Services};
use crate::identity::Principal;

/// Grants of the range that are read: to name owners by their tokens, and to show the latest.
const GRANTS_MAX: u32 = 5_000;

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    RawQuery(query): RawQuery,
) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let (status, found) = match RejectionFilter::from_pairs(&pairs) {
        Err(error) => (
            StatusCode::BAD_REQUEST,
            RejectionsResult::BadQuestion(error.field, error.message),
        ),
        Ok(asked) => match state.fencing_rows(&who, asked).await {
            Some(rows) => (StatusCode::OK, RejectionsResult::Rows(Box::new(rows))),
            None => (StatusCode::SERVICE_UNAVAILABLE, RejectionsResult::Nothing),
        },
    };
    let shown = Ledger {
        pairs,
        backends: state.backend_choices(&who, Permission::View),
        found,
        may_alert: true,
    };
    let chrome = response::chrome(&who, PageSection::Fencing);
    response::html_response(status, fencing(&chrome, &shown))
}

impl Services {
    /// None: the ledger cannot be read. History alone that cannot be is no reason to show nothing.
    async fn fencing_rows(&self, who: &Principal, asked: RejectionFilter) -> Option<Rows> {
        // To the end of this second: what was refused just now is in it, by the store's clock too.
        let scale = asked.range.scale((self.now() / 1_000 + 1) * 1_000);
        let visible = Visible::to(&who.grants);
        let ours = visible.on(&BackendName::builtin());
        let mut rejections = match fencing_rejections::read(&self.leases, scale, &ours).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!("fencing tokens cannot be read: {error}");
                return None;
            }
        };
        let is_cut = rejections.len() as u64 >= u64::from(fencing_rejections::ROWS_MAX);
        let (from, until) = (scale.from(), scale.until());
        let places = self.visible_ranges(&visible);
        let grants = self.history.grants(from, until, places.as_deref(), GRANTS_MAX);
        let mut grants = grants.await.unwrap_or_else(|error| {
            tracing::warn!("history cannot be read: {error}");
            Vec::new()
        });
        fencing_rejections::name_owners(&mut rejections, &grants);
        let is_unused = rejections.is_empty()
            && !fencing_rejections::is_used(&self.leases, &ours)
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
    fn visible_ranges(&self, visible: &Visible) -> Option<Vec<(BackendName, NameRange)>> {
        if visible.is_everything() {
            return None;
        }
        let names = self.backends.names();
        let backends = names.iter().filter_map(|name| BackendName::parse(name).ok());
        let ranges = backends.flat_map(|backend| {
            let ranges = visible.on(&backend).ranges("");
            ranges.into_iter().map(move |range| (backend.clone(), range))
        });
        Some(ranges.collect())
    }
}
