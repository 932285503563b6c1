//! `/settings/tiers`

use std::sync::Arc;

use app::forms::chrome::Section;
use app::forms::settings::tiers::{Row, Tiers, tiers};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use domain::names::BackendName;
use domain::unlock::Tier;

use super::form::Form;
use super::{Settings, Viewer, on_to};
use crate::http::form_page;
use crate::http::pages;
use crate::http::people::Id;
use crate::http::tiers::{bad_prefix, bad_tier};
use crate::http::unlock::status;
use crate::unlock::{UnlockError, Unlocks};

struct Asked {
    unlocks: Arc<Unlocks>,
    settings: Arc<Settings>,
}

pub(in crate::http) fn router(unlocks: Arc<Unlocks>, settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/settings/tiers", get(show).post(set))
        .route("/settings/tiers/{id}/remove", post(remove))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(Asked { unlocks, settings }))
}

async fn show(State(asked): State<Arc<Asked>>, viewer: Viewer, uri: Uri) -> Response {
    let done = match uri.query() {
        Some("set") => Some("Set. It holds from now on."),
        Some("removed") => Some("Removed."),
        _ => None,
    };
    let content = Tiers {
        done: done.map(str::to_owned),
        ..Tiers::default()
    };
    page(&asked, &viewer, StatusCode::OK, content).await
}

async fn set(State(asked): State<Arc<Asked>>, viewer: Viewer, form: Form) -> Response {
    let (prefix, backend, tier) = (form.text("prefix"), form.text("backend"), form.text("tier"));
    let named = Some(backend.as_str()).filter(|name| !name.is_empty());
    let named = named.map(BackendName::parse).transpose();
    let tier = Tier::parse(&tier);
    let fault = match (bad_prefix(&prefix), &named, tier) {
        (Some(why), ..) => Some(("prefix".to_owned(), format!("It {why}."))),
        (None, Err(_), _) => Some(("backend".to_owned(), "It is not a backend.".to_owned())),
        (None, _, None) => Some(("tier".to_owned(), format!("It {}.", bad_tier()))),
        _ => None,
    };
    let mut content = Tiers {
        prefix: prefix.clone(),
        backend,
        tier: tier.unwrap_or(Tier::Protected),
        fault,
        ..Tiers::default()
    };
    let (Ok(named), Some(tier), None) = (named, tier, &content.fault) else {
        if let Some((field, why)) = content.fault.as_ref().filter(|(field, _)| field != "prefix") {
            content.refusal = Some(format!("The {field} does not fit. {why}"));
        }
        return page(&asked, &viewer, StatusCode::UNPROCESSABLE_ENTITY, content).await;
    };
    match asked
        .unlocks
        .set_tier(&viewer.0, named.as_ref(), &prefix, tier)
        .await
    {
        Ok(()) => on_to("/settings/tiers?set"),
        Err(error) => refused(&asked, &viewer, &error, content).await,
    }
}

async fn remove(State(asked): State<Arc<Asked>>, viewer: Viewer, Id(id): Id) -> Response {
    match asked.unlocks.remove_tier(&viewer.0, &id).await {
        Ok(()) => on_to("/settings/tiers?removed"),
        Err(error) => refused(&asked, &viewer, &error, Tiers::default()).await,
    }
}

async fn refused(asked: &Asked, viewer: &Viewer, error: &UnlockError, content: Tiers) -> Response {
    let content = Tiers {
        refusal: Some("The audit record cannot be written now, so nothing is changed.".to_owned()),
        ..content
    };
    page(asked, viewer, status(error), content).await
}

async fn page(asked: &Asked, viewer: &Viewer, code: StatusCode, content: Tiers) -> Response {
    let (rules, code, refusal) = match asked.unlocks.tiers().await {
        Ok(rules) => (rules, code, content.refusal),
        Err(error) => {
            let unread = "The tiers cannot be read now: the console's store does not answer.".to_owned();
            (Vec::new(), status(&error), Some(unread))
        }
    };
    let rows = rules.into_iter().map(|rule| Row {
        id: rule.id,
        backend: rule.backend.as_str().map(str::to_owned),
        prefix: rule.prefix,
        tier: rule.tier,
    });
    let content = Tiers {
        rows: rows.collect(),
        backends: asked.settings.backends.names(),
        refusal,
        ..content
    };
    form_page::answer(code, tiers(&viewer.chrome(Section::Tiers), &content))
}
