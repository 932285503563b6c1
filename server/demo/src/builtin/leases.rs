//! The lease protocol by hand, for workers that also use it wrongly.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::Access;
use crate::fault::WorkloadError;
use crate::leases::Leases;

/// A lease id.
pub(crate) struct Held(String);

impl Leases for Access {
    type Held = Held;

    async fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<Option<Held>, WorkloadError> {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": ttl.as_secs()});
        let answer = self.post("/v1/locks/acquire", &body).await?;
        Ok(answer["leaseId"].as_str().map(|id| Held(id.to_owned())))
    }

    async fn renew(&self, held: &Held) -> Result<bool, WorkloadError> {
        let answer = self
            .post(&format!("/v1/locks/{}/renew", held.0), &json!({}))
            .await?;
        Ok(answer["renewed"] == true)
    }

    async fn release(&self, held: Held) -> Result<(), WorkloadError> {
        let path = format!("/v1/locks/{}", held.0);
        self.call(Method::DELETE, &path).send().await?;
        Ok(())
    }
}
