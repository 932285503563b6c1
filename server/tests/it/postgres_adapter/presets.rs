//! ShedLock and Liquibase tables as those tools make them.

use ::backends::Backend;
use ::config::postgres::LeaseTablePreset;
use domain::observation::Lifetime;
use domain::reported::Reported;
use domain::safety::SafetyClass;

use super::watched_postgres::*;

#[tokio::test]
async fn shedlock_times_are_utc_and_an_expired_row_is_free() {
    // The database lives in another time zone; ShedLock writes timezone('utc', now()) into timestamps without zone.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, "ALTER DATABASE postgres SET timezone = 'Asia/Tokyo'").await;
    run(
        &mut user,
        "CREATE TABLE shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP NOT NULL,
        locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)",
    )
    .await;
    run(&mut user, "INSERT INTO shedlock VALUES
        ('report', timezone('utc', now()) + interval '60 s', timezone('utc', now()) - interval '30 s', 'host-1'),
        ('done', timezone('utc', now()) - interval '1 s', timezone('utc', now()) - interval '30 s', 'host-1')").await;
    let backend = backend(
        &server.superuser_url(),
        vec![lease_table("shedlock", LeaseTablePreset::Shedlock, &[])],
    );
    let observed = observe(&backend).await;
    assert_eq!(observed.names_in("table:public.shedlock"), ["report"]);
    let lock = observed.lock("table:public.shedlock", "report");
    let Lifetime::Leased { remaining_ms, ttl_ms } = &lock.lifetime else {
        panic!("{lock:?}")
    };
    assert!((50_000..=60_000).contains(remaining_ms), "{remaining_ms}");
    assert_eq!(*ttl_ms, Reported::Value(90_000));
    assert!(lock.lease_id.is_absent() && lock.fencing_token.is_absent());
    assert!(
        lock.generation
            .known()
            .unwrap()
            .as_str()
            .starts_with("owner:host-1@"),
        "{lock:?}"
    );
    let held = observed.pass.clock.known().unwrap().backend_now - *lock.acquired_at.known().unwrap();
    assert!((29..40).contains(&held.num_seconds()), "{held}");
    let (source, free) = id("table:public.shedlock", "done");
    assert_eq!(backend.safety(&source).class, SafetyClass::Efficiency);
    assert_eq!(backend.inspect(&source, &free).await.unwrap().lock, None);
}

#[tokio::test]
async fn a_liquibase_lock_has_no_ttl_and_an_unlocked_row_is_free() {
    // The table is configured in Liquibase's own capitals, which Postgres folded.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        "CREATE TABLE DATABASECHANGELOGLOCK (ID INTEGER NOT NULL PRIMARY KEY, LOCKED BOOLEAN NOT NULL,
        LOCKGRANTED TIMESTAMP WITHOUT TIME ZONE, LOCKEDBY VARCHAR(255));
        INSERT INTO DATABASECHANGELOGLOCK VALUES (1, FALSE, NULL, NULL)",
    )
    .await;
    let table = lease_table("DATABASECHANGELOGLOCK", LeaseTablePreset::Liquibase, &[]);
    let source = "table:public.DATABASECHANGELOGLOCK";
    let backend = backend(&server.superuser_url(), vec![table]);
    assert!(observe(&backend).await.names_in(source).is_empty());
    run(&mut user, "UPDATE databasechangeloglock SET locked = true, lockgranted = '2026-04-01 12:00', lockedby = 'ci (10.0.0.1)'")
        .await;
    let observed = observe(&backend).await;
    let lock = observed.lock(source, "1");
    assert!(
        matches!(&lock.lifetime, Lifetime::NoTtl { why } if why.contains("Liquibase")),
        "{lock:?}"
    );
    assert_eq!(lock.owner.known().unwrap().as_str(), "ci (10.0.0.1)");
    assert!(lock.acquired_at.why().unwrap().contains("time zone"), "{lock:?}");
    assert!(lock.generation.is_known());
    let (source, resource) = id(source, "1");
    assert_eq!(
        backend.inspect(&source, &resource).await.unwrap().raw[1].value,
        "true"
    );
}
