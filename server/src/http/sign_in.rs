//! `/sign-in` and below, `/sign-out` and `/setup`: forms that work without a script. Handlers parse, ask identity, set
//! the cookie.

mod oidc;

use std::sync::Arc;

use app::forms::setup::{self, Setup};
use app::forms::sign_in::{self, Provider, SignIn};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Form, Router};
use secrecy::SecretString;
use serde::Deserialize;

use super::access::{Gate, cookie};
use super::form_page;
use super::pages;
use super::problem::Problem;
use super::prove;
use crate::identity::{IdentityError, SignedIn, Who};

pub fn router(gate: Gate) -> Router {
    Router::new()
        .route("/sign-in", get(show).post(sign_in))
        .route("/sign-in/oidc", get(oidc::begin))
        .route("/sign-in/oidc/callback", get(oidc::finish))
        .route("/setup", get(show_setup).post(set_up))
        .route("/sign-out", post(sign_out))
        .route("/prove", get(prove::show).post(prove::submit))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(gate))
}

#[derive(Debug, Default, Deserialize)]
struct Asked {
    link: Option<String>,
    next: Option<String>,
}

/// Nothing of it is ever shown or logged but the name.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    name: String,
    #[serde(default)]
    password: String,
    link: Option<String>,
    next: Option<String>,
}

async fn show(State(gate): State<Arc<Gate>>, Query(asked): Query<Asked>) -> Response {
    let next = cookie::next_path(asked.next.as_deref()).to_owned();
    if let Some(link) = asked.link {
        return page(StatusCode::OK, sign_in::by_link(link, next));
    }
    page(StatusCode::OK, sign_in::sign_in(form(&gate, next)))
}

fn form(gate: &Gate, next: String) -> SignIn {
    SignIn {
        provider: gate.oidc.as_ref().map(|oidc| Provider {
            name: oidc.name().to_owned(),
            href: cookie::provider_path(&next),
        }),
        next,
        // The first admin may come from the provider.
        is_unclaimed: gate.oidc.is_none() && gate.identity.directory().admins().next().is_none(),
        ..SignIn::default()
    }
}

async fn sign_in(
    State(gate): State<Arc<Gate>>,
    Extension(who): Extension<Who>,
    Form(given): Form<Given>,
) -> Response {
    let next = cookie::next_path(given.next.as_deref()).to_owned();
    let password = SecretString::from(given.password);
    let signed_in = match &given.link {
        Some(link) => gate.identity.open_link(link, &who.origin).await,
        None => gate.identity.sign_in(&given.name, &password, &who.origin).await,
    };
    let error = match signed_in {
        Ok(signed_in) => return welcome(&gate, &signed_in, &next),
        Err(error) => error,
    };
    if matches!(error, IdentityError::BadLink) {
        gate.identity.note_bad_link(&who.origin).await;
    }
    let status = match &error {
        // Too long to be anybody's password: refused as a request, before it is counted or hashed.
        IdentityError::Invalid { .. } => StatusCode::BAD_REQUEST,
        error => form_page::status_of(error),
    };
    let form = SignIn {
        name: given.name,
        refusal: Some(form_page::sentence(&error)),
        is_unclaimed: false,
        ..form(&gate, next)
    };
    form_page::with_retry_after(page(status, sign_in::sign_in(form)), &error)
}

async fn show_setup(State(gate): State<Arc<Gate>>, Query(asked): Query<Asked>) -> Response {
    let link = match asked.link {
        // Its secret is in the fragment, which browsers keep to themselves.
        None if gate.identity.directory().admins().next().is_none() => String::new(),
        None => return page(StatusCode::GONE, setup::spent()),
        Some(link) => match gate.identity.is_setup_link(&link).await {
            Ok(true) => link,
            Ok(false) => return page(StatusCode::GONE, setup::spent()),
            Err(error) => return Problem::from(error).into_response(),
        },
    };
    let form = Setup {
        link,
        ..Setup::default()
    };
    setup_page(StatusCode::OK, form)
}

fn setup_page(status: StatusCode, form: Setup) -> Response {
    form_page::answer_with_script(status, setup::setup(form), setup::FROM_FRAGMENT)
}

/// What was pasted: the secret, or the whole link.
fn pasted_secret(text: &str) -> &str {
    text.rsplit(['#', '=']).next().unwrap_or_default().trim()
}

async fn set_up(
    State(gate): State<Arc<Gate>>,
    Extension(who): Extension<Who>,
    Form(given): Form<Given>,
) -> Response {
    let link = given.link.unwrap_or_default();
    let link = pasted_secret(&link).to_owned();
    let password = SecretString::from(given.password);
    let set_up = gate
        .identity
        .set_up(&link, given.name.clone(), password, &who.origin)
        .await;
    match set_up {
        Ok(signed_in) => welcome(&gate, &signed_in, "/"),
        Err(IdentityError::BadLink) => {
            gate.identity.note_bad_link(&who.origin).await;
            page(StatusCode::GONE, setup::spent())
        }
        Err(error) => {
            let status = form_page::status_of(&error);
            let mut form = Setup {
                link,
                name: given.name,
                ..Setup::default()
            };
            match &error {
                IdentityError::Invalid { field, why } => {
                    form.fault = Some(((*field).to_owned(), format!("It {why}.")));
                }
                error => form.refusal = Some(form_page::sentence(error)),
            }
            form_page::with_retry_after(setup_page(status, form), &error)
        }
    }
}

async fn sign_out(
    State(gate): State<Arc<Gate>>,
    Extension(who): Extension<Who>,
    headers: HeaderMap,
) -> Response {
    if let Some(session) = &who.session
        && let Err(error) = gate.identity.end_session(&who, &session.id).await
    {
        return Problem::from(error).with_request_id(&headers).into_response();
    }
    with_cookie(
        Redirect::to("/sign-in").into_response(),
        cookie::clear(gate.is_secure),
    )
}

fn welcome(gate: &Gate, signed_in: &SignedIn, next: &str) -> Response {
    with_cookie(
        Redirect::to(next).into_response(),
        cookie::set(&signed_in.secret, gate.is_secure),
    )
}

fn with_cookie(mut response: Response, cookie: Option<axum::http::HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn page(status: StatusCode, html: String) -> Response {
    form_page::answer(status, html)
}
