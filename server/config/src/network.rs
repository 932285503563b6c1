//! A network of addresses: `10.0.0.0/8`, or a single address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    pub const LOOPBACK_V4: Self = Self {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        bits: 8,
    };
    pub const LOOPBACK_V6: Self = Self {
        address: IpAddr::V6(Ipv6Addr::LOCALHOST),
        bits: 128,
    };

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                (network.to_bits() ^ other.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                (network.to_bits() ^ other.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| "is not an IP address or network")?;
        // IPv4-mapped addresses are compared as IPv4, for which the prefix length would differ.
        if address != address.to_canonical() && bits.is_some() {
            return Err("is an IPv4 network; write it as one");
        }
        let address = address.to_canonical();
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => bits_max,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= bits_max)
                .ok_or("has a wrong number of bits after the /")?,
        };
        if bits == 0 {
            return Err("covers every address: any client could forge its source address");
        }
        Ok(Self { address, bits })
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Self { address, bits }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses_in_both_notations() {
        // Inside, outside and at the edges; IPv4 as IPv6; a single address; invalid networks.
        let holds = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.contains(address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.255.255.255") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(holds("192.168.1.7", "192.168.1.7") && !holds("192.168.1.7", "192.168.1.8"));
        assert!(holds("172.16.0.1/31", "172.16.0.0") && !holds("172.16.0.1/31", "172.16.0.2"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe80::1"));
        assert!(!holds("10.0.0.0/8", "::a00:1"));
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "0.0.0.0/0",
            "::/0",
            "ten",
            "::ffff:10.0.0.0/104",
            "10.0.0.1:80",
        ] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
