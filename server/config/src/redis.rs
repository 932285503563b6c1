//! `kind = "redis"`.

mod topology;

use secrecy::SecretString;

use super::reader::Section;
use super::secrets;
use super::value_parsers;

#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// `mode`: `standalone` (default), `cluster`, `sentinel` or `redlock`.
    pub mode: RedisMode,
    /// `urls` or `urls_file` (one a line): `redis://user:password@host:port/database`, or `rediss://` for TLS. One
    /// server, the seeds of a cluster, the Sentinels, or all nodes of a Redlock.
    pub urls: Vec<SecretString>,
    /// `unlock_url` or `unlock_url_file`: address and account of forced unlocks, only with `mode = "standalone"`.
    pub unlock_url: Option<SecretString>,
    /// `unlock_user`: separate account for forced unlocks, on every data node. Without it and without `unlock_url`,
    /// forced unlock is refused on this backend.
    pub unlock_user: Option<String>,
    /// `unlock_password` or `unlock_password_file`.
    pub unlock_password: Option<SecretString>,
    /// `master_name`: the name under which the Sentinels know the master.
    pub master_name: Option<String>,
    /// `sentinel_user`: account on the Sentinels.
    pub sentinel_user: Option<String>,
    /// `sentinel_password` or `sentinel_password_file`.
    pub sentinel_password: Option<SecretString>,
    /// `wake`: library whose waiters a forced unlock wakes: `none` (default), `python-redis-lock`, `walrus` or
    /// `ioredis-mutex`. Redisson's are always woken.
    pub wake: RedisWake,
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

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum RedisWake {
        #[default]
        None = "none",
        PythonRedisLock = "python-redis-lock",
        Walrus = "walrus",
        IoredisMutex = "ioredis-mutex",
    }
}

pub const PATTERNS_DEFAULT: &[&str] = &["lock:*"];
const URLS_FIT: &str = "urls = [\"redis://host:6379\"] (rediss:// for TLS), or urls_file, the path of a file with \
                        one a line";

const UNLOCK_FIT: &str =
    "unlock_url = \"redis://user:password@host:6379\" (rediss:// for TLS), or unlock_url_file, or neither";
const UNLOCK_PASSWORD_FIT: &str =
    "unlock_password = \"…\", or unlock_password_file, the path of a file that holds it";
const SENTINEL_PASSWORD_FIT: &str =
    "sentinel_password = \"…\", or sentinel_password_file, the path of a file that holds it";

impl RedisConfig {
    /// With the defaults for everything else, and without forced unlocks.
    pub fn new(mode: RedisMode, urls: Vec<SecretString>) -> Self {
        Self {
            mode,
            urls,
            unlock_url: None,
            unlock_user: None,
            unlock_password: None,
            master_name: None,
            sentinel_user: None,
            sentinel_password: None,
            wake: RedisWake::default(),
            patterns: PATTERNS_DEFAULT
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect(),
            value_display: RedisValues::default(),
        }
    }

    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        let mode = section.or("mode", RedisMode::default(), &value_parsers::choice());
        let is_set = section.has("urls") || section.has("urls_file");
        let urls = section.secret_list(
            "urls",
            "urls_file",
            URLS_FIT,
            &secrets::url_of(&["redis", "rediss"]),
            secrets::without_credentials,
        );
        if !is_set {
            section.report_missing("urls", &format!("Write {URLS_FIT}."));
        }
        let unlock_url = section.secret(
            "unlock_url",
            "unlock_url_file",
            UNLOCK_FIT,
            &secrets::url_of(&["redis", "rediss"]),
            secrets::without_credentials,
        );
        let unlock_user = section.optional("unlock_user", &value_parsers::text("leasehold-unlock"));
        let unlock_password = password(
            section,
            ["unlock_password", "unlock_password_file"],
            UNLOCK_PASSWORD_FIT,
        );
        let master_name = section.optional("master_name", &value_parsers::text("mymaster"));
        let sentinel_user = section.optional("sentinel_user", &value_parsers::text("leasehold-watch"));
        let sentinel_password = password(
            section,
            ["sentinel_password", "sentinel_password_file"],
            SENTINEL_PASSWORD_FIT,
        );
        let wake = section.or("wake", RedisWake::default(), &value_parsers::choice());
        let patterns = patterns(section);
        let value_display = section.or("value_display", RedisValues::default(), &value_parsers::choice());
        let config = Self {
            mode,
            urls: urls?,
            unlock_url,
            unlock_user,
            unlock_password,
            master_name,
            sentinel_user,
            sentinel_password,
            wake,
            patterns: patterns?,
            value_display,
        };
        config.check_topology(section);
        config.check_accounts(section);
        Some(config)
    }
}

fn password(
    section: &mut Section<'_>,
    [key, file_key]: [&'static str; 2],
    expected: &str,
) -> Option<SecretString> {
    section.secret(key, file_key, expected, &secrets::not_empty, secrets::hidden)
}

fn patterns(section: &mut Section<'_>) -> Option<Vec<String>> {
    section.list(
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
    )
}
