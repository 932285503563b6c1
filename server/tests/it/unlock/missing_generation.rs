//! A lock whose record does not tell one holding from the next is not unlocked.

use ::testkit::{PostgresOptions, Throwaway};

use super::blast_radius::session;
use super::requests::HeldLock;
use crate::support::{TestServer, code};
use testkit::eventually;

#[tokio::test]
async fn a_row_that_identifies_no_holding_is_unavailable() {
    // The flag of Knex: 409 with the reason and the library's own way, and the flag stays.
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let table = "CREATE TABLE knex_migrations_lock (index int PRIMARY KEY, is_locked int);
        INSERT INTO knex_migrations_lock VALUES (1, 1)";
    let mut user = session(&postgres, "set-up", table).await;
    let url = postgres.superuser_url();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{url}\"\nunlock_url = \"{url}\"\npoll_interval = \"1s\"\n\
         [[backend.lease_table]]\ntable = \"public.knex_migrations_lock\"\npreset = \"knex\"\n"
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    // The inventory has no generation for it either.
    let held = HeldLock {
        backend: "orders-db",
        resource: "1".to_owned(),
        generation: "owner:ci".to_owned(),
        lease: String::new(),
    };
    let mut refused = server.begin(&operator, &held).await;
    eventually("the inventory shows it", async || {
        refused = server.begin(&operator, &held).await;
        refused.0 == 409
    })
    .await;
    assert_eq!(code(&refused), (409, "unlock_unavailable"), "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(
        detail.contains("cannot be distinguished") && detail.contains("knex migrate:unlock"),
        "{detail}"
    );
    let left: i32 = sqlx::query_scalar("SELECT is_locked FROM knex_migrations_lock")
        .fetch_one(&mut user)
        .await
        .unwrap();
    assert_eq!(left, 1);
}
