//! A server with a reader of its audit log, and entries to append.

use std::collections::BTreeMap;
use std::ops::Deref;

use domain::access::Role;
use leasehold::audit::{Actor, Audit, Entry, Origin};
use serde_json::Value;

use crate::support::{Store, TestCaller, TestServer, on};

pub(super) struct AuditServer {
    server: TestServer,
    /// The log through a connection of its own, with the exported checkpoints.
    pub(super) audit: Audit,
}

impl Deref for AuditServer {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl AuditServer {
    pub(super) async fn on(store: Store) -> Self {
        let server = TestServer::builder().start_on(store).await;
        Self {
            audit: server.store.open_audit().await,
            server,
        }
    }

    /// Another server on the same store; this one ends first.
    pub(super) async fn restart(self) -> Self {
        Self::on(self.server.stop().await).await
    }

    pub(super) async fn auditor(&self) -> TestCaller {
        self.token("auditor", on(Role::Auditor, None, None)).await
    }

    /// Numbers of the rows of `GET /v1/audit` with this query.
    pub(super) async fn ids(&self, caller: &TestCaller, query: &str) -> Vec<i64> {
        let (status, page) = self.as_user(caller).get(&format!("/v1/audit?{query}")).await;
        assert_eq!(status, 200, "{query}: {page}");
        ids(&page)
    }

    /// The chain, with all exported checkpoints.
    pub(super) async fn is_whole(&self) -> bool {
        self.audit.verify(&BTreeMap::new(), |_| {}).await.unwrap().is_ok()
    }
}

pub(super) fn ids(page: &Value) -> Vec<i64> {
    let rows = page["entries"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

pub(super) fn actor(id: &str, name: &str) -> Actor {
    Actor {
        id: id.to_owned(),
        name: name.to_owned(),
        role: Some("operator".to_owned()),
    }
}

/// An entry about this lock with all optional fields.
pub(super) fn about(backend: &str, resource: &str) -> Entry {
    use domain::audit::Action;
    let origin = Origin {
        ip: Some([192, 0, 2, 7].into()),
        user_agent: Some("curl/8".into()),
        request_id: Some("r-1".into()),
        trace_id: Some("t-1".into()),
    };
    Entry {
        subject: leasehold::audit::EntrySubject {
            backend: Some(backend.to_owned()),
            source: Some("key".to_owned()),
            resource: Some(resource.to_owned()),
            unlock_id: Some("u_1".to_owned()),
        },
        reason: Some("stuck since 03:00".to_owned()),
        approver_id: Some("p_bob".to_owned()),
        before: Some(serde_json::json!({"ownerId": "w-1"})),
        after: Some(serde_json::json!({"state": "released"})),
        ..Entry::new(Action::ForceUnlock, "released", actor("p_ada", "ada"), origin)
    }
}
