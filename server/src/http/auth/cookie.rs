//! The session's cookie: opaque, for this host alone, out of reach of scripts, not sent along from other sites.

use axum::http::{HeaderMap, HeaderValue, header};
use secrecy::{ExposeSecret as _, SecretString};

use crate::identity::Secret;
use crate::identity::limits::FLOW_MAX;

const SECURE: &str = "__Host-leasehold";
/// Browsers keep `__Host-` cookies from plain HTTP; loopback needs no TLS.
const PLAIN: &str = "leasehold";

/// Cookie of a sign-in in progress through the identity provider.
const FLOW_SECURE: &str = "__Host-leasehold-oidc";
const FLOW_PLAIN: &str = "leasehold-oidc";

fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE } else { PLAIN }
}

fn flow_name(is_secure: bool) -> &'static str {
    if is_secure { FLOW_SECURE } else { FLOW_PLAIN }
}

pub fn read(headers: &HeaderMap, is_secure: bool) -> Option<String> {
    read_named(headers, name(is_secure))
}

pub fn read_flow(headers: &HeaderMap, is_secure: bool) -> Option<String> {
    read_named(headers, flow_name(is_secure))
}

fn read_named(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
        .map(str::to_owned)
}

/// Lives as long as the browser; the server ends the session by its own clock.
pub fn set(secret: &Secret, is_secure: bool) -> Option<HeaderValue> {
    make(name(is_secure), secret.expose(), "", is_secure)
}

/// `SameSite=Lax`, as for the session: the redirect back begins on the provider's page.
pub fn set_flow(flow: &SecretString, is_secure: bool) -> Option<HeaderValue> {
    let max_age = format!("; Max-Age={}", FLOW_MAX.as_secs());
    make(flow_name(is_secure), flow.expose_secret(), &max_age, is_secure)
}

pub fn clear_flow(is_secure: bool) -> Option<HeaderValue> {
    make(flow_name(is_secure), "", "; Max-Age=0", is_secure)
}

pub fn clear(is_secure: bool) -> Option<HeaderValue> {
    make(name(is_secure), "", "; Max-Age=0", is_secure)
}

fn make(name: &str, value: &str, more: &str, is_secure: bool) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}");
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Path of the sign-in page, with the page to open afterwards.
pub fn sign_in_path(next: &str) -> String {
    if next == "/" {
        return "/sign-in".to_owned();
    }
    let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    format!("/sign-in?next={next}")
}

/// Path that starts a sign-in through the identity provider, with the page to open afterwards.
pub fn provider_path(next: &str) -> String {
    let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    format!("/sign-in/oidc?next={next}")
}

/// A path on this host, or the first page: never another site.
pub fn next_path(requested: Option<&str>) -> &str {
    let is_ours = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains(['\\', '\r', '\n', '\t'])
            && !path.chars().any(char::is_control)
    };
    requested.filter(is_ours).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_redirects_only_to_own_pages() {
        // Redirects to other sites that a weaker check would let pass.
        for bad in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "\\/evil",
            "/\t/evil",
            "javascript:1",
            "",
        ] {
            assert_eq!(next_path(Some(bad)), "/", "{bad:?}");
        }
        assert_eq!(next_path(Some("/locks?state=no_ttl")), "/locks?state=no_ttl");
        assert_eq!(sign_in_path("/locks?q=a b"), "/sign-in?next=%2Flocks%3Fq%3Da+b");
    }

    #[test]
    fn only_the_cookie_of_this_kind_of_connection_is_read() {
        // A plain cookie, which another port of the host could plant, does not count on HTTPS.
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; leasehold=plain"));
        headers.append(header::COOKIE, HeaderValue::from_static("__Host-leasehold=safe"));
        assert_eq!(read(&headers, true).as_deref(), Some("safe"));
        assert_eq!(read(&headers, false).as_deref(), Some("plain"));
    }
}
