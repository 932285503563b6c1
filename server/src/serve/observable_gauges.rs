//! Observable gauges: current values of the inventory and the lease service.
//!
//! **Invariant:** values come from memory; reading metrics never queries a backend or a store.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use domain::backend::{BackendStatus, BackendView};
use domain::observation::Coverage;
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::unlock::UnlockState;
use opentelemetry::metrics::AsyncInstrument;
use opentelemetry::{KeyValue, StringValue};

use crate::alerts::EvaluatorMonitor;
use inventory::{BackendInfo, Inventory};
use lease::{LeaseMetrics, LeaseService};
use runtime::clock::Clock;
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::{BackendAttributes, Instruments, seconds};
use runtime::telemetry::metric_names::{self, Metric};

/// Registers the gauges, which hold only weak references.
pub(super) fn start(inventory: &Arc<Inventory>, leases: &Arc<LeaseService>, clock: &Clock) {
    let meters = instruments();
    let watch = Watch {
        inventory: Arc::downgrade(inventory),
        clock: clock.clone(),
    };
    watch.backends(meters);
    watch.counts(meters);
    attempts(meters, &metric_names::RENEW_ATTEMPTS, leases, |metrics| {
        metrics.renew_attempts.read("renewed")
    });
    attempts(meters, &metric_names::RELEASE_ATTEMPTS, leases, |metrics| {
        metrics.release_attempts.read("released")
    });
}

/// Starts the counters of a backend at 0, when its observation starts.
pub(super) fn zero_counters(backend: &BackendInfo) {
    let outcomes = [
        UnlockState::Released,
        UnlockState::HolderChanged,
        UnlockState::AlreadyFree,
        UnlockState::Refused,
        UnlockState::OutcomeUnknown,
    ]
    .map(UnlockState::as_str);
    let attributes = BackendAttributes {
        name: backend.name.as_str().into(),
        system: backend.kind.as_str(),
    };
    instruments().zero(&attributes, &outcomes);
}

/// Age of the last alert evaluation by any replica.
pub(super) fn evaluation(evaluation: &Arc<EvaluatorMonitor>) {
    let evaluation = Arc::downgrade(evaluation);
    let what = &metric_names::ALERT_EVALUATION_AGE;
    let gauge = instruments().meter.f64_observable_gauge(what.name);
    let _gauge = gauge
        .with_unit(what.unit)
        .with_description(what.help)
        .with_callback(move |observer| {
            if let Some(evaluation) = evaluation.upgrade() {
                observer.observe(seconds(evaluation.age_ms()), &[]);
            }
        })
        .build();
}

fn attributes_for(view: &BackendView) -> BackendAttributes {
    BackendAttributes {
        name: view.name.as_str().into(),
        system: view.kind.as_str(),
    }
}

#[derive(Clone)]
struct Watch {
    inventory: Weak<Inventory>,
    clock: Clock,
}

impl Watch {
    fn backends(&self, meters: &Instruments) {
        self.gauge(meters, &metric_names::BACKEND_SNAPSHOT_AGE, |_, view| {
            view.age_ms.map(seconds)
        });
        self.gauge(meters, &metric_names::BACKEND_COVERAGE, |_, view| share(view));
        self.gauge(meters, &metric_names::CLOCK_OFFSET, |_, view| {
            let offset = *view.clock_offset_ms.known()?;
            Some(seconds(offset.abs()).copysign(if offset < 0 { -1.0 } else { 1.0 }))
        });
        let clock = self.clock.clone();
        self.gauge(meters, &metric_names::LEASE_OLDEST_AGE, move |inventory, view| {
            oldest_s(inventory, view, &clock)
        });
    }

    fn gauge(
        &self,
        meters: &Instruments,
        of_what: &Metric,
        read: impl Fn(&Inventory, &BackendView) -> Option<f64> + Send + Sync + 'static,
    ) {
        let Self { inventory, clock } = self.clone();
        let gauge = meters.meter.f64_observable_gauge(of_what.name);
        let _gauge = gauge
            .with_unit(of_what.unit)
            .with_description(of_what.help)
            .with_callback(move |observer| {
                let Some(inventory) = inventory.upgrade() else {
                    return;
                };
                for view in inventory.backends(clock.now()) {
                    if let Some(value) = read(&inventory, &view) {
                        observer.observe(value, &attributes_for(&view).pairs());
                    }
                }
            })
            .build();
    }

    /// Locks and waiters by template.
    fn counts(&self, meters: &'static Instruments) {
        for (what, read) in [
            (
                metric_names::LEASE_ACTIVE,
                (|held, _| held) as fn(u64, u64) -> u64,
            ),
            (metric_names::WAITER_ACTIVE, |_, waiting| waiting),
        ] {
            let Self { inventory, clock } = self.clone();
            let builder = meters.meter.i64_observable_up_down_counter(what.name);
            let _counter = builder
                .with_unit(what.unit)
                .with_description(what.help)
                .with_callback(move |observer| {
                    if let Some(inventory) = inventory.upgrade() {
                        count(meters, &inventory, &clock, read, observer);
                    }
                })
                .build();
        }
    }
}

fn count(
    meters: &Instruments,
    inventory: &Inventory,
    clock: &Clock,
    read: fn(u64, u64) -> u64,
    observer: &dyn AsyncInstrument<i64>,
) {
    let now = clock.now();
    let views = inventory.backends(now);
    for backend in inventory.watched(now) {
        // An outdated value is worse than none.
        let view = views.iter().find(|view| view.name == backend.name);
        let Some(view) = view.filter(|_| backend.is_watched) else {
            continue;
        };
        let of = attributes_for(view);
        let mut sums: HashMap<StringValue, u64> = HashMap::new();
        for group in backend.groups {
            let prefix = meters.prefixes.intern(&of.name, &group.template);
            *sums.entry(prefix).or_default() += read(group.held, group.waiting);
        }
        for (prefix, sum) in sums {
            let [name, system] = of.pairs();
            let prefix = KeyValue::new(metric_names::PREFIX, prefix);
            observer.observe(i64::try_from(sum).unwrap_or(i64::MAX), &[name, system, prefix]);
        }
    }
}

/// The scanned share; `None` while unknown.
fn share(view: &BackendView) -> Option<f64> {
    if view.status.blinds_rows() || view.status == BackendStatus::Starting {
        return Some(0.0);
    }
    match &view.coverage {
        Coverage::Complete => Some(1.0),
        Coverage::Partial { seen, of, .. } => {
            let of = of.filter(|of| *of > 0)?;
            let share = *seen as f64 / of as f64;
            Some(share.min(1.0))
        }
    }
}

fn oldest_s(inventory: &Inventory, view: &BackendView, clock: &Clock) -> Option<f64> {
    if view.status.blinds_rows() {
        return None;
    }
    let query = InventoryQuery {
        backends: vec![view.name.clone()],
        sort: Sort {
            key: SortKey::Held,
            descending: true,
        },
        limit: 1,
        ..InventoryQuery::default()
    };
    let page = inventory.page(&query, clock.now()).ok()?;
    let held_ms = page
        .locks
        .first()
        .map_or(Some(0), |lock| lock.held_ms.known().copied());
    held_ms.map(seconds)
}

fn attempts(
    meters: &Instruments,
    of_what: &Metric,
    leases: &Arc<LeaseService>,
    read: fn(&LeaseMetrics) -> [(&'static str, u64); 4],
) {
    let leases = Arc::downgrade(leases);
    let counter = meters.meter.u64_observable_counter(of_what.name);
    let _counter = counter
        .with_unit(of_what.unit)
        .with_description(of_what.help)
        .with_callback(move |observer| {
            let Some(leases) = leases.upgrade() else { return };
            for (outcome, count) in read(leases.metrics()) {
                observer.observe(
                    count,
                    &BackendAttributes::builtin().and(metric_names::OUTCOME, outcome),
                );
            }
        })
        .build();
}
