//! `/unlock/{backend}/{resource}`: the first step.

use app::links;
use app::server_pages::unlock::review::{ReviewForm, review_page};
use app::server_pages::unlock::{UnlockRefusal, not_found, path};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::generation::Generation;
use domain::names::{BackendName, Source};

use super::{capital, chrome, refusal};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::unlock::{Preview, UnlockError, UnlockRequest};

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
            what: "the address of this page names no lock".to_owned(),
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

/// The submitted fields and their error.
#[derive(Default)]
struct Said {
    reason: String,
    fault: Option<String>,
    refusal: Option<UnlockRefusal>,
}

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    viewer: CurrentUser,
    path: Named,
    uri: Uri,
) -> Response {
    match Address::read(path, &uri) {
        Ok(address) => page(&state, &viewer, &address, (StatusCode::OK, Said::default())).await,
        Err(error) => nothing(&viewer, &error, None),
    }
}

pub(in crate::http) async fn begin(
    State(state): State<AppState>,
    viewer: CurrentUser,
    named: Named,
    uri: Uri,
    form: Form,
) -> Response {
    let address = match Address::read(named, &uri) {
        Ok(address) => address,
        Err(error) => return nothing(&viewer, &error, None),
    };
    let reason = form.typed("reason");
    let asked = UnlockRequest {
        backend: address.backend.clone(),
        source: address.source.clone(),
        resource: address.resource.clone(),
        generation: Generation::new(form.typed("generation")),
        reason: reason.clone(),
    };
    let error = match state.unlocks.begin(&viewer.0, asked).await {
        Ok(unlock) => return see_other(&path(&unlock.id)),
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
    page(&state, &viewer, &address, (status(&error), said)).await
}

async fn page(
    state: &Services,
    viewer: &CurrentUser,
    address: &Address,
    (status, said): (StatusCode, Said),
) -> Response {
    let source = address.source.as_ref();
    let seen = state
        .unlocks
        .preview(&viewer.0, &address.backend, source, &address.resource)
        .await;
    match seen {
        Ok(preview) => {
            let shown = review_form(preview, address.generation.as_ref(), said);
            response::html_response(status, review_page(&chrome(viewer), &shown))
        }
        Err(error) => nothing(viewer, &error, Some(&address.resource)),
    }
}

fn review_form(preview: Preview, came_with: Option<&Generation>, said: Said) -> ReviewForm {
    let Preview {
        lock,
        protection: _,
        protection_reason,
        observed,
        blocked_reason: hindrance,
    } = preview;
    let now = observed.as_ref().map(|seen| &seen.generation);
    ReviewForm {
        has_changed: came_with.is_some() && now.is_some() && came_with != now,
        is_forbidden: matches!(hindrance, Some(UnlockError::Forbidden { .. })),
        hindrance: hindrance.map(|error| {
            let UnlockRefusal { text, remedy, .. } = refusal(&error);
            (text, remedy)
        }),
        lock: *lock,
        protection_reason,
        observed,
        reason: said.reason,
        fault: said.fault,
        refusal: said.refusal,
    }
}

fn nothing(viewer: &CurrentUser, error: &UnlockError, sought: Option<&str>) -> Response {
    let chrome = chrome(viewer);
    let title = "Nothing to unlock";
    let (code, html) = match error {
        UnlockError::Ambiguous { sources } => {
            let html = not_found::choose(&chrome, sought.unwrap_or_default(), sources);
            (status(error), html)
        }
        UnlockError::HolderChanged { .. } => {
            let html = not_found::not_found_page(&chrome, title, "the lock is not held any more", sought);
            (StatusCode::NOT_FOUND, html)
        }
        other => {
            let html = not_found::not_found_page(&chrome, title, &refusal(other).text, sought);
            (status(other), html)
        }
    };
    response::html_response(code, html)
}
