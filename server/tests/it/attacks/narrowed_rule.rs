//! A rule on every name is limited to one tenant: the tenant sees none of the alerts that it found before.

use super::resolved_alert_flood::add_resolved;
use crate::support::{TestServer, on};
use domain::access::Role;
use domain::alerts::Subject;
use domain::names::BackendName;
use reqwest::Method;
use serde_json::json;

/// Of names of every tenant.
fn template(text: &str) -> Subject {
    Subject::Prefix {
        backend: BackendName::builtin(),
        prefix: text.to_owned(),
    }
}

#[tokio::test]
async fn alerts_of_the_wider_rule_stay_hidden() {
    let server = TestServer::start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let rule = json!({"id": "mine", "name": "Waits", "condition": "contention", "prefix": "tenant_1:", "anyPrefix": true});
    server.as_user(&admin).done(Method::PUT, "/v1/rules", &rule).await;
    for (prefix, name) in [("", "tenant_*:zebra"), ("tenant_1:", "tenant_*:harbour")] {
        add_resolved(&server, ("mine", prefix, &template(name)), 1, 10).await;
    }
    let page = async |scope: Option<&str>| {
        let name = scope.map_or("all", |_| "tenant");
        let viewer = server.token(name, on(Role::Viewer, None, scope)).await;
        server.as_user(&viewer).text("/alerts?state=resolved").await.1
    };
    let tenant = page(Some("tenant_1:")).await;
    assert!(
        tenant.contains("harbour") && !tenant.contains("zebra"),
        "{tenant}"
    );
    let all = page(None).await;
    assert!(all.contains("harbour") && all.contains("zebra"), "{all}");
}
