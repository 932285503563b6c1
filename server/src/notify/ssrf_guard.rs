//! SSRF guard: which addresses may be connected to. A receiver's address comes from a user and must not reach
//! services that only this machine can reach.
//!
//! **Invariant:** only public internet addresses, by HTTPS; others, and plain HTTP, only in networks that the
//! configuration declares. Decided by the address of the connection, not by the name.

mod dns_resolver;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use thiserror::Error;
use url::{Host, Url};

use config::Network;

pub(super) use dns_resolver::{Checked, NameError};

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SsrfGuard {
    allowed_networks: Arc<[Network]>,
}

/// An address that must not be connected to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{address} is {class}")]
pub struct RefusedAddress {
    pub address: IpAddr,
    pub class: &'static str,
}

impl RefusedAddress {
    /// Refused only because it would be reached without TLS.
    pub fn is_clear(&self) -> bool {
        self.class == CLEAR
    }

    pub fn remedy(&self) -> String {
        let other = "Enter a public address";
        // A metadata service is never a valid receiver.
        if self.class == METADATA {
            return format!("{other}.");
        }
        format!(
            "{other}; or, if this receiver is meant, declare its network in the configuration: [notify] allowed_networks = [\"{}\"].",
            Network::from(self.address)
        )
    }
}

/// Plain HTTP outside of the declared networks.
const CLEAR: &str = "reached by plain HTTP, which others on the network can read and change";

impl SsrfGuard {
    pub fn new(allowed_networks: &[Network]) -> Self {
        Self {
            allowed_networks: allowed_networks.into(),
        }
    }

    /// # Errors
    /// It must not be connected to.
    pub fn check(&self, address: IpAddr, is_clear: bool) -> Result<(), RefusedAddress> {
        if self
            .allowed_networks
            .iter()
            .any(|network| network.contains(address))
        {
            return Ok(());
        }
        let class = class(address).or(is_clear.then_some(CLEAR));
        class.map_or(Ok(()), |class| Err(RefusedAddress { address, class }))
    }

    /// Checks an address literal in a URL, which no resolver sees.
    ///
    /// # Errors
    /// It must not be connected to.
    pub fn check_literal(&self, url: &Url) -> Result<(), RefusedAddress> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        self.check(address, is_clear(url))
    }
}

pub fn is_clear(url: &Url) -> bool {
    url.scheme() == "http"
}

/// `None`: a public internet address.
fn class(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

const METADATA: &str = "a cloud's metadata service";
const RESERVED: &str = "reserved";

fn class_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "unspecified",
        [127, ..] => "this machine (loopback)",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private",
        [169, 254, 169, 254] | [168, 63, 129, 16] | [100, 100, 100, 200] => METADATA,
        [169, 254, ..] => "link-local",
        [100, 64..=127, ..] => "a provider's own (CGNAT)",
        [224..=239, ..] => "multicast",
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] => RESERVED,
        [203, 0, 113, _] | [240..=255, ..] => RESERVED,
        _ => return None,
    })
}

fn class_v6(address: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine (loopback)"),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Some(METADATA),
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        // NAT64: translated to the embedded IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => class_v4(embedded(high, low)),
        // Tunnels to an IPv4 address, and documentation addresses.
        [0x2002, ..] | [0x2001, 0, ..] | [0x2001, 0xdb8, ..] => Some(RESERVED),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(RESERVED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(guard: &SsrfGuard, address: &str, is_clear: bool) -> Option<&'static str> {
        let refused = guard.check(address.parse().unwrap(), is_clear).err();
        refused.map(|refused| refused.class)
    }

    #[test]
    fn internal_addresses_are_refused_in_every_notation() {
        // First and last address of each class; IPv4 in IPv6; and their public neighbours.
        let guard = SsrfGuard::default();
        for inner in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.255.255",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "203.0.113.9",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "fc00::1",
            "fd12::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "100::1",
        ] {
            assert!(refused(&guard, inner, false).is_some(), "{inner}");
        }
        for open in [
            "1.1.1.1",
            "11.0.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.167.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2606:4700::1111",
        ] {
            assert_eq!(refused(&guard, open, false), None, "{open}");
            assert_eq!(refused(&guard, open, true), Some(CLEAR), "{open}");
        }
    }

    #[test]
    fn an_allowed_network_permits_plain_http_there_only() {
        // Two networks, in both forms of their addresses.
        let allowed_networks = ["10.0.0.0/8", "127.0.0.1/32"].map(|text| text.parse().unwrap());
        let guard = SsrfGuard::new(&allowed_networks);
        for address in ["10.9.8.7", "::ffff:10.9.8.7", "127.0.0.1"] {
            assert_eq!(refused(&guard, address, true), None, "{address}");
        }
        for address in ["127.0.0.2", "11.0.0.1", "192.168.0.1"] {
            assert!(refused(&guard, address, true).is_some(), "{address}");
        }
        let refused = guard.check("192.168.7.1".parse().unwrap(), false).unwrap_err();
        assert_eq!(refused.to_string(), "192.168.7.1 is private");
        assert!(
            refused
                .remedy()
                .contains("allowed_networks = [\"192.168.7.1/32\"]")
        );
    }

    #[test]
    fn an_ip_address_in_a_url_is_detected_in_any_notation() {
        // Decimal, octal and hex numbers, missing parts, IPv6.
        let guard = SsrfGuard::default();
        for url in [
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://[::1]/",
            "https://[::ffff:7f00:1]/",
            "https://0/",
        ] {
            assert!(guard.check_literal(&url.parse().unwrap()).is_err(), "{url}");
        }
        assert!(
            guard
                .check_literal(&"https://example.com/".parse().unwrap())
                .is_ok()
        );
    }
}
