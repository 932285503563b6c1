//! Reads locks by name.

use domain::names::{OwnerId, Resource, Source};
use domain::observation::ObservedLock;
use futures::StreamExt;

use super::ConsulBackend;
use super::entry::{ConsulSession, HeldKey, KeyEntry};
use super::error::{ConsulError, ConsulErrorKind};
use super::scan::holding;
use super::{read, row};
use crate::{BackendError, Batch, Sink};

const PARALLEL_MAX: usize = 16;

/// A key read by name.
pub(super) enum Lookup {
    Held(Box<Found>),
    /// It has no holder, but its lock-delay runs.
    Delayed(Box<ObservedLock>),
    Free,
}

pub(super) struct Found {
    pub(super) held: HeldKey,
    /// `None`: the token may not read it.
    pub(super) session: Option<ConsulSession>,
    owner: OwnerId,
    pub(super) value: Vec<u8>,
}

impl Found {
    pub(super) fn lock(&self) -> ObservedLock {
        row::lock(&self.held, self.session.as_ref(), self.owner.clone())
    }
}

/// The key of a name; `None` outside the configured prefixes, which are not observed.
pub(super) fn key_of(backend: &ConsulBackend, source: &Source, resource: &Resource) -> Option<String> {
    let key = std::str::from_utf8(resource.as_bytes()).ok()?;
    let is_ours = *source == row::source() && backend.http.settings.prefix_of(key).is_some();
    is_ours.then(|| key.to_owned())
}

impl ConsulBackend {
    pub(super) async fn find(&self, source: &Source, resource: &Resource) -> Result<Lookup, ConsulError> {
        let Some(key) = key_of(self, source, resource) else {
            return Ok(Lookup::Free);
        };
        let sent_at = self.http.clock.tick();
        if let Some(found) = self.read_held(&key).await? {
            let id = found.held.session.as_str().into();
            let now = holding(id, found.owner.clone(), found.session.as_ref(), sent_at);
            self.delays.update(resource, Some(now), |_| false);
            return Ok(Lookup::Held(Box::new(found)));
        }
        let is_gone = match self.delays.last_session(resource) {
            Some(session) => self.session(&session).await?.is_none(),
            None => false,
        };
        self.delays.update(resource, None, |_| is_gone);
        let delay = self.delays.running_for(resource, sent_at);
        Ok(delay.map_or(Lookup::Free, |(delay, remaining_ms)| {
            Lookup::Delayed(Box::new(row::delayed(resource, &delay, remaining_ms)))
        }))
    }

    /// The key if it is held. A session that is not found has ended, and the next reading of the key is another one; or
    /// the token may not read it.
    async fn read_held(&self, key: &str) -> Result<Option<Found>, ConsulError> {
        let read = |entry: &KeyEntry<'_>| entry.held().map(|held| (held, entry.bytes()));
        let mut before = None;
        loop {
            let found = match read::key(&self.http, key, read).await {
                Err(fault) if fault.kind == ConsulErrorKind::Denied => return Err(denied(fault, key)),
                found => found?,
            };
            let Some((held, value)) = found.flatten() else {
                return Ok(None);
            };
            let session = self.session(&held.session).await?;
            let generation = row::generation(&held);
            if session.is_some() || before.as_ref() == Some(&generation) {
                let owner = self.owner(&held, session.as_ref());
                return Ok(Some(Found {
                    held,
                    session,
                    owner,
                    value,
                }));
            }
            before = Some(generation);
        }
    }

    fn owner(&self, held: &HeldKey, session: Option<&ConsulSession>) -> OwnerId {
        let before = match session {
            Some(_) => None,
            None => self.delays.owner_of(&held.session, &row::resource(&held.key)),
        };
        before.unwrap_or_else(|| row::owner(&held.session, session))
    }

    async fn session(&self, id: &str) -> Result<Option<ConsulSession>, ConsulError> {
        match read::session(&self.http, id).await {
            Err(fault) if fault.kind == ConsulErrorKind::Denied => Ok(None),
            read => read,
        }
    }

    /// Reads these locks and delivers them; missing ones are delivered as gone.
    ///
    /// # Errors
    /// The first lock that could not be read. The others are delivered.
    pub(super) async fn refresh_named(
        &self,
        names: &[(Source, Resource)],
        sink: &mut dyn Sink,
    ) -> Result<(), BackendError> {
        let sent_at = self.http.clock.tick();
        let reads = futures::stream::iter(names.to_vec()).map(|(source, resource)| async move {
            let found = self.find(&source, &resource).await;
            (source, resource, found)
        });
        let mut reads = reads.buffer_unordered(PARALLEL_MAX);
        let mut refreshed = Ok(());
        // One by one: a read that gets no answer delays none of the others.
        while let Some((source, resource, found)) = reads.next().await {
            let mut batch = Batch {
                sent_at,
                locks: Vec::new(),
                gone: Vec::new(),
            };
            match found {
                Ok(Lookup::Held(found)) => batch.locks.push(found.lock()),
                Ok(Lookup::Delayed(lock)) => batch.locks.push(*lock),
                Ok(Lookup::Free) => batch.gone.push((source, resource)),
                Err(fault) => refreshed = refreshed.and(Err(fault.error)),
            }
            sink.accept(batch);
        }
        refreshed
    }
}

fn denied(fault: ConsulError, key: &str) -> ConsulError {
    ConsulError::new(
        fault.kind,
        BackendError::Denied {
            detail: format!("the token may not read the key {key}"),
            remedy: super::acl::read_rule(key),
        },
    )
}
