//! A console that starts before its backends: they are shown as down, and recover without a restart. One that starts
//! without its standard output.

use crate::support::TestServer;
use std::net::TcpListener;

use ::testkit::{EtcdOptions, PostgresOptions, RedisOptions, Throwaway};
use serde_json::Value;

use super::running_server::Running;
use testkit::eventually;

/// Each kind at this address.
fn each(suffix: &str, [postgres, redis, etcd]: [&str; 3]) -> String {
    let rest = "poll_interval = \"1s\"\ntimeout = \"500ms\"\n";
    format!(
        "[[backend]]\nname = \"postgres-{suffix}\"\nkind = \"postgres\"\nurl = \"{postgres}\"\n{rest}\
         [[backend]]\nname = \"redis-{suffix}\"\nkind = \"redis\"\nurls = [\"{redis}\"]\n{rest}\
         [[backend]]\nname = \"etcd-{suffix}\"\nkind = \"etcd\"\nendpoints = [\"{etcd}\"]\n{rest}"
    )
}

fn status<'a>(backends: &'a Value, name: &str) -> &'a str {
    let backends = backends.as_array().unwrap();
    let it = backends.iter().find(|it| it["name"] == name).unwrap();
    it["status"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_starts_without_its_backends() {
    // Detects a start that waits for a backend, or fails without it; a backend that is down and shown as empty; one
    // that stays down when its server is up; and a hanging one or an unresolvable name that delays the others.
    let postgres = Throwaway::postgres(PostgresOptions::default()).await.unwrap();
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let etcd = Throwaway::etcd(EtcdOptions::default()).await.unwrap();
    postgres.stop().await.unwrap();
    redis.stop().await.unwrap();
    etcd.stop().await.unwrap();
    // The kernel accepts the connection; no process reads or answers.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = hanging.local_addr().unwrap().port();
    let later = each(
        "later",
        [&postgres.superuser_url(), &redis.url(), &etcd.endpoint()],
    );
    let hangs = each(
        "hangs",
        [
            &format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            &format!("redis://127.0.0.1:{port}"),
            &format!("http://127.0.0.1:{port}"),
        ],
    );
    let unknown = each(
        "unknown",
        [
            "postgres://postgres@nobody.invalid/postgres",
            "redis://nobody.invalid",
            "http://nobody.invalid:2379",
        ],
    );
    let console = TestServer::builder()
        .config(&format!("{later}{hangs}{unknown}"))
        .operator()
        .start()
        .await;
    console.ready().await;
    let kinds = ["postgres", "redis", "etcd"];
    for suffix in ["later", "hangs", "unknown"] {
        for kind in kinds {
            let name = format!("{kind}-{suffix}");
            eventually(&format!("{name} is down, with its reason"), || async {
                let backends = console.json("/v1/backends").await;
                let it = backends
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|it| it["name"] == name.as_str());
                status(&backends, &name) == "down" && it.unwrap()["error"]["message"].is_string()
            })
            .await;
        }
    }
    let backends = console.json("/v1/backends").await;
    assert_eq!(status(&backends, "builtin"), "live", "{backends}");

    postgres.restart().await.unwrap();
    redis.restart().await.unwrap();
    etcd.restart().await.unwrap();
    for kind in kinds {
        eventually(&format!("{kind}-later came up"), || async {
            status(&console.json("/v1/backends").await, &format!("{kind}-later")) == "live"
        })
        .await;
    }
    let backends = console.json("/v1/backends").await;
    for suffix in ["hangs", "unknown"] {
        for kind in kinds {
            let name = format!("{kind}-{suffix}");
            assert_eq!(status(&backends, &name), "down", "{backends}");
        }
    }
    drop(hanging);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_serves_without_standard_output() {
    // Each server of these tests has a full disk there.
    let running = Running::start("").await;
    running.logs("standard output cannot be written").await;
}
