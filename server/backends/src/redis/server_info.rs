//! Parses the responses of `INFO` and `TIME`. Pure.

use ::redis::Value;
use chrono::{DateTime, Utc};
use config::redis::RedisMode;

use super::error;
use crate::BackendError;

/// The parts of `INFO` that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerInfo {
    pub(super) version: Option<String>,
    /// Identifies a run of a server: equal for two addresses of the same server.
    pub(super) run_id: Option<String>,
    pub(super) loading: bool,
    /// `cluster` or `sentinel`, if it is not a standalone server.
    pub(super) other_mode: Option<String>,
    pub(super) replica: Option<Replica>,
}

/// A replica's source server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replica {
    pub(super) master: String,
    pub(super) linked: bool,
}

impl ServerInfo {
    pub(super) fn parse(text: &str) -> Self {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim_end())
        };
        let replica = (field("role") == Some("slave")).then(|| Replica {
            master: format!(
                "{}:{}",
                field("master_host").unwrap_or_default(),
                field("master_port").unwrap_or_default()
            ),
            linked: field("master_link_status") == Some("up"),
        });
        Self {
            version: field("redis_version").map(str::to_owned),
            run_id: field("run_id").map(str::to_owned),
            loading: field("loading") == Some("1"),
            other_mode: field("redis_mode")
                .filter(|mode| *mode != "standalone")
                .map(str::to_owned),
            replica,
        }
    }
}

impl ServerInfo {
    /// # Errors
    /// The server runs in another mode than the configuration names.
    pub(super) fn check_mode(&self, mode: RedisMode) -> Result<(), BackendError> {
        let found = self.other_mode.as_deref().unwrap_or("standalone");
        let expected = match mode {
            RedisMode::Cluster => "cluster",
            // The data nodes behind Sentinels and those of a Redlock are standalone servers.
            RedisMode::Standalone | RedisMode::Sentinel | RedisMode::Redlock => "standalone",
        };
        if found == expected || self.version.is_none() {
            Ok(())
        } else {
            Err(error::other_mode(found, mode))
        }
    }
}

impl Replica {
    /// For the source's line on the Backends page.
    pub(super) fn fault(&self) -> String {
        let link = if self.linked {
            ""
        } else {
            ", and its link to the master is down"
        };
        format!(
            "This server is a replica of {}{link}: its data may be old, and expired keys may still exist here. \
             Name the master in `urls`",
            self.master
        )
    }
}

pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

/// Seconds and microseconds.
pub(super) fn time(value: &Value) -> Option<DateTime<Utc>> {
    let Value::Array(parts) = value else { return None };
    let [seconds, micros] = parts.as_slice() else {
        return None;
    };
    let nanos = text(micros)?.parse::<u32>().ok()?.checked_mul(1000)?;
    DateTime::from_timestamp(text(seconds)?.parse().ok()?, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_the_version_and_loading_are_read_from_info() {
        // Lines as Redis 7 writes them.
        let info = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nloading:1\r\n# Replication\r\n\
            role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n";
        let info = ServerInfo::parse(info);
        assert_eq!(info.version.as_deref(), Some("7.0.15"));
        assert!(info.loading && info.other_mode.is_none());
        assert_eq!(
            info.replica,
            Some(Replica {
                master: "10.0.0.1:6379".to_owned(),
                linked: false
            })
        );
        assert_eq!(ServerInfo::parse("role:master\r\n"), ServerInfo::default());
    }

    #[test]
    fn a_server_of_another_mode_is_refused_with_the_mode_to_set() {
        // What INFO reports, and what the configuration says.
        let server =
            |mode: &str| ServerInfo::parse(&format!("redis_version:7.0.15\r\nredis_mode:{mode}\r\n"));
        for (found, configured, remedy) in [
            ("cluster", RedisMode::Standalone, "\"cluster\""),
            ("sentinel", RedisMode::Standalone, "\"sentinel\""),
            ("standalone", RedisMode::Cluster, "\"standalone\""),
            ("cluster", RedisMode::Redlock, "standalone server"),
            ("sentinel", RedisMode::Redlock, "standalone server"),
        ] {
            let error = server(found).check_mode(configured).unwrap_err();
            assert!(error.to_string().contains(found), "{error}");
            assert!(error.remedy().contains(remedy), "{}", error.remedy());
        }
        assert!(server("cluster").check_mode(RedisMode::Cluster).is_ok());
        assert!(server("standalone").check_mode(RedisMode::Redlock).is_ok());
    }

    #[test]
    fn time_is_seconds_and_microseconds() {
        // Any other response is no time.
        let parts =
            |s: &str, u: &str| Value::Array(vec![Value::BulkString(s.into()), Value::BulkString(u.into())]);
        assert_eq!(
            time(&parts("1700000000", "250000")).unwrap().timestamp_millis(),
            1_700_000_000_250
        );
        assert_eq!(time(&parts("x", "0")), None);
        assert_eq!(time(&Value::Nil), None);
    }
}
