//! Checks the host of a request. A page of another site can point its own name at this server (DNS rebinding); the
//! browser then sends that name as the host.

use std::net::Ipv6Addr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use url::Url;

use super::problem_response;
use crate::http::problem::Problem;

/// Without `public_url` every host is accepted, because the right one is not configured.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Option<Arc<[String]>>);

impl Hosts {
    /// `allowed` are names in addition to that of `public_url`.
    pub fn new(public_url: Option<&Url>, allowed: &[String]) -> Self {
        let public_host = public_url.and_then(Url::host_str);
        Self(public_host.map(|public_host| {
            let allowed = allowed.iter().map(String::as_str);
            allowed
                .chain([public_host])
                .map(str::to_ascii_lowercase)
                .collect::<Vec<_>>()
                .into()
        }))
    }

    /// IP addresses and `localhost` are always accepted: another site cannot use them as its name.
    fn has(&self, host: &str) -> bool {
        let Some(names) = &self.0 else { return true };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_loopback = host == "localhost" || host.ends_with(".localhost");
        is_loopback || is_address(&host) || names.contains(&host)
    }

    /// The rejection of a request for another host; `None` if it is accepted. Requests with a token do not come from a
    /// rebound page, and probes reveal nothing.
    pub(super) fn refusal(&self, request: &Request, home: &str) -> Option<Response> {
        let is_probe = matches!(request.uri().path(), "/healthz" | "/readyz");
        if self.0.is_none() || is_probe || request.headers().contains_key(header::AUTHORIZATION) {
            return None;
        }
        let is_known = |host: Option<String>| host.is_some_and(|host| self.has(&host));
        if hosts(request.headers(), request.uri()).all(is_known) {
            return None;
        }
        let problem = Problem::misdirected(home).with_request_id(request.headers());
        Some(problem_response(problem))
    }
}

/// `[::1]` or `127.0.0.1`.
fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<std::net::Ipv4Addr>().is_ok(),
    }
}

/// Every host of a request, without its port; `None` for an invalid one.
fn hosts(headers: &HeaderMap, uri: &Uri) -> impl Iterator<Item = Option<String>> {
    let host_headers = headers.get_all(header::HOST).into_iter().map(|value| {
        let authority = value.to_str().ok()?.parse::<Authority>().ok()?;
        let port = authority.as_str().strip_prefix(authority.host())?;
        let is_port = port.is_empty() || port.starts_with(':');
        is_port.then(|| authority.host().to_owned())
    });
    host_headers.chain(uri.host().map(|host| Some(host.to_owned())))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_answered(host: &'static str) -> bool {
        let home = Url::parse("https://locks.example.com").unwrap();
        let known = Hosts::new(Some(&home), &["Locks.internal".to_owned()]);
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
        hosts(&headers, &Uri::from_static("/")).all(|host| host.is_some_and(|host| known.has(&host)))
    }

    #[test]
    fn configured_names_and_addresses_are_answered() {
        for host in [
            "locks.example.com",
            "LOCKS.example.com.:8443",
            "locks.internal:3000",
            "localhost:3000",
            "demo.localhost",
            "127.0.0.1:3000",
            "10.1.2.3",
            "[::1]:3000",
        ] {
            assert!(is_answered(host), "{host}");
        }
        for host in [
            "evil.example",
            "locks.example.com.evil.example",
            "locks.example.com@evil.example",
            "127.0.0.1.evil.example",
            "[::1].evil.example",
            "",
            "a b",
        ] {
            assert!(!is_answered(host), "{host}");
        }
    }

    #[test]
    fn the_authority_counts_as_a_host() {
        let home = Url::parse("https://locks.example.com").unwrap();
        let known = Hosts::new(Some(&home), &[]);
        let uri = Uri::from_static("https://evil.example/sign-in");
        let found: Vec<_> = hosts(&HeaderMap::new(), &uri).flatten().collect();
        assert_eq!(found, ["evil.example"]);
        assert!(!known.has(&found[0]) && Hosts::default().has(&found[0]));
    }
}
