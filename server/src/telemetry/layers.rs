//! Who hears of what `tracing` tells: standard error, and the collector for traces and for logs.
//!
//! **Invariant:** what exporting itself logs is not exported: that would never end.

use std::io::IsTerminal;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::TelemetryError;
use crate::config::{LogConfig, LogFormat};

/// Of whoever carries what is exported.
const CARRIERS: [&str; 8] = [
    "opentelemetry",
    "tonic",
    "h2",
    "hyper",
    "hyper_util",
    "reqwest",
    "tower",
    "leasehold::telemetry",
];

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

pub(super) fn start(
    config: &LogConfig,
    tracer: Option<&SdkTracerProvider>,
    logger: Option<&SdkLoggerProvider>,
) -> Result<(), TelemetryError> {
    let filter = EnvFilter::builder().parse(&config.filter)?;
    if tracer.is_none() && logger.is_none() {
        // One filter for everything: what it does not want costs nothing.
        tracing_subscriber::registry()
            .with(vec![written(config)])
            .with(filter)
            .try_init()?;
        return Ok(());
    }
    let mut layers: Vec<Boxed> = vec![written(config).with_filter(filter).boxed()];
    layers.extend(tracer.map(traces));
    if let Some(logger) = logger {
        layers.push(logs(logger, &config.filter)?);
    }
    tracing_subscriber::registry().with(layers).try_init()?;
    Ok(())
}

fn written(config: &LogConfig) -> Boxed {
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match config.format {
        LogFormat::Human => layer.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

/// Our own spans, whatever the level of the log.
fn traces(provider: &SdkTracerProvider) -> Boxed {
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("leasehold"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|meta| {
            meta.is_span() && meta.target().starts_with("leasehold")
        }))
        .boxed()
}

fn logs(provider: &SdkLoggerProvider, filter: &str) -> Result<Boxed, TelemetryError> {
    let mut filter = EnvFilter::builder().parse(filter)?;
    for carrier in CARRIERS {
        filter = filter.add_directive(format!("{carrier}=off").parse()?);
    }
    Ok(OpenTelemetryTracingBridge::new(provider)
        .with_filter(filter)
        .boxed())
}
