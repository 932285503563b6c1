//! `kind = "postgres"`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;

use super::limits::{CHANNEL_BYTES_MAX, STALE_AFTER};
use super::network::Network;
use super::reader::Section;
use super::secrets;
use super::value_parsers::{self, Rule};

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
    /// `poolers`: where the sessions of poolers in transaction or statement mode come from.
    pub poolers: Vec<PoolerAddress>,
}

/// Where a pooler's sessions come from.
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

#[derive(Debug, Clone)]
pub struct LeaseTableConfig {
    /// `table`: `schema.table`; without a schema, `public`.
    pub table: String,
    /// `preset`: `common` (default), `shedlock` or `liquibase`.
    pub preset: LeaseTablePreset,
    /// `columns`: overrides of the preset: `resource`, `owner`, `lease_id`, `fencing_token`, `expires_at`,
    /// `created_at`, `updated_at`, `heartbeat`. An empty string: the table has no such column.
    pub columns: BTreeMap<String, String>,
    /// `notify`: channel of the optional trigger (docs/backends/postgres.md); a notification causes an immediate
    /// scan.
    pub notify: Option<String>,
    /// `release`: how a forced unlock changes a row of the common preset, `delete` or `expire`. Default: `delete`,
    /// but `expire` if deleting the row would lose its token counter.
    pub release: Option<LeaseTableRelease>,
    /// `stale_after`: a row without expiry counts as not renewing after this time without an update of its
    /// `heartbeat` or else `updated_at` column.
    pub stale_after: Option<Duration>,
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LeaseTableRelease {
        Delete = "delete",
        Expire = "expire",
    }
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum LeaseTablePreset {
        #[default]
        Common = "common",
        Shedlock = "shedlock",
        Liquibase = "liquibase",
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

/// Keys of `columns`.
pub const COLUMNS: [&str; 8] = [
    "resource",
    "owner",
    "lease_id",
    "fencing_token",
    "expires_at",
    "created_at",
    "updated_at",
    "heartbeat",
];

impl PostgresConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let schemes = secrets::url_of(&["postgres", "postgresql"]);
        let show = secrets::without_credentials;
        let given = section.has("url") || section.has("url_file");
        let url = section.secret("url", "url_file", URL_FIT, &schemes, show);
        if !given {
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

impl LeaseTableConfig {
    fn read(mut section: Section<'_>) -> Option<Self> {
        let table = section.required("table", &table_name());
        let preset = section.or("preset", LeaseTablePreset::default(), &value_parsers::choice());
        let mut columns = section.section("columns", "backend.lease_table.columns");
        let words = columns.words(&COLUMNS);
        if let Some((_, origin)) = words.get("resource").filter(|(column, _)| column.is_empty()) {
            let remedy = "Name the column that holds the resource.".to_owned();
            columns.error_at(
                "resource",
                origin,
                "is required for a lease table".to_owned(),
                remedy,
            );
        }
        columns.finish();
        let notify = section.optional("notify", &channel());
        let release = section.optional("release", &value_parsers::choice());
        let stale_after = section.optional("stale_after", &value_parsers::duration(&STALE_AFTER));
        let named = |key| words.get(key).map(|(column, _)| !column.is_empty());
        let has_heartbeat = named("heartbeat").unwrap_or(false);
        let has_updates = named("updated_at").unwrap_or(preset == LeaseTablePreset::Common);
        if section.has("stale_after") && !has_heartbeat && !has_updates {
            let origin = section.place_of("stale_after");
            let remedy =
                "Set `columns = { heartbeat = \"…\" }`: the column that a holder sets while it works.";
            let message = "needs a heartbeat column".to_owned();
            section.error_at("stale_after", &origin, message, remedy.to_owned());
        }
        if has_heartbeat && !section.has("stale_after") {
            let remedy = "With `heartbeat`, set stale_after = \"5m\": a row counts as not renewing after that time \
                without a heartbeat.";
            section.report_missing("stale_after", remedy);
        }
        section.finish();
        let columns = words
            .into_iter()
            .map(|(key, (column, _))| (key, column))
            .collect();
        Some(Self {
            table: table?,
            preset,
            columns,
            notify,
            release,
            stale_after,
        })
    }
}

fn table_name() -> Rule<'static, String> {
    value_parsers::checked("\"schema.table\", or \"table\" for the schema public", |text| {
        let parts = text.split('.').count();
        // A quoted name may contain dots; Postgres validates it.
        if text.contains('"') || (parts <= 2 && text.split('.').all(|part| !part.is_empty())) {
            Ok(())
        } else {
            Err("is not the name of a table".to_owned())
        }
    })
}

/// Postgres cannot hash a text that contains NUL.
fn hashed_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("is empty".to_owned()),
        _ if name.contains('\0') => Err("contains a NUL character".to_owned()),
        _ => Ok(()),
    }
}

fn channel() -> Rule<'static, String> {
    value_parsers::checked(
        "the name of a channel, at most 63 bytes, such as \"leasehold\"",
        |text| match text.len() {
            0 => Err("is empty".to_owned()),
            1..=CHANNEL_BYTES_MAX => Ok(()),
            _ => Err("is too long for Postgres".to_owned()),
        },
    )
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
        for (given, other) in [("key1", "key2"), ("key2", "key1")] {
            if has(given) && !has(other) {
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
