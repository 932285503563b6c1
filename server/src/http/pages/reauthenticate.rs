//! `/prove`: reauthentication in the same session, before a change that requires it. Afterwards it redirects to a page, or
//! submits the rejected form again with its fields, except those that may be secrets.

use std::sync::Arc;

use app::forms::reply::TypedFields;
use app::pages::unlock::data::Proof;
use app::server_pages::reauthenticate::{Prove, Then, Visitor, prove, resend};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};

use crate::http::auth::{Authenticator, cookie, route_permissions};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::identity::{IdentityError, Principal};

/// Field of the password; no resubmitted form has a field of this name.
const PASSWORD: &str = "currentPassword";

/// The next step from the query: a page of the console, or a form to submit again.
fn next_step(uri: &Uri) -> Then {
    let pairs = app::links::pairs(uri.query().unwrap_or_default());
    let find = |param: &str| {
        let found = pairs.iter().find(|(name, _)| name == param);
        found.map(|(_, path)| cookie::next_path(Some(path)).to_owned())
    };
    match find("send") {
        Some(action) if route_permissions::is_page(&action) && action != "/" => Then::Send(action),
        _ => Then::Open(find("next").unwrap_or_else(|| "/".to_owned())),
    }
}

/// The methods by which this user can reauthenticate.
pub(in crate::http) fn proof(auth: &Authenticator, who: &Principal) -> Proof {
    let directory = auth.identity.directory();
    let user = directory.users.get(who.id());
    if who.session.is_none() {
        return Proof::Never;
    }
    if user.is_some_and(|user| user.has_password) {
        return Proof::Password;
    }
    let is_provider_user = user.is_some_and(|user| user.issuer.is_some());
    Proof::SignIn {
        at_provider: is_provider_user && auth.oidc.is_some(),
    }
}

/// The page that asks for reauthentication and keeps the fields of the rejected form.
pub(in crate::http) fn request_reauthentication(
    auth: &Authenticator,
    who: &Principal,
    action: &str,
    form: Form,
) -> Response {
    respond(
        auth,
        who,
        Then::Send(action.to_owned()),
        (StatusCode::FORBIDDEN, pending_fields(form), None),
    )
}

pub(in crate::http) async fn show(
    State(auth): State<Arc<Authenticator>>,
    viewer: CurrentUser,
    uri: Uri,
) -> Response {
    let then = match next_step(&uri) {
        // There is no form to send yet.
        Then::Send(_) => Then::Open("/".to_owned()),
        open @ Then::Open(_) => open,
    };
    respond(
        &auth,
        &viewer.0,
        then,
        (StatusCode::OK, TypedFields::default(), None),
    )
}

pub(in crate::http) async fn submit(
    State(auth): State<Arc<Authenticator>>,
    viewer: CurrentUser,
    uri: Uri,
    form: Form,
) -> Response {
    let then = next_step(&uri);
    if viewer.0.session.is_none() {
        return respond(
            &auth,
            &viewer.0,
            then,
            (StatusCode::FORBIDDEN, pending_fields(form), None),
        );
    }
    let error = match auth.identity.prove_again(&viewer.0, &form.secret(PASSWORD)).await {
        Ok(()) => {
            return match then {
                Then::Open(page) => see_other(&page),
                // 307: the browser sends the same fields again.
                Then::Send(action) => Redirect::temporary(&action).into_response(),
            };
        }
        Err(error) => error,
    };
    let fault = match &error {
        IdentityError::WrongPassword => "That is not your password.".to_owned(),
        other => response::sentence(other),
    };
    let status = response::status_of(&error);
    let mut response = respond(
        &auth,
        &viewer.0,
        then,
        (status, pending_fields(form), Some(fault)),
    );
    if let IdentityError::TooManyGuesses { wait_s } = error {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
    }
    response
}

/// Fields of the pending form.
fn pending_fields(form: Form) -> TypedFields {
    let mut fields = form.into_fields();
    fields.retain(|(name, _)| name != PASSWORD);
    TypedFields::without_secrets(fields)
}

fn respond(
    auth: &Authenticator,
    who: &Principal,
    then: Then,
    (status, fields, fault): (StatusCode, TypedFields, Option<String>),
) -> Response {
    let visitor = Visitor {
        name: who.name().to_owned(),
        is_read_only: who.read_only,
        is_alerts_overdue: who.alerts_overdue,
    };
    let content = Prove {
        proof: proof(auth, who),
        field: PASSWORD,
        fault,
        then,
        typed: fields,
    };
    let html = match &content.then {
        Then::Open(_) => prove(&visitor, &content),
        Then::Send(action) => resend(&visitor, &content, action),
    };
    response::html_response(status, html)
}
