//! The recorder on both stores, fed through a real inventory.

use std::time::Duration;

use ::backends::Batch;
use ::config::HistoryConfig;
use domain::lock_detail::EventKind;

use super::recorder::{HistoryStore, Server, lock};
use crate::support::rng::Dice;
use testkit::eventually;

/// The recorded events of successive owners, with the gap between two processes.
fn handed_on() -> Vec<(EventKind, Option<String>)> {
    let of = |kind, owner: &str| (kind, Some(owner.to_owned()));
    vec![
        of(EventKind::Released, "w3"),
        of(EventKind::Acquired, "w3"),
        (EventKind::WatchedAgain, None),
        (EventKind::Unwatched, None),
        of(EventKind::Acquired, "w2"),
        of(EventKind::Released, "w1"),
        of(EventKind::Acquired, "w1"),
    ]
}

async fn outlives_its_process(home: HistoryStore) {
    // One process observes two owners and stops; an hour passes; the next observes a third acquire and release. The
    // name is not ASCII.
    let name = "jobs/\u{202e}é";
    let first = Server::start(&home).await;
    first.pass(&[(name, "w1")]);
    first.pass(&[(name, "w2"), ("other", "w9")]);
    first.written(&home, 4).await;
    first.stopped().await;
    // Rows and writer are an hour older than they were.
    home.sql(
        "UPDATE lock_events SET at = at - 3600000; UPDATE history_writer SET last_write_at = last_write_at - 3600000",
    )
    .await;
    let second = Server::start(&home).await;
    second.pass(&[(name, "w3")]);
    second.pass(&[]);
    second.written(&home, 6).await;
    assert_eq!(second.recorded(name).await, handed_on());
    assert_eq!(second.recorded("never").await, []);
    second.stopped().await;
}

#[tokio::test]
async fn history_survives_a_restart_with_a_gap_on_sqlite() {
    // The same scenario on this store.
    outlives_its_process(HistoryStore::sqlite()).await;
}

#[tokio::test]
async fn history_survives_a_restart_with_a_gap_on_postgres() {
    // The same scenario on this store.
    outlives_its_process(HistoryStore::postgres().await).await;
}

#[tokio::test]
async fn one_of_two_servers_writes_and_the_other_continues() {
    // Both observe the same; the writer stops after it has written its last observation; the other has observed more
    // and takes over. No event is duplicated or lost, and there is no gap.
    let home = HistoryStore::postgres().await;
    let (one, other) = (Server::start(&home).await, Server::start(&home).await);
    for server in [&one, &other] {
        server.pass(&[("r", "w1")]);
    }
    eventually("one has written", async || home.count().await == 1).await;
    one.stopped().await;
    other.pass(&[("r", "w2")]);
    eventually("the other has taken over", async || home.count().await >= 3).await;
    let recorded = other.recorded("r").await;
    let recorded: Vec<_> = recorded
        .iter()
        .map(|(kind, owner)| (*kind, owner.as_deref()))
        .collect();
    assert_eq!(
        recorded,
        [
            (EventKind::Acquired, Some("w2")),
            (EventKind::Released, Some("w1")),
            (EventKind::Acquired, Some("w1"))
        ]
    );
    other.stopped().await;
    assert_eq!(home.count().await, 3);
}

#[tokio::test]
async fn a_writer_without_the_leader_lease_writes_nothing() {
    // The store has a later fencing token, as after a pause: events with the earlier one are not written.
    let home = HistoryStore::postgres().await;
    let server = Server::start(&home).await;
    server.pass(&[("r", "w1")]);
    eventually("it writes", async || home.count().await == 1).await;
    home.sql("UPDATE history_writer SET fencing_token = 1000000")
        .await;
    server.pass(&[("r", "w2")]);
    server.stopped().await;
    assert_eq!(home.count().await, 1);
}

#[tokio::test]
async fn changes_that_could_not_be_written_are_kept_for_the_next_term() {
    // The server finds a newer leader while it writes, and leads again when that one is gone.
    let home = HistoryStore::postgres().await;
    let server = Server::start(&home).await;
    server.pass(&[("r", "w1")]);
    eventually("it writes", async || home.count().await == 1).await;
    home.sql("UPDATE history_writer SET fencing_token = 1000000")
        .await;
    server.pass(&[("r", "w2")]);
    let resigned = "SELECT count(*) FROM leases WHERE ended_how = 'released'";
    eventually("it has resigned", async || home.number(resigned).await > 0).await;
    home.sql("UPDATE history_writer SET fencing_token = 0").await;
    eventually("both changes are written", async || home.count().await == 3).await;
    server.stopped().await;
}

#[tokio::test]
async fn a_failed_write_loses_no_change_of_an_earlier_reading() {
    // A page that was requested before the last write arrives after it, and the store refuses its first write.
    let home = HistoryStore::postgres().await;
    let server = Server::start(&home).await;
    let sent_at = server.clock.tick();
    server.pass(&[("r", "w1")]);
    server.written(&home, 1).await;
    home.sql(
        "CREATE SEQUENCE attempts;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM nextval('attempts'); RAISE EXCEPTION 'refused';
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON lock_events FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .await;
    server.feed.accept(Batch {
        sent_at,
        locks: vec![lock("late", "w2")],
        gone: Vec::new(),
    });
    let attempts = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM attempts";
    eventually("a write was refused", async || home.number(attempts).await > 0).await;
    home.sql("DROP TRIGGER refuse ON lock_events").await;
    server.written(&home, 2).await;
    server.stopped().await;
}

#[tokio::test]
async fn a_lost_lead_loses_no_change_of_an_earlier_reading() {
    // A page that was requested before the last write arrives while the server cannot lead. No other server writes.
    let home = HistoryStore::postgres().await;
    let server = Server::start(&home).await;
    let sent_at = server.clock.tick();
    server.pass(&[("r", "w1")]);
    server.written(&home, 1).await;
    home.sql("UPDATE history_writer SET fencing_token = 1000000")
        .await;
    server.feed.accept(Batch {
        sent_at,
        locks: vec![lock("late", "w2")],
        gone: Vec::new(),
    });
    server.failed_terms(&home).await;
    home.sql("UPDATE history_writer SET fencing_token = 0").await;
    eventually("the change is written", async || {
        !server.recorded("late").await.is_empty()
    })
    .await;
    server.stopped().await;
}

#[tokio::test]
async fn changes_dropped_while_no_server_led_leave_a_gap() {
    // The store accepts no write for longer than a server keeps its changes: one of them is dropped.
    let home = HistoryStore::postgres().await;
    let server = Server::start(&home).await;
    server.pass(&[("r", "w1")]);
    server.written(&home, 1).await;
    home.sql("UPDATE history_writer SET fencing_token = 1000000")
        .await;
    server.pass(&[("r", "w1"), ("dropped", "w9")]);
    server.clock.advance(Duration::from_secs(90));
    server.failed_terms(&home).await;
    home.sql("UPDATE history_writer SET fencing_token = 0").await;
    server.pass(&[("r", "w2"), ("dropped", "w9")]);
    // The first write of the new term has the gap; the list of a lock has its ends too.
    eventually("the next change is written", async || {
        let recorded = server.recorded("r").await;
        recorded.contains(&(EventKind::Acquired, Some("w2".to_owned())))
    })
    .await;
    assert_eq!(server.recorded("dropped").await, []);
    let gaps = "SELECT count(*) FROM history_gaps WHERE backend IS NULL AND ended_at > started_at";
    assert_eq!(home.number(gaps).await, 1);
    server.stopped().await;
}

async fn stores_other_events_with_a_long_name(home: HistoryStore) {
    // A name that no index entry of Postgres can contain, because it cannot be compressed.
    let mut dice = Dice::new(1);
    let long: String = (0..2_000).map(|_| format!("{:016x}", dice.number())).collect();
    let server = Server::start(&home).await;
    server.pass(&[(long.as_str(), "w1"), ("r", "w1")]);
    server.written(&home, 1).await;
    server.pass(&[("r", "w2")]);
    server.written(&home, 3).await;
    assert_eq!(server.recorded("r").await.len(), 3);
    assert_eq!(server.recorded(&long).await, []);
    server.stopped().await;
}

#[tokio::test]
async fn a_long_name_stops_no_recording_on_sqlite() {
    // The same scenario on this store.
    stores_other_events_with_a_long_name(HistoryStore::sqlite()).await;
}

#[tokio::test]
async fn a_long_name_stops_no_recording_on_postgres() {
    // The same scenario on this store.
    stores_other_events_with_a_long_name(HistoryStore::postgres().await).await;
}

#[tokio::test]
async fn old_events_are_deleted_in_batches() {
    // 12,000 rows of last week, more than one step deletes, and one of now.
    let home = HistoryStore::sqlite();
    home.sql(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
        INSERT INTO lock_events (at, kind, backend, source, resource)
        SELECT i, 'acquired', 'cache', 'key', CAST('old' AS BLOB) FROM n",
    )
    .await;
    let keep = HistoryConfig {
        retention: Duration::from_secs(3600),
        ..HistoryConfig::default()
    };
    let server = Server::keeping(&home, keep).await;
    server.pass(&[("r", "w1")]);
    eventually("only the new one is left", async || home.count().await == 1).await;
    assert_eq!(server.recorded("r").await.len(), 1);
    assert_eq!(server.recorded("old").await, []);
    server.stopped().await;
}

#[tokio::test]
async fn unused_ids_count_as_no_events() {
    // Many runs of renewals have used up ids between two rows of today; a gap of 1970, which is deleted last, shows that
    // the step has run.
    let home = HistoryStore::postgres().await;
    home.sql(
        "INSERT INTO lock_events (at, kind, backend, source, resource)
        VALUES (extract(epoch FROM now()) * 1000, 'acquired', 'cache', 'key', 'first');
        SELECT setval(pg_get_serial_sequence('lock_events', 'id'), 30000000);
        INSERT INTO lock_events (at, kind, backend, source, resource)
        VALUES (extract(epoch FROM now()) * 1000, 'acquired', 'cache', 'key', 'second');
        INSERT INTO history_gaps (started_at, ended_at, events_lost) VALUES (1, 2, 0)",
    )
    .await;
    let server = Server::start(&home).await;
    let old = "SELECT count(*) FROM history_gaps WHERE ended_at = 2";
    eventually("the old gap is deleted", async || home.number(old).await == 0).await;
    server.stopped().await;
    assert_eq!(home.count().await, 2);
}

#[tokio::test]
async fn ten_thousand_changes_at_once_are_all_written() {
    // More than one statement inserts; half of them are released again.
    let home = HistoryStore::sqlite();
    let server = Server::start(&home).await;
    let names: Vec<String> = (0..10_000).map(|number| format!("jobs/{number}")).collect();
    let all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "w")).collect();
    server.pass(&all);
    server.pass(&all[..5_000]);
    eventually("all are written", async || home.count().await == 15_000).await;
    assert_eq!(server.recorded("jobs/9999").await.len(), 2);
    server.stopped().await;
}
