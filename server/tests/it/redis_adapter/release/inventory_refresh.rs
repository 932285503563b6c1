//! The inventory after a forced unlock.

use std::time::Duration;

use ::backends::{Backend, refresh_after_release::RefreshOnRelease};
use ::inventory::{BackendInfo, Inventory, LookUp};
use domain::force_release::Release;
use domain::names::{BackendName, Source};
use leasehold::observer::{self, Pace};
use runtime::clock::Clock;
use tokio_util::sync::CancellationToken;

use super::super::{driver, key, run, start};
use super::unlocker;
use crate::support::unlocking::unlock;
use testkit::eventually;

#[tokio::test]
async fn the_inventory_learns_of_an_unlock_at_once() {
    // No notifications, and the next scan in ten minutes: only the refresh after the release can show it.
    let redis = start().await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "one"]).await;
    let backend: std::sync::Arc<dyn Backend> = std::sync::Arc::new(unlocker(&redis));
    let (name, clock, stop) = (
        BackendName::parse("cache").unwrap(),
        Clock::start(),
        CancellationToken::new(),
    );
    let _end = stop.clone().drop_guard();
    let inventory = Inventory::new(vec![BackendInfo {
        name: name.clone(),
        kind: backend.kind(),
        address: backend.address(),
        poll_interval_ms: 600_000,
        capabilities: backend.capabilities(),
        traits: backend.traits(),
    }]);
    let traits = backend.clone();
    let describe = move |source: &Source| (traits.safety(source), traits.grain_ms(source));
    let feed = inventory.feed(&name, clock.now(), describe).unwrap();
    let pace = Pace {
        poll_interval: Duration::from_secs(600),
        timeout: Duration::from_secs(10),
        scan_timeout: Duration::from_secs(60),
    };
    let hints = observer::start(backend.clone(), feed, pace, clock.clone(), &stop);
    let announcing = RefreshOnRelease::new(backend, hints, |_, _, _| {});
    let held = || {
        let looked = inventory.find_lock(&name, Some(&key()), "lock:a", clock.now());
        matches!(looked, LookUp::Found(..))
    };
    eventually("it is observed", async || held()).await;
    assert_eq!(
        unlock(&announcing, &key(), &"lock:a".into()).await,
        Release::Released
    );
    eventually("its release is observed", async || !held()).await;
}
