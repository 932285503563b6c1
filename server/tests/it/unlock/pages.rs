//! The pages of the forced unlock: the same refusals and audit entries as in the API, each error at its field, and
//! typed input kept.

mod bulk;
mod flow;
mod protected;
mod refused;

use crate::support::{TestCaller, TestServer};
use crate::unlock::requests::{HeldLock, REASON};
use reqwest::{Client, Method, redirect};

/// Status, redirect target, and text of the page.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) to: String,
    pub(crate) text: String,
}

impl Page {
    /// A space in `words` also matches a no-break space.
    pub(crate) fn has(&self, words: &str) -> &Self {
        assert!(
            self.text.replace('\u{a0}', " ").contains(words),
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
    server: &TestServer,
    caller: &TestCaller,
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
    let mut request = http.request(method.clone(), server.url(path));
    request = match caller {
        TestCaller::Token(secret) => request.bearer_auth(secret),
        TestCaller::Session(secret) => request
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

pub(crate) async fn see(server: &TestServer, caller: &TestCaller, path: &str) -> Page {
    send(server, caller, (Method::GET, path), &[]).await
}

pub(crate) async fn post(
    server: &TestServer,
    caller: &TestCaller,
    path: &str,
    form: &[(&str, &str)],
) -> Page {
    send(server, caller, (Method::POST, path), form).await
}

/// Address of the first step.
pub(crate) fn address(held: &HeldLock) -> String {
    let name: String = url::form_urlencoded::byte_serialize(held.resource.as_bytes()).collect();
    format!("/unlock/{}/{}", held.backend, name.replace('+', "%20"))
}

/// The address of an intent that was begun by the page.
pub(crate) async fn begun(server: &TestServer, caller: &TestCaller, held: &HeldLock) -> String {
    let found = std::cell::RefCell::new(String::new());
    testkit::eventually("an intent", async || {
        let form = [("generation", held.generation.as_str()), ("reason", REASON)];
        let page = post(server, caller, &address(held), &form).await;
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
