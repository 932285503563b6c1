//! Keyspace notifications: changes while they arrive, a resync after each gap, and the reported reason when there are
//! none.

use std::collections::HashSet;
use std::time::Duration;

use ::backends::change_notification::NAMES_MAX;
use ::backends::redis::RedisBackend;
use ::backends::{Backend, Hints};
use ::testkit::Redis;
use domain::backend::WatchState;
use domain::names::Resource;

use super::{Seen, Setup, driver, hash, key, observe, run, start, start_with};
use crate::support::proxy::{Link, Proxy};
use testkit::eventually;

/// Runs `work` while `backend` watches.
async fn watching<T>(backend: &RedisBackend, work: impl AsyncFnOnce(&Hints) -> T) -> T {
    let hints = Hints::default();
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        done = work(&hints) => done,
    }
}

/// Receives change notifications until one satisfies `wanted`.
async fn until(
    hints: &Hints,
    what: &str,
    mut wanted: impl FnMut(&backends::change_notification::Pending) -> bool,
) {
    let found = async { while !wanted(&hints.take().await) {} };
    tokio::time::timeout(Duration::from_secs(30), found)
        .await
        .unwrap_or_else(|_| panic!("never came: {what}"));
}

async fn until_live(hints: &Hints) {
    until(hints, "live", |pending| pending.state == Some(WatchState::Live)).await;
}

async fn notifying(flags: &str) -> Redis {
    start_with(|options| options.notify_keyspace_events = Some(flags.to_owned())).await
}

fn names(pending: &backends::change_notification::Pending, name: &str) -> bool {
    pending
        .names
        .iter()
        .any(|(_, resource)| *resource == Resource::from(name))
}

#[tokio::test]
async fn changes_are_notified_by_name_for_each_setting() {
    // Key channels, event channels, and both; strings, hashes, deletions; no other keys.
    for flags in ["Kg$hxe", "Eg$hxe", "KEA"] {
        let redis = notifying(flags).await;
        let mut driver = driver(&redis).await;
        let backend = Setup::new(&redis.url()).backend();
        watching(&backend, async |hints| {
            until_live(hints).await;
            let mut strange = false;
            for (command, name) in [
                (vec!["SET", "lock:a", "x", "PX", "60000"], "lock:a"),
                (vec!["PEXPIRE", "lock:a", "90000"], "lock:a"),
                (vec!["HSET", "lock:h", "f", "1"], "lock:h"),
                (vec!["DEL", "lock:a"], "lock:a"),
                (vec!["HDEL", "lock:h", "f"], "lock:h"),
                (vec!["SET", "lock:brief", "x", "PX", "5"], "lock:brief"),
            ] {
                run(&mut driver, &["SET", "cache:a", "x"]).await;
                run(&mut driver, &command).await;
                until(hints, &format!("{command:?} with {flags}"), |pending| {
                    strange |= names(pending, "cache:a");
                    names(pending, name)
                })
                .await;
            }
            assert!(!strange, "a key of no pattern was hinted");
        })
        .await;
        let watch = backend
            .capabilities()
            .into_iter()
            .find(|can| can.name == "watch")
            .unwrap();
        assert!(watch.how.contains("notifications"), "{watch:?}");
    }
}

#[tokio::test]
async fn a_notification_refreshes_the_key_in_its_source() {
    // A notification lacks the type: the refresh reads it, and reports the source that no longer has the name.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
    run(
        &mut driver,
        &["HSET", "lock:h", "285475da-9152-4c83-822a-67ee2f116a79:52", "1"],
    )
    .await;
    let backend = Setup::new(&redis.url()).backend();
    let requested: Vec<_> = ["lock:a", "lock:h", "lock:none"]
        .map(|name| (key(), Resource::from(name)))
        .into();
    let mut observed = Seen::default();
    backend.refresh(&requested, &mut observed).await.unwrap();
    assert_eq!((observed.locks.len(), observed.batches), (2, 1));
    assert_eq!(
        (&observed.named("lock:a").source, &observed.named("lock:h").source),
        (&key(), &hash())
    );
    let gone = |source, name: &str| observed.gone.contains(&(source, Resource::from(name)));
    assert!(
        gone(hash(), "lock:a")
            && gone(key(), "lock:h")
            && gone(key(), "lock:none")
            && gone(hash(), "lock:none")
    );
    assert_eq!(observed.gone.len(), 7);
}

#[tokio::test]
async fn a_gap_in_the_subscription_leads_to_a_resync() {
    // Pub/sub loses messages during a disconnect: the server is killed and restarted ten times, and each time
    // a resync follows.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.append_only = true;
    })
    .await;
    let backend = Setup::new(&redis.url()).backend();
    watching(&backend, async |hints| {
        until_live(hints).await;
        for round in 0..10 {
            redis.kill().await.unwrap();
            until(hints, "reconnecting", |pending| {
                matches!(pending.state, Some(WatchState::Reconnecting { .. }))
            })
            .await;
            redis.restart().await.unwrap();
            let (mut live, mut relist) = (false, false);
            until(hints, &format!("live and relist, round {round}"), |pending| {
                live |= pending.state == Some(WatchState::Live);
                relist |= pending.relist;
                live && relist
            })
            .await;
        }
    })
    .await;
}

#[tokio::test]
async fn disabled_notifications_are_reported_until_they_are_enabled() {
    // Off is Redis's own default. The adapter checks again every 30 polls, here 1.2 s.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let backend = Setup::new(&redis.url()).backend();
    watching(&backend, async |hints| {
        until(hints, "off", |pending| {
            matches!(&pending.state, Some(WatchState::Off { why }) if why.contains("CONFIG SET notify-keyspace-events"))
        })
        .await;
        run(&mut driver, &["CONFIG", "SET", "notify-keyspace-events", "KEA"]).await;
        until_live(hints).await;
        run(&mut driver, &["CONFIG", "SET", "notify-keyspace-events", ""]).await;
        until(hints, "off again", |pending| matches!(pending.state, Some(WatchState::Off { .. }))).await;
    })
    .await;
}

#[tokio::test]
async fn with_an_unreadable_setting_the_first_message_decides() {
    // CONFIG GET refused: until the first notification, it is unknown whether they are enabled.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.acl_users = vec!["watcher on >pw ~lock:* resetchannels &__keyspace@0__:lock:* &__keyevent@0__:* -@all +psubscribe +ping".to_owned()];
    })
    .await;
    let backend = Setup::new(&redis.url_for("watcher", "pw")).backend();
    watching(&backend, async |hints| {
        until(
            hints,
            "not known",
            |pending| matches!(&pending.state, Some(WatchState::Off { why }) if why.contains("not known")),
        )
        .await;
        run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
        until_live(hints).await;
    })
    .await;
}

#[tokio::test]
async fn an_account_without_subscribe_gets_the_grant_as_remedy() {
    // Channels are granted apart from keys.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.acl_users = vec!["watcher on >pw ~lock:* resetchannels +@all".to_owned()];
    })
    .await;
    let backend = Setup::new(&redis.url_for("watcher", "pw")).backend();
    watching(&backend, async |hints| {
        until(hints, "off", |pending| {
            matches!(&pending.state, Some(WatchState::Off { why }) if why.contains("&__keyspace@0__:lock:*"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_late_expiry_is_found_by_the_scan() {
    // Redis sends `expired` when it deletes the key, not when its time is up. Active expiry is switched off, so no
    // event comes by itself: the scan shows no key all the same.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.config = vec!["enable-debug-command local".to_owned()];
    })
    .await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).await;
    run(&mut driver, &["SET", "lock:a", "x", "PX", "400"]).await;
    run(&mut driver, &["SET", "lock:b", "x"]).await;
    let backend = Setup::new(&redis.url()).backend();
    eventually("only the other lock is shown as held", async || {
        let (_, seen) = observe(&backend).await;
        seen.has("lock:b") && !seen.has("lock:a")
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_notifications_becomes_a_resync() {
    // The number of pending names is bounded; beyond it, a resync is requested instead.
    let redis = notifying("KEA").await;
    let mut driver = driver(&redis).await;
    let backend = Setup::new(&redis.url()).backend();
    watching(&backend, async |hints| {
        until_live(hints).await;
        // Takes what was hinted when the watch began.
        run(&mut driver, &["SET", "lock:before", "x"]).await;
        until(hints, "the one before", |pending| names(pending, "lock:before")).await;
        let script = "for i=1,20000 do redis.call('SET','lock:'..i,'x') end";
        run(&mut driver, &["EVAL", script, "0"]).await;
        let mut named = HashSet::new();
        until(hints, "a relist or every name", |pending| {
            assert!(pending.names.len() <= NAMES_MAX);
            named.extend(pending.names.iter().cloned());
            pending.relist || named.len() == 20_000
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_silent_watch_reconnects() {
    // A half-open link: no error, no data. The watch sends a ping every 5 polls.
    let redis = notifying("KEA").await;
    let proxy = Proxy::start(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}/", proxy.port());
    let backend = Setup::new(&url).timeout(Duration::from_millis(300)).backend();
    watching(&backend, async |hints| {
        until_live(hints).await;
        proxy.set(Link::Blackhole).await;
        until(hints, "reconnecting", |pending| {
            matches!(pending.state, Some(WatchState::Reconnecting { .. }))
        })
        .await;
        proxy.set(Link::Cut).await;
        proxy.set(Link::Pass).await;
        until_live(hints).await;
    })
    .await;
}
