//! `/unlock/{backend}/{resource}`: the first step.

use std::sync::Arc;

use app::forms::unlock::look::{Look, look};
use app::forms::unlock::{Refusal, missing, path};
use app::links;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::generation::Generation;
use domain::names::{BackendName, Source};

use super::{UnlockPages, capital, chrome, refusal};
use crate::http::form_page;
use crate::http::settings::form::Form;
use crate::http::settings::{Viewer, on_to};
use crate::http::unlock::status;
use crate::unlock::{Asked, Preview, UnlockError};

type Named = Result<Path<(String, String)>, PathRejection>;

/// Which lock an address means.
struct Address {
    backend: BackendName,
    source: Option<Source>,
    resource: String,
    /// Of the holding on the page that led here.
    generation: Option<Generation>,
}

impl Address {
    fn read(path: Named, uri: &Uri) -> Result<Self, UnlockError> {
        let nothing = || UnlockError::NotFound {
            what: "this address names no lock".to_owned(),
        };
        let Path((backend, resource)) = path.map_err(|_| nothing())?;
        let pairs = links::pairs(uri.query().unwrap_or_default());
        let get = |wanted: &str| {
            let found = pairs.iter().find(|(name, _)| name == wanted);
            found
                .map(|(_, value)| value.clone())
                .filter(|value| !value.is_empty())
        };
        let source = get("source").map(|text| Source::parse(&text)).transpose();
        Ok(Self {
            backend: BackendName::parse(&backend).map_err(|_| nothing())?,
            source: source.map_err(|_| nothing())?,
            resource: links::resource(
                resource,
                pairs
                    .iter()
                    .find(|(name, _)| name == "name")
                    .map(|(_, name)| name.clone()),
            ),
            generation: get("generation").map(Generation::new),
        })
    }
}

/// What was typed, and why it was not taken.
#[derive(Default)]
struct Said {
    reason: String,
    fault: Option<String>,
    refusal: Option<Refusal>,
}

pub(super) async fn show(
    State(pages): State<Arc<UnlockPages>>,
    viewer: Viewer,
    path: Named,
    uri: Uri,
) -> Response {
    match Address::read(path, &uri) {
        Ok(address) => page(&pages, &viewer, &address, (StatusCode::OK, Said::default())).await,
        Err(error) => nothing(&viewer, &error, None),
    }
}

pub(super) async fn begin(
    State(pages): State<Arc<UnlockPages>>,
    viewer: Viewer,
    named: Named,
    uri: Uri,
    form: Form,
) -> Response {
    let address = match Address::read(named, &uri) {
        Ok(address) => address,
        Err(error) => return nothing(&viewer, &error, None),
    };
    let reason = form.typed("reason");
    let asked = Asked {
        backend: address.backend.clone(),
        source: address.source.clone(),
        resource: address.resource.clone(),
        generation: Generation::new(form.typed("generation")),
        reason: reason.clone(),
    };
    let error = match pages.unlocks.begin(&viewer.0, asked).await {
        Ok(unlock) => return on_to(&path(&unlock.id)),
        Err(error) => error,
    };
    let (fault, refusal) = match &error {
        UnlockError::WeakReason { weakness, .. } => {
            (Some(format!("{}.", capital(&weakness.to_string()))), None)
        }
        other => (None, Some(refusal(other))),
    };
    let said = Said {
        reason,
        fault,
        refusal,
    };
    page(&pages, &viewer, &address, (status(&error), said)).await
}

async fn page(
    pages: &UnlockPages,
    viewer: &Viewer,
    address: &Address,
    (status, said): (StatusCode, Said),
) -> Response {
    let source = address.source.as_ref();
    let seen = pages
        .unlocks
        .preview(&viewer.0, &address.backend, source, &address.resource)
        .await;
    match seen {
        Ok(preview) => {
            let shown = shown(preview, address.generation.as_ref(), said);
            form_page::answer(status, look(&chrome(viewer), &shown))
        }
        Err(error) => nothing(viewer, &error, Some(&address.resource)),
    }
}

fn shown(preview: Preview, came_with: Option<&Generation>, said: Said) -> Look {
    let Preview {
        lock,
        tier: _,
        tier_reason,
        observed,
        hindrance,
    } = preview;
    let now = observed.as_ref().map(|seen| &seen.generation);
    Look {
        has_changed: came_with.is_some() && now.is_some() && came_with != now,
        is_forbidden: matches!(hindrance, Some(UnlockError::Forbidden { .. })),
        hindrance: hindrance.map(|error| {
            let Refusal { text, mend, .. } = refusal(&error);
            (text, mend)
        }),
        lock: *lock,
        tier_reason,
        observed,
        reason: said.reason,
        fault: said.fault,
        refusal: said.refusal,
    }
}

fn nothing(viewer: &Viewer, error: &UnlockError, sought: Option<&str>) -> Response {
    let chrome = chrome(viewer);
    let title = "There is nothing to unlock";
    let (code, html) = match error {
        UnlockError::Ambiguous { sources } => {
            let html = missing::choose(&chrome, sought.unwrap_or_default(), sources);
            (status(error), html)
        }
        UnlockError::HolderChanged { .. } => {
            let html = missing::missing(&chrome, title, "nobody holds it any more", sought);
            (StatusCode::NOT_FOUND, html)
        }
        other => {
            let html = missing::missing(&chrome, title, &refusal(other).text, sought);
            (status(other), html)
        }
    };
    form_page::answer(code, html)
}
