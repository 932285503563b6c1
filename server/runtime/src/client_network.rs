//! The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address.
//!
//! A single machine usually controls a whole IPv6 /64, so limits per IPv6 address have no effect. Decides nothing itself:
//! sign-in limits, the audit log and the listener use it as their key.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientNetwork(IpAddr);

/// The /48 of an IPv6 address. One customer of a provider usually has one: 65,536 networks of /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientSite(Ipv6Addr);

/// The upper 64 bits of an IPv6 address.
const V6_MASK: u128 = u128::MAX << 64;
/// The upper 48 bits.
const V6_SITE_MASK: u128 = u128::MAX << 80;

impl ClientNetwork {
    /// Requests whose address is not known share one network.
    pub const UNKNOWN: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    /// `None` for an IPv4 address, which is its own site.
    pub const fn site(self) -> Option<ClientSite> {
        match self.0 {
            IpAddr::V4(_) => None,
            IpAddr::V6(network) => Some(ClientSite(Ipv6Addr::from_bits(network.to_bits() & V6_SITE_MASK))),
        }
    }
}

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & V6_MASK)),
        })
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_64_and_an_ipv4_address_are_one_client() {
        // Two addresses of one /64, two of neighbouring /64s, two IPv4 addresses, and one IPv4 address written as IPv6.
        let network = |address: &str| ClientNetwork::from(address.parse::<IpAddr>().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_eq!(network("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
        assert_eq!(network("192.0.2.1").to_string(), "192.0.2.1");
        assert_eq!(
            network("2001:db8:1:2::1").site(),
            network("2001:db8:1:ffff::1").site()
        );
        assert_ne!(
            network("2001:db8:1:2::1").site(),
            network("2001:db8:2:2::1").site()
        );
        assert_eq!(network("192.0.2.1").site(), None);
    }
}
