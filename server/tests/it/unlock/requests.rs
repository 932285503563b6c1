//! Requests of a forced unlock, the locks that it is about, and its audit entries.

use domain::audit::{AuditEntry, AuditQuery};
use domain::unlock::ProtectionLevel;
use leasehold::identity::Principal;
use serde_json::{Value, json};

use crate::support::{Reply, TestCaller, TestServer};
use testkit::eventually;

pub(crate) const REASON: &str = "stuck since 03:00, its owner agrees";

/// A lock as the inventory shows it.
#[derive(Debug, Clone)]
pub(crate) struct HeldLock {
    pub(crate) backend: &'static str,
    pub(crate) resource: String,
    pub(crate) generation: String,
    /// Of a built-in lease.
    pub(crate) lease: String,
}

impl TestServer {
    /// Makes unlocks below this prefix need a second approver.
    pub(crate) async fn protect(&self, prefix: &str) {
        self.set_protection(prefix, ProtectionLevel::Protected).await;
    }

    pub(crate) async fn set_protection(&self, prefix: &str, level: ProtectionLevel) {
        let who = Principal::system("test");
        let unlocks = &self.serving.unlocks;
        let rule = unlocks.set_protected_prefix(&who, None, prefix, level);
        rule.await.unwrap();
    }

    pub(crate) async fn acquire(&self, caller: &TestCaller, resource: &str, owner: &str) -> Value {
        let body = json!({"resource": resource, "ownerId": owner, "ttlSeconds": 600});
        let (status, lease) = self.as_user(caller).post("/v1/locks/acquire", &body).await;
        assert_eq!((status, &lease["acquired"]), (200, &json!(true)), "{lease}");
        lease
    }

    /// A built-in lease, acquired and in the inventory.
    pub(crate) async fn hold(&self, caller: &TestCaller, resource: &str) -> HeldLock {
        let lease = self.acquire(caller, resource, "worker-7").await;
        let lease = lease["leaseId"].as_str().unwrap().to_owned();
        let mut held = self.inventory_lock(caller, "builtin", resource).await;
        held.lease = lease;
        held
    }

    /// Until the inventory shows it.
    pub(crate) async fn inventory_lock(
        &self,
        caller: &TestCaller,
        backend: &'static str,
        resource: &str,
    ) -> HeldLock {
        let name: String = url::form_urlencoded::byte_serialize(resource.as_bytes()).collect();
        let path = format!("/v1/inventory/{backend}/{}", name.replace('+', "%20"));
        let found = std::cell::RefCell::new(Value::Null);
        eventually("the inventory shows it", async || {
            let (status, lock) = self.as_user(caller).get(&path).await;
            *found.borrow_mut() = lock;
            status == 200
        })
        .await;
        HeldLock {
            backend,
            resource: resource.to_owned(),
            generation: found.into_inner()["generation"].as_str().unwrap().to_owned(),
            lease: String::new(),
        }
    }

    pub(crate) async fn begin(&self, caller: &TestCaller, held: &HeldLock) -> Reply {
        self.begin_for(caller, held, REASON).await
    }

    pub(crate) async fn begin_for(&self, caller: &TestCaller, held: &HeldLock, reason: &str) -> Reply {
        let body = json!({
            "backend": held.backend, "resource": held.resource, "generation": held.generation, "reason": reason
        });
        self.as_user(caller).post("/v1/unlocks", &body).await
    }

    /// The id of a new intent. A machine under load may show its backends as stale for a moment.
    pub(crate) async fn begun(&self, caller: &TestCaller, held: &HeldLock) -> String {
        let id = std::cell::RefCell::new(String::new());
        eventually("an intent", async || {
            let (status, unlock) = self.begin(caller, held).await;
            assert!(
                status == 201 || unlock["code"] == "backend_stale",
                "{status} {unlock}"
            );
            *id.borrow_mut() = unlock["unlockId"].as_str().unwrap_or_default().to_owned();
            status == 201
        })
        .await;
        id.into_inner()
    }

    pub(crate) async fn confirm(&self, caller: &TestCaller, id: &str, name: &str) -> Reply {
        self.as_user(caller)
            .post(&format!("/v1/unlocks/{id}/confirm"), &json!({"resource": name}))
            .await
    }

    pub(crate) async fn unlock_step(&self, caller: &TestCaller, id: &str, step: &str) -> Reply {
        self.as_user(caller)
            .post(&format!("/v1/unlocks/{id}/{step}"), &json!({}))
            .await
    }

    pub(crate) async fn unlock_state(&self, caller: &TestCaller, id: &str) -> Value {
        let (status, unlock) = self.as_user(caller).get(&format!("/v1/unlocks/{id}")).await;
        assert_eq!(status, 200, "{unlock}");
        unlock
    }

    pub(crate) async fn is_held(&self, caller: &TestCaller, held: &HeldLock) -> bool {
        // By name and token: the id answers the principal of the lease alone.
        let path = format!("/v1/resources/{}", held.resource.replace('/', "%2F"));
        let (_, resource) = self.as_user(caller).get(&path).await;
        let grant = format!("token:{}:", resource["holder"]["fencingToken"]);
        held.generation.starts_with(&grant)
    }

    /// Rows about forced unlocks, oldest first; the chain is whole.
    pub(crate) async fn unlock_entries(&self) -> Vec<AuditEntry> {
        let audit = self.audit().await;
        let heads = std::collections::BTreeMap::new();
        let verified = audit.verify(&heads, |_| {}).await.unwrap();
        assert!(verified.is_ok(), "{verified:?}");
        let mut query = AuditQuery {
            limit: 1_000,
            action: Some(domain::audit::Action::ForceUnlock),
            ..AuditQuery::default()
        };
        // All pages: a long run writes more than one.
        let mut rows = Vec::new();
        loop {
            let page = audit.page(&query).await.unwrap();
            rows.extend(page.rows);
            let Some(next) = page.next_cursor else { break };
            query.before_seq = Some(next.parse().unwrap());
        }
        rows.reverse();
        rows
    }

    /// Phase and outcome of the rows of one unlock, in order.
    pub(crate) async fn unlock_phases(&self, id: &str) -> Vec<String> {
        let rows = self.unlock_entries().await.into_iter();
        rows.filter(|row| row.unlock_id.as_deref() == Some(id))
            .map(|row| format!("{} {}", row.phase, row.outcome))
            .collect()
    }
}

/// Status and state of an unlock.
pub(crate) fn state(reply: &Reply) -> (u16, &str) {
    (reply.0, reply.1["state"].as_str().unwrap_or_default())
}
