//! `lease.store`: an etcd cluster that holds the leases. Without it they are in `store`.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use super::limits::CLOCK_SKEW_MAX;
use super::reader::Section;
use super::secrets;
use super::tls::TlsConfig;
use super::value_parsers;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStoreConfig {
    /// `store`: `etcd://a:2379,b:2379,c:2379/leasehold/`, or `etcds://…` for TLS: the client addresses of all members,
    /// and the prefix of the keys.
    pub address: EtcdAddress,
    /// `user`: etcd account. Default: none.
    pub user: Option<String>,
    /// `password` or `password_file`.
    pub password: Option<Password>,
    /// `ca_file`, `cert_file`, `key_file` and `server_name`.
    pub tls: TlsConfig,
    /// `max_clock_skew`: largest difference between the store times of two replicas. An expired lock is granted again
    /// only this long after its expiry. Default `500ms`.
    pub max_clock_skew: Duration,
    /// Not a key: the id of the installation, from `store`. A prefix of another installation is refused.
    pub installation: Option<String>,
    /// Not a key: the highest token floor that a server has seen in this store, from `store`. etcd is behind it only after
    /// an old snapshot was restored.
    pub known_floor: u64,
}

/// A password that can be compared, to detect a changed configuration.
#[derive(Clone)]
pub struct Password(pub SecretString);

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

pub const MAX_CLOCK_SKEW_DEFAULT: Duration = Duration::from_millis(500);
const STORE_FITS: &str = "store = \"etcd://a:2379,b:2379,c:2379/leasehold/\" (etcds:// for TLS): the client addresses of \
     all members, and the prefix of the keys, which ends with /";
const PASSWORD_FITS: &str = "password = \"…\", or password_file, the path of a file that holds it";
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
        if prefix.chars().any(|it| it.is_control() || it.is_whitespace()) {
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
        let endpoints = endpoints.ok_or("names an address that is no host and port")?;
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
        let hosts = self.endpoints.iter().filter_map(|it| it.split_once("://"));
        let hosts: Vec<&str> = hosts.map(|(_, host)| host).collect();
        write!(f, "{scheme}://{}{}", hosts.join(","), self.prefix)
    }
}

impl LeaseStoreConfig {
    /// A store at this address without credentials.
    pub fn at(address: EtcdAddress) -> Self {
        Self {
            address,
            user: None,
            password: None,
            tls: TlsConfig::default(),
            max_clock_skew: MAX_CLOCK_SKEW_DEFAULT,
            installation: None,
            known_floor: 0,
        }
    }

    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let judge = |text: &str| EtcdAddress::parse(text).map(drop);
        let store = section.optional("store", &value_parsers::checked(STORE_FITS, judge));
        let user = section.optional("user", &value_parsers::text("leasehold"));
        let password = section.secret(
            "password",
            "password_file",
            PASSWORD_FITS,
            &secrets::not_empty,
            secrets::hidden,
        );
        let tls = TlsConfig::read(section);
        let max_clock_skew = section.or(
            "max_clock_skew",
            MAX_CLOCK_SKEW_DEFAULT,
            &value_parsers::duration(&CLOCK_SKEW_MAX),
        );
        if password.is_some() && user.is_none() {
            section.report_missing("user", "Name the etcd account that the password belongs to.");
        }
        let Some(store) = store else {
            let unused = [
                "user",
                "password",
                "password_file",
                "ca_file",
                "cert_file",
                "key_file",
                "server_name",
            ];
            if let Some(key) = unused.into_iter().find(|key| section.has(key)) {
                let origin = section.place_of(key);
                let message = "is set, but lease.store names no etcd".to_owned();
                let remedy = "Set lease.store, or remove it: leases in `store` need no account of their own.";
                section.error_at(key, &origin, message, remedy.to_owned());
            }
            return None;
        };
        let address = EtcdAddress::parse(&store).ok()?;
        if tls.is_configured() && !address.uses_tls() {
            let origin = section.place_of("store");
            let message = "is an etcd:// address, and TLS is configured".to_owned();
            let remedy = "Write etcds://, or remove the TLS settings of [lease].".to_owned();
            section.error_at("store", &origin, message, remedy);
        }
        Some(Self {
            address,
            user,
            password: password.map(Password),
            tls,
            max_clock_skew,
            installation: None,
            known_floor: 0,
        })
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
            ("etcd:///leasehold/", "no host"),
            ("etcd://a,,b/leasehold/", "no host"),
            ("etcd://a,a/leasehold/", "twice"),
            ("etcd://u:p@a/leasehold/", "password"),
            ("postgres://a/b/", "neither"),
        ] {
            let error = EtcdAddress::parse(address).unwrap_err();
            assert!(error.contains(why), "{address}: {error}");
        }
    }
}
