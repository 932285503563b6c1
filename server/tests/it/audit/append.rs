//! Appending from many sides, the store's own guards, and reading back.

use super::chain::{entry, fill};
use crate::support::Store;
use domain::audit::{Action, AuditQuery};
use runtime::db::Db;

fn all(limit: u32) -> AuditQuery {
    AuditQuery {
        limit,
        ..AuditQuery::default()
    }
}

async fn many_appenders_make_one_chain(home: Store) {
    let (one, two) = (home.open_audit().await, home.open_audit().await);
    let appends = (1..=40).map(|number| {
        let audit = if number % 2 == 0 { one.clone() } else { two.clone() };
        async move { audit.append(entry(number)).await.unwrap().seq }
    });
    let mut seqs = futures::future::join_all(appends).await;
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=40).collect::<Vec<i64>>());
    let verified = one.verify(&home.checkpoints(), |_| {}).await.unwrap().unwrap();
    assert_eq!((verified.entries, verified.checkpoints), (40, 40));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_appends_form_one_chain() {
    // Two pools, as two replicas would be, twenty rows each at the same time: no gap, no fork, nothing lost.
    many_appenders_make_one_chain(Store::sqlite()).await;
    many_appenders_make_one_chain(Store::postgres().await).await;
}

#[tokio::test]
async fn the_store_refuses_changed_or_deleted_entries() {
    // Statements as an application with this account could send them.
    for home in [Store::sqlite(), Store::postgres().await] {
        let audit = home.open_audit().await;
        fill(&audit, 3).await;
        for statement in [
            "UPDATE audit_entries SET reason = 'x' WHERE seq = 2",
            "DELETE FROM audit_entries WHERE seq = 3",
        ] {
            let refused = match Db::open(&home.url).await.unwrap() {
                Db::Sqlite(pool) => sqlx::query(statement).execute(&pool).await.map(drop),
                Db::Postgres(pool) => sqlx::query(statement).execute(&pool).await.map(drop),
            };
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("never"), "{statement}: {why}");
        }
        assert_eq!(audit.page(&all(10)).await.unwrap().rows.len(), 3);
    }
}

#[tokio::test]
async fn the_audit_log_is_paged_newest_first_and_filtered() {
    // Cursor, actor, whole prefixes as bytes (an underscore is no wildcard), and action.
    for home in [Store::sqlite(), Store::postgres().await] {
        let audit = home.open_audit().await;
        fill(&audit, 25).await;
        let first = audit.page(&all(10)).await.unwrap();
        assert_eq!(
            (first.rows[0].id.as_str(), first.next_cursor.as_deref()),
            ("25", Some("16"))
        );
        let rest = AuditQuery {
            before_seq: Some(16),
            ..all(100)
        };
        let rest = audit.page(&rest).await.unwrap();
        assert_eq!((rest.rows.len(), rest.next_cursor), (15, None));
        let count = async |query: AuditQuery| audit.page(&query).await.unwrap().rows.len();
        let prefix = |prefix: &str| AuditQuery {
            prefix: Some(prefix.to_owned()),
            ..all(100)
        };
        assert_eq!(count(prefix("tenant_1:")).await, 5);
        assert_eq!(count(prefix("tenantX1:")).await, 0);
        let actor = AuditQuery {
            actor: Some("p1".to_owned()),
            ..all(100)
        };
        assert_eq!(count(actor).await, 9);
        let action = AuditQuery {
            action: Some(Action::Login),
            ..all(100)
        };
        assert_eq!(count(action).await, 0);
    }
}
