//! `/prove`: authenticating once more in the same session, before a change that asks for it. Leads back to a page, or sends
//! a form on that was refused, with everything that was typed into it.

use std::sync::Arc;

use app::forms::not_done::Typed;
use app::forms::prove::{Prove, Then, prove, resend};
use app::forms::unlock::Proof;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};

use super::access::{Gate, cookie, needs};
use super::form_page;
use super::settings::form::Form;
use super::settings::{Viewer, on_to};
use crate::identity::{IdentityError, Who};

/// Field of the password; no form that is sent on has one of this name.
const PASSWORD: &str = "currentPassword";

/// What follows, as the address says it: a page of ours, or a form to be sent again.
fn then(uri: &Uri) -> Then {
    let pairs = app::links::pairs(uri.query().unwrap_or_default());
    let find = |wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted);
        found.map(|(_, path)| cookie::next_path(Some(path)).to_owned())
    };
    match find("send") {
        Some(action) if needs::is_page(&action) && action != "/" => Then::Send(action),
        _ => Then::Open(find("next").unwrap_or_else(|| "/".to_owned())),
    }
}

/// How this user can authenticate once more.
pub(super) fn proof(gate: &Gate, who: &Who) -> Proof {
    let directory = gate.identity.directory();
    let person = directory.people.get(who.id());
    if who.session.is_none() {
        return Proof::Never;
    }
    if person.is_some_and(|person| person.has_password) {
        return Proof::Password;
    }
    let is_theirs = person.is_some_and(|person| person.issuer.is_some());
    Proof::SignIn {
        at_provider: is_theirs && gate.oidc.is_some(),
    }
}

/// A form that was refused because its session is not fresh: what was typed, and how to go on.
pub(super) fn refused(gate: &Gate, who: &Who, action: &str, form: Form) -> Response {
    answer(
        gate,
        who,
        Then::Send(action.to_owned()),
        (StatusCode::FORBIDDEN, typed(form), None),
    )
}

pub(super) async fn show(State(gate): State<Arc<Gate>>, viewer: Viewer, uri: Uri) -> Response {
    let then = match then(&uri) {
        // There is no form to send yet.
        Then::Send(_) => Then::Open("/".to_owned()),
        open @ Then::Open(_) => open,
    };
    answer(&gate, &viewer.0, then, (StatusCode::OK, Typed::default(), None))
}

pub(super) async fn submit(State(gate): State<Arc<Gate>>, viewer: Viewer, uri: Uri, form: Form) -> Response {
    let then = then(&uri);
    if viewer.0.session.is_none() {
        return answer(&gate, &viewer.0, then, (StatusCode::FORBIDDEN, typed(form), None));
    }
    let error = match gate.identity.prove_again(&viewer.0, &form.secret(PASSWORD)).await {
        Ok(()) => {
            return match then {
                Then::Open(page) => on_to(&page),
                // 307: the browser sends the same fields again.
                Then::Send(action) => Redirect::temporary(&action).into_response(),
            };
        }
        Err(error) => error,
    };
    let fault = match &error {
        IdentityError::WrongPassword => "That is not your password.".to_owned(),
        other => form_page::sentence(other),
    };
    let status = form_page::status_of(&error);
    let mut response = answer(&gate, &viewer.0, then, (status, typed(form), Some(fault)));
    if let IdentityError::TooManyGuesses { wait_s } = error {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
    }
    response
}

/// What was typed into the form that waits.
fn typed(form: Form) -> Typed {
    let mut fields = form.into_fields();
    fields.retain(|(name, _)| name != PASSWORD);
    Typed::of(fields)
}

fn answer(
    gate: &Gate,
    who: &Who,
    then: Then,
    (status, typed, fault): (StatusCode, Typed, Option<String>),
) -> Response {
    let chrome = form_page::chrome(who, app::forms::chrome::Place::Elsewhere);
    let content = Prove {
        proof: proof(gate, who),
        field: PASSWORD,
        fault,
        then,
        typed,
    };
    let html = match &content.then {
        Then::Open(_) => prove(&chrome, &content),
        Then::Send(action) => resend(&chrome, &content, action),
    };
    form_page::answer(status, html)
}
