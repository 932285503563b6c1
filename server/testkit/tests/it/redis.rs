//! The throwaway Redis.

use std::time::Duration;

use leasehold_testkit::{Redis, RedisOptions, StartError, Throwaway};
use redis::{AsyncCommands, Client, ClientTlsConfig, TlsCertificates, aio::MultiplexedConnection};

use leasehold_testkit::{Certs, hangs};

async fn connect(url: &str) -> MultiplexedConnection {
    Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap()
}

async fn start(options: RedisOptions) -> Redis {
    Throwaway::redis(options).await.unwrap()
}

#[tokio::test]
async fn appended_data_survives_a_kill() {
    // appendfsync is Redis's own everysec: the write reaches the kernel before the answer, and survives the process.
    let redis = start(RedisOptions {
        append_only: true,
        ..Default::default()
    })
    .await;
    let () = connect(&redis.url()).await.set("lock:a", "v").await.unwrap();
    redis.kill().await.unwrap();
    assert!(
        Client::open(redis.url())
            .unwrap()
            .get_multiplexed_async_connection()
            .await
            .is_err()
    );
    redis.restart().await.unwrap();
    let value: String = connect(&redis.url()).await.get("lock:a").await.unwrap();
    assert_eq!(value, "v");
}

#[tokio::test]
async fn without_append_only_file_a_restart_loses_all_keys() {
    // The default: a test that restarts it sees an empty Redis.
    let redis = start(RedisOptions::default()).await;
    let () = connect(&redis.url()).await.set("lock:a", "v").await.unwrap();
    redis.restart().await.unwrap();
    let value: Option<String> = connect(&redis.url()).await.get("lock:a").await.unwrap();
    assert_eq!(value, None);
}

#[tokio::test]
async fn passwords_users_and_notifications_are_configurable() {
    // The default user needs the password; the watcher may read locks only.
    let options = RedisOptions {
        notify_keyspace_events: Some("KEA".to_owned()),
        password: Some("p\"a\\ss @/".to_owned()),
        acl_users: vec!["watcher on >secret ~lock:* +@read".to_owned()],
        ..Default::default()
    };
    let redis = start(options).await;
    let events: Vec<String> = redis::cmd("CONFIG")
        .arg("GET")
        .arg("notify-keyspace-events")
        .query_async(&mut connect(&redis.url()).await)
        .await
        .unwrap();
    assert_eq!(events[1], "AKE");
    let mut watcher = connect(&redis.url_for("watcher", "secret")).await;
    let value: Option<String> = watcher.get("lock:a").await.unwrap();
    assert_eq!(value, None);
    assert!(watcher.set::<_, _, ()>("lock:a", "v").await.is_err());
    let stranger = format!("redis://127.0.0.1:{}/", redis.port());
    assert!(
        connect(&stranger)
            .await
            .get::<_, Option<String>>("lock:a")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_paused_server_answers_nothing_until_it_is_resumed() {
    // The connection stays open meanwhile, and a new one is still accepted by the kernel.
    let redis = start(RedisOptions::default()).await;
    redis.pause().await.unwrap();
    assert!(hangs(Duration::from_millis(200), leasehold_ping(&redis)).await);
    redis.resume().await.unwrap();
    leasehold_ping(&redis).await;
}

async fn leasehold_ping(redis: &Redis) {
    let () = redis::cmd("PING")
        .query_async(&mut connect(&redis.url()).await)
        .await
        .unwrap();
}

#[tokio::test]
async fn tls_is_verified_against_the_authority() {
    // rediss:// with our authority answers; with the system's authorities it must not.
    let certs = Certs::make();
    let redis = start(RedisOptions {
        tls: Some(certs.server()),
        ..Default::default()
    })
    .await;
    let url = redis.tls_url().unwrap();
    let root_cert = Some(std::fs::read(certs.ca()).unwrap());
    let trust = TlsCertificates {
        client_tls: None::<ClientTlsConfig>,
        root_cert,
    };
    let client = Client::build_with_tls(url.as_str(), trust).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let () = connection.set("a", 1).await.unwrap();
    assert!(
        Client::open(url)
            .unwrap()
            .get_multiplexed_async_connection()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    // The same port again on each attempt: a second `port` line overrides the first.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = vec![format!("port {}", taken.local_addr().unwrap().port())];
    let error = Throwaway::redis(RedisOptions {
        config,
        ..Default::default()
    })
    .await
    .unwrap_err();
    assert!(matches!(error, StartError::PortTaken { .. }), "{error:?}");
}
