//! More alerts of a tenant resolve than one query reads: those of another tenant stay on the alerts page of the other.

use crate::support::{Store, TestServer, on};
use domain::access::Role;
use domain::alerts::Subject;
use domain::names::{BackendName, LockId, Resource, Source};
use serde_json::json;
use testkit::eventually;

/// More than the page reads at once.
const FOREIGN: usize = 1_001;

/// As if this many alerts that a rule with this prefix had found had ended then.
pub(super) async fn add_resolved(
    server: &TestServer,
    (rule, prefix, subject): (&str, &str, &Subject),
    count: usize,
    minutes_ago: u32,
) {
    let now = match server.store.is_postgres() {
        true => "CAST(extract(epoch FROM now()) * 1000 AS bigint)",
        false => "CAST(strftime('%s', 'now') AS INTEGER) * 1000",
    };
    let ended_at = format!("{now} - {minutes_ago} * 60000");
    let subject = serde_json::to_string(subject).unwrap();
    let body = json!({"rule_prefix": prefix, "owner": null, "holding": "", "measure": 0, "why": "", "notified": null,
        "phase": {"firing": {"since": 1, "fired_at": 1, "clear_since": null}}, "silenced_by": null});
    server
        .store
        .sql(&format!(
            "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {count})
             INSERT INTO alerts (rule_id, subject, subject_id, is_open, body, fired_at, ended_at)
             SELECT '{rule}', '{subject}', '', 0, '{body}', {ended_at} - 1000, {ended_at} FROM numbers"
        ))
        .await;
}

fn lock(name: &str) -> Subject {
    Subject::Lock(LockId {
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: Resource::from(name),
    })
}

async fn flooded(home: Store) {
    let server = TestServer::builder().start_on(home).await;
    add_resolved(&server, ("no_ttl", "", &lock("tenant_1:harbour")), 1, 10).await;
    add_resolved(&server, ("no_ttl", "", &lock("tenant_2:flood")), FOREIGN, 0).await;
    let tenant = server
        .token("tenant", on(Role::Viewer, None, Some("tenant_1:")))
        .await;
    let view = async || {
        let (status, page) = server.as_user(&tenant).text("/alerts?state=resolved").await;
        assert_eq!(status, 200);
        assert!(page.contains("harbour") && !page.contains("tenant_2"), "{page}");
        page
    };
    view().await;
    let all = server.operator().await;
    let (_, page) = server.as_user(&all).text("/alerts?state=resolved").await;
    assert!(page.contains("flood"), "{page}");
    // A view of unchanged alerts reads none, and one after a change only what ended since.
    server.store.sql("DELETE FROM alerts").await;
    view().await;
    add_resolved(&server, ("no_ttl", "", &lock("tenant_1:quay")), 1, 0).await;
    let silence =
        json!({"matchers": [{"label": "prefix", "value": "jobs:"}], "lasts": "2h", "comment": "a drill"});
    let silenced = server.as_user(&all).post("/v1/silences", &silence).await;
    assert_eq!(silenced.0, 201, "{}", silenced.1);
    // Alerts are read again at the next evaluation.
    eventually("the alert that ended since is shown", async || {
        view().await.contains("quay")
    })
    .await;
}

#[tokio::test]
async fn foreign_alerts_do_not_hide_own_ones_on_sqlite() {
    flooded(Store::sqlite()).await;
}

#[tokio::test]
async fn foreign_alerts_do_not_hide_own_ones_on_postgres() {
    flooded(Store::postgres().await).await;
}
