//! One lock read fresh: the key, its session with its checks, and the other keys of the session.

use domain::escape;
use domain::names::{Resource, Source};
use domain::observation::{Inspection, RawField};
use domain::reported::Reported;

use super::ConsulBackend;
use super::entry::{ConsulSession, SEMAPHORE_FLAGS};
use super::error::ConsulError;
use super::lookup::{Found, Lookup};
use super::release;
use super::row::{HIDDEN_SESSION, SEMAPHORE};
use crate::owner_value::cut;

/// Longest raw value shown, in characters, and most keys of a session that are named.
const RAW_CHARS_MAX: usize = 4_096;
const SHARERS_MAX: usize = 100;
/// Longest value that is shown, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;

impl ConsulBackend {
    pub(super) async fn detail(
        &self,
        source: &Source,
        resource: &Resource,
    ) -> Result<Inspection, ConsulError> {
        let found = match self.find(source, resource).await? {
            Lookup::Held(found) => found,
            Lookup::Delayed(lock) => {
                return Ok(Inspection {
                    lock: Some(*lock),
                    ..Inspection::default()
                });
            }
            Lookup::Free => return Ok(Inspection::default()),
        };
        let others = self.delays.keys_of(&found.held.session, resource);
        Ok(Inspection {
            blast_radius: if found.held.flags == SEMAPHORE_FLAGS {
                Reported::unknown(SEMAPHORE)
            } else {
                Reported::Value(release::radius(found.session.as_ref(), others.len()))
            },
            raw: raw(&found),
            related_locks: sharers(&others),
            lock: Some(found.lock()),
            ..Inspection::default()
        })
    }
}

/// One sentence per key that is released or deleted with the session.
fn sharers(others: &[Resource]) -> Vec<String> {
    let mut sentences: Vec<String> = others
        .iter()
        .take(SHARERS_MAX)
        .map(|key| {
            let key = key.text();
            let key = cut(&key, RAW_CHARS_MAX);
            format!("The key {key} is held by the same session and is lost with it.")
        })
        .collect();
    if others.len() > SHARERS_MAX {
        let hidden = others.len() - SHARERS_MAX;
        sentences.push(format!("{hidden} more keys are held by the same session."));
    }
    sentences
}

fn field(name: &str, value: impl Into<String>) -> RawField {
    RawField {
        name: name.to_owned(),
        value: value.into(),
    }
}

fn raw(found: &Found) -> Vec<RawField> {
    let Found {
        held, session, value, ..
    } = found;
    let text = if value.len() > VALUE_BYTES_MAX {
        "unknown: the value is larger than 64 KiB and is not shown".to_owned()
    } else {
        cut(&escape::text(value), RAW_CHARS_MAX).into_owned()
    };
    let mut fields = vec![
        field("key", held.key.as_str()),
        field("value", text),
        field("value bytes", value.len().to_string()),
        field("flags", held.flags.to_string()),
        field("lock index", held.lock_index.to_string()),
        field("create index", held.create_index.to_string()),
        field("modify index", held.modify_index.to_string()),
        field("session", held.session.as_str()),
    ];
    match session {
        Some(session) => fields.extend(session_fields(session)),
        None => fields.push(field("session's details", format!("unknown: {HIDDEN_SESSION}"))),
    }
    fields
}

fn session_fields(session: &ConsulSession) -> Vec<RawField> {
    let or_none = |text: &str| if text.is_empty() { "none" } else { text }.to_owned();
    vec![
        field("session's name", or_none(&session.name)),
        field("session's node", or_none(&session.node)),
        field("session's TTL", or_none(&session.ttl)),
        field("session's behaviour", or_none(&session.behavior)),
        field("session's lock-delay", format!("{} ms", session.lock_delay_ms())),
        field("session's checks", or_none(&session.checks().join(", "))),
    ]
}
