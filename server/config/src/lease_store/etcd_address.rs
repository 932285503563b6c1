//! `etcd://` and `etcds://` addresses: the client addresses of all members, and the prefix of the keys.

use std::fmt;

const PORT_DEFAULT: &str = "2379";

/// Endpoints and key prefix of an etcd cluster, without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdAddress {
    /// `http://host:port` or `https://host:port`, in the order given.
    pub endpoints: Vec<String>,
    /// Ends with `/`.
    pub prefix: String,
}

impl EtcdAddress {
    pub const SCHEMES: [&'static str; 2] = ["etcd://", "etcds://"];

    pub fn is_etcd(url: &str) -> bool {
        Self::SCHEMES.iter().any(|scheme| url.starts_with(scheme))
    }

    /// # Errors
    /// What is wrong, as a clause that follows the value.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = if let Some(rest) = url.strip_prefix("etcd://") {
            ("http", rest)
        } else if let Some(rest) = url.strip_prefix("etcds://") {
            ("https", rest)
        } else {
            return Err("is neither an etcd:// nor an etcds:// address".to_owned());
        };
        if url.contains('@') {
            return Err("holds a user or a password, which belong in `user` and `password`".to_owned());
        }
        let Some((hosts, prefix)) = rest.split_once('/') else {
            return Err("names no prefix for the keys".to_owned());
        };
        if prefix.is_empty() || !prefix.ends_with('/') {
            return Err("names no prefix that ends with /".to_owned());
        }
        if prefix
            .chars()
            .any(|character| character.is_control() || character.is_whitespace())
        {
            return Err("has a control character or a space in the prefix of the keys".to_owned());
        }
        let endpoint = |host: &str| {
            let with_port = match host.rsplit_once(':') {
                Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
                _ => format!("{host}:{PORT_DEFAULT}"),
            };
            let endpoint = format!("{scheme}://{with_port}");
            let is_host = url::Url::parse(&endpoint).is_ok_and(|url| url.has_host() && url.path() == "/");
            is_host.then_some(endpoint)
        };
        let endpoints: Option<Vec<String>> = hosts.split(',').map(endpoint).collect();
        let endpoints = endpoints.ok_or("has an address that is not a host and a port")?;
        if (1..endpoints.len()).any(|place| endpoints[..place].contains(&endpoints[place])) {
            return Err("names one address twice".to_owned());
        }
        Ok(Self {
            endpoints,
            prefix: format!("/{prefix}"),
        })
    }

    pub fn uses_tls(&self) -> bool {
        self.endpoints
            .iter()
            .all(|endpoint| endpoint.starts_with("https://"))
    }
}

impl fmt::Display for EtcdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.uses_tls() { "etcds" } else { "etcd" };
        let hosts = self
            .endpoints
            .iter()
            .filter_map(|endpoint| endpoint.split_once("://"));
        let hosts: Vec<&str> = hosts.map(|(_, host)| host).collect();
        write!(f, "{scheme}://{}{}", hosts.join(","), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etcd_address_names_members_and_a_prefix() {
        let address = EtcdAddress::parse("etcd://a:2379,b,10.0.0.3:1234/leasehold/prod/").unwrap();
        assert_eq!(
            address.endpoints,
            ["http://a:2379", "http://b:2379", "http://10.0.0.3:1234"]
        );
        assert_eq!(address.prefix, "/leasehold/prod/");
        assert_eq!(
            address.to_string(),
            "etcd://a:2379,b:2379,10.0.0.3:1234/leasehold/prod/"
        );
        assert!(EtcdAddress::parse("etcds://a/l/").unwrap().uses_tls());
    }

    #[test]
    fn an_incomplete_etcd_address_is_refused() {
        for (address, why) in [
            ("etcd://a:2379", "no prefix"),
            ("etcd://a:2379/", "ends with /"),
            ("etcd://a:2379/leasehold", "ends with /"),
            ("etcd:///leasehold/", "not a host"),
            ("etcd://a,,b/leasehold/", "not a host"),
            ("etcd://a,a/leasehold/", "twice"),
            ("etcd://u:p@a/leasehold/", "password"),
            ("postgres://a/b/", "neither"),
        ] {
            let error = EtcdAddress::parse(address).unwrap_err();
            assert!(error.contains(why), "{address}: {error}");
        }
    }
}
