//! A cluster that is promoted or restored while a server runs.

use testkit::{PostgresOptions, Throwaway};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_postgres_raises_the_epoch_of_a_large_store() {
    // All counters are read: a trigger makes it as slow as in a large store.
    let options = PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    };
    let server = Throwaway::postgres(options).await.unwrap();
    let opened = PostgresStore::open(&server.superuser_url(), Clock::start()).await;
    let mut store = opened.unwrap();
    store.identity = "before".to_owned();
    let slow = "UPDATE store_meta SET cluster_identity = 'before';
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(2); RETURN NEW; END $$;
        CREATE TRIGGER wait BEFORE UPDATE ON store_meta FOR EACH ROW EXECUTE FUNCTION wait()";
    sqlx::raw_sql(slow).execute(&store.readers).await.unwrap();
    let mut session = store.connect().await.unwrap();
    let read = "SELECT epoch, current_setting('statement_timeout') FROM store_meta";
    let found: (i64, String) = sqlx::query_as(read).fetch_one(&mut session).await.unwrap();
    // The session has the timeout of a lease operation again.
    assert_eq!(found, (2, "1500ms".to_owned()));
}
