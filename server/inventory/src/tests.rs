//! Inventory tests with hand-made batches and the time as an argument.

mod first_scans;
mod lock_delays;
mod long_names;
mod model;
mod owner_texts;
mod scans;
mod scoped;
mod sharers;
mod states;
mod unidentified;

use chrono::{DateTime, Utc};
use domain::backend::{BackendKind, BackendTraits};
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use domain::tick::Tick;

use super::{BackendInfo, Inventory, InventoryWriter};
use backends::{Pass, SourcePass};
use runtime::clock::ClockReading;

fn now(ms: i64) -> ClockReading {
    let epoch = DateTime::<Utc>::from_timestamp_millis(1_750_000_000_000).unwrap();
    ClockReading {
        wall: epoch + chrono::TimeDelta::milliseconds(ms),
        tick: Tick(ms),
    }
}

fn name(text: &str) -> BackendName {
    BackendName::parse(text).unwrap()
}

fn inventory(backends: &[&str]) -> (std::sync::Arc<Inventory>, Vec<InventoryWriter>) {
    let info = |backend: &&str| BackendInfo {
        name: name(backend),
        kind: BackendKind::Redis,
        address: "127.0.0.1".to_owned(),
        poll_interval_ms: 2_000,
        capabilities: Vec::new(),
        traits: BackendTraits::default(),
    };
    let inventory = Inventory::new(backends.iter().map(info).collect());
    let safety = Safety {
        class: SafetyClass::Efficiency,
        why: "no tokens".into(),
    };
    let feeds = backends.iter().map(|backend| {
        let safety = safety.clone();
        inventory
            .feed(&name(backend), now(0), move |_| (safety.clone(), 0))
            .unwrap()
    });
    let feeds = feeds.collect();
    (inventory, feeds)
}

/// A lock of the model.
#[derive(Debug, Clone, PartialEq)]
struct Modelled {
    remaining_ms: Option<i64>,
    waiters: Option<u32>,
    acquired_ago_ms: Option<i64>,
}

fn observed(resource: &[u8], source: &str, lock: &Modelled, at: i64) -> ObservedLock {
    let reported = |value: Option<i64>| value.map_or(Reported::unknown("not reported"), Reported::Value);
    ObservedLock {
        source: Source::parse(source).unwrap(),
        resource: Resource::from_bytes(resource),
        owner: Reported::Value(OwnerId::new("worker-1")),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::absent("none here"),
        generation: Reported::Value(domain::generation::Generation::new("g")),
        fencing_token: Reported::absent("none here"),
        acquired_at: reported(lock.acquired_ago_ms)
            .map(|ago| now(at).wall - chrono::TimeDelta::milliseconds(ago)),
        renewed_at: Reported::unknown("not reported"),
        lifetime: match lock.remaining_ms {
            Some(remaining_ms) => Lifetime::Leased {
                remaining_ms,
                ttl_ms: Reported::Value(30_000),
            },
            None => Lifetime::NoTtl {
                why: "PTTL is -1".into(),
            },
        },
        waiter_count: lock
            .waiters
            .map_or(Reported::unknown("not reported"), Reported::Value),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: None,
    }
}

fn complete(sources: &[&str]) -> Pass {
    let part = |source: &&str| SourcePass {
        source: Source::parse(source).unwrap(),
        coverage: Coverage::Complete,
        fault: None,
    };
    Pass {
        sources: sources.iter().map(part).collect(),
        clock: Reported::unknown("no clock"),
    }
}
