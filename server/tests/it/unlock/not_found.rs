//! Steps on an unlock that does not exist or has a foreign lock: answered alike, and audited.

use crate::support::{Store, TestServer, code, on};
use domain::access::Role;
use serde_json::json;

const STEPS: [&str; 4] = ["confirm", "approve", "cancel", "review"];

#[tokio::test]
async fn a_step_on_an_invisible_unlock_is_404_with_an_entry() {
    // A user of another tenant, and invented ids, one with the character that Postgres stores in no text.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let operator = server.operator().await;
        let held = server.hold(&operator, "tenant_1:r").await;
        let id = server.begun(&operator, &held).await;
        let stranger = server
            .token("stranger", on(Role::Admin, None, Some("tenant_2")))
            .await;
        let made_up = "u_none%00";
        for step in STEPS {
            for id in [id.as_str(), made_up] {
                let path = format!("/v1/unlocks/{id}/{step}");
                let body = json!({"resource": "tenant_1:r"});
                let reply = server.as_user(&stranger).post(&path, &body).await;
                assert_eq!(code(&reply), (404, "not_found"), "{step} {}", reply.1);
            }
        }
        let rows = server.unlock_entries().await;
        let tried = rows
            .iter()
            .filter(|row| row.outcome == "not_found" && row.actor_name == "stranger");
        let tried: Vec<_> = tried.collect();
        assert_eq!(tried.len(), 2 * STEPS.len(), "{rows:#?}");
        for (pair, step) in tried.chunks(2).zip(STEPS) {
            let [real, invented] = pair else { panic!() };
            // It is in the audit log of the lock at which it was tried.
            assert_eq!(real.resource.as_deref(), Some("tenant_1:r"));
            assert_eq!(real.unlock_id.as_deref(), Some(id.as_str()));
            assert_eq!(
                (invented.resource.as_deref(), invented.backend.as_deref()),
                (None, None)
            );
            assert_eq!(invented.unlock_id.as_deref(), Some("u_none\\u{0}"));
            for row in pair {
                assert!(row.after.as_deref().unwrap().contains(step), "{row:?}");
            }
        }
        assert!(server.is_held(&operator, &held).await);
    }
}
