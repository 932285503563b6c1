//! The demo's Consul: keys that sessions hold, and a session that is lost, which leaves a
//! lock-delay.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::fault::WorkloadError;

pub(super) const PREFIX: &str = "locks/";
/// Two services that take turns, and locks that are held quietly.
pub(super) const CONTENDED: &str = "locks/tenant_204/ledger-export";
pub(super) const CONTENDERS: [&str; 2] = ["ledger-exporter-1", "ledger-exporter-2"];
pub(super) const QUIET: [(&str, &str); 3] = [
    ("locks/deploy/storefront", "deployer-3"),
    ("locks/certs/renew/edge", "cert-agent-1"),
    ("locks/tenant_311/gdpr-erasure", "eraser-2"),
];
/// The lock whose session is lost again and again.
pub(super) const LOST: (&str, &str) = ("locks/backup/consul-snapshot", "backup-4");
const TTL: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub(super) struct Access {
    http: reqwest::Client,
    base: String,
}

impl Access {
    pub(super) fn new(url: &str) -> Result<Self, WorkloadError> {
        Ok(Self {
            http: reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build()?,
            base: format!("{url}/v1"),
        })
    }

    async fn put(&self, path: &str, body: String) -> Result<String, WorkloadError> {
        let request = self.http.put(format!("{}/{path}", self.base)).body(body);
        Ok(request.send().await?.error_for_status()?.text().await?)
    }

    async fn session(&self, name: &str, lock_delay: &str) -> Result<String, WorkloadError> {
        let ttl = format!("{}s", TTL.as_secs());
        let session = json!({ "Name": name, "TTL": ttl, "LockDelay": lock_delay, "NodeChecks": [] });
        let created: Value =
            serde_json::from_str(&self.put("session/create", session.to_string()).await?).unwrap_or_default();
        created["ID"]
            .as_str()
            .map(str::to_owned)
            .ok_or(WorkloadError::LeaseGone)
    }

    async fn acquire(&self, key: &str, session: &str) -> Result<bool, WorkloadError> {
        Ok(self
            .put(&format!("kv/{key}?acquire={session}"), String::new())
            .await?
            .trim()
            == "true")
    }
}

/// Waits for the key, holds it for a while with a renewed session, and releases it.
pub(super) async fn wait_and_hold(
    access: Access,
    key: &'static str,
    owner: &'static str,
    hold: Duration,
) -> Result<(), WorkloadError> {
    let session = access.session(owner, "0s").await?;
    while !access.acquire(key, &session).await? {
        access
            .put(&format!("session/renew/{session}"), String::new())
            .await?;
        sleep(RENEW_EVERY / 5).await;
    }
    for _ in 0..(hold.as_secs() / RENEW_EVERY.as_secs()).max(1) {
        sleep(RENEW_EVERY).await;
        access
            .put(&format!("session/renew/{session}"), String::new())
            .await?;
    }
    access
        .put(&format!("kv/{key}?release={session}"), String::new())
        .await?;
    access
        .put(&format!("session/destroy/{session}"), String::new())
        .await?;
    Ok(())
}

/// Holds the key, and loses its session without a release: the lock-delay follows.
pub(super) async fn lose_session(access: Access) -> Result<(), WorkloadError> {
    let (key, owner) = LOST;
    let session = access.session(owner, "40s").await?;
    while !access.acquire(key, &session).await? {
        access
            .put(&format!("session/renew/{session}"), String::new())
            .await?;
        sleep(RENEW_EVERY).await;
    }
    sleep(RENEW_EVERY * 2).await;
    access
        .put(&format!("session/destroy/{session}"), String::new())
        .await?;
    Ok(())
}
