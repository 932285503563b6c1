//! `/v1/people`: who may sign in and what they may do. Handlers parse, ask identity, answer.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use domain::access::{Grant, Role};
use domain::lease::Invalid;
use domain::names::BackendName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::access::needs::is_page;
use super::lease::body::{BodyError, Fields};
use super::problem::Problem;
use super::settings::Settings;
use super::wire::people::{
    AddedWire, GrantsWire, LinkWire, NewPersonWire, PasswordWire, PeopleWire, PersonWire,
};
use crate::audit::Origin;
use crate::identity::{NewPerson, Who};

pub(super) fn router<S: Clone + Send + Sync + 'static>(settings: Arc<Settings>) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(set_grants))
        .routes(routes!(set_password))
        .routes(routes!(make_link))
        .routes(routes!(disable))
        .routes(routes!(enable))
        .with_state(settings)
}

/// Who asks, and under which request id. Behind the guard there is always somebody.
pub(super) struct Asker {
    pub(super) who: Who,
    pub(super) headers: HeaderMap,
}

impl Asker {
    pub(super) fn problem(&self, error: impl Into<Problem>) -> Problem {
        error.into().with_request_id(&self.headers)
    }
}

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let who = parts.extensions.remove::<Who>();
        Ok(Self {
            who: who.unwrap_or_else(|| Who::anonymous(Origin::default())),
            headers: std::mem::take(&mut parts.headers),
        })
    }
}

/// What a path names. What is no text names nothing: a problem of the API, and the page itself says so of a page.
pub(super) struct Id(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        match named {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) if is_page(parts.uri.path()) => Ok(Self(char::REPLACEMENT_CHARACTER.to_string())),
            Err(_) => Err(Problem::not_found("there is nothing of this name".to_owned())
                .with_request_id(&parts.headers)),
        }
    }
}

/// Reads `grants`: an array of `{role, backend?, prefix?}`.
pub(super) fn grants(fields: &mut Fields) -> Result<Vec<Grant>, Invalid> {
    let grant = |mut fields: Fields| {
        let role = fields.text("role")?;
        let backend = fields.optional_text("backend")?;
        let prefix = fields.optional_text("prefix")?;
        fields.end()?;
        let words = || Role::ALL.map(Role::wire).join(", ");
        Ok(Grant {
            role: Role::parse(&role).ok_or_else(|| Invalid::new("role", format!("is one of {}", words())))?,
            backend: backend
                .map(|name| BackendName::parse(&name))
                .transpose()
                .map_err(|_| Invalid::new("backend", "is no name of a backend"))?,
            prefix,
        })
    };
    fields.objects("grants")?.into_iter().map(grant).collect()
}

/// Everybody, by name.
#[utoipa::path(get, path = "/v1/people", tag = "people", responses((status = 200, body = PeopleWire)))]
async fn list(State(settings): State<Arc<Settings>>) -> Json<PeopleWire> {
    let directory = settings.gate.identity.directory();
    let mut known: Vec<_> = directory.people.values().collect();
    known.sort_by(|one, two| one.name.cmp(&two.name));
    let people = known.into_iter().map(PersonWire::from).collect();
    Json(PeopleWire { people })
}

/// Adds somebody. Without a password they sign in by a link.
#[utoipa::path(
    post, path = "/v1/people", tag = "people", request_body = NewPersonWire,
    responses(
        (status = 201, body = AddedWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`exists`")
    )
)]
async fn add(
    State(settings): State<Arc<Settings>>,
    asker: Asker,
    body: Body,
) -> Result<(StatusCode, Json<AddedWire>), Problem> {
    let new = new_person(&asker.headers, body)
        .await
        .map_err(|error| asker.problem(error))?;
    let added = settings.gate.identity.add_person(&asker.who, new).await;
    let id = added.map_err(|error| asker.problem(error))?;
    Ok((StatusCode::CREATED, Json(AddedWire { id })))
}

async fn new_person(headers: &HeaderMap, body: Body) -> Result<NewPerson, BodyError> {
    let mut fields = Fields::read(headers, body).await?;
    let new = NewPerson {
        name: fields.text("name")?,
        grants: grants(&mut fields)?,
        password: fields.optional_text("password")?.map(Into::into),
    };
    fields.end()?;
    Ok(new)
}

/// Replaces all that somebody may do.
#[utoipa::path(
    put, path = "/v1/people/{id}/grants", tag = "people", params(("id" = String, Path)), request_body = GrantsWire,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`last_admin`")
    )
)]
async fn set_grants(
    State(settings): State<Arc<Settings>>,
    Id(id): Id,
    asker: Asker,
    body: Body,
) -> Result<StatusCode, Problem> {
    let read = async {
        let mut fields = Fields::read(&asker.headers, body).await?;
        let grants = grants(&mut fields)?;
        fields.end()?;
        Ok::<_, BodyError>(grants)
    };
    let grants = read.await.map_err(|error| asker.problem(error))?;
    let set = settings.gate.identity.set_grants(&asker.who, &id, grants).await;
    set.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// Gives somebody a password; their sessions end.
#[utoipa::path(
    put, path = "/v1/people/{id}/password", tag = "people", params(("id" = String, Path)), request_body = PasswordWire,
    responses(
        (status = 204),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json")
    )
)]
async fn set_password(
    State(settings): State<Arc<Settings>>,
    Id(id): Id,
    asker: Asker,
    body: Body,
) -> Result<StatusCode, Problem> {
    let read = async {
        let mut fields = Fields::read(&asker.headers, body).await?;
        let password = fields.text("password")?;
        fields.end()?;
        Ok::<_, BodyError>(password)
    };
    let password = read.await.map_err(|error| asker.problem(error))?.into();
    let set = settings
        .gate
        .identity
        .set_password(&asker.who, &id, &password)
        .await;
    set.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// Makes a link that signs somebody in, once, within an hour. Earlier ones stop working.
#[utoipa::path(
    post, path = "/v1/people/{id}/link", tag = "people", params(("id" = String, Path)),
    responses((status = 201, body = LinkWire), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn make_link(
    State(settings): State<Arc<Settings>>,
    Id(id): Id,
    asker: Asker,
) -> Result<(StatusCode, Json<LinkWire>), Problem> {
    let made = settings.gate.identity.person_link(&asker.who, &id).await;
    let secret = made.map_err(|error| asker.problem(error))?;
    let link = settings.sign_in_link(&secret);
    Ok((StatusCode::CREATED, Json(LinkWire { link })))
}

/// Ends their sessions; their record stays.
#[utoipa::path(
    post, path = "/v1/people/{id}/disable", tag = "people", params(("id" = String, Path)),
    responses(
        (status = 204),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "`last_admin`")
    )
)]
async fn disable(
    State(settings): State<Arc<Settings>>,
    Id(id): Id,
    asker: Asker,
) -> Result<StatusCode, Problem> {
    let disabled = settings.gate.identity.disable_person(&asker.who, &id).await;
    disabled
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// They may sign in again, with what they may do as it was.
#[utoipa::path(
    post, path = "/v1/people/{id}/enable", tag = "people", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn enable(
    State(settings): State<Arc<Settings>>,
    Id(id): Id,
    asker: Asker,
) -> Result<StatusCode, Problem> {
    let enabled = settings.gate.identity.enable_person(&asker.who, &id).await;
    enabled
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}
