//! `kind = "redis"`.

use secrecy::SecretString;

use super::reader::Section;
use super::rules::{self, Choice};
use super::secrets;

#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// `mode`: `standalone` (default). Others are refused by name until they are supported.
    pub mode: RedisMode,
    /// `urls` or `urls_file` (one a line): `redis://user:password@host:port/database`, or `rediss://` for TLS.
    pub urls: Vec<SecretString>,
    /// `unlock_url` or `unlock_url_file`: the separate account of forced unlocks. Absent: unlock is refused on this backend.
    pub unlock_url: Option<SecretString>,
    /// `patterns`: globs of the keys that are locks. Default `["lock:*"]`.
    pub patterns: Vec<String>,
    /// `values`: `fingerprint` (default) or `show`: raw values are secrets unless told otherwise.
    pub values: RedisValues,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RedisMode {
    #[default]
    Standalone,
    Cluster,
    Sentinel,
    Redlock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RedisValues {
    #[default]
    Fingerprint,
    Show,
}

pub const PATTERNS_DEFAULT: &[&str] = &["lock:*"];
const URLS_FIT: &str = "urls = [\"redis://host:6379\"] (rediss:// for TLS), or urls_file, the path of a file with \
                        one a line";

const UNLOCK_FIT: &str =
    "unlock_url = \"redis://user:password@host:6379\" (rediss:// for TLS), or unlock_url_file, or neither";

impl Choice for RedisMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("standalone", Self::Standalone),
        ("cluster", Self::Cluster),
        ("sentinel", Self::Sentinel),
        ("redlock", Self::Redlock),
    ];
}

impl Choice for RedisValues {
    const WORDS: &'static [(&'static str, Self)] =
        &[("fingerprint", Self::Fingerprint), ("show", Self::Show)];
}

impl RedisConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let mode = section.or("mode", RedisMode::default(), &rules::choice());
        if mode != RedisMode::Standalone {
            let message = format!("{:?} is not supported yet", mode.word());
            let mend = "Write mode = \"standalone\", one backend for each server.".to_owned();
            let origin = section.place_of("mode");
            section.error_at("mode", &origin, message, mend);
        }
        let given = section.has("urls") || section.has("urls_file");
        let urls = section.secret_list(
            "urls",
            "urls_file",
            URLS_FIT,
            &secrets::url_of(&["redis", "rediss"]),
            secrets::without_credentials,
        );
        if !given {
            section.missing("urls", &format!("Write {URLS_FIT}."));
        }
        if mode == RedisMode::Standalone
            && let Some(many) = urls.as_ref().filter(|urls| urls.len() > 1)
        {
            let message = format!("there are {} of them, and mode is \"standalone\"", many.len());
            let mend = "Write one, and one backend for each server.".to_owned();
            let origin = section.place_of("urls");
            section.error_at("urls", &origin, message, mend);
        }
        let unlock_url = section.secret(
            "unlock_url",
            "unlock_url_file",
            UNLOCK_FIT,
            &secrets::url_of(&["redis", "rediss"]),
            secrets::without_credentials,
        );
        let patterns = section.list(
            "patterns",
            Some(PATTERNS_DEFAULT),
            "globs of the keys that are locks, such as patterns = [\"lock:*\"]",
            &|pattern| {
                if pattern.is_empty() {
                    Err("matches no key".to_owned())
                } else {
                    Ok(())
                }
            },
        );
        let values = section.or("values", RedisValues::default(), &rules::choice());
        Some(Self {
            mode,
            urls: urls?,
            unlock_url,
            patterns: patterns?,
            values,
        })
    }
}
