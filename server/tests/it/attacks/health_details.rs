//! An anonymous visitor and a tenant read what health checks say of tasks, load and backends.

use domain::access::Role;
use serde_json::{Value, json};

use crate::people::stage::{Stage, get, on};

#[tokio::test]
async fn health_checks_tell_anonymous_visitors_their_status_alone() {
    // Nobody, a tenant, and a reader of everything.
    let stage = Stage::start().await;
    let tenant = stage
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let all = stage.token("all", on(Role::Viewer, None, None)).await;
    for path in ["/healthz", "/readyz"] {
        let anonymous: Value = reqwest::get(stage.url(path)).await.unwrap().json().await.unwrap();
        let (_, tenant) = get(&stage, &tenant, path).await;
        for body in [anonymous, tenant] {
            assert_eq!(body, json!({"status": body["status"]}), "{path}");
            assert!(body["status"].is_string(), "{path}");
        }
        let (_, body) = get(&stage, &all, path).await;
        assert!(
            body["tasksAlive"].is_u64() && body["tasks"].is_array(),
            "{path}: {body}"
        );
        assert!(body["waiting"].is_array(), "{path}: {body}");
    }
}
