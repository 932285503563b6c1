//! The page for a form that the authentication layer rejected. It keeps the typed fields when a session has ended.

use app::forms::reply::{FormReply, TypedFields};
use app::session::{FirstRender, Refusal as PageRefusal};
use axum::extract::MatchedPath;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::route_permissions::{self, Access};
use super::{Refusal, cookie, reject as problem, right_of};
use crate::http::form_body::Form;
use crate::http::pages;
use crate::http::state::AppState;
use crate::identity::Principal;

/// Posted by a browser's form to one of our pages.
pub(super) fn is_form(parts: &Parts) -> bool {
    let has_media_type = |name, media_type: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains(media_type))
    };
    !parts.method.is_safe()
        && route_permissions::is_page(parts.uri.path())
        && has_media_type(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        && has_media_type(header::ACCEPT, "text/html")
}

pub(super) async fn reject(
    state: &AppState,
    refusal: Refusal,
    access: Option<Access>,
    who: &Principal,
    parts: &Parts,
    form: Form,
) -> Response {
    let action = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let (shown, status) = match refusal {
        Refusal::Unauthenticated => {
            let sign_in = cookie::sign_in_path("/");
            (PageRefusal::SignedOut { sign_in }, StatusCode::UNAUTHORIZED)
        }
        Refusal::CrossSite => (PageRefusal::FromElsewhere, StatusCode::FORBIDDEN),
        Refusal::Forbidden => (
            PageRefusal::Forbidden(right_of(access).to_owned()),
            StatusCode::FORBIDDEN,
        ),
        // Not a form of the console, or already answered with a page.
        Refusal::NotFresh | Refusal::NoSuchMethod | Refusal::NoSuchRoute => {
            return problem(state, refusal, access, who, parts).await;
        }
    };
    // Fields sent by another site are not user input.
    let fields = match refusal {
        Refusal::CrossSite => TypedFields::default(),
        _ => TypedFields::without_secrets(form.into_fields()),
    };
    let first = FirstRender {
        refusal: Some(shown),
        reply: Some(FormReply {
            action: action.to_owned(),
            fields,
            ..FormReply::default()
        }),
        ..FirstRender::default()
    };
    // Nothing of the session is shown to another site's request.
    let anonymous = Principal::anonymous(who.origin.clone());
    let who = if refusal == Refusal::CrossSite {
        &anonymous
    } else {
        who
    };
    let matched = parts.extensions.get::<MatchedPath>();
    let page = route_permissions::page_of(matched.map(MatchedPath::as_str), action);
    Box::pin(pages::render(state, who, page, status, first)).await
}
