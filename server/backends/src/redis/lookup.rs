//! Reads keys after change notifications, and one key with all details.

use std::collections::HashSet;

use ::redis::{Pipeline, Value};
use domain::escape;
use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Inspection, ObservedLock, RawField};

use super::connection::RedisConnection;
use super::fingerprint::Fingerprint;
use super::json;
use super::limits::{NAMES_PER_READ, VALUE_BYTES_MAX};
use super::non_string_keys::small_hash;
use super::page::{self, beginning, on_key};
use super::redisson::RedissonLock;
use super::server_info::text;
use super::{RedisBackend, error, glob, release};
use crate::{BackendError, Batch, Sink};

/// Reads the named keys. A name may be a string or a hash by now, and is reported as gone from
/// each source that does not have it.
pub(super) async fn refresh(
    backend: &RedisBackend,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), BackendError> {
    if names.is_empty() {
        return Ok(());
    }
    let line = backend.asks.line().await?;
    let mut resources: Vec<&Resource> = names.iter().map(|(_, resource)| resource).collect();
    resources.sort_unstable();
    resources.dedup();
    for some in resources.chunks(NAMES_PER_READ) {
        let ours = some.iter().filter(|resource| is_ours(backend, resource));
        let keys = ours.map(|resource| resource.as_bytes().to_vec()).collect();
        let page = match page::read(&line, &backend.rows, &backend.clock, keys).await {
            Ok(page) => page,
            Err(error) => {
                backend.asks.discard(&line).await;
                return Err(error);
            }
        };
        let there: HashSet<(&Source, &Resource)> = page
            .locks
            .iter()
            .map(|lock| (&lock.source, &lock.resource))
            .collect();
        let mut gone = Vec::new();
        for resource in some {
            for source in [&backend.rows.key, &backend.rows.hash] {
                if !there.contains(&(source, *resource)) {
                    gone.push((source.clone(), (*resource).clone()));
                }
            }
        }
        sink.accept(Batch {
            sent_at: page.sent_at,
            locks: page.locks,
            gone,
        });
    }
    Ok(())
}

/// Reads one key fresh.
pub(super) async fn inspect(
    backend: &RedisBackend,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    if !is_ours(backend, resource) {
        return Ok(Inspection::default());
    }
    let line = backend.asks.line().await?;
    let inspected = read_one(backend, &line, source, resource).await;
    if inspected.is_err() {
        backend.asks.discard(&line).await;
    }
    inspected
}

async fn read_one(
    backend: &RedisBackend,
    line: &RedisConnection,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    let key = resource.as_bytes();
    let page = page::read(line, &backend.rows, &backend.clock, vec![key.to_vec()]).await?;
    let Some(lock) = page.locks.into_iter().find(|lock| lock.source == *source) else {
        return Ok(Inspection::default());
    };
    let mut raw = about(line, key).await?;
    let mut owners = Vec::new();
    let unread = lock.generation.is_unknown();
    match raw.kind.as_deref() {
        Some("string") if !unread => value_fields(backend, line, key, &lock, &mut raw.fields).await?,
        Some("hash") if !unread => owners = hash_fields(line, key, &mut raw.fields).await?,
        _ => {}
    }
    if owners.is_empty() {
        owners.extend(lock.owner.known().cloned());
    }
    Ok(Inspection {
        blast_radius: release::radius(&lock, &owners),
        lock: Some(lock),
        owners,
        raw: raw.fields,
        ..Inspection::default()
    })
}

/// Whether the configured patterns include it. Names come from URLs too: no other key is ever
/// read for them.
pub(super) fn is_ours(backend: &RedisBackend, resource: &Resource) -> bool {
    backend
        .patterns
        .iter()
        .any(|pattern| glob::matches(pattern.as_bytes(), resource.as_bytes()))
}

struct About {
    kind: Option<String>,
    fields: Vec<RawField>,
}

/// Facts about the key itself; refused ones are left out.
async fn about(line: &RedisConnection, key: &[u8]) -> Result<About, BackendError> {
    let mut commands = Pipeline::with_capacity(4);
    commands.add_command(on_key("TYPE", key));
    commands.add_command(on_key("PTTL", key));
    commands.cmd("OBJECT").arg("ENCODING").arg(key);
    commands.cmd("OBJECT").arg("IDLETIME").arg(key);
    let answers = line.query_all(&commands).await?;
    let [kind, pttl, encoding, idle] = answers.as_slice() else {
        return Err(error::unexpected("TYPE"));
    };
    let kind = text(kind).map(str::to_owned);
    let mut about = About {
        kind: kind.clone(),
        fields: Vec::new(),
    };
    let mut add =
        |name: &str, value: Option<String>| about.fields.extend(value.map(|value| field(name, value)));
    add("type", kind);
    add(
        "PTTL",
        match pttl {
            Value::Int(-1) => Some("-1 (no TTL)".to_owned()),
            Value::Int(ms) => Some(format!("{ms} ms")),
            _ => None,
        },
    );
    add("encoding", text(encoding).map(str::to_owned));
    add(
        "idle",
        if let Value::Int(seconds) = idle {
            Some(format!("{seconds} s"))
        } else {
            None
        },
    );
    Ok(about)
}

async fn value_fields(
    backend: &RedisBackend,
    line: &RedisConnection,
    key: &[u8],
    seen: &ObservedLock,
    raw: &mut Vec<RawField>,
) -> Result<(), BackendError> {
    let Value::BulkString(value) = line.query(&beginning(key, VALUE_BYTES_MAX)).await? else {
        return Err(error::unexpected("GETRANGE"));
    };
    // It may have been deleted or changed since the row was read.
    let generation = Fingerprint::from_value(&value).generation("value:");
    if seen.generation.known().map(Generation::as_str) != Some(generation.as_str()) {
        return Ok(());
    }
    raw.push(field("size", format!("{} bytes", value.len())));
    if let Some(lock) = json::parse(&value) {
        raw.push(field("ownerId", lock.owner_id.0.into_owned()));
        raw.extend(lock.lease_id.map(|lease| field("leaseId", lease.0.into_owned())));
        raw.extend(
            lock.fencing_token
                .map(|token| field("fencingToken", token.0.to_string())),
        );
    }
    let shown = if backend.rows.shows_values() {
        escape::text(&value).into_owned()
    } else {
        Fingerprint::from_value(&value).owner()
    };
    raw.push(field("value", shown));
    Ok(())
}

async fn hash_fields(
    line: &RedisConnection,
    key: &[u8],
    raw: &mut Vec<RawField>,
) -> Result<Vec<OwnerId>, BackendError> {
    let read = small_hash(line, key).await?.unwrap_or_default();
    let Some(lock) = RedissonLock::parse(&read) else {
        return Ok(Vec::new());
    };
    raw.extend(lock.mode.map(|mode| field("mode", mode.to_owned())));
    raw.extend(
        lock.holds
            .iter()
            .map(|(owner, count)| field(owner, format!("re-entered {count}"))),
    );
    Ok(lock.owners.iter().map(OwnerId::new).collect())
}

fn field(name: &str, value: String) -> RawField {
    RawField {
        name: name.to_owned(),
        value,
    }
}
