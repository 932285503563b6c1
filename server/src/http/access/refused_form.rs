//! A form that was refused before its handler saw it: said as a page to whoever posted it, with what they typed, so that
//! nothing is lost when a session ends under a half-written reason.

use app::forms::chrome::{Page, Place, page as around};
use app::forms::not_done::{self, Typed};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::needs::{self, Need};
use super::{Refusal, answer as problem, cookie, right_of};
use crate::http::form_page;
use crate::http::settings::form::Form;
use crate::identity::Who;

/// Posted by a browser's form to one of our pages.
pub(super) fn is_form(asked: &Parts) -> bool {
    let says = |name, word: &str| {
        let value = asked.headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains(word))
    };
    !asked.method.is_safe()
        && needs::is_page(asked.uri.path())
        && says(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        && says(header::ACCEPT, "text/html")
}

pub(super) fn answer(refusal: Refusal, need: Option<Need>, who: &Who, asked: &Parts, form: Form) -> Response {
    let action = asked.uri.path_and_query().map_or("/", |path| path.as_str());
    match refusal {
        Refusal::NobodyKnown => {
            let typed = Typed::of(form.into_fields());
            let html = not_done::signed_out(action, &cookie::sign_in_path("/"), &typed);
            form_page::answer(StatusCode::UNAUTHORIZED, html)
        }
        Refusal::CrossSite => form_page::answer(StatusCode::FORBIDDEN, not_done::from_elsewhere()),
        Refusal::Forbidden => {
            let content = not_done::forbidden(right_of(need), &Typed::of(form.into_fields()));
            let page = Page {
                title: "Nothing was done: this is not for your role".to_owned(),
                lead: None,
                content,
            };
            let chrome = form_page::chrome(who, Place::Elsewhere);
            form_page::answer(StatusCode::FORBIDDEN, around(&chrome, page))
        }
        // Not a form of ours; or answered with a page of its own before.
        Refusal::NotFresh | Refusal::NoSuchMethod | Refusal::NoSuchRoute => {
            problem(refusal, need, who, asked)
        }
    }
}
