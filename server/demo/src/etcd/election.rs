//! An election: one candidate leads, another campaigns.

use std::time::Duration;

use etcd_client::ResignOptions;
use tokio::time::sleep;

use super::{Access, session};
use crate::fault::WorkloadError;

pub(crate) const NAME: &str = "/locks/scheduler/leader";
const TTL: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(5);
const TERM: Duration = Duration::from_secs(90);

/// Campaigns, leads for a while, resigns, and campaigns again.
pub(crate) async fn campaign_and_lead(access: Access, owner: &'static str) -> Result<(), WorkloadError> {
    let lease = session::grant(access.quick.clone(), TTL).await?;
    let term = async {
        let mut client = access.patient.clone();
        let mut leadership = client.campaign(NAME, owner, lease).await?;
        sleep(TERM).await;
        if let Some(leader) = leadership.take_leader() {
            client
                .resign(Some(ResignOptions::new().with_leader(leader)))
                .await?;
        }
        Ok(())
    };
    let keep_alive = session::keep_alive_every(access.quick.clone(), lease, RENEW_EVERY);
    let ended = tokio::select! { ended = term => ended, lost = keep_alive => lost };
    let _ = access.quick.clone().lease_revoke(lease).await;
    ended
}
