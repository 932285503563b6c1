//! Keyspace notifications: hints while they come, a re-list after each gap, and what is said when there are none.

use std::collections::HashSet;
use std::time::Duration;

use domain::backend::WatchState;
use domain::names::Resource;
use leasehold::backends::hint::NAMES_MAX;
use leasehold::backends::redis::RedisBackend;
use leasehold::backends::{Backend, Hints};
use leasehold::throwaway::Redis;

use super::{Seen, Setup, driver, hash, key, observe, run, start, start_with};
use crate::support::eventually::eventually;
use crate::support::proxy::{Link, Proxy};

/// Runs `work` while `backend` watches.
async fn watching<T>(backend: &RedisBackend, work: impl AsyncFnOnce(&Hints) -> T) -> T {
    let hints = Hints::default();
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        done = work(&hints) => done,
    }
}

/// Takes hints until one satisfies `wanted`.
async fn until(
    hints: &Hints,
    what: &str,
    mut wanted: impl FnMut(&leasehold::backends::hint::Pending) -> bool,
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

fn names(pending: &leasehold::backends::hint::Pending, name: &str) -> bool {
    pending
        .names
        .iter()
        .any(|(_, resource)| *resource == Resource::from(name))
}

#[tokio::test]
async fn what_changes_is_hinted_by_name_whatever_kind_of_notification_is_on() {
    // Keys' own channels, events' channels, and both; strings, hashes, deletions; nothing of other keys.
    for flags in ["Kg$hxe", "Eg$hxe", "KEA"] {
        let redis = notifying(flags).await;
        let mut driver = driver(&redis).await;
        let backend = Setup::of(&redis.url()).backend();
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
async fn a_hint_leads_to_the_one_key_in_its_right_source_or_to_its_end() {
    // A notification does not tell the type: refresh does, and says from which source the name is gone.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
    run(
        &mut driver,
        &["HSET", "lock:h", "285475da-9152-4c83-822a-67ee2f116a79:52", "1"],
    )
    .await;
    let backend = Setup::of(&redis.url()).backend();
    let asked: Vec<_> = ["lock:a", "lock:h", "lock:none"]
        .map(|name| (key(), Resource::from(name)))
        .into();
    let mut seen = Seen::default();
    backend.refresh(&asked, &mut seen).await.unwrap();
    assert_eq!((seen.locks.len(), seen.batches), (2, 1));
    assert_eq!(
        (&seen.named("lock:a").source, &seen.named("lock:h").source),
        (&key(), &hash())
    );
    let gone = |source, name: &str| seen.gone.contains(&(source, Resource::from(name)));
    assert!(
        gone(hash(), "lock:a")
            && gone(key(), "lock:h")
            && gone(key(), "lock:none")
            && gone(hash(), "lock:none")
    );
    assert_eq!(seen.gone.len(), 4);
}

#[tokio::test]
async fn a_gap_in_the_subscription_ends_in_a_relist() {
    // Pub/sub loses what happens meanwhile: restart it, change a key before the watch is back, and be told to list.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.append_only = true;
    })
    .await;
    let backend = Setup::of(&redis.url()).backend();
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
async fn notifications_that_are_off_are_said_to_be_with_the_mend_and_noticed_when_turned_on() {
    // Off is Redis's own default. The adapter asks again every 30 polls, here 1.2 s.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let backend = Setup::of(&redis.url()).backend();
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
async fn where_the_setting_may_not_be_asked_the_first_notification_tells() {
    // CONFIG GET refused: until something comes, it is not known whether anything will.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.acl_users = vec!["watcher on >pw ~lock:* resetchannels &__keyspace@0__:lock:* &__keyevent@0__:* -@all +psubscribe +ping".to_owned()];
    })
    .await;
    let backend = Setup::of(&redis.url_for("watcher", "pw")).backend();
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
async fn an_account_that_may_not_subscribe_is_told_what_to_grant() {
    // Channels are granted apart from keys.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.acl_users = vec!["watcher on >pw ~lock:* resetchannels +@all".to_owned()];
    })
    .await;
    let backend = Setup::of(&redis.url_for("watcher", "pw")).backend();
    watching(&backend, async |hints| {
        until(hints, "off", |pending| {
            matches!(&pending.state, Some(WatchState::Off { why }) if why.contains("&__keyspace@0__:lock:*"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn an_expiry_whose_event_is_late_is_seen_by_the_list_and_never_by_silence() {
    // Redis sends `expired` when it deletes the key, not when its time is up. Active expiry is switched off, so no
    // event comes by itself: the pass still shows the remaining time running down and then no key.
    let redis = start_with(|options| {
        options.notify_keyspace_events = Some("KEA".to_owned());
        options.config = vec!["enable-debug-command local".to_owned()];
    })
    .await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).await;
    run(&mut driver, &["SET", "lock:a", "x", "PX", "400"]).await;
    let backend = Setup::of(&redis.url()).backend();
    eventually("not shown as held", async || {
        !observe(&backend).await.1.has("lock:a")
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_notifications_is_bounded_and_loses_nothing() {
    // Never more names at once than are kept; beyond that, everything is listed instead.
    let redis = notifying("KEA").await;
    let mut driver = driver(&redis).await;
    let backend = Setup::of(&redis.url()).backend();
    watching(&backend, async |hints| {
        until_live(hints).await;
        // What was hinted when it began to watch is taken.
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
async fn a_watch_whose_link_goes_silent_notices_and_comes_back() {
    // A half-open link: nothing breaks, nothing comes. The watch asks every 5 polls whether anyone is there.
    let redis = notifying("KEA").await;
    let proxy = Proxy::start(redis.port()).await;
    let url = format!("redis://127.0.0.1:{}/", proxy.port());
    let backend = Setup::of(&url).timeout(Duration::from_millis(300)).backend();
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
