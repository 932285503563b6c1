//! Forced unlock: deletes the holder's key in one transaction if its revisions are those of the
//! named holding. Its lease and the other keys on it stay.
//!
//! **Invariant**: the deletion is sent once. Reads may be repeated, a deletion may not.

use domain::escape;
use domain::force_release::{BlastRadius, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::reported::Reported;
use etcd_client::{Compare, CompareOp, KeyValue, Txn, TxnOp};

use super::EtcdBackend;
use super::connection::Link;
use super::error::{EtcdError, EtcdErrorKind};
use super::lookup::{Lookup, find, prefix_of};
use super::range::{self, KeyRead};
use super::record::{CUT_QUEUE, KeyPlacement, LARGE_VALUE, Record, mutex_source, place};
use super::row::{self, EtcdRow};
use crate::release::{Acted, check_generation, confirm_release, explain_unlock_account};
use crate::{Backend, BackendError};

pub(super) const HOW: &str = "the holder's key is deleted if its revisions are the ones seen; its lease and the lease's \
                              other keys stay";
pub(super) const NO_ACCOUNT: &str =
    "no `unlock_user` is configured; docs/backends/etcd.md has the account to create";
const LOGIN_REMEDY: &str =
    "Check `unlock_user` and `unlock_password`; `etcdctl user get NAME` shows whether the user exists.";
/// Attempts at a key that its holder keeps rewriting.
const TRIES_MAX: usize = 10;

/// Only the holder's key is deleted.
pub(super) fn radius(row: &EtcdRow, others_on_lease: usize) -> Reported<BlastRadius> {
    if row.note.as_deref() == Some(CUT_QUEUE) {
        return Reported::unknown(CUT_QUEUE);
    }
    if row.is_unread_key() {
        return Reported::unknown(LARGE_VALUE);
    }
    let mut radius = BlastRadius {
        next: row.waiters.first().map(|waiter| waiter.owner.clone()),
        ..BlastRadius::default()
    };
    radius.warn("etcd does not notify the holder: it continues until it reads its key.");
    if others_on_lease > 0 {
        let keys = domain::format::counted(others_on_lease as u64, "other key", "other keys");
        radius.warn(format!(
            "Its lease continues with {keys}; only this key is deleted."
        ));
    }
    Reported::Value(radius)
}

pub(super) async fn release(
    backend: &EtcdBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let Some(unlocks) = &backend.unlocks else {
        return Ok(Release::refused(
            NO_ACCOUNT,
            "Set `unlock_user` and `unlock_password`.",
        ));
    };
    let mut key = resource.as_bytes().to_vec();
    if *source == mutex_source() {
        key.push(b'/');
    }
    if prefix_of(&backend.link, &key).is_none() {
        return Ok(Release::refused(
            "the name is not below a configured prefix",
            "Add its folder to `prefixes`.",
        ));
    }
    // The whole queue determines the holder: read by the watching account.
    let look = find(&backend.link, source, resource, usize::MAX).await;
    let Lookup::There(found) = look.map_err(|fault| fault.error)? else {
        return Ok(Release::AlreadyFree);
    };
    if found.row.is_unread_key() {
        return Ok(Release::refused(
            LARGE_VALUE,
            "Delete the key with etcdctl, or let its client write a smaller value.",
        ));
    }
    if row::generation(source, &found.row.holder) != *expected {
        let seen = backend.inspect(source, resource).await?;
        if let Err(answer) = check_generation(&seen, expected) {
            return Ok(answer);
        }
    }
    if found.row.note.as_deref() == Some(CUT_QUEUE) {
        return Ok(Release::refused(
            CUT_QUEUE,
            "Configure the folder that holds the whole queue in `prefixes`.",
        ));
    }
    let acted = delete(unlocks, source, found.holder.key(), expected).await?;
    confirm_release(backend, source, resource, expected, acted).await
}

/// Reads the key with the unlocking account, which also opens its connection, and deletes it if
/// it is unchanged.
async fn delete(
    unlocks: &Link,
    source: &Source,
    key: &[u8],
    expected: &Generation,
) -> Result<Acted, BackendError> {
    for _ in 0..TRIES_MAX {
        let read = match range::read_key(unlocks, key).await {
            Ok(read) => read,
            Err(fault) if fault.kind == EtcdErrorKind::Denied => return Ok(denied(unlocks, key)),
            Err(fault) => return Err(explain_unlock_account(fault.error, LOGIN_REMEDY)),
        };
        let Some(KeyRead { kv, .. }) = read.filter(|read| is_named(unlocks, source, read, expected)) else {
            return Ok(Acted::Missed);
        };
        match act(unlocks, source, &kv).await {
            Ok(true) => return Ok(Acted::Done),
            // Rewritten in between, by its holder or another owner: read again.
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

fn is_named(link: &Link, source: &Source, read: &KeyRead, expected: &Generation) -> bool {
    let KeyRead { kv, value_read, .. } = read;
    let in_queue = prefix_of(link, kv.key())
        .is_some_and(|prefix| matches!(place(kv.key(), kv.lease(), prefix), KeyPlacement::Queue(_)));
    // A plain key's generation includes the owner, which is in the value.
    let is_placed = *value_read || in_queue;
    is_placed
        && in_queue == (*source == mutex_source())
        && row::generation(source, &Record::parse(kv, *value_read)) == *expected
}

/// Whether the key was deleted. For a plain key every rewrite counts: it may be another
/// holder's.
async fn act(unlocks: &Link, source: &Source, kv: &KeyValue) -> Result<bool, Acted> {
    let key = kv.key();
    let mut guard = vec![Compare::create_revision(
        key,
        CompareOp::Equal,
        kv.create_revision(),
    )];
    if *source != mutex_source() {
        guard.push(Compare::mod_revision(key, CompareOp::Equal, kv.mod_revision()));
    }
    let delete = Txn::new().when(guard).and_then([TxnOp::delete(key, None)]);
    let connected = match tokio::time::timeout(unlocks.settings.timeout, unlocks.connected()).await {
        Ok(Ok(connected)) => connected,
        // Nothing was sent.
        Ok(Err(fault)) => return Err(Acted::refused(&fault.error)),
        Err(_) => {
            return Err(Acted::refused(
                &EtcdError::no_answer(unlocks.settings.timeout_ms()).error,
            ));
        }
    };
    let mut keys = connected.client.kv_client();
    let answer = tokio::time::timeout(unlocks.settings.timeout, keys.txn(delete)).await;
    let fault = match answer {
        Ok(Ok(answer)) => return Ok(answer.succeeded()),
        Ok(Err(error)) => unlocks.fault(&error),
        Err(_) => EtcdError::no_answer(unlocks.settings.timeout_ms()),
    };
    Err(match fault.kind {
        EtcdErrorKind::Transport => {
            unlocks.forget();
            Acted::unanswered(&fault.error)
        }
        EtcdErrorKind::Denied => denied(unlocks, key),
        EtcdErrorKind::LoginLost
        | EtcdErrorKind::AuthOff
        | EtcdErrorKind::Compacted
        | EtcdErrorKind::TooLarge
        | EtcdErrorKind::Other => Acted::refused(&fault.error),
    })
}

fn denied(unlocks: &Link, key: &[u8]) -> Acted {
    let user = unlocks
        .settings
        .user
        .as_ref()
        .map_or("", |user| user.name.as_str());
    let prefix = prefix_of(unlocks, key).unwrap_or(key);
    let prefix = escape::text(prefix);
    Acted::Refused {
        why: format!("etcd does not let {user} read and delete the keys below {prefix}"),
        remedy: format!("etcdctl role grant-permission leasehold-unlock --prefix=true readwrite '{prefix}'"),
    }
}
