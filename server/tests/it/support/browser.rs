//! A browser without scripts.

use std::sync::Mutex;

use reqwest::{Client, Method, Response, header, redirect};

/// Keeps the cookie, follows no redirect, and sends the origin headers of a browser.
pub(crate) struct Browser {
    client: Client,
    base: String,
    cookie: Mutex<String>,
}

impl Browser {
    pub(super) fn new(base: String) -> Self {
        let client = Client::builder().redirect(redirect::Policy::none());
        Self {
            client: client.build().unwrap(),
            base,
            cookie: Mutex::default(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        self.post_from("same-origin", path, form).await
    }

    pub(crate) async fn post_from(&self, site: &str, path: &str, form: &[(&str, &str)]) -> Response {
        self.post_with(("sec-fetch-site", site), path, form).await
    }

    pub(crate) async fn post_with(
        &self,
        header: (&str, &str),
        path: &str,
        form: &[(&str, &str)],
    ) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        self.send(
            Method::POST,
            path,
            &[
                header,
                ("content-type", "application/x-www-form-urlencoded"),
                ("body", &body),
            ],
        )
        .await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, parts: &[(&str, &str)]) -> Response {
        let cookie = self.cookie.lock().unwrap().clone();
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header(header::COOKIE, cookie);
        for (name, value) in parts {
            request = match *name {
                "body" => request.body((*value).to_owned()),
                name => request.header(name, *value),
            };
        }
        let answer = request.send().await.unwrap();
        if let Some(set) = answer.headers().get(header::SET_COOKIE) {
            let value = set.to_str().unwrap().split(';').next().unwrap();
            value.clone_into(&mut self.cookie.lock().unwrap());
        }
        answer
    }
}
