//! Server version, account permissions, and declared capabilities.

use ::redis::Pipeline;
use domain::backend::Capability;
use domain::reported::Reported;

use super::server_info::{ServerInfo, text};
use super::{RedisBackend, acl, error, glob, release};
use crate::{BackendError, Probe, RELEASE};

pub(super) async fn run(backend: &RedisBackend) -> Result<Probe, BackendError> {
    let line = backend.asks.line().await?;
    let probed = probe_server(backend, &line).await;
    if probed.is_err() {
        backend.asks.discard(&line).await;
    }
    probed
}

async fn probe_server(
    backend: &RedisBackend,
    line: &super::connection::RedisConnection,
) -> Result<Probe, BackendError> {
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("INFO");
    let answers = line.query_all(&commands).await?;
    let version = match answers.first().and_then(text).map(ServerInfo::parse) {
        Some(ServerInfo {
            other_mode: Some(mode),
            ..
        }) => return Err(error::other_mode(&mode)),
        Some(info) => described(&info),
        None => Reported::unknown("this account may not run INFO"),
    };
    let sample = backend
        .patterns
        .first()
        .map(|pattern| glob::literal_prefix(pattern.as_bytes()))
        .unwrap_or_default();
    Ok(Probe {
        version,
        rights: acl::read_permissions(line, &sample).await?,
    })
}

fn described(info: &ServerInfo) -> Reported<String> {
    let Some(version) = &info.version else {
        return Reported::unknown("INFO names no version");
    };
    let mut text = version.clone();
    if let Some(replica) = &info.replica {
        text.push_str(&format!(", replica of {}", replica.master));
    }
    if info.loading {
        text.push_str(", still loading its data");
    }
    Reported::Value(text)
}

pub(super) fn capabilities(backend: &RedisBackend) -> Vec<Capability> {
    let watching = backend.watching.lock().clone();
    let told = |name: &str, can, how: &str| Capability {
        name: name.to_owned(),
        can,
        how: how.to_owned(),
    };
    vec![
        told("watch", true, &watching),
        told("waiters", false, "Redis keeps no queue of waiters"),
        told(
            "fencing",
            false,
            "Redis issues no fencing tokens; one inside a JSON value is shown",
        ),
        told(
            "ttl",
            true,
            "PTTL reports the time left, to the millisecond, not the granted TTL",
        ),
        match backend.unlocks {
            Some(_) => told(RELEASE, true, release::HOW),
            None => told(RELEASE, false, release::NO_ACCOUNT),
        },
        told("clock", true, "TIME, once per scan"),
    ]
}
