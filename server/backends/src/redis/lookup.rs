//! Reads keys after change notifications, and one key with all details.

use std::collections::HashSet;

use ::redis::{Pipeline, Value};
use domain::escape;
use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Inspection, ObservedLock, RawField};

use super::collections::{Collection, read_collection};
use super::connection::{Link, RedisConnection};
use super::fingerprint::Fingerprint;
use super::json;
use super::limits::{NAMES_PER_READ, VALUE_BYTES_MAX};
use super::page::{self, Page, RedisKey, beginning, on_key};
use super::redirect::Redirect;
use super::redisson::RedissonLock;
use super::server_info::text;
use super::settings::Settings;
use super::symfony::SymfonyLock;
use super::{error, release};
use crate::{BackendError, Batch, Sink};

/// Reads the named keys from one server. A name may be a string or a hash by now, and is reported
/// as gone from each source that does not have it.
pub(super) async fn refresh(
    settings: &Settings,
    link: &Link,
    names: &[(Source, Resource)],
    sink: &mut dyn Sink,
) -> Result<(), BackendError> {
    let resources = distinct(names);
    if resources.is_empty() {
        return Ok(());
    }
    let connection = link.connection().await?;
    for chunk in resources.chunks(NAMES_PER_READ) {
        let keys = our_keys(settings, chunk);
        match page::read(&connection, &settings.rows, &settings.clock, keys).await {
            Ok(page) => sink.accept(batch(settings, page, chunk)),
            Err(error) => {
                link.discard(&connection).await;
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Each name once.
pub(super) fn distinct(names: &[(Source, Resource)]) -> Vec<Resource> {
    let mut resources: Vec<Resource> = names.iter().map(|(_, resource)| resource.clone()).collect();
    resources.sort_unstable();
    resources.dedup();
    resources
}

pub(super) fn our_keys(settings: &Settings, resources: &[Resource]) -> Vec<RedisKey> {
    let ours = resources.iter().filter(|resource| settings.is_ours(resource));
    ours.map(|resource| resource.as_bytes().to_vec()).collect()
}

/// The batch for the names in `requested`; those without a row are gone, but not those of keys that were not read.
pub(super) fn batch(settings: &Settings, page: Page, requested: &[Resource]) -> Batch {
    let found: HashSet<(&Source, &Resource)> = page
        .locks
        .iter()
        .map(|lock| (&lock.source, &lock.resource))
        .collect();
    let is_read = |resource: &&Resource| !page.troubles.unread().contains(resource.as_bytes());
    let mut missing = Vec::new();
    for resource in requested.iter().filter(is_read) {
        for source in settings.rows.sources() {
            if !found.contains(&(source, resource)) {
                missing.push((source.clone(), resource.clone()));
            }
        }
    }
    Batch {
        sent_at: page.sent_at,
        locks: page.locks,
        gone: missing,
    }
}

/// Reads one key fresh.
pub(super) async fn inspect(
    settings: &Settings,
    link: &Link,
    source: &Source,
    resource: &Resource,
) -> Result<Inspection, BackendError> {
    if !settings.is_ours(resource) {
        return Ok(Inspection::default());
    }
    let connection = link.connection().await?;
    let inspected = read_one(settings, &connection, source, resource).await;
    if inspected.is_err() {
        link.discard(&connection).await;
    }
    match inspected? {
        Looked::Here(inspection) => Ok(*inspection),
        Looked::Moved(_) => Err(BackendError::Misconfigured {
            detail: "the server belongs to a cluster".to_owned(),
            remedy: "Set mode = \"cluster\" for this backend.".to_owned(),
        }),
    }
}

/// Result of one reading on one node.
pub(super) enum Looked {
    Here(Box<Inspection>),
    Moved(Redirect),
}

pub(super) async fn read_one(
    settings: &Settings,
    connection: &RedisConnection,
    source: &Source,
    resource: &Resource,
) -> Result<Looked, BackendError> {
    let key = resource.as_bytes();
    let page = page::read(connection, &settings.rows, &settings.clock, vec![key.to_vec()]).await?;
    if let Some((_, to)) = page.moved.into_iter().next() {
        return Ok(Looked::Moved(to));
    }
    let Some(lock) = page.locks.into_iter().find(|lock| lock.source == *source) else {
        return Ok(Looked::Here(Box::default()));
    };
    let mut raw = key_info(connection, key).await?;
    let mut owners = Vec::new();
    // `None`: not a raw value.
    let mut value_bytes = None;
    let unread = lock.generation.is_unknown();
    let collection = raw.kind.as_deref().and_then(Collection::from_type);
    match (raw.kind.as_deref(), collection) {
        (Some("string"), _) if !unread => {
            value_bytes = value_fields(settings, connection, key, &lock, &mut raw.fields).await?;
        }
        (_, Some(kind)) if !unread => {
            owners = elements(settings, connection, (key, kind), &mut raw.fields).await?
        }
        _ => {}
    }
    if owners.is_empty() {
        owners.extend(lock.owner.known().cloned());
    }
    Ok(Looked::Here(Box::new(Inspection {
        blast_radius: release::radius(&lock, &owners, settings.wake, value_bytes),
        lock: Some(lock),
        owners,
        raw: raw.fields,
        ..Inspection::default()
    })))
}

struct KeyInfo {
    kind: Option<String>,
    fields: Vec<RawField>,
}

/// Facts about the key itself; refused ones are left out.
async fn key_info(connection: &RedisConnection, key: &[u8]) -> Result<KeyInfo, BackendError> {
    let mut commands = Pipeline::with_capacity(4);
    commands.add_command(on_key("TYPE", key));
    commands.add_command(on_key("PTTL", key));
    commands.cmd("OBJECT").arg("ENCODING").arg(key);
    commands.cmd("OBJECT").arg("IDLETIME").arg(key);
    let answers = connection.query_all(&commands).await?;
    let [kind, pttl, encoding, idle] = answers.as_slice() else {
        return Err(error::unexpected("TYPE"));
    };
    let kind = text(kind).map(str::to_owned);
    let mut info = KeyInfo {
        kind: kind.clone(),
        fields: Vec::new(),
    };
    let mut add =
        |name: &str, value: Option<String>| info.fields.extend(value.map(|value| field(name, value)));
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
    Ok(info)
}

/// Returns the length of a raw value.
async fn value_fields(
    settings: &Settings,
    connection: &RedisConnection,
    key: &[u8],
    seen: &ObservedLock,
    raw: &mut Vec<RawField>,
) -> Result<Option<usize>, BackendError> {
    let Value::BulkString(value) = connection.query(&beginning(key, VALUE_BYTES_MAX)).await? else {
        return Err(error::unexpected("GETRANGE"));
    };
    // It may have been deleted or changed since the row was read.
    let generation = Fingerprint::from_value(&value).generation("value:");
    if seen.generation.known().map(Generation::as_str) != Some(generation.as_str()) {
        return Ok(None);
    }
    raw.push(field("size", format!("{} bytes", value.len())));
    let fields = json::parse(&value);
    let is_raw = fields.is_none();
    if let Some(lock) = fields {
        raw.push(field("ownerId", lock.owner_id.0.into_owned()));
        raw.extend(lock.lease_id.map(|lease| field("leaseId", lease.0.into_owned())));
        raw.extend(
            lock.fencing_token
                .map(|token| field("fencingToken", token.0.to_string())),
        );
    }
    let shown = if settings.rows.shows_values() {
        escape::text(&value).into_owned()
    } else {
        Fingerprint::from_value(&value).owner()
    };
    raw.push(field("value", shown));
    Ok(is_raw.then_some(value.len()))
}

/// Owners of a hash or a sorted set; empty if it is no lock any more.
async fn elements(
    settings: &Settings,
    connection: &RedisConnection,
    (key, kind): (&[u8], Collection),
    raw: &mut Vec<RawField>,
) -> Result<Vec<OwnerId>, BackendError> {
    let (read, pttl_ms) = read_collection(connection, key, kind).await?.unwrap_or_default();
    Ok(match kind {
        Collection::Hash => RedissonLock::parse(&read).map(|lock| redisson_fields(&lock, raw)),
        Collection::SortedSet => {
            SymfonyLock::parse(&read, pttl_ms).map(|lock| symfony_fields(settings, &lock, raw))
        }
    }
    .unwrap_or_default())
}

fn redisson_fields(lock: &RedissonLock, raw: &mut Vec<RawField>) -> Vec<OwnerId> {
    raw.extend(lock.mode.map(|mode| field("mode", mode.to_owned())));
    let holds = lock.holds.iter();
    raw.extend(holds.map(|(owner, count)| field(owner, format!("re-entered {count}"))));
    lock.owners.iter().map(OwnerId::new).collect()
}

fn symfony_fields(settings: &Settings, lock: &SymfonyLock, raw: &mut Vec<RawField>) -> Vec<OwnerId> {
    let mode = if lock.is_shared { "read" } else { "write" };
    raw.push(field("mode", mode.to_owned()));
    let owners: Vec<OwnerId> = settings.rows.symfony_owners(lock).collect();
    let holds = owners.iter().zip(&lock.holds);
    raw.extend(holds.map(|(owner, (_, left_ms))| field(owner.as_str(), format!("expires in {left_ms} ms"))));
    owners
}

fn field(name: &str, value: String) -> RawField {
    RawField {
        name: name.to_owned(),
        value,
    }
}
