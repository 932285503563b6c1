//! The inventory at 1,000,000 locks: memory per lock, and the first page of any prefix query.

use std::sync::Arc;

use domain::access::{Grant, Grants, Role, Visible};
use domain::backend::{BackendKind, BackendTraits};
use domain::generation::Generation;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock};
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use domain::state::LockState;

use super::metric::{Figure, Goal};
use backends::{Batch, Pass, SourcePass};
use inventory::{BackendInfo, Inventory, InventoryWriter};
use runtime::clock::Clock;

pub(crate) const LOCKS: usize = 1_000_000;
const BATCH: usize = 1_000;
const SCOPED_STREAMS: usize = 200;

/// Runs all measurements; about 15 s in release.
pub(crate) fn run(clock: &Clock) -> Vec<Figure> {
    let before = resident_bytes();
    let (inventory, feed) = make(clock);
    let names = fill(&feed, clock, 0);
    let held = resident_bytes().saturating_sub(before).saturating_sub(names);
    let first = clock.tick();
    fill(&feed, clock, 1);
    let again_ms = clock.tick().since(first);
    let mut figures = vec![
        Figure::at_most(
            "memory per lock without its name",
            held as f64 / LOCKS as f64,
            300.0,
            "bytes",
        ),
        Figure::plain("ingesting a scan of 1,000,000 known locks", again_ms as f64, "ms"),
    ];
    figures.extend(queries(&inventory, clock));
    figures.push(scoped_streams(&inventory, &feed, clock));
    figures
}

fn make(clock: &Clock) -> (Arc<Inventory>, InventoryWriter) {
    // A constant that always parses.
    let name = BackendName::parse("bench").unwrap_or_else(|_| unreachable!());
    let inventory = Inventory::new(vec![BackendInfo {
        name: name.clone(),
        kind: BackendKind::Redis,
        address: "none".to_owned(),
        // Live during the measurement, which scans twice.
        poll_interval_ms: 60_000,
        capabilities: Vec::new(),
        traits: BackendTraits::default(),
    }]);
    let safety = Safety {
        class: SafetyClass::Efficiency,
        why: "bench".into(),
    };
    let feed = inventory.feed(&name, clock.now(), move |_| (safety.clone(), 0));
    (inventory, feed.unwrap_or_else(|| unreachable!()))
}

/// One scan in an order different from that of names, as with SCAN; returns the bytes of all names.
fn fill(feed: &InventoryWriter, clock: &Clock, pass: i64) -> u64 {
    let source = Source::fixed("key");
    feed.begin(clock.now());
    let mut bytes = 0;
    for start in (0..LOCKS).step_by(BATCH) {
        let sent_at = clock.tick();
        let locks: Vec<ObservedLock> = (start..start + BATCH)
            .map(|index| {
                let lock = lock(scattered(index), &source, pass);
                bytes += lock.resource.as_bytes().len() as u64;
                lock
            })
            .collect();
        feed.accept(Batch {
            sent_at,
            locks,
            gone: Vec::new(),
        });
    }
    let part = SourcePass {
        source,
        coverage: Coverage::Complete,
        fault: None,
    };
    feed.end(
        Pass {
            sources: vec![part],
            clock: Reported::unknown("bench"),
        },
        clock.now(),
    );
    bytes
}

/// A permutation of the indices: the multiplier is odd and coprime to 1,000,000.
fn scattered(index: usize) -> usize {
    index * 611_953 % LOCKS
}

fn lock(index: usize, source: &Source, pass: i64) -> ObservedLock {
    let name = format!(
        "tenant_{:03}:queue-{:02}:job-{index:07}",
        index % 400,
        index / 400 % 50
    );
    let remaining_ms = 5_000 + (index as i64 * 37) % 25_000 - pass;
    ObservedLock {
        source: source.clone(),
        resource: Resource::from(name.as_str()),
        owner: Reported::Value(OwnerId::new(format!(
            "fingerprint:{:08x}",
            index * 2_654_435_761 % 0xffff_ffff
        ))),
        owner_count: 1,
        sharers: Vec::new(),
        lease_id: Reported::absent("a plain value names no lease"),
        generation: Reported::Value(Generation::new(format!("value:{index:016x}"))),
        fencing_token: Reported::absent("Redis issues no fencing tokens"),
        acquired_at: Reported::unknown("Redis does not record it"),
        renewed_at: Reported::unknown("Redis does not record it"),
        lifetime: if index.is_multiple_of(997) {
            Lifetime::NoTtl {
                why: "PTTL is -1".into(),
            }
        } else {
            Lifetime::Leased {
                remaining_ms,
                ttl_ms: Reported::unknown("Redis does not tell it"),
            }
        },
        waiter_count: Reported::unknown("Redis keeps no queue"),
        oldest_waiter_ms: None,
        line: Vec::new(),
        condition: None,
    }
}

fn queries(inventory: &Inventory, clock: &Clock) -> Vec<Figure> {
    let prefixes = [
        "",
        "t",
        "tenant_1",
        "tenant_123:",
        "tenant_123:queue-0",
        "tenant_123:queue-07:job-0",
    ];
    let mut worst: (f64, String) = (0.0, String::new());
    let mut tree_worst = 0.0f64;
    for prefix in prefixes {
        for key in SortKey::ALL {
            for descending in [false, true] {
                for states in [vec![], vec![LockState::NoTtl], vec![LockState::Healthy]] {
                    let sort = Sort { key, descending };
                    let prefix = prefix.to_owned();
                    let query = InventoryQuery {
                        prefix,
                        sort,
                        states,
                        ..InventoryQuery::default()
                    };
                    let ms = median_ms(|| drop(inventory.page(&query, clock.now())));
                    if ms > worst.0 {
                        let only = query.states.first().map_or("any", |state| state.as_str());
                        worst = (
                            ms,
                            format!(
                                "prefix {:?}, sort {}, state {only}",
                                query.prefix,
                                sort.to_query_value()
                            ),
                        );
                    }
                }
            }
        }
        tree_worst = tree_worst.max(median_ms(|| {
            drop(inventory.prefixes(prefix, &Visible::default(), clock.now()))
        }));
    }
    let name = format!(
        "first page of a prefix query at 1,000,000 locks, the slowest of 180 ({})",
        worst.1
    );
    vec![
        Figure {
            name,
            measured: worst.0,
            unit: "ms",
            goal: Goal::AtMost(5.0),
            spread: None,
        },
        Figure::plain(
            "children of a prefix in the segment tree, the slowest",
            tree_worst,
            "ms",
        ),
    ]
}

/// Cost of 200 event streams with limited scopes while other locks change: each queries twice a second.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures finer than the server's clock tells"
)]
fn scoped_streams(inventory: &Inventory, feed: &InventoryWriter, clock: &Clock) -> Figure {
    const ROUNDS: usize = 20;
    let grant = |prefix: String| Grant {
        role: Role::Viewer,
        backend: None,
        prefix: Some(prefix),
    };
    // Different scopes of 2,500 locks each, so that no cached counts are shared.
    let viewers: Vec<Visible> = (0..SCOPED_STREAMS)
        .map(|tenant| Visible::to(&Grants::new(vec![grant(format!("tenant_{tenant:03}"))])))
        .collect();
    let source = Source::fixed("key");
    let mut elapsed = std::time::Duration::ZERO;
    for round in 0..ROUNDS {
        let changed = (0..BATCH).map(|index| lock(scattered(round * BATCH + index), &source, 2));
        feed.accept(Batch {
            sent_at: clock.tick(),
            locks: changed.collect(),
            gone: Vec::new(),
        });
        let started = std::time::Instant::now();
        for visible in &viewers {
            let now = clock.now();
            std::hint::black_box(inventory.revision_of(visible, now));
            std::hint::black_box(inventory.summary(visible, now));
        }
        elapsed += started.elapsed();
    }
    Figure::at_most(
        &format!("{SCOPED_STREAMS} event streams of scoped viewers at 1,000,000 locks"),
        elapsed.as_secs_f64() / ROUNDS as f64 * 2.0,
        0.5,
        "cores",
    )
}

/// Median of nine runs, in milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures finer than the server's clock tells"
)]
fn median_ms(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let started = std::time::Instant::now();
            work();
            started.elapsed().as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}
