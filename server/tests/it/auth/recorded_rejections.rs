//! Audit entries of refused requests.

use domain::audit::AuditEntry;
use serde_json::Value;

use crate::support::TestServer;

impl TestServer {
    /// Refused requests with this outcome, as audit entries count them once a minute is over.
    pub(crate) async fn rejections_recorded(&self, outcome: &str) -> u64 {
        let entries = self.audit_entries().await;
        let times = |entry: &AuditEntry| {
            let after = entry.after.as_deref().unwrap_or("{}");
            let after: Value = serde_json::from_str(after).unwrap();
            after["times"].as_u64().unwrap_or(1)
        };
        let with_outcome = entries.iter().filter(|entry| entry.outcome == outcome);
        with_outcome.map(times).sum()
    }
}
