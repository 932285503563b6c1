//! LISTEN: hints, and the gap over a restart.

use std::time::Duration;

use ::backends::change_notification::Pending;
use ::backends::postgres::PostgresBackend;
use ::backends::{Backend, Hints};
use domain::backend::WatchState;

use super::watched_postgres::*;

const LIMIT: Duration = Duration::from_secs(30);

/// Collects change notifications until they satisfy `enough`.
async fn gather(hints: &Hints, what: &str, enough: impl Fn(&Pending) -> bool) -> Pending {
    let mut all = Pending::default();
    let gathered = tokio::time::timeout(LIMIT, async {
        while !enough(&all) {
            let more = hints.take().await;
            all.relist |= more.relist;
            all.names.extend(more.names);
            all.state = more.state.or(all.state.take());
        }
    });
    gathered.await.unwrap_or_else(|_| panic!("{what}: {all:?}"));
    all
}

/// Watches until a notification on the channel `locks` of the table `public.distributed_locks` has come through.
pub(super) async fn hears(backend: &PostgresBackend, url: &str) {
    let hints = Hints::default();
    let mut user = user(url).await;
    let heard = async {
        let up = gather(&hints, "live", |all| all.state == Some(WatchState::Live)).await;
        assert!(up.relist, "notifications before LISTEN are lost: {up:?}");
        run(&mut user, "NOTIFY locks, 'billing'").await;
        let named = gather(&hints, "a name", |all| !all.names.is_empty()).await;
        assert!(
            named
                .names
                .contains(&id("table:public.distributed_locks", "billing")),
            "{named:?}"
        );
    };
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        () = heard => {}
    }
}

#[tokio::test]
async fn notifications_name_locks_and_a_restart_resyncs() {
    // A name, an empty payload, silence over a restart, and names again afterwards; a channel with odd letters.
    let server = server().await;
    let mut table = common("distributed_locks");
    table.notify = Some("locks".to_owned());
    let mut odd = common("other");
    odd.notify = Some("Odd \"channel\"".to_owned());
    let backend = backend(&server.superuser_url(), vec![table, odd]);
    hears(&backend, &server.superuser_url()).await;
    let hints = Hints::default();
    let story = async {
        gather(&hints, "live", |all| all.state == Some(WatchState::Live)).await;
        let mut session = user(&server.superuser_url()).await;
        run(&mut session, "NOTIFY locks").await;
        gather(&hints, "an empty payload is a relist", |all| all.relist).await;
        run(&mut session, "NOTIFY \"Odd \"\"channel\"\"\", 'x'").await;
        let odd = gather(&hints, "the odd channel", |all| !all.names.is_empty()).await;
        assert!(odd.names.contains(&id("table:public.other", "x")), "{odd:?}");

        server.stop().await.unwrap();
        let down = gather(&hints, "down", |all| {
            matches!(all.state, Some(WatchState::Reconnecting { .. }))
        })
        .await;
        assert!(!down.relist, "{down:?}");
        server.restart().await.unwrap();
        let mut session = user(&server.superuser_url()).await;
        run(&mut session, "NOTIFY locks, 'lost in the gap'").await;
        let up = gather(&hints, "up again", |all| all.state == Some(WatchState::Live)).await;
        assert!(up.relist, "{up:?}");
        run(&mut session, "NOTIFY locks, 'heard'").await;
        gather(&hints, "heard again", |all| {
            all.names.contains(&id("table:public.distributed_locks", "heard"))
        })
        .await;
    };
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        () = story => {}
    }
}

#[tokio::test]
async fn without_a_channel_the_watch_is_off() {
    // No server is needed for this check.
    let backend = backend("postgres://u@127.0.0.1:1/db", vec![common("distributed_locks")]);
    let hints = Hints::default();
    backend.watch(hints.clone()).await;
    let taken = hints.take().await;
    assert!(
        matches!(&taken.state, Some(WatchState::Off { why }) if why.contains("trigger")),
        "{taken:?}"
    );
}
