//! A form, as a browser sends it.

use reqwest::{RequestBuilder, header};

pub(crate) trait Form {
    fn form<N: AsRef<str>, V: AsRef<str>>(self, pairs: &[(N, V)]) -> Self;
}

impl Form for RequestBuilder {
    fn form<N: AsRef<str>, V: AsRef<str>>(self, pairs: &[(N, V)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish();
        self.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
    }
}
