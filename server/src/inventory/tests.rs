//! The inventory fed by hand, with the time as an argument.

mod model;
mod passes;
mod scoped;
mod states;

use chrono::{DateTime, Utc};
use domain::backend::BackendKind;
use domain::known::Known;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock, Tick};
use domain::safety::{Safety, SafetyClass};

use super::{BackendInfo, Feed, Inventory};
use crate::backends::{Pass, SourcePass};
use crate::clock::Now;

fn now(ms: i64) -> Now {
    let epoch = DateTime::<Utc>::from_timestamp_millis(1_750_000_000_000).unwrap();
    Now {
        wall: epoch + chrono::TimeDelta::milliseconds(ms),
        tick: Tick(ms),
    }
}

fn name(text: &str) -> BackendName {
    BackendName::parse(text).unwrap()
}

fn inventory(backends: &[&str]) -> (std::sync::Arc<Inventory>, Vec<Feed>) {
    let info = |backend: &&str| BackendInfo {
        name: name(backend),
        kind: BackendKind::Redis,
        address: "127.0.0.1".to_owned(),
        poll_ms: 2_000,
        capabilities: Vec::new(),
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

/// A lock as the model keeps it.
#[derive(Debug, Clone, PartialEq)]
struct Modelled {
    remaining_ms: Option<i64>,
    waiters: Option<u32>,
    acquired_ago_ms: Option<i64>,
}

fn observed(resource: &[u8], source: &str, lock: &Modelled, at: i64) -> ObservedLock {
    let told = |value: Option<i64>| value.map_or(Known::unknown("not told"), Known::Known);
    ObservedLock {
        source: Source::parse(source).unwrap(),
        resource: Resource::from_bytes(resource),
        owner: Known::Known(OwnerId::new("worker-1")),
        owner_count: 1,
        lease_id: Known::absent("none here"),
        generation: Known::Known(domain::generation::Generation::new("g")),
        fencing_token: Known::absent("none here"),
        acquired_at: told(lock.acquired_ago_ms)
            .map(|ago| now(at).wall - chrono::TimeDelta::milliseconds(ago)),
        renewed_at: Known::unknown("not told"),
        lifetime: match lock.remaining_ms {
            Some(remaining_ms) => Lifetime::Leased {
                remaining_ms,
                ttl_ms: Known::Known(30_000),
            },
            None => Lifetime::NoTtl {
                why: "PTTL is -1".into(),
            },
        },
        waiter_count: lock.waiters.map_or(Known::unknown("not told"), Known::Known),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: None,
    }
}

fn whole(sources: &[&str]) -> Pass {
    let part = |source: &&str| SourcePass {
        source: Source::parse(source).unwrap(),
        coverage: Coverage::Complete,
        fault: None,
    };
    Pass {
        sources: sources.iter().map(part).collect(),
        clock: Known::unknown("no clock"),
    }
}
