//! Keys of a throwaway Redis.

use testkit::Redis;

/// One command, by a connection of its own.
pub(crate) async fn redis_do(redis: &Redis, words: &[&str]) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    let _: redis::Value = command.query_async(&mut connection).await.unwrap();
}

/// Sets a lock for ten minutes, with the owner's secret as its value.
pub(crate) async fn hold_key(redis: &Redis, key: &str) {
    redis_do(redis, &["SET", key, "secret-of-worker", "PX", "600000"]).await;
}
