//! The audit record over HTTP: `GET /v1/audit` and its export for programs, `/audit` for people. Handlers parse, ask the
//! record, answer; each is cut to what the caller may read.

mod api;
mod attention;
mod export;
mod fields;
mod lines;
mod page;
mod review;
mod row;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use domain::audit::{AuditQuery, Readable};
use domain::query::QueryError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use super::settings::Settings;
use crate::alerts::Alerts;
use crate::audit::{Audit, Keeper};
use crate::identity::Who;
use crate::notify::Notifier;
use crate::unlock::Unlocks;

/// What the record's calls and pages ask.
pub struct Desk {
    pub settings: Arc<Settings>,
    pub unlocks: Arc<Unlocks>,
    pub notifier: Arc<Notifier>,
    pub alerts: Arc<Alerts>,
    pub keeper: Arc<Keeper>,
}

impl Desk {
    fn audit(&self) -> &Audit {
        &self.settings.gate.audit
    }
}

/// All calls, with their description, for any outer state.
pub(super) fn api<S: Clone + Send + Sync + 'static>(desk: Arc<Desk>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(api::list))
        .routes(routes!(export::export))
        .with_state(desk)
}

pub(super) fn pages(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/audit", get(page::show))
        .route("/audit/{id}", get(row::show))
        .route("/audit/unlocks/{id}/review", post(review::review))
        .layer(axum::middleware::map_response(super::pages::set_headers))
        .with_state(desk)
}

type Pairs = Vec<(String, String)>;

fn pairs(query: Option<&str>) -> Pairs {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}

/// What the caller asks for, as far as they may read.
fn parse(pairs: &Pairs, who: &Who) -> Result<AuditQuery, QueryError> {
    let given = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(AuditQuery {
        readable: Readable::to(&who.grants),
        ..AuditQuery::from_pairs(given)?
    })
}

fn unreadable(error: &sqlx::Error) -> Problem {
    tracing::warn!("the audit record cannot be read: {error}");
    Problem::store_unavailable()
}
