//! The pages of the forced unlock: the same refusals as the API's with the same rows, told where they belong, and nothing
//! that was typed lost.

mod flow;
mod protected;
mod refused;
mod several;

use reqwest::{Client, Method, redirect};

pub(crate) use super::stage::REASON;
use super::stage::{Caller, Held, Stage};

/// Status, where it leads, and what the page says.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) to: String,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn has(&self, words: &str) -> &Self {
        assert!(
            self.text.contains(words),
            "{}: no {words:?} in {}",
            self.status,
            self.text
        );
        self
    }

    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// The value of a hidden field.
    pub(crate) fn hidden(&self, name: &str) -> String {
        let field = format!("type=\"hidden\" name=\"{name}\" value=\"");
        let rest = self.text.split(&field).nth(1).expect(&self.text);
        rest.split('"').next().unwrap().replace("&amp;", "&")
    }
}

/// As a browser sends it, but without following where it is led.
pub(crate) async fn send(
    stage: &Stage,
    caller: &Caller,
    (method, path): (Method, &str),
    form: &[(&str, &str)],
) -> Page {
    let http = Client::builder()
        .redirect(redirect::Policy::none())
        .build()
        .unwrap();
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let mut request = http.request(method.clone(), stage.url(path));
    request = match caller {
        Caller::Token(secret) => request.bearer_auth(secret),
        Caller::Browser(secret) => request
            .header("cookie", format!("leasehold={secret}"))
            .header("sec-fetch-site", "same-origin"),
    };
    if method == Method::POST {
        request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .body(body);
    }
    let answer = request.send().await.unwrap();
    let to = answer
        .headers()
        .get("location")
        .map(|to| to.to_str().unwrap().to_owned());
    Page {
        status: answer.status().as_u16(),
        to: to.unwrap_or_default(),
        text: answer.text().await.unwrap(),
    }
}

pub(crate) async fn see(stage: &Stage, caller: &Caller, path: &str) -> Page {
    send(stage, caller, (Method::GET, path), &[]).await
}

pub(crate) async fn post(stage: &Stage, caller: &Caller, path: &str, form: &[(&str, &str)]) -> Page {
    send(stage, caller, (Method::POST, path), form).await
}

/// Address of the first step.
pub(crate) fn address(held: &Held) -> String {
    let name: String = url::form_urlencoded::byte_serialize(held.resource.as_bytes()).collect();
    format!("/unlock/{}/{}", held.backend, name.replace('+', "%20"))
}

/// The address of an intent that was begun by the page.
pub(crate) async fn begun(stage: &Stage, caller: &Caller, held: &Held) -> String {
    let found = std::cell::RefCell::new(String::new());
    crate::support::eventually::eventually("an intent", async || {
        let form = [("generation", held.generation.as_str()), ("reason", REASON)];
        let page = post(stage, caller, &address(held), &form).await;
        assert!(
            page.status == 303 || page.status == 503,
            "{}: {}",
            page.status,
            page.text
        );
        *found.borrow_mut() = page.to;
        page.status == 303
    })
    .await;
    found.into_inner()
}

pub(crate) fn id(address: &str) -> &str {
    address.strip_prefix("/unlocks/").unwrap()
}
