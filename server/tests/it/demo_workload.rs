//! The demo shows what it promises: each situation is there on the real servers within a minute, seen by plain client
//! queries through the accounts that the console gets; and its end leaves nothing behind.

mod alerts;
mod console;
mod end;
mod etcd;
mod faults;
mod postgres;
mod redis;
mod watched;

use std::time::Duration;

use leasehold::config::{BackendConfig, SystemConfig};
use leasehold::demo::{self, Demo};
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

fn backend(demo: &Demo, name: &str) -> SystemConfig {
    let of_name = |backend: &BackendConfig| backend.name.as_str() == name;
    demo.backends()
        .into_iter()
        .find(of_name)
        .unwrap_or_else(|| panic!("no backend {name}"))
        .system
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_situation_shows_on_the_real_servers_within_a_minute() {
    // All of them at once, because each may take most of its minute.
    let demo = demo::start(CancellationToken::new()).await.unwrap();
    assert_eq!(demo.missing(), []);
    let names: Vec<String> = demo
        .backends()
        .into_iter()
        .map(|backend| backend.name.into())
        .collect();
    assert_eq!(names, ["orders-db", "redis-cache", "cache-eu", "etcd-coord"]);
    tokio::join!(
        postgres::shows_all(&demo),
        redis::shows_all(&demo),
        etcd::shows_all(&demo)
    );
    demo.end().await;
}
