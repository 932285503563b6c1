//! `kind = "postgres"`.

mod held_when;
mod lease_table;

use std::str::FromStr;

use secrecy::SecretString;

use super::network::Network;
use super::reader::Section;
use super::secrets;
use super::value_parsers;

pub use lease_table::{COLUMNS, LeaseTableConfig, LeaseTablePreset, LeaseTableRelease, TimeUnit};

#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// `url` or `url_file`: `postgres://user@host:port/database?sslmode=…`, a least-privilege account.
    pub url: SecretString,
    /// `unlock_url` or `unlock_url_file`: separate account for forced unlocks. Without it, forced unlock is refused
    /// on this backend.
    pub unlock_url: Option<SecretString>,
    /// `advisory_locks`: list advisory locks. Default true.
    pub advisory_locks: bool,
    /// `blocked_sessions`: list sessions that wait for rows or tables, with their blockers. Default true.
    pub blocked_sessions: bool,
    /// `query_text`: how much of other sessions' SQL is shown. Default `normalized`.
    pub query_text: QueryText,
    /// `[[backend.lease_table]]`
    pub lease_tables: Vec<LeaseTableConfig>,
    /// `[[backend.advisory_name]]`: names for advisory keys.
    pub advisory_names: Vec<AdvisoryNameConfig>,
    /// `names`: texts that programs hash to advisory keys.
    pub names: Vec<String>,
    /// `poolers`: client addresses of poolers in transaction or statement mode.
    pub poolers: Vec<PoolerAddress>,
}

/// Client address of a pooler's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolerAddress {
    Network(Network),
    /// The server's Unix socket.
    Socket,
}

impl FromStr for PoolerAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "socket" => Ok(Self::Socket),
            text => text.parse().map(Self::Network),
        }
    }
}

domain::wire_enum! {
    /// How much of other sessions' SQL leaves the adapter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum QueryText {
        /// Without literals and comments.
        #[default]
        Normalized = "normalized",
        /// As the session sent it.
        Full = "full",
        /// Not read.
        Hidden = "hidden",
    }
}

/// A name for one advisory key: `key = 72707369, name = "prisma migrate"`, or `key1` and `key2`.
#[derive(Debug, Clone)]
pub struct AdvisoryNameConfig {
    /// `key`: the key of the one-key form.
    pub key: Option<i64>,
    /// `key1` and `key2`: the keys of the two-key form.
    pub key1: Option<i32>,
    pub key2: Option<i32>,
    /// `name`: display name.
    pub name: String,
}

const URL_FIT: &str =
    "url = \"postgres://user@host:5432/database\", or url_file, the path of a file that holds it";
const UNLOCK_FIT: &str =
    "unlock_url = \"postgres://user@host:5432/database\", or unlock_url_file, or neither";

const POOLERS_FIT: &str =
    "poolers = [\"10.0.0.7\", \"10.0.1.0/24\", \"socket\"]: addresses, networks, or the Unix socket";
const NAMES_FIT: &str = "names = [\"billing-close\"]: the texts that programs hash to advisory keys";

impl PostgresConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let schemes = secrets::url_of(&["postgres", "postgresql"]);
        let show = secrets::without_credentials;
        let is_set = section.has("url") || section.has("url_file");
        let url = section.secret("url", "url_file", URL_FIT, &schemes, show);
        if !is_set {
            section.report_missing("url", &format!("Write {URL_FIT}."));
        }
        let unlock_url = section.secret("unlock_url", "unlock_url_file", UNLOCK_FIT, &schemes, show);
        let advisory_locks = section.or("advisory_locks", true, &value_parsers::boolean());
        let blocked_sessions = section.or("blocked_sessions", true, &value_parsers::boolean());
        let query_text = section.or("query_text", QueryText::default(), &value_parsers::choice());
        let tables = section.sections("lease_table", "backend.lease_table");
        let lease_tables: Vec<_> = tables.into_iter().filter_map(LeaseTableConfig::read).collect();
        let names = section.sections("advisory_name", "backend.advisory_name");
        let advisory_names = names.into_iter().filter_map(AdvisoryNameConfig::read).collect();
        let names = section.list("names", Some(&[]), NAMES_FIT, &|name| hashed_name(name));
        let poolers = section.list("poolers", Some(&[]), POOLERS_FIT, &|text| {
            text.parse::<PoolerAddress>().map(drop).map_err(str::to_owned)
        });
        for (at, table) in lease_tables.iter().enumerate() {
            if lease_tables[..at]
                .iter()
                .any(|earlier| earlier.table == table.table)
            {
                let message = format!("the table {:?} is listed twice", table.table);
                let origin = section.place_of("lease_table");
                section.error_at(
                    "lease_table",
                    &origin,
                    message,
                    "Remove one of the two.".to_owned(),
                );
            }
        }
        Some(Self {
            url: url?,
            unlock_url,
            advisory_locks,
            blocked_sessions,
            query_text,
            lease_tables,
            advisory_names,
            names: names.unwrap_or_default(),
            poolers: poolers
                .iter()
                .flatten()
                .filter_map(|text| text.parse().ok())
                .collect(),
        })
    }
}

/// Postgres cannot hash a text that contains NUL.
fn hashed_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("is empty".to_owned()),
        _ if name.contains('\0') => Err("contains a NUL character".to_owned()),
        _ => Ok(()),
    }
}

impl AdvisoryNameConfig {
    fn read(mut section: Section<'_>) -> Option<Self> {
        let key = section.optional("key", &value_parsers::integer());
        let key1 = section.optional("key1", &value_parsers::integer());
        let key2 = section.optional("key2", &value_parsers::integer());
        let name = section.optional("name", &value_parsers::text("nightly report"));
        let has = |key| section.has(key);
        let origin = section.origin.clone();
        let remedy =
            "Write `key`, or `key1` and `key2`; a text that programs hash is one of the backend's `names`.";
        let mistake = match (has("key"), has("key1") || has("key2")) {
            (false, false) => Some("names no key"),
            (true, true) => Some("names more than one key"),
            (true, false) | (false, true) => None,
        };
        if let Some(mistake) = mistake {
            section.error_at("", &origin, mistake.to_owned(), remedy.to_owned());
        }
        for (present, other) in [("key1", "key2"), ("key2", "key1")] {
            if has(present) && !has(other) {
                section.report_missing(other, "The two-key form needs `key1` and `key2`.");
            }
        }
        if !has("name") {
            section.report_missing("name", "Write name = \"…\": what users call this lock.");
        }
        section.finish();
        Some(Self {
            key,
            key1,
            key2,
            name: name?,
        })
    }
}
