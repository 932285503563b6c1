//! A lease belongs to the principal that acquired it, on every store.

use std::sync::Arc;
use std::time::Duration;

use ::lease::{AcquireRequest, Acquired, Ended, LeaseCaller, LeaseError, LeasePrincipal, LeaseService};
use axum::http::StatusCode;
use domain::lease::{LeaseId, Metadata, Scope, Ttl};
use domain::names::{OwnerId, Resource};

use super::lease_server::{LeaseStore, StoreKind, on_every_store};

fn caller(id: &str, predecessors: &[&str]) -> LeaseCaller {
    LeaseCaller {
        principal: LeasePrincipal {
            predecessors: predecessors.iter().map(|id| Arc::from(*id)).collect(),
            ..LeasePrincipal::new(id)
        },
        scope: Scope::everything(),
    }
}

async fn acquire(service: &LeaseService, caller: &LeaseCaller, resource: &str) -> LeaseId {
    let request = AcquireRequest {
        resource: Resource::from(resource),
        owner: OwnerId::new("o"),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        wait: Duration::ZERO,
        metadata: Metadata::default(),
        idempotency_key: None,
    };
    match service.acquire(caller, request).await.unwrap() {
        Acquired::Granted { lease, .. } => lease.id,
        refused @ Acquired::Refused { .. } => panic!("{refused:?}"),
    }
}

/// Each way to use a lease by its id is answered like an unknown id.
async fn is_unknown_to(service: &LeaseService, caller: &LeaseCaller, id: LeaseId) {
    assert_eq!(service.renew(caller, id, None).await, Err(LeaseError::NotFound));
    assert_eq!(service.release(caller, id).await, Err(LeaseError::NotFound));
    assert_eq!(service.lease(caller, id).await, Err(LeaseError::NotFound));
    assert_eq!(
        service.events(caller, id).await.map(|_| ()),
        Err(LeaseError::NotFound)
    );
}

on_every_store!(lease_is_unknown_to_every_other_principal, |store| {
    // Held, released, superseded by another principal's grant; with a successor, and from a newly started server.
    let server = store.serve().await;
    let (one, other) = (caller("one", &[]), caller("other", &[]));
    let successor = caller("successor", &["one"]);
    let service = &server.service;
    let first = acquire(service, &one, "r").await;
    is_unknown_to(service, &other, first).await;
    assert!(service.renew(&one, first, None).await.is_ok());
    assert!(service.renew(&successor, first, None).await.is_ok());
    assert!(matches!(
        service.release(&successor, first).await,
        Ok(Ended::Now(_))
    ));
    is_unknown_to(service, &other, first).await;
    let second = acquire(service, &other, "r").await;
    is_unknown_to(service, &other, first).await;
    is_unknown_to(service, &successor, second).await;
    assert!(matches!(service.release(&one, first).await, Ok(Ended::Before(_))));
    server.close().await;

    let server = store.serve().await;
    let service = &server.service;
    is_unknown_to(service, &other, first).await;
    is_unknown_to(service, &one, second).await;
    assert!(matches!(service.lease(&one, first).await, Ok(seen) if seen.state() == "released"));
    assert!(service.renew(&other, second, None).await.is_ok());
    server.close().await;
});

on_every_store!(requests_without_sign_in_are_one_principal, |store| {
    // No identity: a lease that one request acquired, the next one renews and releases.
    let server = store.serve().await;
    let lease = server.acquire("r", "o", 30).await;
    assert_eq!(server.renew(&lease).await.0, StatusCode::OK);
    assert_eq!(server.delete(&lease).await.0, StatusCode::OK);
    server.close().await;
});
