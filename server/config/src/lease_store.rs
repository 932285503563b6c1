//! `lease.store`: databases or etcd clusters that hold the leases. Without it they are in `store`.
//!
//! One address, or a list of 2, 4, 8 … 64 of one kind: shards, each with a part of the resources.

mod addresses;
mod etcd_address;
mod postgres_address;

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use self::addresses::Addresses;
use super::limits::CLOCK_SKEW_MAX;
use super::reader::Section;
use super::secrets;
use super::tls::TlsConfig;
use super::value_parsers;

pub use self::etcd_address::EtcdAddress;
pub use self::postgres_address::PostgresAddress;

/// The stores of `store`, in order; more than one: the shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseStores {
    Postgres(Vec<PostgresLeaseStore>),
    Etcd(Vec<LeaseStoreConfig>),
}

/// A Postgres database that holds leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresLeaseStore {
    /// `postgres://user@host/database`, without a password.
    pub address: PostgresAddress,
    /// `password` or `password_file`: of the account in the address, the same for all shards.
    pub password: Option<Password>,
    /// Not a key: the id of the installation, from `store`. A database of another installation is refused.
    pub installation: Option<String>,
}

/// An etcd cluster that holds leases.
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
    /// `max_clock_skew`: largest difference between the store times of two replicas. A lease stays held this long after its
    /// expiry.
    pub max_clock_skew: Duration,
    /// Not a key: the id of the installation, from `store`. A prefix of another installation is refused.
    pub installation: Option<String>,
    /// Not a key: the highest token floor that a server has seen in this store, from `store`. The floor in etcd is lower only
    /// after an old snapshot was restored.
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
const PASSWORD_FITS: &str = "password = \"…\", or password_file, the path of a file that holds it";

impl LeaseStores {
    /// Addresses for display, without credentials.
    pub fn addresses(&self) -> Vec<String> {
        match self {
            Self::Postgres(stores) => stores.iter().map(|store| store.address.to_string()).collect(),
            Self::Etcd(stores) => stores.iter().map(|store| store.address.to_string()).collect(),
        }
    }

    /// `password` or `password_file`, the same for all stores.
    pub fn password(&self) -> Option<&SecretString> {
        let first = match self {
            Self::Postgres(stores) => stores.first().and_then(|store| store.password.as_ref()),
            Self::Etcd(stores) => stores.first().and_then(|store| store.password.as_ref()),
        };
        first.map(|password| &password.0)
    }

    /// The same for all stores; Postgres has it in its address.
    pub fn tls(&self) -> Option<&TlsConfig> {
        match self {
            Self::Postgres(_) => None,
            Self::Etcd(stores) => stores.first().map(|store| &store.tls),
        }
    }

    /// The id of the installation; empty until [`set_installation`](Self::set_installation).
    pub fn installation(&self) -> &str {
        let first = match self {
            Self::Postgres(stores) => stores.first().and_then(|store| store.installation.as_deref()),
            Self::Etcd(stores) => stores.first().and_then(|store| store.installation.as_deref()),
        };
        first.unwrap_or_default()
    }

    pub fn set_installation(&mut self, id: &str) {
        match self {
            Self::Postgres(stores) => stores
                .iter_mut()
                .for_each(|store| store.installation = Some(id.to_owned())),
            Self::Etcd(stores) => stores
                .iter_mut()
                .for_each(|store| store.installation = Some(id.to_owned())),
        }
    }

    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let addresses = Addresses::read(section);
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
        let password = password.map(Password);
        match addresses {
            Some(Addresses::Etcd(all)) => {
                if password.is_some() && user.is_none() {
                    section.report_missing("user", "Name the etcd account that the password belongs to.");
                }
                if tls.is_configured() && !all.iter().all(EtcdAddress::uses_tls) {
                    let origin = section.place_of("store");
                    let message = "is an etcd:// address, and TLS is configured".to_owned();
                    let remedy = "Write etcds://, or remove the TLS settings of [lease].".to_owned();
                    section.error_at("store", &origin, message, remedy);
                }
                let store = |address| LeaseStoreConfig {
                    user: user.clone(),
                    password: password.clone(),
                    tls: tls.clone(),
                    max_clock_skew,
                    ..LeaseStoreConfig::at(address)
                };
                Some(Self::Etcd(all.into_iter().map(store).collect()))
            }
            Some(Addresses::Postgres(all)) => {
                refuse_unused(
                    section,
                    &["user", "ca_file", "cert_file", "key_file", "server_name"],
                    "is set, and lease.store names Postgres",
                    "Write it into the address: postgres://user@host/database?sslmode=verify-full&sslrootcert=/path",
                );
                let store = |address| PostgresLeaseStore {
                    password: password.clone(),
                    ..PostgresLeaseStore::at(address)
                };
                Some(Self::Postgres(all.into_iter().map(store).collect()))
            }
            None => {
                // With a wrong address the error is already there.
                if !section.has("store") {
                    refuse_unused(
                        section,
                        &[
                            "user",
                            "password",
                            "password_file",
                            "ca_file",
                            "cert_file",
                            "key_file",
                            "server_name",
                        ],
                        "is set, but lease.store names no store of the leases",
                        "Set lease.store, or remove it: leases in `store` need no account of their own.",
                    );
                }
                None
            }
        }
    }
}

/// Reports the first of these keys that is set, which would have no effect.
fn refuse_unused(section: &Section<'_>, keys: &[&str], message: &str, remedy: &str) {
    if let Some(key) = keys.iter().find(|key| section.has(key)) {
        let origin = section.place_of(key);
        section.error_at(key, &origin, message.to_owned(), remedy.to_owned());
    }
}

impl PostgresLeaseStore {
    /// A store at this address without a password.
    pub fn at(address: PostgresAddress) -> Self {
        Self {
            address,
            password: None,
            installation: None,
        }
    }

    /// The address with the password, for the connection.
    pub fn url(&self) -> SecretString {
        let password = self.password.as_ref().map(|password| password.0.expose_secret());
        SecretString::from(self.address.with_password(password))
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
}
