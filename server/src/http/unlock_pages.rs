//! `/unlock/…` and `/unlocks/…`: the forced unlock as pages without a script. Handlers parse, ask the unlocks, answer with a
//! page, or send on to one so that reloading repeats nothing.

mod look;
mod several;
mod step;

use std::sync::Arc;

use app::forms::chrome::{Chrome, Place};
use app::forms::unlock::Refusal;
use axum::Router;
use axum::routing::{get, post};

use super::form_page;
use super::pages;
use super::settings::{Settings, Viewer};
use crate::unlock::{UnlockError, Unlocks};

/// What the pages ask.
struct UnlockPages {
    unlocks: Arc<Unlocks>,
    settings: Arc<Settings>,
}

pub(super) fn router(unlocks: Arc<Unlocks>, settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/unlock/{backend}/{*resource}", get(look::show).post(look::begin))
        .route("/unlocks", get(several::show).post(several::begin))
        .route("/unlocks/several", get(several::see).post(several::confirm))
        .route("/unlocks/{unlock_id}", get(step::show))
        .route("/unlocks/{unlock_id}/confirm", post(step::confirm))
        .route("/unlocks/{unlock_id}/approve", post(step::approve))
        .route("/unlocks/{unlock_id}/cancel", post(step::cancel))
        .route("/unlocks/{unlock_id}/review", post(step::review))
        .route("/unlocks/{unlock_id}/prove", post(step::prove))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(UnlockPages { unlocks, settings }))
}

fn chrome(viewer: &Viewer) -> Chrome {
    form_page::chrome(&viewer.0, Place::Locks)
}

/// What is said at the top of a page whose step was not done.
fn refusal(error: &UnlockError) -> Refusal {
    let text = match error {
        // The store's own words are not for people.
        UnlockError::AuditUnavailable(_) => {
            "The audit record cannot be written now, so nothing is done. Try again in a moment.".to_owned()
        }
        other => other.to_string(),
    };
    let mend = match error {
        UnlockError::Unavailable { mend, .. } | UnlockError::Stale { mend, .. } => mend.clone(),
        _ => None,
    };
    let holders = match error {
        UnlockError::HolderChanged { before, now } if before.is_some() || now.is_some() => {
            Some((before.as_deref().cloned(), now.as_deref().cloned()))
        }
        _ => None,
    };
    Refusal { text, mend, holders }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
