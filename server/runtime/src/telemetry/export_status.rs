//! Status of exports: last success, last failure, dropped items; for the Backends page and the log.
//!
//! **Invariant:** an exporter's error text is never shown: it may contain the collector's URL with credentials.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::logs::{LogBatch, LogExporter};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;

use crate::clock::Clock;

/// Export of one signal to its collector.
#[derive(Debug)]
pub struct Export {
    /// `metrics`, `traces` or `logs`.
    pub signal: &'static str,
    /// Destination without credentials.
    pub address: String,
    pub protocol: &'static str,
    clock: Clock,
    stats: Mutex<ExportStats>,
}

/// Status of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportStats {
    /// Time of the last success.
    pub arrived_at: Option<DateTime<Utc>>,
    pub failed_at: Option<DateTime<Utc>>,
    /// Category of the current failure.
    pub failing: Option<&'static str>,
    pub pushes: u64,
    pub failures: u64,
    /// Dropped spans or log records.
    pub dropped: u64,
}

impl Export {
    pub fn new(signal: &'static str, address: String, protocol: &'static str, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            signal,
            address,
            protocol,
            clock,
            stats: Mutex::default(),
        })
    }

    pub fn stats(&self) -> ExportStats {
        self.stats.lock().clone()
    }

    /// Records a result; `items` are lost with a failed export, because they are not retried.
    fn record(&self, result: &OTelSdkResult, items: usize) {
        let now = self.clock.now().wall;
        let mut stats = self.stats.lock();
        let was_failing = stats.failing.is_some();
        stats.pushes += 1;
        match result {
            Ok(()) => {
                stats.arrived_at = Some(now);
                stats.failing = None;
            }
            Err(error) => {
                stats.failed_at = Some(now);
                stats.failing = Some(error_text(error));
                stats.failures += 1;
                stats.dropped += items as u64;
            }
        }
        let is_failing = stats.failing;
        drop(stats);
        // Logged on each change, not on each export.
        match is_failing {
            Some(why) if !was_failing => tracing::warn!(
                otel.signal = self.signal,
                "{} cannot be pushed to {}: {why}",
                self.signal,
                self.address
            ),
            None if was_failing => tracing::info!(
                otel.signal = self.signal,
                "{} arrive at {} again",
                self.signal,
                self.address
            ),
            _ => {}
        }
    }
}

const fn error_text(error: &OTelSdkError) -> &'static str {
    match error {
        OTelSdkError::Timeout(_) => "the collector did not answer in time",
        OTelSdkError::AlreadyShutdown => "pushing has ended",
        _ => "the collector cannot be reached, or rejected the data",
    }
}

/// An exporter that records its results.
pub struct Noted<E> {
    inner: E,
    export: Arc<Export>,
}

impl<E> Noted<E> {
    pub fn new(inner: E, export: Arc<Export>) -> Self {
        Self { inner, export }
    }
}

impl<E> Debug for Noted<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Noted").field(&self.export.signal).finish()
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Noted<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let result = self.inner.export(metrics).await;
        // Metrics are cumulative: a failed export loses nothing.
        self.export.record(&result, 0);
        result
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.inner.temporality()
    }
}

impl<E: SpanExporter> SpanExporter for Noted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let items = batch.len();
        let result = self.inner.export(batch).await;
        self.export.record(&result, items);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for Noted<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let items = batch.iter().count();
        let result = self.inner.export(batch).await;
        self.export.record(&result, items);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
