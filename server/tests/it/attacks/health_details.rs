//! An anonymous visitor and a tenant read details of health checks about tasks, load and
//! backends.

use crate::support::{TestServer, on};
use domain::access::Role;
use serde_json::{Value, json};

#[tokio::test]
async fn health_checks_show_anonymous_visitors_only_the_status() {
    // Without a principal, as a tenant, and as a reader of everything.
    let server = TestServer::builder().redis().start().await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let all = server.token("all", on(Role::Viewer, None, None)).await;
    for path in ["/healthz", "/readyz"] {
        let anonymous: Value = reqwest::get(server.url(path))
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let (_, tenant) = server.as_user(&tenant).get(path).await;
        for body in [anonymous, tenant] {
            assert_eq!(body, json!({"status": body["status"]}), "{path}");
            assert!(body["status"].is_string(), "{path}");
        }
        let (_, body) = server.as_user(&all).get(path).await;
        assert!(
            body["tasksAlive"].is_u64() && body["tasks"].is_array(),
            "{path}: {body}"
        );
        assert!(body["waiting"].is_array(), "{path}: {body}");
    }
}
