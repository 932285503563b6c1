//! Forced unlocks of built-in leases: revoked by id, reported to the owner, the token counter kept.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use ::backends::builtin::Builtin;
use ::backends::refresh_after_release::RefreshOnRelease;
use ::backends::{Backend, Hints, no_release};
use ::lease::{AcquireRequest, Acquired, Ended, LeaseCaller, LeaseConfig, LeaseError, LeaseService};
use axum::http::StatusCode;
use domain::force_release::{Act, Release};
use domain::lease::EndCause;
use domain::names::{OwnerId, Resource, Source};
use runtime::clock::Clock;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio_util::sync::CancellationToken;

use super::lease_server::{LeaseServer, LeaseStore, StoreKind, is_granted, on_every_store, token};
use crate::support::proxy::{Link, Proxy};
use crate::support::unlocking::{Users, act, generation, race, unlock};
use testkit::eventually;

fn source() -> Source {
    Source::fixed("lease")
}

fn builtin(service: &Arc<LeaseService>) -> Builtin {
    Builtin::new(service.clone(), "sqlite:leasehold.db".to_owned(), Clock::start())
}

async fn lost(server: &LeaseServer, lease: &serde_json::Value) -> serde_json::Value {
    let (status, body) = server.renew(lease).await;
    assert_eq!(status, StatusCode::GONE, "{body}");
    body
}

on_every_store!(the_owner_gets_actor_and_reason_and_the_token_rises, |store| {
    // Held, with one waiter; unlocked; the owner's renewal reports it, the waiter gets the lock with the next token.
    let server = store.serve().await;
    let backend = builtin(&server.service);
    assert_eq!(no_release(&backend), None);
    let resource = Resource::from("r");
    let held = server.acquire("r", "w1", 600).await;
    let waiting = server.acquire_waiting("r", "w2", 600, 60);
    let unlocked = async {
        let seen = loop {
            let seen = backend.inspect(&source(), &resource).await.unwrap();
            if !seen.waiters.is_empty() {
                break seen;
            }
        };
        let radius = seen.blast_radius.known().unwrap();
        assert!(radius.dies.is_empty() && radius.next == Some(OwnerId::new("w2")));
        let old = generation(&backend, &source(), &resource).await;
        let release = || async { backend.release(&source(), &resource, &old, &act()).await.unwrap() };
        (release().await, old)
    };
    let (granted, (answer, old)) = futures::join!(waiting, unlocked);
    assert_eq!(answer, Release::Released);
    assert!(is_granted(&granted) && token(&granted) == token(&held) + 1);
    let problem = lost(&server, &held).await;
    assert_eq!(
        (
            &problem["code"],
            &problem["by"],
            &problem["reason"],
            &problem["auditId"]
        ),
        (
            &json!("revoked"),
            &json!("ops@example.com"),
            &json!("stuck since 03:00"),
            &json!("audit-1")
        )
    );
    let answer = backend.release(&source(), &resource, &old, &act()).await.unwrap();
    let now = format!("token:{}:", token(&granted));
    let Release::HolderChanged { now: holding } = &answer else {
        panic!("{answer:?}")
    };
    assert_eq!(holding.owner_id.known().unwrap().as_str(), "w2");
    assert!(holding.lease_id.is_unknown(), "{holding:?}");
    assert!(
        holding.generation.known().unwrap().as_str().starts_with(&now),
        "{holding:?}"
    );
    assert_eq!(server.renew(&granted).await.0, StatusCode::OK);
    server.close().await;
});

on_every_store!(an_ended_lease_is_free_and_no_other_is_touched, |store| {
    // Released, never held, and the generation of another resource's lease.
    let server = store.serve().await;
    let backend = builtin(&server.service);
    let release = async |resource: &str, generation| {
        let resource = Resource::from(resource);
        backend
            .release(&source(), &resource, generation, &act())
            .await
            .unwrap()
    };
    let held = server.acquire("a", "w1", 600).await;
    let gone = generation(&backend, &source(), &"a".into()).await;
    server.delete(&held).await;
    assert_eq!(release("a", &gone).await, Release::AlreadyFree);
    assert_eq!(release("never", &gone).await, Release::AlreadyFree);
    let a = server.acquire("a", "w1", 600).await;
    let b = server.acquire("b", "w1", 600).await;
    let of_a = generation(&backend, &source(), &"a".into()).await;
    assert!(matches!(release("b", &of_a).await, Release::HolderChanged { .. }));
    let empty = Act {
        reason: "".into(),
        ..act()
    };
    let answer = backend
        .release(&source(), &"a".into(), &of_a, &empty)
        .await
        .unwrap();
    assert!(matches!(answer, Release::Refused { .. }), "{answer:?}");
    assert_eq!(server.renew(&a).await.0, StatusCode::OK);
    assert_eq!(server.renew(&b).await.0, StatusCode::OK);
    server.close().await;
});

on_every_store!(the_lock_delay_blocks_acquires_after_an_unlock, |store| {
    // lock_delay of two seconds: refused at once, granted to an acquire that waits long enough.
    let config = LeaseConfig {
        lock_delay: Duration::from_secs(2),
        ..LeaseConfig::default()
    };
    let server = store.serve_with(config, None).await;
    let backend = builtin(&server.service);
    let hints = Hints::default();
    let held = server.acquire("r", "w1", 600).await;
    let seen = backend.inspect(&source(), &"r".into()).await.unwrap();
    assert!(seen.blast_radius.known().unwrap().warnings[0].contains("2 s"));
    let announcing = RefreshOnRelease::new(Arc::new(builtin(&server.service)), hints.clone(), |_, _, _| {});
    assert_eq!(
        unlock(&announcing, &source(), &"r".into()).await,
        Release::Released
    );
    assert!(hints.take().await.names.contains(&(source(), "r".into())));
    assert!(!is_granted(&server.acquire("r", "w2", 600).await));
    let granted = server.acquire_waiting("r", "w2", 600, 30).await;
    assert!(is_granted(&granted) && token(&granted) > token(&held));
    server.close().await;
});

/// Acquires and releases leases of the service.
struct Takers {
    service: Arc<LeaseService>,
    count: Cell<u32>,
    highest_token: Cell<u64>,
}

impl Users for Takers {
    type Held = domain::lease::LeaseId;

    async fn take(&self) -> Option<(String, Self::Held)> {
        let owner = format!("w{}", self.count.replace(self.count.get() + 1));
        // Of two acquires at the same time, the answer with the higher token may arrive first.
        let before = self.highest_token.get();
        let granted = acquire(&self.service, "race", &owner).await?;
        let token = granted.token.number();
        assert!(token > before, "{token} after {before}");
        self.highest_token.set(self.highest_token.get().max(token));
        Some((owner, granted.id))
    }

    async fn give_back(&self, held: Self::Held) -> bool {
        // A store of a busy machine may not answer in time; a release that was carried out nevertheless is found at the next try.
        loop {
            match self.service.release(&LeaseCaller::open(), held).await {
                Ok(ended) => return !matches!(ended, Ended::Before(EndCause::Revoked(_))),
                Err(LeaseError::Unavailable) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

async fn acquire(service: &LeaseService, resource: &str, owner: &str) -> Option<domain::lease::Lease> {
    let request = AcquireRequest {
        resource: resource.into(),
        owner: OwnerId::new(owner),
        ttl: domain::lease::Ttl::parse(600, 3600).unwrap(),
        wait: Duration::ZERO,
        metadata: domain::lease::Metadata::default(),
        idempotency_key: None,
    };
    match service.acquire(&LeaseCaller::open(), request).await {
        Ok(Acquired::Granted { lease, .. }) => Some(lease),
        // A store of a busy machine may not answer in time; the service then releases what it may have granted.
        Ok(Acquired::Refused { .. }) | Err(LeaseError::Unavailable) => None,
        Err(error) => panic!("{error}"),
    }
}

on_every_store!(racing_unlocks_never_hit_the_next_holder, |store| {
    // Clients acquire and release continuously; every lease that was cut short is one that an unlock reports, and
    // tokens rise.
    let server = store.serve().await;
    let users = Takers {
        service: server.service.clone(),
        count: Cell::new(0),
        highest_token: Cell::new(0),
    };
    race(&builtin(&server.service), &source(), &"race".into(), &users).await;
    server.close().await;
});

/// The end of a lease waits in its COMMIT for as long as the test wants.
const HOLD_COMMIT: &str = "
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(777); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON leases DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION hold()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_lost_after_the_commit_is_an_unknown_outcome() {
    // The store is a Postgres behind a proxy. Its COMMIT is delayed until answers are cut off, and then executed: a
    // second server with a direct connection sees the lease revoked.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let port = store.postgres.as_ref().unwrap().port();
    let proxy = Proxy::start(port).await;
    let url = store
        .url
        .replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
    assert_ne!(url, store.url);
    let (stop, config) = (CancellationToken::new(), LeaseConfig::default());
    let open = async |url: &str| {
        LeaseService::open(url, config.clone(), Clock::start(), stop.clone())
            .await
            .unwrap()
    };
    let (direct, through) = (open(&store.url).await, open(&url).await);
    let (truth, backend) = (builtin(&direct), builtin(&through));
    store.sql(HOLD_COMMIT).await;
    let mut blocker = PgConnection::connect(&store.url).await.unwrap();
    let resource = Resource::from("r");
    let held = async || truth.inspect(&source(), &resource).await.unwrap().lock.is_some();
    for _ in 0..20 {
        if !held().await {
            acquire(&direct, "r", "w1").await.unwrap();
        }
        let seen = generation(&backend, &source(), &resource).await;
        blocker.execute("SELECT pg_advisory_lock(777)").await.unwrap();
        let silence = async {
            let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
            while sqlx::query_scalar::<_, i64>(waits)
                .fetch_one(&mut blocker)
                .await
                .unwrap()
                == 0
            {}
            proxy.set(Link::OnlyToServer).await;
            blocker.execute("SELECT pg_advisory_unlock(777)").await.unwrap();
        };
        let (lease, why) = (source(), act());
        let (answer, ()) = futures::join!(backend.release(&lease, &resource, &seen, &why), silence);
        assert!(matches!(answer, Ok(Release::OutcomeUnknown { .. })), "{answer:?}");
        let done = !held().await;
        proxy.set(Link::Pass).await;
        eventually("the store is reached again", async || {
            backend.inspect(&source(), &resource).await.is_ok()
        })
        .await;
        // The store's wait is bounded: on a slow machine the COMMIT may have been aborted.
        if done {
            stop.cancel();
            through.close().await;
            direct.close().await;
            return;
        }
    }
    panic!("no act was done without its answer");
}
