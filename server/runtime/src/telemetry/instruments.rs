//! Instruments that record events. Current values are observed by the modules that own them.
//!
//! **Invariant:** nothing here is called per lease while its client waits: activity of the lease service is added
//! twice a second, with history.

use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{KeyValue, StringValue};
use parking_lot::Mutex;

use super::cardinality::Prefixes;
use super::metric_names::{self, Metric};

pub const BUILTIN: &str = "builtin";

/// Firing alerts by rule and severity.
pub type Firing = BTreeMap<(String, &'static str), u64>;

pub struct Instruments {
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

/// Attributes of a backend: configured name and kind.
#[derive(Debug, Clone)]
pub struct BackendAttributes {
    pub name: Arc<str>,
    pub system: &'static str,
}

impl BackendAttributes {
    pub fn builtin() -> Self {
        Self {
            name: BUILTIN.into(),
            system: BUILTIN,
        }
    }

    pub fn pairs(&self) -> [KeyValue; 2] {
        [
            KeyValue::new(metric_names::BACKEND, StringValue::from(self.name.clone())),
            KeyValue::new(metric_names::SYSTEM, self.system),
        ]
    }

    /// With one more attribute.
    pub fn and(&self, key: &'static str, value: &'static str) -> [KeyValue; 3] {
        let [name, system] = self.pairs();
        [name, system, KeyValue::new(key, value)]
    }
}

impl Instruments {
    pub(super) fn new(meter: Meter) -> Self {
        let firing = Arc::new(Mutex::new(Firing::new()));
        observe_firing(&meter, firing.clone());
        observe_panics(&meter);
        Self {
            acquires: counter(&meter, &metric_names::ACQUIRE_ATTEMPTS),
            waits: histogram(&meter, &metric_names::WAIT_DURATION),
            holds: histogram(&meter, &metric_names::HOLD_DURATION),
            expirations: counter(&meter, &metric_names::LEASE_EXPIRATIONS),
            reclaims: counter(&meter, &metric_names::LEASE_RECLAIMS),
            losses: counter(&meter, &metric_names::LEASE_LOSSES),
            unlocks: counter(&meter, &metric_names::FORCE_UNLOCKS),
            rejections: counter(&meter, &metric_names::FENCING_REJECTIONS),
            suspicions: counter(&meter, &metric_names::DUAL_OWNER_SUSPICIONS),
            operations: histogram(&meter, &metric_names::BACKEND_OPERATION_DURATION),
            requests: histogram(&meter, &metric_names::HTTP_DURATION),
            statements: histogram(&meter, &metric_names::DB_DURATION),
            prefixes: Prefixes::default(),
            firing,
            meter,
        }
    }

    /// Initializes counters that alerts depend on with 0: otherwise the first event would not be an increase.
    pub fn zero(&self, labels: &BackendAttributes, unlock_outcomes: &[&'static str]) {
        for (counter, causes) in [
            (&self.expirations, &["ttl"][..]),
            (&self.reclaims, &["expired"][..]),
        ] {
            for cause in causes {
                counter.add(0, &labels.and(metric_names::CAUSE, cause));
            }
        }
        self.suspicions
            .add(0, &labels.and(metric_names::DETECTOR, "observation"));
        for outcome in unlock_outcomes {
            for protected in Protected::ALL {
                self.unlocks.add(0, &unlock(labels, outcome, protected));
            }
        }
        if labels.system == BUILTIN {
            for cause in ["expired", "revoked", "released"] {
                self.losses.add(0, &labels.and(metric_names::CAUSE, cause));
            }
            for cause in ["stale", "never_issued", "reported"] {
                self.rejections.add(0, &labels.and(metric_names::CAUSE, cause));
            }
        }
    }

    fn with_prefix(
        &self,
        labels: &BackendAttributes,
        template: &Arc<str>,
        key: &'static str,
        value: &'static str,
    ) -> [KeyValue; 4] {
        let [name, system] = labels.pairs();
        let prefix = self.prefixes.intern(&labels.name, template);
        [
            name,
            system,
            KeyValue::new(metric_names::PREFIX, prefix),
            KeyValue::new(key, value),
        ]
    }

    pub fn acquired(
        &self,
        labels: &BackendAttributes,
        template: &Arc<str>,
        outcome: &'static str,
        times: u64,
    ) {
        let pairs = self.with_prefix(labels, template, metric_names::OUTCOME, outcome);
        self.acquires.add(times, &pairs);
    }

    pub fn waited(&self, labels: &BackendAttributes, template: &Arc<str>, outcome: &'static str, ms: i64) {
        let pairs = self.with_prefix(labels, template, metric_names::OUTCOME, outcome);
        self.waits.record(seconds(ms), &pairs);
    }

    /// `holds`: milliseconds.
    pub fn record_holds(
        &self,
        labels: &BackendAttributes,
        template: &Arc<str>,
        end: &'static str,
        holds: &[i64],
    ) {
        let pairs = self.with_prefix(labels, template, metric_names::END, end);
        for ms in holds {
            self.holds.record(seconds(*ms), &pairs);
        }
    }

    pub fn expired(&self, labels: &BackendAttributes, times: u64) {
        self.expirations
            .add(times, &labels.and(metric_names::CAUSE, "ttl"));
    }

    pub fn reclaimed(&self, labels: &BackendAttributes, times: u64) {
        self.reclaims
            .add(times, &labels.and(metric_names::CAUSE, "expired"));
    }

    pub fn lost(&self, cause: &'static str) {
        self.losses
            .add(1, &BackendAttributes::builtin().and(metric_names::CAUSE, cause));
    }

    pub fn rejected(&self, cause: &'static str) {
        self.rejections
            .add(1, &BackendAttributes::builtin().and(metric_names::CAUSE, cause));
    }

    pub fn suspected(&self, labels: &BackendAttributes, times: u64) {
        self.suspicions
            .add(times, &labels.and(metric_names::DETECTOR, "observation"));
    }

    pub fn unlocked(&self, labels: &BackendAttributes, outcome: &'static str, protected: Protected) {
        self.unlocks.add(1, &unlock(labels, outcome, protected));
    }

    pub fn operation(
        &self,
        labels: &BackendAttributes,
        operation: &'static str,
        error: Option<&'static str>,
        seconds: f64,
    ) {
        let [name, system, operation] = labels.and(metric_names::OPERATION, operation);
        match error {
            None => self.operations.record(seconds, &[name, system, operation]),
            Some(error) => {
                let error = KeyValue::new(metric_names::ERROR_TYPE, error);
                self.operations.record(seconds, &[name, system, operation, error]);
            }
        }
    }

    /// `route`: the pattern of the router, never the requested path.
    pub fn request(&self, method: &'static str, route: &'static str, status: u16, seconds: f64) {
        let pairs = [
            KeyValue::new(metric_names::METHOD, method),
            KeyValue::new(metric_names::ROUTE, route),
            KeyValue::new(metric_names::STATUS, i64::from(status)),
        ];
        if status < 500 {
            return self.requests.record(seconds, &pairs);
        }
        let [method, route, code] = pairs;
        let error = KeyValue::new(metric_names::ERROR_TYPE, status.to_string());
        self.requests.record(seconds, &[method, route, code, error]);
    }

    pub fn statement(&self, system: &'static str, operation: &'static str, failed: bool, seconds: f64) {
        let pairs = [
            KeyValue::new(metric_names::DB_SYSTEM, system),
            KeyValue::new(metric_names::DB_OPERATION, operation),
        ];
        if failed {
            let [system, operation] = pairs;
            let error = KeyValue::new(metric_names::ERROR_TYPE, "_OTHER");
            return self.statements.record(seconds, &[system, operation, error]);
        }
        self.statements.record(seconds, &pairs);
    }

    /// Currently firing alerts; empty on a replica that does not evaluate.
    pub fn firing(&self, now: Firing) {
        *self.firing.lock() = now;
    }
}

domain::wire_enum! {
    /// Whether a forced unlock needed a second approver, and whether one approved.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Protected {
        No = "false",
        Yes = "true",
        /// Protected, and executed without a second approver.
        BreakGlass = "break_glass",
    }
}

fn unlock(labels: &BackendAttributes, outcome: &'static str, protected: Protected) -> [KeyValue; 4] {
    let [name, system] = labels.pairs();
    [
        name,
        system,
        KeyValue::new(metric_names::OUTCOME, outcome),
        KeyValue::new(metric_names::PROTECTED, protected.as_str()),
    ]
}

pub fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1_000.0
}

fn counter(meter: &Meter, metric: &Metric) -> Counter<u64> {
    let builder = meter.u64_counter(metric.name).with_unit(metric.unit);
    builder.with_description(metric.help).build()
}

fn histogram(meter: &Meter, metric: &Metric) -> Histogram<f64> {
    let builder = meter.f64_histogram(metric.name).with_unit(metric.unit);
    let builder = builder.with_boundaries(metric.bounds.to_vec());
    builder.with_description(metric.help).build()
}

fn observe_firing(meter: &Meter, firing: Arc<Mutex<Firing>>) {
    let metric = metric_names::ALERT_ACTIVE;
    let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
    let _gauge = gauge
        .with_description(metric.help)
        .with_callback(move |observer| {
            for ((rule, severity), count) in &*firing.lock() {
                let pairs = [
                    KeyValue::new(metric_names::SEVERITY, *severity),
                    KeyValue::new(metric_names::RULE, rule.clone()),
                ];
                observer.observe(*count, &pairs);
            }
        })
        .build();
}

fn observe_panics(meter: &Meter) {
    let metric = metric_names::TASK_PANICS;
    let counter = meter.u64_observable_counter(metric.name).with_unit(metric.unit);
    let _counter = counter
        .with_description(metric.help)
        .with_callback(|observer| {
            observer.observe(
                crate::tasks::PANICS.load(std::sync::atomic::Ordering::Relaxed),
                &[],
            );
        })
        .build();
}
