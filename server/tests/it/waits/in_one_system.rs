//! Deadlocks inside of one backend, and what an unreachable backend leaves of them.

use ::testkit::{PostgresOptions, Throwaway, eventually};

use super::{admin, advisory, cycle, deadlock_of_leases, deadlocked, session, wait_for_advisory};
use crate::support::TestServer;

#[tokio::test]
async fn two_sessions_of_postgres_are_a_deadlock_until_one_ends() {
    // Advisory keys in opposite order, while the server does not look for deadlocks.
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{}\"\npoll_interval = \"1s\"\n",
        postgres.superuser_url()
    );
    let server = TestServer::builder().config(&toml).operator().start().await;
    let admin = admin(&server).await;
    let (mut one, mut other) = (session(&postgres, "one").await, session(&postgres, "other").await);
    advisory(&mut one, 1).await;
    advisory(&mut other, 2).await;
    let first = wait_for_advisory(one, 2);
    drop(wait_for_advisory(other, 1));
    let page = deadlocked(&server, &admin).await;
    assert_eq!(page["title"], "One deadlock inside of orders-db blocks 2 owners");
    let found = cycle(&page);
    assert!(
        found[0].starts_with("one#") && found[0].contains(" advisory:postgres:2 other#"),
        "{found:?}"
    );
    assert!(page["deadlocks"][0]["cycle"][0]["joined"].is_null());
    // Its session ends with the task, and the other one gets its lock.
    first.abort();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'one'";
    let mut superuser = session(&postgres, "superuser").await;
    sqlx::query(end).execute(&mut superuser).await.unwrap();
    eventually("no deadlock", async || {
        let (_, page) = server.as_user(&admin).get("/v1/waits").await;
        page["deadlocksTotal"] == 0 && page["title"] == "No deadlock"
    })
    .await;
}

#[tokio::test]
async fn waits_of_a_lost_backend_stay_and_are_not_certain() {
    // The server of the cycle stops answering: the cycle stays, as possible, with the reason.
    let options = PostgresOptions {
        fast: true,
        ..Default::default()
    };
    let postgres = Throwaway::postgres(options).await.unwrap();
    let toml = format!(
        "[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"{}\"\npoll_interval = \"1s\"\n\
         timeout = \"300ms\"\nscan_timeout = \"300ms\"\n",
        postgres.superuser_url()
    );
    let server = TestServer::builder().config(&toml).operator().start().await;
    let admin = admin(&server).await;
    let (mut one, mut other) = (session(&postgres, "one").await, session(&postgres, "other").await);
    advisory(&mut one, 1).await;
    advisory(&mut other, 2).await;
    drop(wait_for_advisory(one, 2));
    drop(wait_for_advisory(other, 1));
    deadlocked(&server, &admin).await;
    postgres.pause().await.unwrap();
    let mut last = serde_json::Value::Null;
    eventually("the cycle is possible only", async || {
        last = server.as_user(&admin).get("/v1/waits").await.1;
        last["deadlocks"][0]["isCertain"] == false
    })
    .await;
    let doubt = last["deadlocks"][0]["doubt"].as_str().unwrap();
    assert!(doubt.contains("the last reading of orders-db is old"), "{last}");
    assert_eq!(last["waits"][0]["trust"], "stale");
    assert!(
        last["title"]
            .as_str()
            .unwrap()
            .starts_with("One possible deadlock"),
        "{last}"
    );
    let (_, html) = server.as_user(&admin).text("/waits").await;
    assert!(html.contains("possible cycle") && html.contains("edge old"));
    postgres.resume().await.unwrap();
    deadlocked(&server, &admin).await;
}

#[tokio::test]
async fn two_owners_of_the_lease_service_are_a_deadlock() {
    let server = TestServer::builder().operator().start().await;
    let admin = admin(&server).await;
    deadlock_of_leases(&server, &admin, ("a:close", "b:index"), ("worker-1", "worker-2")).await;
    let page = deadlocked(&server, &admin).await;
    assert_eq!(
        cycle(&page),
        ["worker-1 b:index worker-2", "worker-2 a:close worker-1"]
    );
    assert_eq!(
        page["deadlocks"][0]["cycle"][0]["wait"]["evidence"],
        "queue of the lease service"
    );
    assert_eq!(
        page["deadlocks"][0]["cycle"][0]["wait"]["isWaitedLowerBound"],
        false
    );
}
