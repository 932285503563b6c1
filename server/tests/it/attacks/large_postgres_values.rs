//! A writer of a watched lease table stores names and owners of hundreds of megabytes, to end the console by its memory.

use ::testkit::{PostgresOptions, Throwaway};
use sqlx::Connection;

use super::memory::Memory;
use crate::process::running_server::Running;
use testkit::eventually;

/// Peak memory that the console may add.
const ADDED_BYTES_MAX: u64 = 64 * 1024 * 1024;

const TABLE: &str = "
CREATE TABLE distributed_locks (resource text, owner_id text, lease_id text, fencing_token bigint,
  expires_at timestamptz, created_at timestamptz, updated_at timestamptz, note text);
INSERT INTO distributed_locks VALUES ('small', 'worker', 'l-1', 1, now() + interval '1 hour', now(), now(), '')";

const LARGE: &str = "
INSERT INTO distributed_locks VALUES
  (repeat('n', 200000000), 'worker', 'l-2', 2, now() + interval '1 hour', now(), now(), ''),
  ('large', repeat('o', 200000000), repeat('l', 200000000), 3, now() + interval '1 hour', now(), now(),
   repeat('x', 200000000))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_200_mb_cost_no_memory_and_show_their_size() {
    // A name that is too long makes the list partial; a long owner is cut, a long lease id unknown, a long column not read.
    let postgres = Throwaway::postgres(PostgresOptions::default()).await.unwrap();
    let url = postgres.superuser_url();
    let mut driver = sqlx::PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(TABLE).execute(&mut driver).await.unwrap();
    let toml = format!(
        "[[backend]]\nname = \"orders\"\nkind = \"postgres\"\nurl = \"{url}\"\npoll_interval = \"1s\"\ntimeout = \"20s\"\n\
         scan_timeout = \"60s\"\n[[backend.lease_table]]\ntable = \"public.distributed_locks\"\npreset = \"common\"\n"
    );
    let running = Running::start(&toml).await;
    let listed = async |name: &str| {
        let path = format!("/v1/inventory?backend=orders&prefix={name}");
        eventually(&format!("{name} is listed"), async || {
            !running.json(&path).await["locks"][0].is_null()
        })
        .await;
        running.json(&path).await["locks"][0].clone()
    };
    listed("small").await;
    let memory = Memory::read(running.pid());
    let before = memory.reset_peak();
    sqlx::raw_sql(LARGE).execute(&mut driver).await.unwrap();
    let large = listed("large").await;
    assert_eq!(large["ownerId"].as_str().unwrap().len(), 1024, "{large}");
    assert!(large["leaseId"].is_null(), "{large}");
    let detail = running.json("/v1/inventory/orders/large").await;
    let raw = detail["raw"].to_string();
    assert!(raw.contains("not read: 200000000 bytes"), "{raw}");
    let backends = running.json("/v1/backends").await.to_string();
    assert!(
        backends.contains("1 row with a resource of more than 64 KiB"),
        "{backends}"
    );
    let added = memory.peak().saturating_sub(before);
    assert!(added < ADDED_BYTES_MAX, "{} MB more", added / 1_000_000);
}
