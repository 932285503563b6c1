//! What the server is, what this account may do there, and what this adapter declares.

use std::sync::PoisonError;

use ::redis::Pipeline;
use domain::backend::Capability;
use domain::known::Known;

use super::server_info::{ServerInfo, text};
use super::{RedisBackend, fault, glob, release, rights};
use crate::backends::{BackendError, Probe, RELEASE};

pub(super) async fn run(backend: &RedisBackend) -> Result<Probe, BackendError> {
    let line = backend.asks.line().await?;
    let probed = ask(backend, &line).await;
    if probed.is_err() {
        backend.asks.discard(&line).await;
    }
    probed
}

async fn ask(backend: &RedisBackend, line: &super::link::Line) -> Result<Probe, BackendError> {
    let mut commands = Pipeline::with_capacity(1);
    commands.cmd("INFO");
    let answers = line.ask_all(&commands).await?;
    let version = match answers.first().and_then(text).map(ServerInfo::parse) {
        Some(ServerInfo {
            other_mode: Some(mode),
            ..
        }) => return Err(fault::other_mode(&mode)),
        Some(info) => described(&info),
        None => Known::unknown("this account may not ask for it (INFO)"),
    };
    let sample = backend
        .patterns
        .first()
        .map(|pattern| glob::literal_prefix(pattern.as_bytes()))
        .unwrap_or_default();
    Ok(Probe {
        version,
        rights: rights::ask(line, &sample).await?,
    })
}

fn described(info: &ServerInfo) -> Known<String> {
    let Some(version) = &info.version else {
        return Known::unknown("INFO names no version");
    };
    let mut text = version.clone();
    if let Some(replica) = &info.replica {
        text.push_str(&format!(", replica of {}", replica.master));
    }
    if info.loading {
        text.push_str(", still loading its data");
    }
    Known::Known(text)
}

pub(super) fn capabilities(backend: &RedisBackend) -> Vec<Capability> {
    let watching = backend
        .watching
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
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
            "PTTL tells what is left, to the millisecond, not what was granted",
        ),
        match backend.unlocks {
            Some(_) => told(RELEASE, true, release::HOW),
            None => told(RELEASE, false, release::NO_ACCOUNT),
        },
        told("clock", true, "TIME, once in a pass"),
    ]
}
