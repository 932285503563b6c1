//! `/sign-in` and below, `/sign-out` and `/setup`: forms that work without a script. Handlers parse, ask identity, set
//! the cookie.

pub(in crate::http) mod oidc;

use std::sync::Arc;

use app::server_pages::setup::{self, Setup};
use app::server_pages::sign_in::{self, Provider, SignIn, SpentLink};
use axum::extract::{FromRequest, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::SecretString;
use serde::Deserialize;

use crate::http::auth::{Authenticator, cookie};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::problem::Problem;
use crate::identity::{IdentityError, Principal, SignedIn};

/// Prints a sign-in link.
const LINK_COMMAND: &str = "leasehold user link --name NAME";

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct SignInQuery {
    link: Option<String>,
    next: Option<String>,
}

/// Only the name is ever shown or logged.
pub(in crate::http) struct SignInForm {
    name: String,
    password: SecretString,
    link: Option<String>,
    next: Option<String>,
}

impl<S: Sync> FromRequest<S> for SignInForm {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let form = Form::read_anonymous(request.into_body()).await?;
        let is_known = |(name, _): &(String, String)| matches!(name.as_str(), "name" | "password" | "link");
        if !form.fields().iter().any(is_known) {
            let why = "The form must have the fields `name` and `password`, or `link`";
            return Err(Problem::invalid("body", why.to_owned()));
        }
        Ok(Self {
            name: form.untrimmed("name"),
            password: form.secret("password"),
            link: form.find("link"),
            next: form.find("next"),
        })
    }
}

pub(in crate::http) async fn show(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    Query(asked): Query<SignInQuery>,
) -> Response {
    let next = cookie::next_path(asked.next.as_deref()).to_owned();
    let Some(link) = asked.link else {
        return page(StatusCode::OK, sign_in::sign_in(form(&auth, next)));
    };
    match auth.identity.check_user_link(&link, &who.origin).await {
        Ok(()) => page(StatusCode::OK, sign_in::by_link(link, next)),
        Err(error) => link_error_page(&auth, &who, &error, next),
    }
}

/// The ways to another link, or when to try again.
fn link_error_page(auth: &Authenticator, who: &Principal, error: &IdentityError, next: String) -> Response {
    if matches!(error, IdentityError::BadLink) {
        return page(StatusCode::GONE, sign_in::spent_link(spent_link(auth, who)));
    }
    let form = SignIn {
        refusal: Some(response::sentence(error)),
        is_unclaimed: false,
        ..form(auth, next)
    };
    let status = response::status_of(error);
    response::with_retry_after(page(status, sign_in::sign_in(form)), error)
}

fn spent_link(auth: &Authenticator, who: &Principal) -> SpentLink {
    let is_signed_in = who.session.is_some();
    match &auth.demo {
        Some(demo) => SpentLink {
            command: demo.link_command.clone(),
            hint: None,
            is_signed_in,
        },
        None => SpentLink {
            command: LINK_COMMAND.to_owned(),
            hint: Some(
                "NAME is your user's name. With --config FILE where the configuration is in another folder.",
            ),
            is_signed_in,
        },
    }
}

fn form(auth: &Authenticator, next: String) -> SignIn {
    SignIn {
        provider: auth.oidc.as_ref().map(|oidc| Provider {
            name: oidc.name().to_owned(),
            href: cookie::provider_path(&next),
        }),
        next,
        // The first admin may come from the provider.
        is_unclaimed: auth.oidc.is_none() && auth.identity.directory().admins().next().is_none(),
        ..SignIn::default()
    }
}

pub(in crate::http) async fn sign_in(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    given: SignInForm,
) -> Response {
    let next = cookie::next_path(given.next.as_deref()).to_owned();
    let signed_in = match &given.link {
        Some(link) => auth.identity.open_link(link, &who.origin).await,
        None => {
            let (name, password) = (&given.name, &given.password);
            auth.identity.sign_in(name, password, &who.origin).await
        }
    };
    let error = match signed_in {
        Ok(signed_in) => return signed_in_redirect(&auth, &signed_in, &next),
        Err(error) => error,
    };
    if given.link.is_some() {
        if matches!(error, IdentityError::BadLink) {
            auth.identity.record_bad_link(&who.origin).await;
        }
        return link_error_page(&auth, &who, &error, next);
    }
    let status = match &error {
        // Longer than any password: rejected as a request, before it is counted or hashed.
        IdentityError::Invalid { .. } => StatusCode::BAD_REQUEST,
        error => response::status_of(error),
    };
    let form = SignIn {
        name: given.name,
        refusal: Some(response::sentence(&error)),
        is_unclaimed: false,
        ..form(&auth, next)
    };
    response::with_retry_after(page(status, sign_in::sign_in(form)), &error)
}

pub(in crate::http) async fn show_setup(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    Query(asked): Query<SignInQuery>,
) -> Response {
    let link = match asked.link {
        // Its secret is in the fragment, which browsers keep to themselves.
        None if auth.identity.directory().admins().next().is_none() => String::new(),
        None => return page(StatusCode::GONE, setup::spent()),
        Some(link) => match auth.identity.check_setup_link(&link, &who.origin).await {
            Ok(()) => link,
            Err(IdentityError::BadLink) => return page(StatusCode::GONE, setup::spent()),
            Err(error) => {
                let form = Setup {
                    link,
                    refusal: Some(response::sentence(&error)),
                    ..Setup::default()
                };
                return response::with_retry_after(setup_page(response::status_of(&error), form), &error);
            }
        },
    };
    let form = Setup {
        link,
        ..Setup::default()
    };
    setup_page(StatusCode::OK, form)
}

fn setup_page(status: StatusCode, form: Setup) -> Response {
    response::answer_with_script(status, setup::setup(form), setup::FROM_FRAGMENT)
}

/// The pasted text: the secret, or the whole link.
fn pasted_secret(text: &str) -> &str {
    text.rsplit(['#', '=']).next().unwrap_or_default().trim()
}

pub(in crate::http) async fn set_up(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    given: SignInForm,
) -> Response {
    let link = given.link.unwrap_or_default();
    let link = pasted_secret(&link).to_owned();
    let set_up = auth
        .identity
        .set_up(&link, given.name.clone(), given.password, &who.origin)
        .await;
    match set_up {
        Ok(signed_in) => signed_in_redirect(&auth, &signed_in, "/"),
        Err(IdentityError::BadLink) => {
            auth.identity.record_bad_link(&who.origin).await;
            page(StatusCode::GONE, setup::spent())
        }
        Err(error) => {
            let status = response::status_of(&error);
            let mut form = Setup {
                link,
                name: given.name,
                ..Setup::default()
            };
            match &error {
                IdentityError::Invalid { field, why } => {
                    form.fault = Some(((*field).to_owned(), format!("It {why}.")));
                }
                error => form.refusal = Some(response::sentence(error)),
            }
            response::with_retry_after(setup_page(status, form), &error)
        }
    }
}

pub(in crate::http) async fn sign_out(
    State(auth): State<Arc<Authenticator>>,
    CurrentUser(who): CurrentUser,
    headers: HeaderMap,
) -> Response {
    if let Some(session) = &who.session
        && let Err(error) = auth.identity.end_session(&who, &session.id).await
    {
        return Problem::from(error).with_request_id(&headers).into_response();
    }
    with_cookie(
        Redirect::to("/sign-in").into_response(),
        cookie::clear(auth.is_secure),
    )
}

fn signed_in_redirect(auth: &Authenticator, signed_in: &SignedIn, next: &str) -> Response {
    with_cookie(
        Redirect::to(next).into_response(),
        cookie::set(&signed_in.secret, auth.is_secure),
    )
}

fn with_cookie(mut response: Response, cookie: Option<axum::http::HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn page(status: StatusCode, html: String) -> Response {
    response::html_response(status, html)
}
