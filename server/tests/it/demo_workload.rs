//! Each situation that the demo promises exists on the real servers within a minute, as read by plain clients through
//! the console's accounts; its shutdown leaves no data or process behind.

mod alerts;
mod backends;
mod console;
mod etcd;
mod faults;
mod postgres;
mod redis;
mod shutdown;

use std::time::Duration;

use ::config::{BackendConfig, SystemConfig};
use ::demo::{self, Demo};
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

/// With the TLS library that the binary chooses at its start.
async fn start(stop: CancellationToken) -> Demo {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = demo::create_folder().unwrap();
    Box::pin(demo::start(folder, stop)).await.unwrap()
}

fn backend(demo: &Demo, name: &str) -> SystemConfig {
    let of_name = |backend: &BackendConfig| backend.name.as_str() == name;
    demo.backends()
        .into_iter()
        .find(of_name)
        .unwrap_or_else(|| panic!("no backend {name}"))
        .system
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_demo_situation_appears_on_real_servers() {
    // In parallel, because each may take most of its minute.
    let demo = start(CancellationToken::new()).await;
    assert_eq!(demo.missing_servers(), []);
    let names: Vec<String> = demo
        .backends()
        .into_iter()
        .map(|backend| backend.name.into())
        .collect();
    assert_eq!(
        names,
        [
            "orders-db",
            "redis-cache",
            "cache-eu",
            "payments-redlock",
            "etcd-coord",
            "zk-plan",
            "consul-dc1"
        ]
    );
    tokio::join!(
        postgres::shows_all(&demo),
        redis::shows_all(&demo),
        etcd::shows_all(&demo)
    );
    demo.end().await;
}
