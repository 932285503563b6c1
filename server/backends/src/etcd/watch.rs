//! Change notifications from etcd's watch, on a connection of its own.
//!
//! A watch starts after the revision of the last complete list. The client does not restore a
//! broken watch, so this module does: backoff, next endpoint, and a resync after each
//! reconnect. A compacted watch is not resumed. Renewals cause no events in etcd; polling finds
//! them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::backend::WatchState;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::tick::Tick;
use etcd_client::{Event, EventType, WatchOptions, WatchResponse, WatchStream};

use super::EtcdBackend;
use super::error::EtcdError;
use super::range::ANSWER_BYTES_MAX;
use super::record;
use crate::Hints;

const BACKOFF_MIN: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Why a watch ended.
enum End {
    /// The start revision is compacted or from another store: list again, watch from now.
    Lost,
    Broken(String),
}

/// One active watch.
struct Session<'a> {
    stream: WatchStream,
    hints: &'a Hints,
    /// Requested start revision; 0 means "from now on".
    start: i64,
    /// Watchers that etcd has not answered yet.
    unanswered: usize,
    /// Whether any of them was confirmed: etcd may refuse one prefix and grant another.
    confirmed: bool,
    relist: bool,
}

impl EtcdBackend {
    pub(super) async fn watch_for_ever(&self, hints: &Hints) {
        let mut index = self.link.index();
        let mut backoff = BACKOFF_MIN;
        let mut down_since = None;
        let mut relist = false;
        loop {
            let mut confirmed = false;
            let end = self.watch_once(index, relist, hints, &mut confirmed).await;
            if confirmed {
                backoff = BACKOFF_MIN;
                down_since = None;
            }
            relist = true;
            match end {
                End::Lost => {
                    self.snapshot.store(0, Ordering::Release);
                    hints.relist();
                }
                End::Broken(why) => {
                    let since = *down_since.get_or_insert_with(|| self.link.clock.now().wall);
                    hints.state(WatchState::Reconnecting { since, why });
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                    index += 1;
                }
            }
        }
    }

    async fn watch_once(&self, index: usize, relist: bool, hints: &Hints, confirmed: &mut bool) -> End {
        let snapshot = self.snapshot.load(Ordering::Acquire);
        let start = if snapshot > 0 { snapshot + 1 } else { 0 };
        let stream = match tokio::time::timeout(self.link.settings.timeout, self.open(index, start)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(fault)) => return End::Broken(fault.error.to_string()),
            Err(_) => {
                return End::Broken(
                    EtcdError::no_answer(self.link.settings.timeout_ms())
                        .error
                        .to_string(),
                );
            }
        };
        let unanswered = self.link.settings.prefixes.len();
        let relist = relist || start == 0;
        let mut session = Session {
            stream,
            hints,
            start,
            unanswered,
            confirmed: false,
            relist,
        };
        let end = self.listen(&mut session).await;
        *confirmed = session.confirmed;
        end
    }

    async fn open(&self, index: usize, start: i64) -> Result<WatchStream, EtcdError> {
        let client = self.link.connect(index).await?.client;
        let options = || {
            WatchOptions::new()
                .with_prefix()
                .with_prev_key()
                .with_fragment()
                .with_start_revision(start)
        };
        // etcd is asked to split larger responses.
        let mut watch = client.watch_client().max_decoding_message_size(ANSWER_BYTES_MAX);
        let mut prefixes = self.link.settings.prefixes.iter();
        let first = prefixes.next().cloned().unwrap_or_default();
        let failed = |error| self.link.fault(&error);
        let mut stream = watch.watch(first, Some(options())).await.map_err(failed)?;
        for prefix in prefixes {
            stream
                .watch(prefix.clone(), Some(options()))
                .await
                .map_err(failed)?;
        }
        Ok(stream)
    }

    /// Listens until the watch ends. Requests progress when idle, because a dead connection
    /// reports no error.
    async fn listen(&self, session: &mut Session<'_>) -> End {
        let timeout_ms = self.link.settings.timeout_ms();
        let idle_timeout =
            (self.link.settings.timeout / 2).clamp(Duration::from_millis(100), Duration::from_secs(5));
        let mut requested_at: Option<Tick> = Some(self.link.clock.tick());
        loop {
            match tokio::time::timeout(idle_timeout, session.stream.message()).await {
                Ok(Ok(Some(answer))) => {
                    requested_at = None;
                    if let Err(end) = self.handle_response(&answer, session) {
                        return end;
                    }
                }
                Ok(Ok(None)) => return End::Broken("etcd ended the watch".to_owned()),
                Ok(Err(error)) => return End::Broken(self.link.fault(&error).error.to_string()),
                Err(_) => {
                    let now = self.link.clock.tick();
                    match requested_at {
                        Some(since) if now.since(since) >= timeout_ms => {
                            return End::Broken(EtcdError::no_answer(timeout_ms).error.to_string());
                        }
                        Some(_) => {}
                        None => {
                            let sent =
                                tokio::time::timeout(idle_timeout, session.stream.request_progress()).await;
                            if !matches!(sent, Ok(Ok(()))) {
                                return End::Broken("the watch accepts no more requests".to_owned());
                            }
                            requested_at = Some(now);
                        }
                    }
                }
            }
        }
    }

    fn handle_response(&self, answer: &WatchResponse, session: &mut Session<'_>) -> Result<(), End> {
        if answer.compact_revision() > 0 {
            return Err(End::Lost);
        }
        if answer.canceled() || answer.created() {
            session.unanswered = session.unanswered.saturating_sub(usize::from(answer.created()));
            if !answer.canceled() {
                // A store restored from a backup has a lower revision and would send nothing
                // until it catches up.
                let now = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
                if session.start > now.saturating_add(1) {
                    return Err(End::Lost);
                }
                session.confirmed = true;
            } else if !answer.created() || (session.unanswered == 0 && !session.confirmed) {
                let reason = answer.cancel_reason();
                let reason = if reason.is_empty() {
                    "etcd gave no reason"
                } else {
                    reason
                };
                return Err(End::Broken(format!("etcd refused the watch: {reason}")));
            }
            if session.unanswered == 0 {
                session.hints.state(WatchState::Live);
                if session.relist {
                    session.hints.relist();
                }
            }
        }
        for event in answer.events() {
            self.hint(event, session.hints);
        }
        Ok(())
    }

    /// A deletion names no lease, so the previous value of the key determines its lock.
    fn hint(&self, event: &Event, hints: &Hints) {
        let Some(kv) = event.kv() else { return };
        if kv.key().len() > RESOURCE_BYTES_MAX {
            return;
        }
        let before = event.prev_kv();
        let deleted = matches!(event.event_type(), EventType::Delete);
        let leases = [
            (!deleted || before.is_none()).then(|| kv.lease()),
            before.map(etcd_client::KeyValue::lease),
        ];
        let Some(prefix) = self
            .link
            .settings
            .prefixes
            .iter()
            .find(|prefix| kv.key().starts_with(prefix))
        else {
            return;
        };
        let mut last = None;
        for lease in leases.into_iter().flatten() {
            let name = record::name(kv.key(), lease, prefix);
            if last.as_ref() != Some(&name) {
                hints.changed(name.0.clone(), name.1.clone());
                last = Some(name);
            }
        }
    }
}
