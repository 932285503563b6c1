//! Telemetry: logs on standard error or in a file, metrics for scraping, and export by OTLP.
//!
//! Owns the process's meter provider with its two readers, the exporters, and their status. Knows no locks: other
//! modules record into it. Like the log it is per process: several servers in one process share it.
//!
//! **Invariant:** nothing waits for a collector; exporters have their own threads, and excess data is dropped.

pub mod cardinality;
pub mod export_status;
mod filter;
pub mod instruments;
mod layers;
pub mod metric_names;
mod one_line;
mod otlp;
pub mod trace;

pub use filter::set_filter;
pub use layers::LogOutput;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::TryInitError;

use self::export_status::Export;
use self::instruments::Instruments;
use crate::clock::Clock;
use config::otel::{Otel, OtelError};
use config::telemetry::TRACE_ID;
use config::{LogConfig, TelemetryConfig, otel};

/// Timeout of the final export at the end of the process.
pub const FLUSH_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Error)]
pub enum TelemetryError {
    #[error("the log filter is invalid")]
    Filter(#[from] ParseError),
    #[error("logging has already been started")]
    Started(#[from] TryInitError),
    #[error("the log filter cannot be set")]
    Reload(#[from] tracing_subscriber::reload::Error),
    #[error(transparent)]
    Variable(#[from] OtelError),
    #[error(transparent)]
    Push(#[from] otlp::PushError),
    #[error("metrics cannot be set up: {0}")]
    Registry(#[from] opentelemetry_sdk::error::OTelSdkError),
}

struct Shared {
    meters: Instruments,
    registry: prometheus::Registry,
    provider: SdkMeterProvider,
    tracer: Option<SdkTracerProvider>,
    logger: Option<SdkLoggerProvider>,
    exports: Vec<Arc<Export>>,
    trace_url: Option<String>,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

fn shared() -> &'static Shared {
    SHARED.get_or_init(|| Shared::metered(otlp::resource(&Otel::default()), None))
}

/// Starts logging only, for commands.
///
/// # Errors
/// The filter does not parse (the configuration has checked it), or logging was already started.
pub fn start(config: &LogConfig) -> Result<(), TelemetryError> {
    layers::start(config, LogOutput::StandardError, None, None)
}

/// Starts logging, and the exporters configured by `OTEL_*` variables. Must be called on the runtime.
///
/// # Errors
/// As [`start`]; a variable or a certificate is invalid.
pub fn start_pushing(log: &LogConfig, config: &TelemetryConfig) -> Result<(), TelemetryError> {
    start_pushing_to(LogOutput::StandardError, log, config)
}

/// As [`start_pushing`], with the log in `output`.
///
/// # Errors
/// As [`start_pushing`].
pub fn start_pushing_to(
    output: LogOutput,
    log: &LogConfig,
    config: &TelemetryConfig,
) -> Result<(), TelemetryError> {
    let otel = otel::from_process()?;
    let mut shared = Shared::new(&otel)?;
    shared.trace_url.clone_from(&config.trace_url);
    let installed = SHARED.get_or_init(|| shared);
    layers::start(log, output, installed.tracer.as_ref(), installed.logger.as_ref())?;
    if let Some(tracer) = &installed.tracer {
        use opentelemetry::trace::TracerProvider as _;
        trace::switch_on(tracer.tracer("leasehold"), otel.ignores_callers);
    }
    for export in &installed.exports {
        tracing::info!(
            otel.signal = export.signal,
            "{} are pushed to {} by {}",
            export.signal,
            export.address,
            export.protocol
        );
    }
    Ok(())
}

impl Shared {
    fn new(otel: &Otel) -> Result<Self, TelemetryError> {
        let (clock, resource) = (Clock::start(), otlp::resource(otel));
        let mut exports = Vec::new();
        let pushed = otel
            .metrics
            .as_ref()
            .map(|push| otlp::metrics(push, &clock))
            .transpose()?;
        let reader = pushed.map(|(reader, export)| {
            exports.push(export);
            reader
        });
        let mut shared = Self::metered(resource.clone(), reader);
        if let Some(push) = &otel.traces {
            let (provider, export) = otlp::traces(push, resource.clone(), &clock)?;
            shared.tracer = Some(provider);
            exports.push(export);
        }
        if let Some(push) = &otel.logs {
            let (provider, export) = otlp::logs(push, resource, &clock)?;
            shared.logger = Some(provider);
            exports.push(export);
        }
        shared.exports = exports;
        Ok(shared)
    }

    fn metered(resource: Resource, reader: Option<otlp::Reader>) -> Self {
        let registry = prometheus::Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build();
        let mut builder = SdkMeterProvider::builder().with_resource(resource);
        match exporter {
            Ok(exporter) => builder = builder.with_reader(exporter),
            Err(error) => tracing::error!("there are no metrics to scrape: {error}"),
        }
        if let Some(reader) = reader {
            builder = builder.with_reader(reader);
        }
        let provider = builder.build();
        Self {
            meters: Instruments::new(provider.meter("leasehold")),
            registry,
            provider,
            tracer: None,
            logger: None,
            exports: Vec::new(),
            trace_url: None,
        }
    }
}

/// The instruments of this process.
pub fn instruments() -> &'static Instruments {
    &shared().meters
}

/// Configured exporters with their status.
pub fn exports() -> &'static [Arc<Export>] {
    &shared().exports
}

/// All metrics in the Prometheus text format.
///
/// # Errors
/// They cannot be encoded.
pub fn scrape() -> Result<String, prometheus::Error> {
    prometheus::TextEncoder::new().encode_to_string(&shared().registry.gather())
}

/// URL of a trace, if configured.
pub fn trace_link(trace_id: &str) -> Option<String> {
    let template = shared().trace_url.as_ref()?;
    Some(template.replace(TRACE_ID, trace_id))
}

/// Exports remaining data within [`FLUSH_MAX`], so that a hanging collector does not delay the exit.
pub async fn flush() {
    let Some(shared) = SHARED.get().filter(|shared| !shared.exports.is_empty()) else {
        return;
    };
    let (done_tx, ended) = tokio::sync::oneshot::channel();
    // A separate thread: the runtime would wait for its own.
    let pushing = std::thread::Builder::new().name("last push".to_owned());
    let pushing = pushing.spawn(move || {
        std::thread::scope(|scope| {
            scope.spawn(|| shared.provider.shutdown_with_timeout(FLUSH_MAX));
            scope.spawn(|| {
                let tracer = shared.tracer.as_ref();
                tracer.map(|provider| provider.shutdown_with_timeout(FLUSH_MAX))
            });
            scope.spawn(|| {
                let logger = shared.logger.as_ref();
                logger.map(|provider| provider.shutdown_with_timeout(FLUSH_MAX))
            });
        });
        let _ = done_tx.send(());
    });
    let is_in_time = pushing.is_ok() && tokio::time::timeout(FLUSH_MAX, ended).await.is_ok();
    if !is_in_time {
        tracing::warn!("the last metrics, traces or logs could not be pushed in time");
    }
}
