//! A page for a form that the authentication layer rejected, with what the user typed: nothing is lost when a session ends.

use app::server_pages::layout::{Page, PageSection, page as around};
use app::server_pages::rejected_form::{self, Typed};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::route_permissions::{self, Access};
use super::{Refusal, cookie, reject as problem, right_of};
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::identity::Principal;

/// Posted by a browser's form to one of our pages.
pub(super) fn is_form(parts: &Parts) -> bool {
    let says = |name, word: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains(word))
    };
    !parts.method.is_safe()
        && route_permissions::is_page(parts.uri.path())
        && says(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        && says(header::ACCEPT, "text/html")
}

pub(super) fn reject(
    refusal: Refusal,
    access: Option<Access>,
    who: &Principal,
    parts: &Parts,
    form: Form,
) -> Response {
    let action = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    match refusal {
        Refusal::NobodyKnown => {
            let typed = Typed::new(form.into_fields());
            let html = rejected_form::signed_out(action, &cookie::sign_in_path("/"), &typed);
            response::html_response(StatusCode::UNAUTHORIZED, html)
        }
        Refusal::CrossSite => response::html_response(StatusCode::FORBIDDEN, rejected_form::from_elsewhere()),
        Refusal::Forbidden => {
            let content = rejected_form::forbidden(right_of(access), &Typed::new(form.into_fields()));
            let page = Page {
                title: "Nothing was changed: your role does not have the permission".to_owned(),
                lead: None,
                content,
            };
            let chrome = response::chrome(who, PageSection::Elsewhere);
            response::html_response(StatusCode::FORBIDDEN, around(&chrome, page))
        }
        // Not a form of the console, or already answered with a page.
        Refusal::NotFresh | Refusal::NoSuchMethod | Refusal::NoSuchRoute => {
            problem(refusal, access, who, parts)
        }
    }
}
