//! Grants to waiters are recorded with the length of the wait, on both stores.

use std::time::Duration;

use ::lease::{Acquired, LeaseCaller, LeasePrincipal};
use domain::generation::Generation;
use domain::history::HistoryEvent;
use domain::history::series::{HistorySpan, PrefixSeries};
use domain::lease::Scope;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, OwnerId, Resource};
use domain::observation::{InLine, ObservedLock};
use domain::reported::Reported;

use super::recorder::{HistoryStore, Server, backend, lock};
use super::rollups::acquire;
use testkit::eventually;

/// Held by `owner`; `line` are the waiters, each with its waiting time if known.
fn with_line(name: &str, owner: &str, line: &[(&str, Option<i64>)]) -> ObservedLock {
    ObservedLock {
        waiter_count: Reported::Value(u32::try_from(line.len()).unwrap()),
        line: line
            .iter()
            .map(|(who, waited_ms)| InLine {
                generation: Generation::new(*who),
                waited_ms: *waited_ms,
                identity: None,
            })
            .collect(),
        ..lock(name, owner)
    }
}

async fn events(server: &Server, backend: &BackendName, name: &str) -> Vec<HistoryEvent> {
    let name = Resource::from(name);
    let of = server.history.events_of(backend, None, &name, (0, i64::MAX), 100);
    of.await.unwrap()
}

fn waits(events: &[HistoryEvent]) -> Vec<(Option<&str>, i64)> {
    let granted = events
        .iter()
        .filter(|event| event.kind == EventKind::GrantedAfterWait);
    granted
        .map(|event| {
            (
                event.owner.as_ref().map(OwnerId::as_str),
                event.waited_ms.unwrap(),
            )
        })
        .collect()
}

async fn seen_in_line(home: HistoryStore) {
    // Two wait for w1's lock; the second acquires it. Then an owner that never waited acquires it.
    let server = Server::start(&home).await;
    let line = [("w2", Some(90_000)), ("w3", Some(60_000))];
    server.saw(vec![with_line("jobs/1", "w1", &line), lock("jobs/2", "w1")]);
    server.saw(vec![with_line("jobs/1", "w3", &line[..1]), lock("jobs/2", "w9")]);
    server.saw(vec![with_line("jobs/1", "w4", &[]), lock("jobs/2", "w9")]);
    // Grants: w1, w3 and its wait, w4; w1, w9. Ends: w1, w3; w1.
    server.written(&home, 9).await;
    let of = events(&server, &backend(), "jobs/1").await;
    let recorded = waits(&of);
    assert_eq!(recorded.len(), 1, "{of:?}");
    assert_eq!(recorded[0].0, Some("w3"));
    assert!((60_000..120_000).contains(&recorded[0].1), "{recorded:?}");
    let grants = of.iter().filter(|event| event.kind == EventKind::Acquired);
    assert_eq!(grants.count(), 3, "a wait is recorded in addition to its grant");
    assert!(waits(&events(&server, &backend(), "jobs/2").await).is_empty());
    let recorded = server.recorded("jobs/1").await;
    assert!(
        recorded.contains(&(EventKind::GrantedAfterWait, Some("w3".to_owned()))),
        "{recorded:?}"
    );
    server.stopped().await;
}

#[tokio::test]
async fn an_observed_waiter_is_granted_after_wait_on_sqlite() {
    // Detects a wait lost between the diff and the row, and a grant recorded without its wait.
    Box::pin(seen_in_line(HistoryStore::sqlite())).await;
}

#[tokio::test]
async fn an_observed_waiter_is_granted_after_wait_on_postgres() {
    // As above: the column exists in both stores.
    Box::pin(seen_in_line(HistoryStore::postgres().await)).await;
}

#[tokio::test]
async fn the_lease_service_reports_each_wait_exactly_once() {
    // a holds; b and c wait, and c times out. Detects a timed-out wait recorded as a grant, one recorded twice, and a
    // histogram of waits that counts the grant again.
    let home = HistoryStore::sqlite();
    let server = Server::start(&home).await;
    let Acquired::Granted { lease, .. } = acquire(&server, "a", Duration::ZERO).await else {
        panic!("it is free");
    };
    let line = async {
        eventually("b is queued", async || server.leases.waiters() == 1).await;
        let in_vain = acquire(&server, "c", Duration::from_secs(1)).await;
        assert!(matches!(in_vain, Acquired::Refused { .. }));
        let caller = LeaseCaller {
            principal: LeasePrincipal::new("test"),
            scope: Scope::everything(),
        };
        server.leases.release(&caller, lease.id).await.unwrap();
    };
    let (granted, ()) = tokio::join!(acquire(&server, "b", Duration::from_secs(30)), line);
    let Acquired::Granted { lease, .. } = granted else {
        panic!("the lease was released");
    };
    server.written(&home, 1).await;
    let of = events(&server, &BackendName::builtin(), "tenant_7:close").await;
    let recorded = waits(&of);
    assert_eq!((recorded.len(), recorded[0].0), (1, Some("b")));
    assert!(
        recorded[0].1 >= 1_000,
        "c waited a second meanwhile: {recorded:?}"
    );
    assert_eq!(of[0].token, Some(lease.token));
    server.stopped().await;
    // The sums once all is written: b's wait and c's, each once.
    let later = Server::start(&home).await;
    let now = later.clock.now().wall.timestamp_millis();
    let span = HistorySpan::new(now - 3_600_000, now + 60_000, now);
    let mut series = later.history.series(span).await.unwrap();
    let is_its = |of: &PrefixSeries| of.prefix == "tenant_*:close";
    let place = series.prefixes.iter().position(is_its).unwrap();
    later
        .history
        .load_histograms(&mut series, &[place])
        .await
        .unwrap();
    let total = &series.prefixes[place].total;
    assert_eq!((total.waits.count(), total.acquired, total.refused), (2, 2, 1));
    later.stopped().await;
}
