//! A sign-in link and its session: one transaction, and one session.

use domain::access::Role;
use futures::future::join_all;
use leasehold::audit::Origin;
use leasehold::identity::{IdentityError, Principal};

use crate::support::{Store, TestServer, on};

async fn link_for(server: &TestServer, name: &str) -> String {
    let (identity, user) = (server.identity(), server.user_id(name));
    let link = identity.user_link(&Principal::system("test"), &user).await;
    link.unwrap().expose().to_owned()
}

#[tokio::test]
async fn a_link_stays_usable_when_the_session_fails() {
    // The store refuses the session, and then the audit entry of the sign-in.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let (identity, origin) = (server.identity(), Origin::default());
        server.add_user("ada", on(Role::Viewer, None, None)).await;
        let link = link_for(&server, "ada").await;
        for table in ["sessions", "audit_entries"] {
            let rename = |from: &str, to: &str| format!("ALTER TABLE {from} RENAME TO {to}");
            server.store.sql(&rename(table, "missing")).await;
            let failed = identity.open_link(&link, &origin).await;
            assert!(
                matches!(failed, Err(IdentityError::Store(_))),
                "{table}: {failed:?}"
            );
            server.store.sql(&rename("missing", table)).await;
            identity.check_user_link(&link, &origin).await.unwrap();
            assert_eq!(identity.sessions().await.unwrap(), [], "{table}");
        }
        identity.open_link(&link, &origin).await.unwrap();
        let again = identity.open_link(&link, &origin).await;
        assert!(matches!(again, Err(IdentityError::BadLink)), "{again:?}");
        assert_eq!(identity.sessions().await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_concurrent_uses_of_a_link_signs_in() {
    // Fewer than the invalid links that a source may send at once.
    const USES: usize = 8;
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let (identity, origin) = (server.identity(), Origin::default());
        server.add_user("ada", on(Role::Viewer, None, None)).await;
        let link = link_for(&server, "ada").await;
        let uses = join_all((0..USES).map(|_| identity.open_link(&link, &origin))).await;
        let refused = uses
            .iter()
            .filter(|used| matches!(used, Err(IdentityError::BadLink)))
            .count();
        assert_eq!(refused, USES - 1, "{uses:?}");
        assert_eq!(identity.sessions().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_user_without_a_link_is_reported_as_added() {
    // The store refuses the link, after the user was added; later it accepts one.
    let server = TestServer::builder().start_on(Store::sqlite()).await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    server
        .store
        .sql("ALTER TABLE one_time_links RENAME TO missing")
        .await;
    let form = [
        ("name", "bea"),
        ("role", "viewer"),
        ("backend", ""),
        ("prefix", ""),
    ];
    let failed = root.post("/settings/users", &form).await;
    assert_eq!(failed.status(), 503);
    let page = failed.text().await.unwrap();
    assert!(
        page.contains("bea was added, but without a sign-in link"),
        "{page}"
    );
    server
        .store
        .sql("ALTER TABLE missing RENAME TO one_time_links")
        .await;
    let path = format!("/settings/users/{}/link", server.user_id("bea"));
    assert_eq!(root.post(&path, &[]).await.status(), 201);
}
