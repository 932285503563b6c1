//! `kind = "redis"`.

use secrecy::SecretString;

use super::reader::Section;
use super::secrets;
use super::value_parsers;

#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// `mode`: `standalone` (default). Other modes are not supported yet.
    pub mode: RedisMode,
    /// `urls` or `urls_file` (one a line): `redis://user:password@host:port/database`, or `rediss://` for TLS.
    pub urls: Vec<SecretString>,
    /// `unlock_url` or `unlock_url_file`: separate account for forced unlocks. Without it, forced unlock is refused
    /// on this backend.
    pub unlock_url: Option<SecretString>,
    /// `patterns`: globs of the keys that are locks. Default `["lock:*"]`.
    pub patterns: Vec<String>,
    /// `value_display`: `fingerprint` (default) or `plain`; raw values may be secrets.
    pub value_display: RedisValues,
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum RedisMode {
        #[default]
        Standalone = "standalone",
        Cluster = "cluster",
        Sentinel = "sentinel",
        Redlock = "redlock",
    }
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum RedisValues {
        #[default]
        Fingerprint = "fingerprint",
        Plain = "plain",
    }
}

pub const PATTERNS_DEFAULT: &[&str] = &["lock:*"];
const URLS_FIT: &str = "urls = [\"redis://host:6379\"] (rediss:// for TLS), or urls_file, the path of a file with \
                        one a line";

const UNLOCK_FIT: &str =
    "unlock_url = \"redis://user:password@host:6379\" (rediss:// for TLS), or unlock_url_file, or neither";

impl RedisConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let mode = section.or("mode", RedisMode::default(), &value_parsers::choice());
        if mode != RedisMode::Standalone {
            let message = format!("{:?} is not supported yet", mode.as_str());
            let remedy = "Write mode = \"standalone\", one backend for each server.".to_owned();
            let origin = section.place_of("mode");
            section.error_at("mode", &origin, message, remedy);
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
            section.report_missing("urls", &format!("Write {URLS_FIT}."));
        }
        if mode == RedisMode::Standalone
            && let Some(many) = urls.as_ref().filter(|urls| urls.len() > 1)
        {
            let message = format!("there are {} of them, and mode is \"standalone\"", many.len());
            let remedy = "Write one, and one backend for each server.".to_owned();
            let origin = section.place_of("urls");
            section.error_at("urls", &origin, message, remedy);
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
        let value_display = section.or("value_display", RedisValues::default(), &value_parsers::choice());
        Some(Self {
            mode,
            urls: urls?,
            unlock_url,
            patterns: patterns?,
            value_display,
        })
    }
}
