//! The instruments that are told when something happens. What can be looked at instead is observed by whoever has it.
//!
//! **Invariant:** nothing here is called for each lease while its client waits: what the lease service did is added up
//! twice a second, with history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{KeyValue, StringValue};

use super::names::{self, Metric};
use super::prefixes::Prefixes;

pub const BUILTIN: &str = "builtin";

/// Firing alerts by rule and severity.
pub type Firing = BTreeMap<(String, &'static str), u64>;

pub struct Meters {
    pub meter: Meter,
    pub prefixes: Prefixes,
    acquires: Counter<u64>,
    waits: Histogram<f64>,
    holds: Histogram<f64>,
    expirations: Counter<u64>,
    reclaims: Counter<u64>,
    losses: Counter<u64>,
    unlocks: Counter<u64>,
    rejections: Counter<u64>,
    suspicions: Counter<u64>,
    operations: Histogram<f64>,
    requests: Histogram<f64>,
    statements: Histogram<f64>,
    firing: Arc<Mutex<Firing>>,
}

/// A backend as attributes say it: configured name and kind.
#[derive(Debug, Clone)]
pub struct Of {
    pub name: Arc<str>,
    pub system: &'static str,
}

impl Of {
    pub fn builtin() -> Self {
        Self {
            name: BUILTIN.into(),
            system: BUILTIN,
        }
    }

    pub fn pairs(&self) -> [KeyValue; 2] {
        [
            KeyValue::new(names::BACKEND, StringValue::from(self.name.clone())),
            KeyValue::new(names::SYSTEM, self.system),
        ]
    }

    /// With one more.
    pub fn and(&self, key: &'static str, word: &'static str) -> [KeyValue; 3] {
        let [name, system] = self.pairs();
        [name, system, KeyValue::new(key, word)]
    }
}

impl Meters {
    pub(super) fn new(meter: Meter) -> Self {
        let firing = Arc::new(Mutex::new(Firing::new()));
        observe_firing(&meter, firing.clone());
        observe_panics(&meter);
        Self {
            acquires: counter(&meter, &names::ACQUIRE_ATTEMPTS),
            waits: histogram(&meter, &names::WAIT_DURATION),
            holds: histogram(&meter, &names::HOLD_DURATION),
            expirations: counter(&meter, &names::LEASE_EXPIRATIONS),
            reclaims: counter(&meter, &names::LEASE_RECLAIMS),
            losses: counter(&meter, &names::LEASE_LOSSES),
            unlocks: counter(&meter, &names::FORCE_UNLOCKS),
            rejections: counter(&meter, &names::FENCING_REJECTIONS),
            suspicions: counter(&meter, &names::DUAL_OWNER_SUSPICIONS),
            operations: histogram(&meter, &names::BACKEND_OPERATION_DURATION),
            requests: histogram(&meter, &names::HTTP_DURATION),
            statements: histogram(&meter, &names::DB_DURATION),
            prefixes: Prefixes::default(),
            firing,
            meter,
        }
    }

    /// Counters that alerts rely on begin at 0: only then the first event is seen to raise them.
    pub fn zero(&self, of: &Of, unlock_outcomes: &[&'static str], tiers: &[&'static str]) {
        for (counter, causes) in [
            (&self.expirations, &["ttl"][..]),
            (&self.reclaims, &["expired"][..]),
        ] {
            for cause in causes {
                counter.add(0, &of.and(names::CAUSE, cause));
            }
        }
        self.suspicions.add(0, &of.and(names::DETECTOR, "observation"));
        for outcome in unlock_outcomes {
            for tier in tiers {
                self.unlocks.add(0, &unlock(of, outcome, tier));
            }
        }
        if of.system == BUILTIN {
            for cause in ["expired", "revoked", "released"] {
                self.losses.add(0, &of.and(names::CAUSE, cause));
            }
            for cause in ["stale", "never_issued", "reported"] {
                self.rejections.add(0, &of.and(names::CAUSE, cause));
            }
        }
    }

    fn with_prefix(
        &self,
        of: &Of,
        template: &Arc<str>,
        key: &'static str,
        word: &'static str,
    ) -> [KeyValue; 4] {
        let [name, system] = of.pairs();
        let prefix = self.prefixes.of(&of.name, template);
        [
            name,
            system,
            KeyValue::new(names::PREFIX, prefix),
            KeyValue::new(key, word),
        ]
    }

    pub fn acquired(&self, of: &Of, template: &Arc<str>, outcome: &'static str) {
        let pairs = self.with_prefix(of, template, names::OUTCOME, outcome);
        self.acquires.add(1, &pairs);
    }

    pub fn waited(&self, of: &Of, template: &Arc<str>, outcome: &'static str, ms: i64) {
        let pairs = self.with_prefix(of, template, names::OUTCOME, outcome);
        self.waits.record(seconds(ms), &pairs);
    }

    pub fn held(&self, of: &Of, template: &Arc<str>, end: &'static str, ms: i64) {
        let pairs = self.with_prefix(of, template, names::END, end);
        self.holds.record(seconds(ms), &pairs);
    }

    pub fn expired(&self, of: &Of) {
        self.expirations.add(1, &of.and(names::CAUSE, "ttl"));
    }

    pub fn reclaimed(&self, of: &Of) {
        self.reclaims.add(1, &of.and(names::CAUSE, "expired"));
    }

    pub fn lost(&self, cause: &'static str) {
        self.losses.add(1, &Of::builtin().and(names::CAUSE, cause));
    }

    pub fn rejected(&self, cause: &'static str) {
        self.rejections.add(1, &Of::builtin().and(names::CAUSE, cause));
    }

    pub fn suspected(&self, of: &Of, times: u64) {
        self.suspicions
            .add(times, &of.and(names::DETECTOR, "observation"));
    }

    pub fn unlocked(&self, of: &Of, outcome: &'static str, tier: &'static str) {
        self.unlocks.add(1, &unlock(of, outcome, tier));
    }

    pub fn operation(&self, of: &Of, operation: &'static str, error: Option<&'static str>, seconds: f64) {
        let [name, system, operation] = of.and(names::OPERATION, operation);
        match error {
            None => self.operations.record(seconds, &[name, system, operation]),
            Some(error) => {
                let error = KeyValue::new(names::ERROR_TYPE, error);
                self.operations.record(seconds, &[name, system, operation, error]);
            }
        }
    }

    /// `route` as it is written in the router, never the path that was asked for.
    pub fn request(&self, method: &'static str, route: &'static str, status: u16, seconds: f64) {
        let pairs = [
            KeyValue::new(names::METHOD, method),
            KeyValue::new(names::ROUTE, route),
            KeyValue::new(names::STATUS, i64::from(status)),
        ];
        if status < 500 {
            return self.requests.record(seconds, &pairs);
        }
        let [method, route, code] = pairs;
        let error = KeyValue::new(names::ERROR_TYPE, status.to_string());
        self.requests.record(seconds, &[method, route, code, error]);
    }

    pub fn statement(&self, system: &'static str, operation: &'static str, failed: bool, seconds: f64) {
        let pairs = [
            KeyValue::new(names::DB_SYSTEM, system),
            KeyValue::new(names::DB_OPERATION, operation),
        ];
        if failed {
            let [system, operation] = pairs;
            let error = KeyValue::new(names::ERROR_TYPE, "_OTHER");
            return self.statements.record(seconds, &[system, operation, error]);
        }
        self.statements.record(seconds, &pairs);
    }

    /// What fires now; nothing on a server that does not evaluate.
    pub fn firing(&self, now: Firing) {
        *self.firing.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

fn unlock(of: &Of, outcome: &'static str, tier: &'static str) -> [KeyValue; 4] {
    let [name, system] = of.pairs();
    [
        name,
        system,
        KeyValue::new(names::OUTCOME, outcome),
        KeyValue::new(names::TIER, tier),
    ]
}

pub fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1_000.0
}

fn counter(meter: &Meter, of: &Metric) -> Counter<u64> {
    let builder = meter.u64_counter(of.name).with_unit(of.unit);
    builder.with_description(of.help).build()
}

fn histogram(meter: &Meter, of: &Metric) -> Histogram<f64> {
    let builder = meter.f64_histogram(of.name).with_unit(of.unit);
    let builder = builder.with_boundaries(of.bounds.to_vec());
    builder.with_description(of.help).build()
}

fn observe_firing(meter: &Meter, firing: Arc<Mutex<Firing>>) {
    let of = names::ALERT_ACTIVE;
    let gauge = meter.u64_observable_gauge(of.name).with_unit(of.unit);
    let _gauge = gauge
        .with_description(of.help)
        .with_callback(move |observer| {
            for ((rule, severity), count) in &*firing.lock().unwrap_or_else(PoisonError::into_inner) {
                let pairs = [
                    KeyValue::new(names::SEVERITY, *severity),
                    KeyValue::new(names::RULE, rule.clone()),
                ];
                observer.observe(*count, &pairs);
            }
        })
        .build();
}

fn observe_panics(meter: &Meter) {
    let of = names::TASK_PANICS;
    let counter = meter.u64_observable_counter(of.name).with_unit(of.unit);
    let _counter = counter
        .with_description(of.help)
        .with_callback(|observer| {
            observer.observe(
                crate::tasks::PANICS.load(std::sync::atomic::Ordering::Relaxed),
                &[],
            );
        })
        .build();
}
