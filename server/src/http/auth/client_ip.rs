//! Client address of a request: the peer's address, or the one that a declared proxy forwards.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, header};

use crate::audit::Origin;
use crate::http::REQUEST_ID;
use config::Network;

const USER_AGENT_CHARS_MAX: usize = 200;
/// Hexadecimal digits of a W3C trace id.
const TRACE_ID_DIGITS: usize = 32;
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Arc<[Network]>);

impl Proxies {
    pub fn new(networks: &[Network]) -> Self {
        Self(networks.into())
    }

    pub(super) fn knows(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

pub(super) fn from_request(request: &Request, proxies: &Proxies) -> Origin {
    let headers = request.headers();
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|info| info.0.ip());
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    Origin {
        ip: peer.map(|peer| client(peer, headers, proxies)),
        user_agent: text(&header::USER_AGENT).map(shortened),
        request_id: text(&REQUEST_ID).map(Arc::from),
        trace_id: text(&TRACEPARENT).and_then(trace_id).map(Arc::from),
    }
}

/// The trace id of a `traceparent`; any other value that a client sends there is ignored.
fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    let is_valid = id.len() == TRACE_ID_DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_valid.then_some(id)
}

fn shortened(agent: &str) -> Arc<str> {
    let end = agent.char_indices().nth(USER_AGENT_CHARS_MAX);
    end.map_or(agent, |(end, _)| &agent[..end]).into()
}

/// The nearest address that is not one of our proxies, read from the right: the client may have written everything to the left of it.
fn client(peer: IpAddr, headers: &HeaderMap, proxies: &Proxies) -> IpAddr {
    let mut nearest = peer;
    // As bytes: one that is no text ends the walk, and hides none of the hops to the right of it.
    let lines = headers.get_all(&FORWARDED_FOR).iter();
    let hops: Vec<&[u8]> = lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .collect();
    for hop in hops.into_iter().rev() {
        if !proxies.knows(nearest) {
            break;
        }
        let Some(address) = std::str::from_utf8(hop).ok().and_then(hop_address) else {
            break;
        };
        nearest = address;
    }
    nearest
}

/// `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]`; some gateways write the port, too: `192.0.2.1:5678`, `[2001:db8::1]:5678`.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']'));
    let address = bare.unwrap_or(hop).parse().ok();
    address.or_else(|| hop.parse().ok().map(|hop: SocketAddr| hop.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_w3c_trace_id_is_kept() {
        // A real one; one digit too many, another letter, a long text, nothing.
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace_id(&format!("00-{id}-00f067aa0ba902b7-01")), Some(id));
        let long = "a".repeat(30_000);
        for wrong in [
            format!("00-{id}0-1-01"),
            format!("00-{}-1", id.replace('4', "x")),
            long,
            String::new(),
        ] {
            assert_eq!(trace_id(&wrong), None, "{wrong}");
        }
    }

    /// One byte for each character.
    fn latin1(line: &str) -> axum::http::HeaderValue {
        let bytes: Vec<u8> = line.chars().map(|c| u8::try_from(c).unwrap()).collect();
        axum::http::HeaderValue::from_bytes(&bytes).unwrap()
    }

    #[test]
    fn forwarded_for_is_read_from_the_right_and_from_proxies() {
        // A client that writes the header itself, directly and through one and two proxies.
        let (proxy, outer): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let client_of = |peer: &str, line: &str, known: &[IpAddr]| {
            let known: Vec<Network> = known.iter().map(|address| (*address).into()).collect();
            let headers = HeaderMap::from_iter([("x-forwarded-for".parse().unwrap(), latin1(line))]);
            client(peer.parse().unwrap(), &headers, &Proxies::new(&known)).to_string()
        };
        assert_eq!(client_of("203.0.113.9", "1.1.1.1", &[proxy]), "203.0.113.9");
        assert_eq!(
            client_of("10.0.0.1", "1.1.1.1, 203.0.113.9", &[proxy]),
            "203.0.113.9"
        );
        assert_eq!(
            client_of("10.0.0.1", "6.6.6.6, 203.0.113.9, 10.0.0.2", &[proxy, outer]),
            "203.0.113.9"
        );
        assert_eq!(client_of("10.0.0.1", "not an address", &[proxy]), "10.0.0.1");
        // What is no UTF-8 hides nothing to the right of it.
        assert_eq!(
            client_of("10.0.0.1", "\u{ff}, 203.0.113.9", &[proxy]),
            "203.0.113.9"
        );
        for (hop, address) in [
            ("203.0.113.9:5678", "203.0.113.9"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:5678", "2001:db8::1"),
        ] {
            assert_eq!(client_of("10.0.0.1", hop, &[proxy]), address);
        }
    }
}
