//! Whether a request was made by another site's page.
//!
//! Browsers say so themselves: `Sec-Fetch-Site`, and where that is missing, `Origin`. A client that sends neither is no
//! browser with our cookie in it.

use axum::http::{HeaderMap, header};

pub(super) fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or("unreadable"))
    };
    if let Some(site) = text("sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(header::ORIGIN.as_str()) else {
        return false;
    };
    let host = text(header::HOST.as_str()).unwrap_or_default();
    let own = origin.split_once("://").map(|(_, rest)| rest);
    own != Some(host)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_our_own_pages_and_programs_are_not_foreign() {
        // By the fetch metadata, by the origin, and without either.
        let foreign = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
            is_foreign(&pairs.collect())
        };
        let host = ("host", "locks.example.com");
        assert!(foreign(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(foreign(&[host, ("sec-fetch-site", "same-site")]));
        assert!(foreign(&[host, ("origin", "https://evil.example")]));
        assert!(foreign(&[host, ("origin", "null")]));
        assert!(foreign(&[
            host,
            ("origin", "https://locks.example.com.evil.example")
        ]));
        assert!(!foreign(&[
            host,
            ("sec-fetch-site", "same-origin"),
            ("origin", "https://evil.example")
        ]));
        assert!(!foreign(&[host, ("origin", "https://locks.example.com")]));
        assert!(!foreign(&[host]));
    }
}
