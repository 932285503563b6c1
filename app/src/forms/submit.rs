//! Sends a form by `fetch` in the browser.
//!
//! The session's cookie and the origin headers are the browser's, as for a posted form; the
//! `accept` header asks for the outcome as data instead of a page.

use js_sys::{JSON, Reflect, Uint8Array};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use thiserror::Error;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{FormData, Headers, HtmlElement, HtmlFormElement, RequestInit, Response, UrlSearchParams};

use super::reply::FormOutcome;
use crate::api::codec::PayloadError;
use crate::links;

/// Media type of [`FormOutcome`].
pub const OUTCOME_TYPE: &str = "application/octet-stream";

/// The form's handler was not reached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    #[error(
        "Nothing was done: your session has ended. Everything typed is still here: sign in, then submit again."
    )]
    SignedOut,
    #[error(
        "Nothing was done: this needs authentication within the last 15 minutes. Everything typed is still here: authenticate, then submit again."
    )]
    NotFresh,
    #[error("Nothing was done: {0}.")]
    Refused(String),
    #[error("Nothing was changed yet: the console did not answer. Submit again in a moment.")]
    Unreachable,
    #[error("Nothing was done: the console has another version now. Reload the page.")]
    OtherBuild,
}

impl SendError {
    /// Where the reader removes the cause, in another tab.
    pub fn link(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::SignedOut => Some(("/sign-in", "Sign in, in a new tab")),
            Self::NotFresh => Some(("/prove", "Authenticate again, in a new tab")),
            Self::Refused(_) | Self::Unreachable | Self::OtherBuild => None,
        }
    }
}

/// A form as it was submitted.
pub struct Submission {
    form: HtmlFormElement,
    action: String,
    body: UrlSearchParams,
}

impl Submission {
    /// `None` where the browser submits it by itself.
    pub fn from_event(event: &SubmitEvent) -> Option<Self> {
        let form: HtmlFormElement = event.target()?.dyn_into().ok()?;
        let button = event.submitter();
        let data = FormData::new_with_form(&form).ok()?;
        let of_button = |name: &str| button.as_ref()?.get_attribute(name);
        if let (Some(name), Some(value)) = (of_button("name"), of_button("value")) {
            data.append_with_str(&name, &value).ok()?;
        }
        let action = of_button("formaction").or_else(|| form.get_attribute("action"))?;
        Some(Self {
            body: UrlSearchParams::new_with_str_sequence_sequence(&data).ok()?,
            action,
            form,
        })
    }

    /// # Errors
    /// The handler of the form was not reached.
    pub async fn send(&self) -> Result<FormOutcome, SendError> {
        let response = self.fetch().await.map_err(|_| SendError::Unreachable)?;
        let kind = response.headers().get("content-type").ok().flatten();
        if kind.is_some_and(|kind| kind == OUTCOME_TYPE) {
            let bytes = bytes(&response).await.map_err(|_| SendError::Unreachable)?;
            return FormOutcome::from_bytes(&bytes).map_err(|error| match error {
                PayloadError::OtherBuild => SendError::OtherBuild,
                PayloadError::Malformed => SendError::Unreachable,
            });
        }
        Err(refusal(&response).await)
    }

    async fn fetch(&self) -> Result<Response, JsValue> {
        let (init, headers) = (RequestInit::new(), Headers::new()?);
        headers.set("accept", OUTCOME_TYPE)?;
        init.set_method("POST");
        init.set_headers(&headers);
        init.set_body(&self.body);
        let sent = window().fetch_with_str_and_init(&self.action, &init);
        JsFuture::from(sent).await?.dyn_into()
    }

    /// After success, for a page that stays open.
    pub fn reset(&self) {
        self.form.reset();
    }

    /// Moves the focus to the first field with an error.
    pub fn focus_fault(&self) {
        let form = self.form.clone();
        request_animation_frame(move || {
            let found = form.query_selector("[aria-invalid=true]").ok().flatten();
            if let Some(field) = found.and_then(|field| field.dyn_into::<HtmlElement>().ok()) {
                let _ = field.focus();
            }
        });
    }
}

/// Fields of a form, in order.
pub fn fields(form: &HtmlFormElement) -> Vec<(String, String)> {
    let Ok(data) = FormData::new_with_form(form) else {
        return Vec::new();
    };
    let Ok(text) = UrlSearchParams::new_with_str_sequence_sequence(&data) else {
        return Vec::new();
    };
    links::pairs(&String::from(text.to_string()))
}

async fn bytes(response: &Response) -> Result<Vec<u8>, JsValue> {
    let buffer = JsFuture::from(response.array_buffer()?).await?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

/// The refusal of the authentication layer, a problem in JSON.
async fn refusal(response: &Response) -> SendError {
    let problem = problem(response).await.ok();
    let text = |name: &str| {
        let member = Reflect::get(problem.as_ref()?, &name.into()).ok()?;
        member.as_string()
    };
    match (response.status(), text("code").as_deref()) {
        (401, _) => SendError::SignedOut,
        (403, Some("needs_reauthentication")) => SendError::NotFresh,
        (status, _) => text("detail").or_else(|| text("title")).map_or_else(
            || SendError::Refused(format!("the console answered with status {status}")),
            |detail| SendError::Refused(links::without_full_stop(&detail).to_owned()),
        ),
    }
}

async fn problem(response: &Response) -> Result<JsValue, JsValue> {
    let text = JsFuture::from(response.text()?).await?;
    JSON::parse(&text.as_string().unwrap_or_default())
}
