//! Grants whose client disconnects between the commit and its answer.

use runtime::clock::Clock;
use testkit::eventually;

use super::*;
use crate::LeaseConfig;

struct Served {
    service: Arc<LeaseService>,
    _folder: tempfile::TempDir,
}

impl Served {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("leases.db").display());
        let opening = LeaseService::open(
            &url,
            LeaseConfig::default(),
            Clock::start(),
            CancellationToken::new(),
        );
        Self {
            service: Box::pin(opening).await.unwrap(),
            _folder: folder,
        }
    }

    async fn acquire_pending(&self, name: &str, key: Option<&str>) -> Option<PendingGrant> {
        let mut grant = None;
        // A store of a busy machine may not answer in time, and a grant is released then.
        eventually("it is granted", async || {
            let request = request(&Resource::from(name), Duration::ZERO, key);
            match self.service.acquire_pending(&LeaseCaller::open(), request).await {
                Ok((Acquired::Granted { .. }, pending)) => {
                    grant = pending;
                    true
                }
                Ok((Acquired::Refused { .. }, _)) | Err(LeaseError::Unavailable) => false,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
        grant
    }

    async fn holder(&self, resource: &Resource) -> Option<LeaseId> {
        loop {
            match self.service.resource(&LeaseCaller::open(), resource).await {
                Ok(now) => return now.holder.map(|holder| holder.lease.id),
                Err(LeaseError::Unavailable) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn keyed(resource: &Resource) -> Box<AcquireOp> {
    Box::new(AcquireOp {
        resource: resource.clone(),
        id: LeaseId::from_parts(1_700_000_000_000, [1; 10]),
        owner: OwnerId::new("o"),
        issuer: "".into(),
        ttl: Ttl::parse(600, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: Some(IdempotencyKey {
            name: KeyName {
                issuer: "".into(),
                key: "k".into(),
            },
            fingerprint: "f".into(),
        }),
        mode: AcquireMode::Once,
    })
}

fn request(resource: &Resource, wait: Duration, key: Option<&str>) -> AcquireRequest {
    AcquireRequest {
        resource: resource.clone(),
        owner: OwnerId::new("o"),
        ttl: Ttl::parse(600, 3_600).unwrap(),
        wait,
        metadata: Metadata::default(),
        idempotency_key: key.map(Arc::from),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_keyed_grant_that_no_client_reads_is_released() {
    // The only client disconnects after the result was sent to it and before it has read the result.
    let served = Served::start().await;
    let (service, resource) = (&served.service, Resource::from("r"));
    let core = service.shards.of_resource(&resource).unwrap().clone();
    let op = keyed(&resource);
    let (id, key) = (op.id, op.key.clone().unwrap());
    let FlightRole::Task(flight, mut result_rx) = service.flights.join(&key, true) else {
        panic!("not the first request");
    };
    spawn_acquire(core, op, Duration::from_secs(10), flight);
    result_rx.changed().await.unwrap();
    assert_eq!(served.holder(&resource).await, Some(id));
    drop(result_rx);
    eventually("it is released", async || {
        served.holder(&resource).await.is_none()
    })
    .await;
    // Its key is free as well: a retry is granted a lease of its own.
    let retry = request(&resource, Duration::from_secs(10), Some("k"));
    let retried = service.acquire(&LeaseCaller::open(), retry).await;
    assert!(matches!(retried, Ok(Acquired::Granted { .. })), "{retried:?}");
    service.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_grant_is_released_unless_it_is_received() {
    let served = Served::start().await;
    let received = served.acquire_pending("received", None).await.unwrap();
    received.receive();
    drop(received);
    // A retry with its key finds the lease.
    assert!(served.acquire_pending("keyed", Some("k")).await.is_none());
    drop(served.acquire_pending("dropped", None).await);
    let dropped = Resource::from("dropped");
    eventually("it is released", async || served.holder(&dropped).await.is_none()).await;
    for kept in ["received", "keyed"] {
        let holder = served.holder(&Resource::from(kept)).await;
        assert!(holder.is_some(), "{kept}");
    }
    served.service.close().await;
}
