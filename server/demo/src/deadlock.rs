//! A deadlock of two workers across Postgres and etcd, which neither system can detect: the first leads an election and
//! waits for an advisory lock, the second holds that lock and campaigns. It lasts until one of them is evicted.

use std::time::Duration;

use domain::names::BackendName;
use domain::waits::IdentityField;
use domain::waits::identity::{IdentityMatch, IdentityRule, IdentityTemplate};
use tokio::time::sleep;

use super::etcd::{self, session};
use super::fault::WorkloadError;
use super::postgres::{self, advisory};

/// Hashed to an advisory key; the console has it in its configuration.
pub(super) const LOCK: &str = "ledger:rebalance";
/// Its name on the console: the hash of [`LOCK`] in the demo's database.
pub(super) const ADVISORY: &str = "advisory:orders:-8577327870275637684";
pub(super) const ELECTION: &str = "/locks/ledger/rebalance";
/// Application names in Postgres, and values in etcd.
pub(super) const WORKERS: [&str; 2] = ["ledger/sync-1", "ledger/sync-2"];
const TEMPLATE: &str = "ledger/{worker}";
pub(super) const TTL: Duration = Duration::from_secs(60);
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(15);
/// Between the end of a deadlock and the next one.
const CALM: Duration = Duration::from_secs(180);

/// Lets both workers acquire one lock each, then wait for the other's until an eviction lets one of them go on.
pub(super) async fn run_until_evicted(
    database: postgres::Access,
    coord: etcd::Access,
) -> Result<(), WorkloadError> {
    let first = session::grant(coord.quick.clone(), TTL).await?;
    let second = session::grant(coord.quick.clone(), TTL).await?;
    let keep_alive = |lease| Box::pin(session::keep_alive_every(coord.quick.clone(), lease, RENEW_EVERY));
    let ended = tokio::select! {
        ended = Box::pin(deadlock(&database, &coord, first, second)) => ended,
        lost = keep_alive(first) => lost,
        lost = keep_alive(second) => lost,
    };
    for lease in [first, second] {
        // A failed revocation lets the lease expire.
        let _ = coord.quick.clone().lease_revoke(lease).await;
    }
    ended?;
    sleep(CALM).await;
    Ok(())
}

async fn deadlock(
    database: &postgres::Access,
    coord: &etcd::Access,
    first: i64,
    second: i64,
) -> Result<(), WorkloadError> {
    let [leader, holder] = WORKERS;
    let campaign = |worker, lease| {
        let mut client = coord.patient.clone();
        Box::pin(async move { client.campaign(ELECTION, worker, lease).await })
    };
    campaign(leader, first).await?;
    let mut holding = database.session(holder).await?;
    advisory::lock_hash_of(&mut holding, LOCK).await?;
    let mut waiting = database.session(leader).await?;
    // An evicted waiter ends the deadlock too.
    tokio::select! {
        _ = advisory::lock_hash_of(&mut waiting, LOCK) => {}
        _ = campaign(holder, second) => {}
    }
    Ok(())
}

/// The rule by which the console recognizes each worker in both systems.
pub(super) fn identity_rule(database: BackendName, coord: BackendName) -> Option<IdentityRule> {
    let template = IdentityTemplate::parse(TEMPLATE).ok()?;
    let matched = |backend, field| IdentityMatch {
        backend,
        field,
        template: template.clone(),
    };
    Some(IdentityRule {
        name: "ledger workers".to_owned(),
        matches: vec![
            matched(database, IdentityField::ApplicationName),
            matched(coord, IdentityField::Owner),
        ],
    })
}
