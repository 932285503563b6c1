//! Forced unlock: releases the key in one transaction if its session and its lock index are
//! those of the reviewed holding. The session stays, with its other keys.
//!
//! Consul's transactions compare the session and the modify index. The lock index is compared
//! when the key is read; the modify index then proves that it is still the same. The value and
//! the flags are written back as they were: a release replaces both, and clients recognise their
//! locks by the flags.
//!
//! **Invariant**: the transaction is sent once per reading. Reads may be repeated, a transaction
//! whose answer was lost may not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::force_release::{BlastRadius, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::ConsulBackend;
use super::entry::{ConsulSession, HeldKey, KeyEntry, SEMAPHORE_FLAGS};
use super::error::{ConsulError, ConsulErrorKind};
use super::http::Http;
use super::lookup::key_of;
use super::{read, row};
use crate::BackendError;
use crate::release::{Acted, confirm_release};

pub(super) const HOW: &str = "the key is released if its session and lock index are the ones seen; the session and its \
                              other keys stay";
pub(super) const NO_ACCOUNT: &str =
    "no `unlock_token_file` is configured; docs/backends/consul.md has the token to create";
/// Attempts at a key that its holder keeps rewriting.
const TRIES_MAX: usize = 10;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Operation<'a> {
    #[serde(rename = "KV")]
    kv: KeyOperation<'a>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeyOperation<'a> {
    verb: &'static str,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactionResult {
    #[serde(default)]
    errors: Option<Vec<TransactionError>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactionError {
    #[serde(default)]
    what: String,
}

/// Only this key is released.
pub(super) fn radius(session: Option<&ConsulSession>, others_of_session: usize) -> BlastRadius {
    let mut radius = BlastRadius::default();
    radius.warn("Consul does not notify the holder: it continues until it reads its key.");
    if others_of_session > 0 {
        let keys = domain::format::counted(others_of_session as u64, "other key", "other keys");
        radius.warn(format!(
            "Its session continues with {keys}; only this key is released."
        ));
    }
    if session.is_none_or(|session| session.lock_delay_ms() > 0) {
        radius
            .warn("The lock-delay does not apply to a release: another session can acquire the key at once.");
    }
    radius
}

pub(super) async fn release(
    backend: &ConsulBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let Some(unlocks) = &backend.unlocks else {
        return Ok(Release::refused(
            NO_ACCOUNT,
            "Set `unlock_token_file` to the file of a token that may write the keys.",
        ));
    };
    let Some(key) = key_of(backend, source, resource) else {
        return Ok(Release::refused(
            "the name is not below a configured prefix",
            "Add its folder to `prefixes`.",
        ));
    };
    let acted = unlock(unlocks, &key, expected).await?;
    confirm_release(backend, source, resource, expected, acted).await
}

/// Reads the key with the unlocking token, and releases it if it is unchanged.
async fn unlock(unlocks: &Http, key: &str, expected: &Generation) -> Result<Acted, BackendError> {
    for _ in 0..TRIES_MAX {
        let read = |entry: &KeyEntry<'_>| entry.held().map(|held| (held, entry.bytes()));
        let found = match read::key(unlocks, key, read).await {
            Ok(found) => found.flatten(),
            Err(fault) if fault.kind == ConsulErrorKind::Denied => return Ok(denied(key)),
            Err(fault) if fault.kind == ConsulErrorKind::UnknownToken => return Ok(unknown_token()),
            Err(fault) => return Err(fault.error),
        };
        let Some((held, value)) = found.filter(|(held, _)| row::generation(held) == *expected) else {
            return Ok(Acted::Missed);
        };
        if held.flags == SEMAPHORE_FLAGS {
            return Ok(Acted::Refused {
                why: row::SEMAPHORE.to_owned(),
                remedy: "Release the slot with the client of the semaphore.".to_owned(),
            });
        }
        match act(unlocks, &held, &value).await {
            Ok(true) => return Ok(Acted::Done),
            // Rewritten or released in between: read again.
            Ok(false) => {}
            Err(acted) => return Ok(acted),
        }
    }
    Ok(Acted::Refused {
        why: format!(
            "its holder rewrites the key continuously: it changed {TRIES_MAX} times during the release"
        ),
        remedy: "Try again, or stop the holder.".to_owned(),
    })
}

/// Whether the key was released.
async fn act(unlocks: &Http, held: &HeldKey, value: &[u8]) -> Result<bool, Acted> {
    let key = held.key.as_str();
    let session = Some(held.session.as_str());
    let operations = [
        KeyOperation {
            verb: "check-session",
            key,
            session,
            ..KeyOperation::default()
        },
        KeyOperation {
            verb: "check-index",
            key,
            index: Some(held.modify_index),
            ..KeyOperation::default()
        },
        KeyOperation {
            verb: "unlock",
            key,
            session,
            value: Some(STANDARD.encode(value)),
            flags: Some(held.flags),
            ..KeyOperation::default()
        },
    ];
    let body: Vec<Operation<'_>> = operations.into_iter().map(|kv| Operation { kv }).collect();
    let request = unlocks.request(Method::PUT, unlocks.url(&["v1", "txn"], &[]));
    let answer = unlocks
        .conflict_or_json::<TransactionResult>(request.json(&body))
        .await;
    match answer {
        Ok(result) => {
            let errors = result.errors.unwrap_or_default();
            if errors.iter().any(|error| error.what.contains("ermission denied")) {
                return Err(denied(key));
            }
            Ok(errors.is_empty())
        }
        Err(fault) => Err(failed(&fault, key)),
    }
}

fn failed(fault: &ConsulError, key: &str) -> Acted {
    match (fault.kind, &fault.error) {
        // The connection was refused: nothing was sent.
        (ConsulErrorKind::Transport, BackendError::Misconfigured { .. }) => Acted::refused(&fault.error),
        (ConsulErrorKind::Transport, _) => Acted::unanswered(&fault.error),
        (ConsulErrorKind::Denied, _) => denied(key),
        (ConsulErrorKind::UnknownToken, _) => unknown_token(),
        (ConsulErrorKind::AclsOff | ConsulErrorKind::NotFound, _) => Acted::refused(&fault.error),
        // An answer that could not be read may follow a release.
        (ConsulErrorKind::Other, BackendError::Protocol { .. }) => Acted::unanswered(&fault.error),
        (ConsulErrorKind::Other, _) => Acted::refused(&fault.error),
    }
}

fn denied(key: &str) -> Acted {
    Acted::Refused {
        why: format!("the token for forced unlocks may not write the key {key}"),
        remedy: format!("Add to its policy: key_prefix \"{key}\" {{ policy = \"write\" }}"),
    }
}

fn unknown_token() -> Acted {
    Acted::Refused {
        why: "Consul does not know the token for forced unlocks".to_owned(),
        remedy: "Check `unlock_token_file`; `consul acl token read -self` shows whether the token exists."
            .to_owned(),
    }
}
