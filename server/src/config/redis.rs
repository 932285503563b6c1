//! `kind = "redis"`.

use secrecy::SecretString;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// `mode`: `standalone` (default). Others are refused by name until they are supported.
    #[serde(default)]
    pub mode: RedisMode,
    /// `urls`: `redis://user:password@host:port/database`, or `rediss://` for TLS.
    pub urls: Vec<SecretString>,
    /// `patterns`: globs of the keys that are locks. Default `["lock:*"]`.
    #[serde(default = "default_patterns")]
    pub patterns: Vec<String>,
    /// `values`: `fingerprint` (default) or `show`: raw values are secrets unless told otherwise.
    #[serde(default)]
    pub values: RedisValues,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedisMode {
    #[default]
    Standalone,
    Cluster,
    Sentinel,
    Redlock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedisValues {
    #[default]
    Fingerprint,
    Show,
}

fn default_patterns() -> Vec<String> {
    vec!["lock:*".to_owned()]
}
