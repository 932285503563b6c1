//! `/unlock/{backend}/{resource}`: the first step.

use app::console::ConsoleError;
use app::links;
use app::pages::unlock::data::{Hindrance, NothingToUnlock, ReviewData, ReviewedLock};
use app::pages::unlock::{REVIEW_FORM, path, sentence};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::generation::Generation;
use domain::names::{BackendName, Source};

use super::{field_fault, page_rows, refusal, remedy, why};
use crate::http::pages::form_request::FormRequest;
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::identity::Principal;
use crate::unlock::{Preview, UnlockError, UnlockRequest};

type LockPath = Result<Path<(String, String)>, PathRejection>;

/// The lock that a URL names.
struct Address {
    backend: BackendName,
    source: Option<Source>,
    resource: String,
    /// Generation of the holding that the previous page showed.
    generation: Option<Generation>,
}

impl Address {
    fn parse(backend: &str, resource: String, search: &str) -> Result<Self, UnlockError> {
        let pairs = links::pairs(search);
        let get = |param: &str| {
            let found = pairs.iter().find(|(name, _)| name == param);
            found.map(|(_, value)| value.clone())
        };
        let non_empty = |param| get(param).filter(|value| !value.is_empty());
        let source = non_empty("source").map(|text| Source::parse(&text)).transpose();
        Ok(Self {
            backend: BackendName::parse(backend).map_err(|_| invalid_address())?,
            source: source.map_err(|_| invalid_address())?,
            resource: links::resource(resource, get("name")),
            generation: non_empty("generation").map(Generation::new),
        })
    }
}

fn invalid_address() -> UnlockError {
    UnlockError::NotFound {
        what: "the address of this page names no lock".to_owned(),
    }
}

impl Services {
    pub(super) async fn unlock_review_data(
        &self,
        who: &Principal,
        (backend, resource): (&str, String),
        search: &str,
    ) -> Result<ReviewData, ConsoleError> {
        let address = match Address::parse(backend, resource, search) {
            Ok(address) => address,
            Err(error) => return Ok(ReviewData::Nothing(page_rows::nothing(&error, None))),
        };
        let Address {
            backend,
            source,
            resource,
            generation,
        } = address;
        let preview = self
            .unlocks
            .preview(who, &backend, source.as_ref(), &resource)
            .await;
        Ok(match preview {
            Ok(preview) => ReviewData::Lock(Box::new(reviewed(preview, generation.as_ref()))),
            Err(UnlockError::Ambiguous { sources }) => ReviewData::Sources {
                name: resource,
                sources,
            },
            Err(UnlockError::HolderChanged { .. }) => ReviewData::Nothing(NothingToUnlock {
                status: StatusCode::NOT_FOUND.as_u16(),
                why: "the lock is not held any more".to_owned(),
                name: Some(resource),
            }),
            // Passing: an open page keeps its lock and the typed reason.
            Err(error @ UnlockError::Stale { .. }) => return Err(ConsoleError::Unread { what: why(&error) }),
            Err(error @ UnlockError::AuditUnavailable(_)) => {
                return Err(ConsoleError::Unavailable { what: why(&error) });
            }
            Err(error) => ReviewData::Nothing(page_rows::nothing(&error, Some(resource))),
        })
    }
}

fn reviewed(preview: Preview, expected_generation: Option<&Generation>) -> ReviewedLock {
    let Preview {
        lock,
        protection: _,
        protection_reason,
        observed,
        blocked_reason,
    } = preview;
    let is_forbidden = matches!(blocked_reason, Some(UnlockError::Forbidden { .. }));
    let observed = observed.as_ref();
    let generation = observed.map(|observed| &observed.generation);
    ReviewedLock {
        owner: lock.owner_id.known().map(ToString::to_string),
        holder: observed.map_or_else(|| page_rows::last_holder(&lock), page_rows::holder),
        quorum: observed
            .filter(|_| !is_forbidden)
            .and_then(|observed| observed.quorum.clone()),
        is_fresh: observed.is_some(),
        effects: observed.filter(|_| !is_forbidden).map(page_rows::effects),
        has_changed: expected_generation.is_some()
            && generation.is_some()
            && expected_generation != generation,
        generation: generation
            .filter(|_| blocked_reason.is_none())
            .map(ToString::to_string),
        protection: protection_reason.map(|reason| reason.to_string()),
        hindrance: blocked_reason.map(|error| Hindrance {
            why: why(&error),
            remedy: remedy(&error),
        }),
        id: lock.id,
    }
}

pub(in crate::http) async fn begin(
    State(state): State<AppState>,
    lock_path: LockPath,
    uri: Uri,
    mut form: FormRequest,
) -> Response {
    let search = uri.query().unwrap_or_default();
    let address = match lock_path {
        Ok(Path((backend, resource))) => Address::parse(&backend, resource, search),
        Err(_) => Err(invalid_address()),
    };
    let result = match address {
        Ok(address) => {
            let request = UnlockRequest {
                backend: address.backend,
                source: address.source,
                resource: address.resource,
                generation: Generation::new(form.form.untrimmed("generation")),
                reason: form.form.untrimmed("reason"),
            };
            state.unlocks.begin(&form.who, request).await
        }
        Err(error) => Err(error),
    };
    let error = match result {
        Ok(unlock) => return form.moved(&path(&unlock.id)),
        Err(error) => error,
    };
    let reply = match &error {
        UnlockError::WeakReason { weakness, .. } => field_fault("reason", sentence(&weakness.to_string())),
        other => refusal(other),
    };
    let page = uri.path_and_query().map_or("/", |page| page.as_str());
    REVIEW_FORM.clone_into(&mut form.action);
    form.reply(&state, page, status(&error), reply).await
}
