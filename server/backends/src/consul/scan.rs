//! One scan: all keys below the prefixes, then the sessions, then the lock-delays.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::duration::millis;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::names::{OwnerId, Resource};
use domain::observation::{Coverage, ObservedLock};
use domain::reported::{Reported, Why};
use domain::tick::Tick;

use super::ConsulBackend;
use super::acl::{self, Permissions};
use super::entry::{ConsulSession, HeldKey};
use super::error::{ConsulError, ConsulErrorKind};
use super::hidden_sessions::still_holding;
use super::lock_delays::Holding;
use super::read::{self, KeyList};
use super::row;
use crate::{BackendError, Batch, Budget, Pass, Sink, SourcePass};

pub(super) const NO_CLOCK: &str = "Consul reports no clock; sessions use the leader's internal clock";
const TIMED_OUT: &str = "the scan timed out; raise `scan_timeout` or narrow `prefixes`";
/// Locks per batch.
const BATCH_LOCKS: usize = 1_000;

/// Result of a scan.
struct Reading {
    list: KeyList,
    permissions: Permissions,
    sessions: HashMap<String, ConsulSession>,
    /// Sessions that hold keys, have not ended, and are not listed.
    hidden: HashSet<String>,
    sent_at: Tick,
    /// Why it is partial.
    cut: Option<Why>,
    /// Prefixes of which every key that can be a lock was read.
    read_prefixes: Vec<String>,
    /// Keys whose holders are not listed, and may have ended or be hidden.
    unproven: HashSet<Vec<u8>>,
}

impl ConsulBackend {
    pub(super) async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let sent_at = self.http.clock.tick();
        let deadline = sent_at.plus(millis(budget.time_max));
        let reading = self
            .read_all(sent_at, deadline)
            .await
            .map_err(|fault| fault.error)?;
        self.check_readable(&reading)?;
        let mut cut_reason = reading.cut.clone();
        if let Some(unreadable) = reading.permissions.unreadable().first() {
            cut_reason = Some(partly_readable(unreadable).into());
        } else if reading.list.is_filtered {
            cut_reason = Some("Consul left out keys that the token may not read".into());
        } else if reading.list.too_long > 0 {
            cut_reason = Some(format!("a key is longer than {RESOURCE_BYTES_MAX} bytes").into());
        }
        let seen = reading.list.keys;
        let unproven = Arc::new(reading.unproven.clone());
        for prefix in reading.read_prefixes.clone() {
            let unproven = unproven.clone();
            let covers = move |name: &[u8]| name.starts_with(prefix.as_bytes()) && !unproven.contains(name);
            sink.read_part(&row::source(), Arc::new(covers));
        }
        let hidden_reason = hidden_sessions_reason(reading.hidden.len());
        self.deliver(reading, sink);
        let elapsed_ms = self.http.clock.tick().since(sent_at);
        self.scan_ms.store(elapsed_ms, Ordering::Relaxed);
        Ok(Pass {
            sources: vec![SourcePass {
                source: row::source(),
                fault: cut_reason.as_ref().map(ToString::to_string).or(hidden_reason),
                coverage: match cut_reason {
                    None => Coverage::Complete,
                    Some(why) => Coverage::Partial { seen, of: None, why },
                },
            }],
            clock: Reported::unknown(NO_CLOCK),
        })
    }

    async fn read_all(&self, sent_at: Tick, deadline: Tick) -> Result<Reading, ConsulError> {
        let permissions = acl::permissions(&self.http).await?;
        let mut reading = Reading {
            list: KeyList::default(),
            permissions,
            sessions: HashMap::new(),
            hidden: HashSet::new(),
            sent_at,
            cut: None,
            read_prefixes: Vec::new(),
            unproven: HashSet::new(),
        };
        for prefix in &self.http.settings.prefixes {
            let left = self.left(deadline);
            match tokio::time::timeout(left, read::keys(&self.http, prefix, &mut reading.list)).await {
                Ok(read) => {
                    let is_filtered = read?;
                    let is_readable = !reading.permissions.unreadable().contains(&prefix.as_str());
                    if is_readable && !is_filtered {
                        reading.read_prefixes.push(prefix.clone());
                    }
                }
                Err(_) => {
                    reading.cut = Some(TIMED_OUT.into());
                    break;
                }
            }
        }
        // The sessions of the last scan too: a key is released by one that lives, or lost with it.
        let held = reading.list.held.iter().map(|held| held.session.as_str());
        let before = self.delays.sessions();
        let session_ids: HashSet<&str> = held.chain(before.iter().map(|session| &**session)).collect();
        if !session_ids.is_empty() {
            // A list that was cut took all the time; its sessions are read within one timeout.
            let left = self.left(deadline).max(self.http.settings.timeout);
            let sessions = self
                .http
                .within(left, read::sessions(&self.http, &session_ids))
                .await;
            reading.sessions = match sessions {
                Ok(sessions) => sessions,
                // Hidden sessions. Where they were visible, their holders would count as gone.
                Err(fault)
                    if fault.kind == ConsulErrorKind::Denied && !reading.permissions.sees_sessions() =>
                {
                    HashMap::new()
                }
                Err(fault) => return Err(fault),
            };
        }
        // Without ACLs, a session that is not listed has ended.
        if matches!(reading.permissions, Permissions::Known { sessions: true, .. }) {
            self.find_hidden_sessions(&mut reading, deadline).await?;
        }
        Ok(reading)
    }

    /// Finds the holders that are not listed and have not ended: [`hidden_sessions`](super::hidden_sessions).
    async fn find_hidden_sessions(&self, reading: &mut Reading, deadline: Tick) -> Result<(), ConsulError> {
        let is_unlisted = |held: &&HeldKey| !reading.sessions.contains_key(&held.session);
        let unlisted: Vec<&HeldKey> = reading.list.held.iter().filter(is_unlisted).collect();
        let holders: HashSet<&str> = unlisted.iter().map(|held| held.session.as_str()).collect();
        let mut hidden = self.hidden_sessions.known();
        hidden.retain(|session| holders.contains(session.as_str()));
        let unproven: Vec<&HeldKey> = unlisted
            .into_iter()
            .filter(|held| !hidden.contains(&held.session))
            .collect();
        if !unproven.is_empty() {
            match self.read_keys_again(&unproven, deadline).await? {
                Some(after) => hidden.extend(still_holding(&unproven, &after)),
                None => {
                    reading.cut = Some(TIMED_OUT.into());
                    let keys = unproven.iter().map(|held| held.key.as_bytes().to_vec());
                    reading.unproven = keys.collect();
                }
            }
        }
        self.hidden_sessions.replace(hidden.clone());
        reading.hidden = hidden;
        Ok(())
    }

    /// The held keys of the prefixes that these are below; `None`: no time is left.
    async fn read_keys_again(
        &self,
        held: &[&HeldKey],
        deadline: Tick,
    ) -> Result<Option<Vec<HeldKey>>, ConsulError> {
        let mut again = KeyList::default();
        for prefix in &self.http.settings.prefixes {
            if !held.iter().any(|held| held.key.starts_with(prefix)) {
                continue;
            }
            let list = read::keys(&self.http, prefix, &mut again);
            match tokio::time::timeout(self.left(deadline), list).await {
                Ok(read) => {
                    read?;
                }
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(again.held))
    }

    fn left(&self, deadline: Tick) -> Duration {
        let left_ms = deadline.since(self.http.clock.tick());
        Duration::from_millis(u64::try_from(left_ms).unwrap_or(0))
    }

    /// Without the permission to read any key, an empty list does not mean that there are no locks.
    fn check_readable(&self, reading: &Reading) -> Result<(), BackendError> {
        let unreadable = reading.permissions.unreadable();
        let all_hidden = unreadable.len() == self.http.settings.prefixes.len();
        if reading.list.keys > 0 || !all_hidden {
            return Ok(());
        }
        let prefix = unreadable.first().copied().unwrap_or_default();
        Err(BackendError::Denied {
            detail: format!("the token may not read the keys below {prefix}, and Consul hides them"),
            remedy: acl::read_rule(prefix),
        })
    }

    fn deliver(&self, reading: Reading, sink: &mut dyn Sink) {
        let sees_sessions = reading.permissions.sees_sessions();
        let mut holdings = HashMap::with_capacity(reading.list.held.len());
        let mut locks = Vec::with_capacity(BATCH_LOCKS.min(reading.list.held.len()));
        let mut flush = |locks: &mut Vec<ObservedLock>| {
            if !locks.is_empty() {
                sink.accept(Batch {
                    sent_at: reading.sent_at,
                    locks: std::mem::take(locks),
                    gone: Vec::new(),
                });
            }
        };
        let mut shared: HashMap<&str, (Arc<str>, OwnerId)> = HashMap::new();
        let owners_before = match sees_sessions && reading.hidden.is_empty() {
            true => HashMap::new(),
            false => self.delays.owners(),
        };
        for held in &reading.list.held {
            let session = reading.sessions.get(&held.session);
            // Its session ended after the keys were read.
            if session.is_none() && sees_sessions && !reading.hidden.contains(&held.session) {
                continue;
            }
            let owner = || match (session, owners_before.get(held.session.as_str())) {
                (None, Some(before)) => before.clone(),
                _ => row::owner(&held.session, session),
            };
            let texts = || (held.session.as_str().into(), owner());
            let (id, owner) = shared.entry(&held.session).or_insert_with(texts).clone();
            let lock = row::lock(held, session, owner.clone());
            holdings.insert(
                lock.resource.clone(),
                holding(id, owner, session, reading.sent_at),
            );
            locks.push(lock);
            if locks.len() >= BATCH_LOCKS {
                flush(&mut locks);
            }
        }
        let is_read = |key: &Resource| {
            let mut prefixes = reading.read_prefixes.iter();
            !reading.unproven.contains(key.as_bytes())
                && prefixes.any(|prefix| key.as_bytes().starts_with(prefix.as_bytes()))
        };
        let has_ended = |session: &str| {
            sees_sessions && !reading.sessions.contains_key(session) && !reading.hidden.contains(session)
        };
        self.delays.replace(holdings, is_read, has_ended);
        for (key, delay, remaining_ms) in self.delays.running(reading.sent_at) {
            locks.push(row::delayed(&key, &delay, remaining_ms));
        }
        flush(&mut locks);
    }
}

pub(super) fn holding(
    session_id: Arc<str>,
    owner: OwnerId,
    session: Option<&ConsulSession>,
    read_at: Tick,
) -> Holding {
    let lock_delay_ms = session.map_or(0, ConsulSession::lock_delay_ms);
    Holding {
        session: session_id,
        owner,
        lock_delay_ms: u32::try_from(lock_delay_ms).unwrap_or(u32::MAX),
        read_at,
    }
}

fn partly_readable(prefix: &str) -> String {
    format!(
        "the token may read only a part of the keys below {prefix}. {}",
        acl::read_rule(prefix)
    )
}

fn hidden_sessions_reason(count: usize) -> Option<String> {
    let sessions =
        domain::format::counted(count as u64, "session that holds keys", "sessions that hold keys");
    (count > 0).then(|| {
        format!(
            "the token may not read {sessions}: their keys are listed without name and TTL of the session. \
             Add to the token's policy: session_prefix \"\" {{ policy = \"read\" }}"
        )
    })
}
