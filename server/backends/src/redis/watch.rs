//! Change notifications from keyspace events. They are lost while disconnected and late for
//! expiries, so each reconnect requests a resync and silence proves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{ErrorKind, PushInfo, PushKind, RedisError, ServerErrorKind, Value};
use domain::backend::WatchState;
use domain::names::{Resource, Source};
use tokio::sync::Notify;

use super::error;
use super::keyspace_notifications::{Filter, NotificationSetting, RECOMMENDED_FLAGS};
use super::limits::{BACKOFF_FIRST, BACKOFF_MAX, PING_POLLS, RECHECK_POLLS};
use super::node::Node;
use super::server_info::text;
use super::settings::Settings;
use crate::part_hints::PartHints;

const SETTING_UNREADABLE: &str = "subscribed, but whether the server sends keyspace notifications is not known: this account may \
    not run CONFIG GET, and no notification has come yet";

/// How the watch on one connection ended.
enum End {
    /// The connection failed, or could not be opened.
    Lost(String),
    /// Connected, but no notifications are enabled.
    Off(String),
    /// The server's setting changed.
    Changed,
}

/// Where the notifications of one server go.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    pub(super) settings: &'a Settings,
    pub(super) node: &'a Node,
    /// Source of its locks, as far as the key tells.
    pub(super) source: &'a Source,
}

/// Watches one server; never returns. See [`crate::Backend::watch`].
pub(super) async fn run(watched: Watched<'_>, hints: PartHints) {
    let Watched { settings, node, .. } = watched;
    let mut backoff = BACKOFF_FIRST;
    let mut lost_since = None;
    let mut logged_state = None;
    loop {
        let subscriber = Arc::new(Subscriber::new(watched, &hints));
        let end = session(watched, &hints, &subscriber).await;
        if subscriber.subscribed.load(Ordering::Relaxed) {
            (backoff, lost_since, logged_state) = (BACKOFF_FIRST, None, None);
        }
        let (state, pause) = match end {
            End::Changed => continue,
            End::Off(why) => {
                lost_since = None;
                (WatchState::Off { why }, settings.poll_interval * RECHECK_POLLS)
            }
            End::Lost(why) => {
                let since = *lost_since.get_or_insert_with(|| settings.clock.now().wall);
                let pause = backoff;
                backoff = (backoff * 2).min(BACKOFF_MAX);
                (WatchState::Reconnecting { since, why }, pause)
            }
        };
        if logged_state.as_ref() != Some(&state) {
            log_once(
                node,
                match &state {
                    WatchState::Off { why } | WatchState::Reconnecting { why, .. } => why,
                    WatchState::Live => "",
                },
            );
            hints.state(state.clone());
            logged_state = Some(state);
        }
        tokio::time::sleep(pause).await;
    }
}

/// State updated by the connection's own task.
struct Subscriber {
    hints: PartHints,
    filter: Filter,
    source: Source,
    /// Set while it is unknown whether notifications will arrive.
    doubtful: AtomicBool,
    subscribed: AtomicBool,
    broken: Notify,
}

impl Subscriber {
    fn new(watched: Watched<'_>, hints: &PartHints) -> Self {
        Self {
            hints: hints.clone(),
            filter: Filter::new(watched.node.target.database, &watched.settings.patterns),
            source: watched.source.clone(),
            doubtful: AtomicBool::new(false),
            subscribed: AtomicBool::new(false),
            broken: Notify::new(),
        }
    }

    /// Fast: it runs between two messages. [`Hints`] limits the number of names.
    fn on_push(&self, push: &PushInfo) {
        match (&push.kind, push.data.as_slice()) {
            (PushKind::Disconnection, _) => self.broken.notify_one(),
            (PushKind::PMessage, [_, Value::BulkString(channel), Value::BulkString(payload)]) => {
                if self.doubtful.swap(false, Ordering::Relaxed) {
                    self.hints.state(WatchState::Live);
                }
                if let Some(key) = self.filter.key(channel, payload) {
                    // The message does not contain the key's type; `refresh` finds its source.
                    self.hints.changed(self.source.clone(), Resource::from_bytes(key));
                }
            }
            _ => {}
        }
    }
}

async fn session(watched: Watched<'_>, hints: &PartHints, subscriber: &Arc<Subscriber>) -> End {
    let Watched { settings, node, .. } = watched;
    let listener = Arc::clone(subscriber);
    let push = move |info: PushInfo| -> Result<(), ::redis::aio::SendError> {
        listener.on_push(&info);
        Ok(())
    };
    let connecting = node.target.connect_pushing(push);
    let connection = match tokio::time::timeout(node.target.timeout, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) if error.kind() == ErrorKind::RESP3NotSupported => {
            return End::Off("the server is older than Redis 6; polling finds changes".to_owned());
        }
        Ok(Err(error)) => return End::Lost(error::connecting(&error, &node.target).to_string()),
        Err(_) => return End::Lost(error::no_answer(node.target.timeout).to_string()),
    };
    let mut requests = connection.requests.clone();
    let (setting, flags) = match setting(&mut requests).await {
        Ok(found) => found,
        Err(error) => return lost(node, &error),
    };
    if setting == NotificationSetting::Off {
        return End::Off(format!(
            "keyspace notifications are off on this server (notify-keyspace-events is \"{flags}\"); polling finds \
             changes. To turn them on: CONFIG SET notify-keyspace-events {RECOMMENDED_FLAGS}"
        ));
    }
    subscriber
        .doubtful
        .store(setting == NotificationSetting::Unknown, Ordering::Relaxed);
    for channel in setting.channels(node.target.database, &settings.patterns) {
        match requests.psubscribe(&channel).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => {
                return End::Off(format!(
                    "this account may not subscribe to {channel}; polling finds changes. To allow it: \
                     ACL SETUSER … +psubscribe &{channel}"
                ));
            }
            Err(error) => return lost(node, &error),
        }
    }
    subscriber.subscribed.store(true, Ordering::Relaxed);
    if setting == NotificationSetting::Unknown {
        log_once(node, SETTING_UNREADABLE);
        hints.state(WatchState::Off {
            why: SETTING_UNREADABLE.to_owned(),
        });
    } else {
        log_once(node, &described(setting, &flags));
        hints.state(WatchState::Live);
    }
    // Changes before this moment were missed.
    hints.relist();
    listen(watched, requests, (setting, flags), subscriber).await
}

/// Until the connection fails or the server's setting changes.
async fn listen(
    watched: Watched<'_>,
    mut connection: MultiplexedConnection,
    expected: (NotificationSetting, String),
    subscriber: &Subscriber,
) -> End {
    let mut pings: u32 = 0;
    loop {
        tokio::select! {
            () = subscriber.broken.notified() => return End::Lost("the connection broke".to_owned()),
            () = tokio::time::sleep(pause(watched.settings.poll_interval)) => {}
        }
        pings += 1;
        // CONFIG GET tests the connection as well as PING does; a refusal is a response too.
        let alive = if pings.is_multiple_of(RECHECK_POLLS / PING_POLLS) {
            setting(&mut connection).await.map(|now| now == expected)
        } else {
            match ::redis::cmd("PING").query_async::<Value>(&mut connection).await {
                Err(error) if !error::is_answer(&error) => Err(error),
                Ok(_) | Err(_) => Ok(true),
            }
        };
        match alive {
            Ok(true) => {}
            Ok(false) => return End::Changed,
            Err(error) => return lost(watched.node, &error),
        }
    }
}

fn pause(poll: Duration) -> Duration {
    poll * PING_POLLS
}

/// The server's notification setting; a refused read is a valid result.
async fn setting(
    connection: &mut MultiplexedConnection,
) -> Result<(NotificationSetting, String), RedisError> {
    let mut ask = ::redis::cmd("CONFIG");
    ask.arg("GET").arg("notify-keyspace-events");
    match ask.query_async::<Value>(connection).await {
        Ok(answer) => {
            let flags = match &answer {
                Value::Map(pairs) => pairs.first().and_then(|(_, flags)| text(flags)),
                Value::Array(parts) => parts.get(1).and_then(text),
                _ => None,
            };
            Ok(
                flags.map_or((NotificationSetting::Unknown, String::new()), |flags| {
                    (NotificationSetting::parse(flags), flags.to_owned())
                }),
            )
        }
        // Refused, or a service without CONFIG.
        Err(error) if matches!(error.kind(), ErrorKind::Server(kind) if kind != ServerErrorKind::BusyLoading) => {
            Ok((NotificationSetting::Unknown, String::new()))
        }
        Err(error) => Err(error),
    }
}

fn described(setting: NotificationSetting, flags: &str) -> String {
    let how = match setting {
        NotificationSetting::Keyspace => "keyspace notifications, filtered by the server",
        _ => "keyevent notifications of the whole database, filtered here",
    };
    match NotificationSetting::missing_flags(flags).as_str() {
        "" => how.to_owned(),
        missing => {
            format!("{how}; classes {missing} are not sent, so some changes are found by polling only")
        }
    }
}

fn lost(node: &Node, error: &RedisError) -> End {
    End::Lost(error::mapped(error, node.target.timeout).to_string())
}

fn log_once(node: &Node, text: &str) {
    text.clone_into(&mut node.watching.lock());
}
