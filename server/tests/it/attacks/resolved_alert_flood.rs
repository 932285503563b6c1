//! More alerts of a tenant resolve than one query reads: those of another tenant stay on the alerts page of the other.

use crate::support::{Store, TestServer, on};
use domain::access::Role;
use domain::alerts::Subject;
use domain::names::{BackendName, LockId, Resource, Source};

/// More than the page reads at once.
const FOREIGN: usize = 1_001;

async fn flooded(home: Store) {
    let server = TestServer::builder().start_on(home).await;
    let now = match server.store.is_postgres() {
        true => "CAST(extract(epoch FROM now()) * 1000 AS bigint)",
        false => "CAST(strftime('%s', 'now') AS INTEGER) * 1000",
    };
    // All at one moment, later than that of the tenant.
    for (name, count, ended_at) in [
        ("tenant_1:harbour", 1, format!("{now} - 60000")),
        ("tenant_2:flood", FOREIGN, now.to_owned()),
    ] {
        let subject = Subject::Lock(LockId {
            backend: BackendName::builtin(),
            source: Source::fixed("lease"),
            resource: Resource::from(name),
        });
        let subject = serde_json::to_string(&subject).unwrap();
        let body = r#"{"owner":null,"holding":"","phase":{"firing":{"since":1,"fired_at":1,"clear_since":null}},"measure":0,
            "why":"","notified":null,"silenced_by":null}"#;
        server
            .store
            .sql(&format!(
                "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {count})
                 INSERT INTO alerts (rule_id, subject, subject_id, is_open, body, fired_at, ended_at)
                 SELECT 'no_ttl', '{subject}', '', 0, '{body}', {ended_at} - 1000, {ended_at} FROM numbers"
            ))
            .await;
    }
    let tenant = server
        .token("tenant", on(Role::Viewer, None, Some("tenant_1:")))
        .await;
    let (status, page) = server.as_user(&tenant).text("/alerts?state=resolved").await;
    assert_eq!(status, 200);
    assert!(page.contains("harbour") && !page.contains("tenant_2"), "{page}");
    let all = server.operator().await;
    let (_, page) = server.as_user(&all).text("/alerts?state=resolved").await;
    assert!(page.contains("flood"), "{page}");
}

#[tokio::test]
async fn foreign_alerts_do_not_hide_own_ones_on_sqlite() {
    flooded(Store::sqlite()).await;
}

#[tokio::test]
async fn foreign_alerts_do_not_hide_own_ones_on_postgres() {
    flooded(Store::postgres().await).await;
}
