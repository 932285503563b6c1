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

const STORE_UNAVAILABLE: &str =
    "the console's store is unavailable. Everything typed is still here: submit again in a moment";

/// The form has no reply of its handler.
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
    /// The request may have arrived: the handler may have run.
    #[error(
        "Outcome unknown: {0}. The action may have run. Everything typed is still here: check before you submit again."
    )]
    OutcomeUnknown(String),
}

impl SendError {
    /// Link to open in another tab, where the user removes the cause.
    pub fn link(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::SignedOut => Some(("/sign-in", "Sign in, in a new tab")),
            Self::NotFresh => Some(("/prove", "Authenticate again, in a new tab")),
            // The page of the form, which shows the present state.
            Self::OutcomeUnknown(_) => Some(("", "Check, in a new tab")),
            Self::Refused(_) => None,
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
    /// The handler of the form was not reached, or its reply was lost.
    pub async fn send(&self) -> Result<FormOutcome, SendError> {
        let response = self.fetch().await.map_err(|_| no_answer())?;
        let kind = response.headers().get("content-type").ok().flatten();
        if kind.is_some_and(|kind| kind == OUTCOME_TYPE) {
            let bytes = bytes(&response).await.map_err(|_| no_answer())?;
            return FormOutcome::from_bytes(&bytes).map_err(|error| unreadable(&error));
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

    pub fn form(&self) -> &HtmlFormElement {
        &self.form
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

fn no_answer() -> SendError {
    SendError::OutcomeUnknown("the console did not answer".to_owned())
}

/// A reply that the handler wrote: it has run.
fn unreadable(error: &PayloadError) -> SendError {
    let why = match error {
        PayloadError::OtherBuild => "the console has another version now, and its reply cannot be read",
        PayloadError::Malformed => "the reply of the console cannot be read",
    };
    SendError::OutcomeUnknown(why.to_owned())
}

/// A response without a reply of the handler: a problem in JSON, or the answer of a proxy.
async fn refusal(response: &Response) -> SendError {
    let problem = problem(response).await.ok();
    let text = |name: &str| {
        let member = Reflect::get(problem.as_ref()?, &name.into()).ok()?;
        member.as_string()
    };
    let detail = text("detail").or_else(|| text("title"));
    classify(response.status(), text("code").as_deref(), detail)
}

/// Below status 500 the request was refused before its handler ran. `store_unavailable` is also from before the handler, from
/// the check of the session: a handler puts errors of the store into its reply. With any other status from 500 on it is
/// unknown how far the handler came.
fn classify(status: u16, code: Option<&str>, detail: Option<String>) -> SendError {
    let why = detail.map_or_else(
        || format!("the console answered with status {status}"),
        |detail| links::without_full_stop(&detail).to_owned(),
    );
    match (status, code) {
        (401, _) => SendError::SignedOut,
        (403, Some("needs_reauthentication")) => SendError::NotFresh,
        (503, Some("store_unavailable")) => SendError::Refused(STORE_UNAVAILABLE.to_owned()),
        (500.., _) => SendError::OutcomeUnknown(why),
        _ => SendError::Refused(why),
    }
}

async fn problem(response: &Response) -> Result<JsValue, JsValue> {
    let text = JsFuture::from(response.text()?).await?;
    JSON::parse(&text.as_string().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_reply_never_reads_as_nothing_done() {
        // A proxy's error page, a panic, a reply of another version, and no answer at all.
        let bug = Some("This is a bug in Leasehold.".to_owned());
        let unknown = [
            classify(502, None, None),
            classify(503, None, None),
            classify(500, Some("internal"), bug),
            unreadable(&PayloadError::OtherBuild),
            unreadable(&PayloadError::Malformed),
            no_answer(),
        ];
        for error in unknown {
            let text = error.to_string();
            assert!(
                text.starts_with("Outcome unknown: ") && !text.contains("Nothing"),
                "{text}"
            );
            assert!(!text.contains(".."), "{text}");
            assert_eq!(error.link().map(|(href, _)| href), Some(""));
        }
        let store = Some("The console's store is unavailable: nothing was changed".to_owned());
        for refused in [
            classify(403, Some("forbidden"), None),
            classify(503, Some("store_unavailable"), store),
        ] {
            assert!(refused.to_string().starts_with("Nothing was done: "), "{refused}");
            assert_eq!(refused.link(), None);
        }
        assert_eq!(classify(401, None, None), SendError::SignedOut);
        assert_eq!(
            classify(403, Some("needs_reauthentication"), None),
            SendError::NotFresh
        );
    }
}
