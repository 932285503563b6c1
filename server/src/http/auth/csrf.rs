//! Whether a request was made by another site's page.
//!
//! Browsers send `Sec-Fetch-Site`; older ones, and all of them to a plain-HTTP address, send only `Origin`. A client that
//! sends neither is not a browser that has the session cookie.

use axum::http::{HeaderMap, Uri, header};

/// `uri` has the host of an HTTP/2 request (`:authority`), which has no `Host` header. With `is_secure`, a page that was
/// loaded over plain HTTP counts as another site: an attacker on the network path may have written it.
pub(super) fn is_foreign(headers: &HeaderMap, uri: &Uri, is_secure: bool) -> bool {
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
    let authority = uri.authority().map(|authority| authority.as_str());
    let host = text(header::HOST.as_str()).or(authority);
    let Some((scheme, own)) = origin.split_once("://") else {
        return true;
    };
    Some(own) != host || (is_secure && scheme != "https")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_own_pages_and_programs_pass_the_csrf_check() {
        // By the fetch metadata, by the origin, and without either.
        let foreign = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
            is_foreign(&pairs.collect(), &Uri::from_static("/sign-out"), true)
        };
        let host = ("host", "locks.example.com");
        assert!(foreign(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(foreign(&[host, ("sec-fetch-site", "same-site")]));
        assert!(foreign(&[host, ("origin", "https://evil.example")]));
        assert!(foreign(&[host, ("origin", "null")]));
        // This server's name over plain HTTP.
        assert!(foreign(&[host, ("origin", "http://locks.example.com")]));
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

    #[test]
    fn http_2_requests_are_compared_by_authority() {
        // No Host header: our own page, another site's, and an origin without a host.
        let uri = Uri::from_static("https://locks.example.com/sign-out");
        let foreign = |origin: &'static str| {
            let headers = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static(origin))]);
            is_foreign(&headers, &uri, true)
        };
        assert!(!foreign("https://locks.example.com"));
        assert!(foreign("https://evil.example") && foreign("null"));
        let headers = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static("null"))]);
        assert!(is_foreign(&headers, &Uri::from_static("/"), true));
    }
}
