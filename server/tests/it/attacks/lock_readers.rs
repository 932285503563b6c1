//! Many readers of one lock's page: its backend is read for all of them together, not once for each.

use ::testkit::{Redis, RedisOptions, Throwaway};
use futures::future::join_all;

use crate::support::TestServer;

const READERS: usize = 60;

async fn driver(redis: &Redis) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// How often a key's type was read: once by each read of a lock, and by no other command of this test.
async fn type_reads(driver: &mut redis::aio::MultiplexedConnection) -> usize {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query_async(driver)
        .await
        .unwrap();
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_type:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn many_readers_of_a_lock_read_its_backend_together() {
    // Scanned once in ten minutes, so that every other read is for a page.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let mut driver = driver(&redis).await;
    let () = redis::cmd("SET")
        .arg(&["lock:a", "owner"])
        .query_async(&mut driver)
        .await
        .unwrap();
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{}\"]\n\
         patterns = [\"lock:*\"]\npoll_interval = \"10m\"\n",
        redis.port()
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    server.ready().await;
    let before = type_reads(&mut driver).await;
    let reader = server.as_user(&operator);
    let read = || reader.get("/v1/inventory/cache/lock:a");
    assert_eq!(read().await.0, 200);
    let each = type_reads(&mut driver).await - before;
    assert!(each > 0);
    for (status, lock) in join_all((0..READERS).map(|_| read())).await {
        assert_eq!(status, 200, "{lock}");
    }
    let all = type_reads(&mut driver).await - before;
    assert!(
        all < each * READERS / 2,
        "{all} reads for {READERS} readers, {each} for one"
    );
}
