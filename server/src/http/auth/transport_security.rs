//! Requires a secure transport: this server's TLS, a declared proxy that users reach by HTTPS, or loopback. Pages
//! requested over plain HTTP redirect to HTTPS; other such requests are rejected, except health probes.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse as _, Redirect, Response};

use super::client_ip::Proxies;
use super::{problem_response, route_permissions};
use crate::http::problem::Problem;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// In the extensions of a request that came over this server's TLS.
#[derive(Debug, Clone, Copy)]
pub struct OverTls;

/// Rejection of a request over plain HTTP; `None` if the transport is safe.
pub(super) fn refusal(request: &Request, proxies: &Proxies, home: &str) -> Option<Response> {
    let extensions = request.extensions();
    let peer = extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip();
    if extensions.get::<OverTls>().is_some() || is_safe(peer, request.headers(), proxies) {
        return None;
    }
    // Probes may use plain HTTP: without credentials they read only the status of the server.
    let path = request.uri().path();
    if matches!(path, "/healthz" | "/readyz") {
        return None;
    }
    if request.method().is_safe() && route_permissions::is_page(path) {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        return Some(Redirect::permanent(&format!("{home}{path}")).into_response());
    }
    Some(problem_response(
        Problem::needs_https(home).with_request_id(request.headers()),
    ))
}

fn is_safe(peer: IpAddr, headers: &HeaderMap, proxies: &Proxies) -> bool {
    if !proxies.knows(peer) {
        return peer.to_canonical().is_loopback();
    }
    // The nearest proxy's value is the last one. A proxy without the header uses HTTPS, like `public_url`.
    let protocols = headers.get_all(&FORWARDED_PROTO).iter().next_back();
    let protocols = protocols.and_then(|value| value.to_str().ok());
    let last = protocols.and_then(|value| value.rsplit(',').next());
    last.is_none_or(|protocol| !protocol.trim().eq_ignore_ascii_case("http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_https_proxies_are_secure() {
        // Loopback; another peer that claims HTTPS; a proxy without the header, with HTTPS, with HTTP, with two values in it.
        let proxies = Proxies::new(&["10.0.0.0/8".parse().unwrap()]);
        let safe = |peer: &str, proto: Option<&'static str>| {
            let line = proto.map(|proto| {
                let name: axum::http::HeaderName = "x-forwarded-proto".parse().unwrap();
                (name, axum::http::HeaderValue::from_static(proto))
            });
            is_safe(peer.parse().unwrap(), &line.into_iter().collect(), &proxies)
        };
        assert!(safe("127.0.0.1", None) && safe("::1", None) && safe("::ffff:127.0.0.1", None));
        assert!(!safe("192.168.1.9", None) && !safe("192.168.1.9", Some("https")));
        assert!(safe("10.1.2.3", None) && safe("10.1.2.3", Some("https")));
        assert!(!safe("10.1.2.3", Some("http")) && !safe("10.1.2.3", Some("https, HTTP")));
        assert!(safe("10.1.2.3", Some("http, https")));
    }
}
