//! A tenant reads the tree of blockers of a lock in its scope. The session that holds it blocks a session of another
//! tenant, too, by another lock.

use crate::support::{TestServer, aside, on};
use ::testkit::{PostgresOptions, Throwaway, eventually};
use domain::access::Role;
use sqlx::{Connection as _, Executor as _, PgConnection};

const OWN: &str = "advisory:postgres:424242";
/// Key and session of the other tenant.
const FOREIGN: [&str; 2] = ["737373", "zebra"];

#[tokio::test]
async fn a_blocker_tree_names_no_foreign_lock_or_session() {
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let url = postgres.superuser_url();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{url}\"\npoll_interval = \"1s\"\n\
         advisory_locks = true\n"
    );
    let server = TestServer::builder().config(&toml).operator().start().await;
    let mut holder = PgConnection::connect(&url).await.unwrap();
    holder
        .execute("SELECT pg_advisory_lock(424242), pg_advisory_lock(737373)")
        .await
        .unwrap();
    for (name, lock) in [
        ("own-waiter", "SELECT pg_advisory_lock(424242)"),
        ("zebra", "SELECT pg_advisory_lock(737373)"),
    ] {
        let mut waiter = PgConnection::connect(&url).await.unwrap();
        let rename = format!("SET application_name = '{name}'");
        sqlx::query(sqlx::AssertSqlSafe(rename))
            .execute(&mut waiter)
            .await
            .unwrap();
        drop(aside(async move {
            sqlx::query(lock).execute(&mut waiter).await.map(drop)
        }));
    }
    let detail = format!("/v1/inventory/orders-db/{OWN}");
    eventually("the whole tree is seen by a reader of everything", || async {
        let text = server.get(&detail).await.text().await.unwrap();
        FOREIGN.iter().all(|foreign| text.contains(foreign)) && text.contains("own-waiter")
    })
    .await;
    server
        .inventory_where("backend=orders-db", |page| {
            let mut locks = page["locks"].as_array().unwrap().iter();
            locks.any(|lock| lock["resource"] == OWN && lock["waiterCount"] == 1)
        })
        .await;
    let tenant = server.token("tenant", on(Role::Viewer, None, Some(OWN))).await;
    for path in [
        detail,
        format!("/locks/orders-db/{OWN}"),
        "/contention".to_owned(),
    ] {
        let (status, text) = server.as_user(&tenant).text(&path).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(
            text.contains("own-waiter") && text.contains("the sessions below wait for"),
            "{path}: {text}"
        );
        for foreign in FOREIGN {
            assert!(!text.contains(foreign), "{path}: {foreign}: {text}");
        }
    }
}
