//! `kind = "postgres"`.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresConfig {
    /// `url` or `url_file`: `postgres://user@host:port/database?sslmode=…`, a least-privilege account.
    pub url: SecretString,
    /// `unlock_url`: the separate account of forced unlocks. Absent: unlock is refused on this backend.
    #[serde(default)]
    pub unlock_url: Option<SecretString>,
    /// `advisory_locks`: list advisory locks. Default true.
    #[serde(default = "yes")]
    pub advisory_locks: bool,
    /// `blocked_sessions`: list sessions that wait for rows or tables, with their blockers. Default true.
    #[serde(default = "yes")]
    pub blocked_sessions: bool,
    /// `[[backend.lease_table]]`
    #[serde(default, rename = "lease_table")]
    pub lease_tables: Vec<LeaseTableConfig>,
    /// `[[backend.advisory_name]]`: names for advisory keys.
    #[serde(default, rename = "advisory_name")]
    pub advisory_names: Vec<AdvisoryNameConfig>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseTableConfig {
    /// `table`: `schema.table`; without a schema, `public`.
    pub table: String,
    /// `preset`: `common` (default), `shedlock` or `liquibase`.
    #[serde(default)]
    pub preset: LeaseTablePreset,
    /// `columns`: overrides of the preset: `resource`, `owner`, `lease_id`, `fencing_token`, `expires_at`,
    /// `created_at`, `updated_at`. The empty string says that the table has no such column.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// `notify`: channel of the optional trigger (docs/backends.md); a notification shortens the wait for a change.
    #[serde(default)]
    pub notify: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseTablePreset {
    #[default]
    Common,
    Shedlock,
    Liquibase,
}

/// A name for one advisory key: `key = 72707369, name = "prisma migrate"`, or `key1` and `key2`, or `hash_of`, a
/// string whose `hashtext`/`hashtextextended` is the key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdvisoryNameConfig {
    #[serde(default)]
    pub key: Option<i64>,
    #[serde(default)]
    pub key1: Option<i32>,
    #[serde(default)]
    pub key2: Option<i32>,
    #[serde(default)]
    pub hash_of: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

fn yes() -> bool {
    true
}
