//! `kind = "postgres"`.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::limits::{CHANNEL_BYTES_MAX, STALE_AFTER};
use super::reader::Section;
use super::rules::{self, Choice, Rule};
use super::secrets;

#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// `url` or `url_file`: `postgres://user@host:port/database?sslmode=…`, a least-privilege account.
    pub url: SecretString,
    /// `unlock_url` or `unlock_url_file`: the separate account of forced unlocks. Absent: unlock is refused on this backend.
    pub unlock_url: Option<SecretString>,
    /// `advisory_locks`: list advisory locks. Default true.
    pub advisory_locks: bool,
    /// `blocked_sessions`: list sessions that wait for rows or tables, with their blockers. Default true.
    pub blocked_sessions: bool,
    /// `query_text`: how much of the SQL of other sessions is shown. Default `normalized`.
    pub query_text: QueryText,
    /// `[[backend.lease_table]]`
    pub lease_tables: Vec<LeaseTableConfig>,
    /// `[[backend.advisory_name]]`: names for advisory keys.
    pub advisory_names: Vec<AdvisoryNameConfig>,
}

/// How much of the SQL of other sessions leaves the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueryText {
    /// Without literals and comments.
    #[default]
    Normalized,
    /// As the session sent it.
    Full,
    /// Not read.
    Hidden,
}

#[derive(Debug, Clone)]
pub struct LeaseTableConfig {
    /// `table`: `schema.table`; without a schema, `public`.
    pub table: String,
    /// `preset`: `common` (default), `shedlock` or `liquibase`.
    pub preset: LeaseTablePreset,
    /// `columns`: overrides of the preset: `resource`, `owner`, `lease_id`, `fencing_token`, `expires_at`,
    /// `created_at`, `updated_at`, `heartbeat`. The empty string says that the table has no such column.
    pub columns: BTreeMap<String, String>,
    /// `notify`: channel of the optional trigger (docs/backends/postgres.md); a notification shortens the wait for a change.
    pub notify: Option<String>,
    /// `release`: what a forced unlock does to a row of the common shape, `delete` or `expire`. Default: `delete`, but
    /// `expire` where the row's token would be lost with it, because no sequence draws it.
    pub release: Option<LeaseTableRelease>,
    /// `stale_after`: a row without expiry is not renewing after so long without a sign of life, which is its `heartbeat`, or
    /// else its `updated_at`.
    pub stale_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseTableRelease {
    Delete,
    Expire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeaseTablePreset {
    #[default]
    Common,
    Shedlock,
    Liquibase,
}

/// A name for one advisory key: `key = 72707369, name = "prisma migrate"`, or `key1` and `key2`, or `hash_of`, a
/// string whose `hashtext`/`hashtextextended` is the key.
#[derive(Debug, Clone)]
pub struct AdvisoryNameConfig {
    /// `key`: the key of the one-key form.
    pub key: Option<i64>,
    /// `key1` and `key2`: the keys of the two-key form.
    pub key1: Option<i32>,
    pub key2: Option<i32>,
    /// `hash_of`: the string that the program hashes.
    pub hash_of: Option<String>,
    /// `name`: what people call it. With `hash_of`, the default is that string.
    pub name: Option<String>,
}

const URL_FIT: &str =
    "url = \"postgres://user@host:5432/database\", or url_file, the path of a file that holds it";
const UNLOCK_FIT: &str =
    "unlock_url = \"postgres://user@host:5432/database\", or unlock_url_file, or neither";

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

impl Choice for QueryText {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("normalized", Self::Normalized),
        ("full", Self::Full),
        ("hidden", Self::Hidden),
    ];
}

impl Choice for LeaseTablePreset {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("common", Self::Common),
        ("shedlock", Self::Shedlock),
        ("liquibase", Self::Liquibase),
    ];
}

impl Choice for LeaseTableRelease {
    const WORDS: &'static [(&'static str, Self)] = &[("delete", Self::Delete), ("expire", Self::Expire)];
}

impl PostgresConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let schemes = secrets::url_of(&["postgres", "postgresql"]);
        let show = secrets::without_credentials;
        let given = section.has("url") || section.has("url_file");
        let url = section.secret("url", "url_file", URL_FIT, &schemes, show);
        if !given {
            section.missing("url", &format!("Write {URL_FIT}."));
        }
        let unlock_url = section.secret("unlock_url", "unlock_url_file", UNLOCK_FIT, &schemes, show);
        let advisory_locks = section.or("advisory_locks", true, &rules::boolean());
        let blocked_sessions = section.or("blocked_sessions", true, &rules::boolean());
        let query_text = section.or("query_text", QueryText::default(), &rules::choice());
        let tables = section.sections("lease_table", "backend.lease_table");
        let lease_tables: Vec<_> = tables.into_iter().filter_map(LeaseTableConfig::read).collect();
        let names = section.sections("advisory_name", "backend.advisory_name");
        let advisory_names = names.into_iter().filter_map(AdvisoryNameConfig::read).collect();
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
        })
    }
}

impl LeaseTableConfig {
    fn read(mut section: Section<'_>) -> Option<Self> {
        let table = section.required("table", &table_name());
        let preset = section.or("preset", LeaseTablePreset::default(), &rules::choice());
        let mut columns = section.section("columns", "backend.lease_table.columns");
        let words = columns.words(&COLUMNS);
        if let Some((_, origin)) = words.get("resource").filter(|(column, _)| column.is_empty()) {
            let mend = "Name the column that holds the resource.".to_owned();
            columns.error_at(
                "resource",
                origin,
                "a lease table cannot be without it".to_owned(),
                mend,
            );
        }
        columns.finish();
        let notify = section.optional("notify", &channel());
        let release = section.optional("release", &rules::choice());
        let stale_after = section.optional("stale_after", &rules::duration(&STALE_AFTER));
        let named = |key| words.get(key).map(|(column, _)| !column.is_empty());
        let has_heartbeat = named("heartbeat").unwrap_or(false);
        let has_updates = named("updated_at").unwrap_or(preset == LeaseTablePreset::Common);
        if section.has("stale_after") && !has_heartbeat && !has_updates {
            let origin = section.place_of("stale_after");
            let mend = "Set `columns = { heartbeat = \"…\" }`: the column that a holder sets while it works.";
            let message = "needs a column that shows signs of life".to_owned();
            section.error_at("stale_after", &origin, message, mend.to_owned());
        }
        if has_heartbeat && !section.has("stale_after") {
            let mend = "With `heartbeat`, set stale_after = \"5m\": a row is not renewing after so long without one.";
            section.missing("stale_after", mend);
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
    rules::checked("\"schema.table\", or \"table\" for the schema public", |text| {
        let parts = text.split('.').count();
        // In quotes a dot may be part of a name: Postgres judges those.
        if text.contains('"') || (parts <= 2 && text.split('.').all(|part| !part.is_empty())) {
            Ok(())
        } else {
            Err("is not the name of a table".to_owned())
        }
    })
}

fn channel() -> Rule<'static, String> {
    rules::checked(
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
        let name = Self {
            key: section.optional("key", &rules::integer()),
            key1: section.optional("key1", &rules::integer()),
            key2: section.optional("key2", &rules::integer()),
            hash_of: section.optional("hash_of", &rules::text("nightly-report")),
            name: section.optional("name", &rules::text("nightly report")),
        };
        let has = |key| section.has(key);
        let origin = section.origin.clone();
        let mend = "Write `key`, or `key1` and `key2`, or `hash_of`.";
        match (has("key"), has("key1") || has("key2"), has("hash_of")) {
            (false, false, false) => {
                section.error_at("", &origin, "says no key to name".to_owned(), mend.to_owned());
            }
            (true, false, false) | (false, true, false) | (false, false, true) => {}
            _ => section.error_at(
                "",
                &origin,
                "says more than one key to name".to_owned(),
                mend.to_owned(),
            ),
        }
        for (given, other) in [("key1", "key2"), ("key2", "key1")] {
            if has(given) && !has(other) {
                section.missing(other, "The two-key form has both.");
            }
        }
        if !has("name") && !has("hash_of") {
            section.missing("name", "Write name = \"…\": what people call this lock.");
        }
        section.finish();
        Some(name)
    }
}
