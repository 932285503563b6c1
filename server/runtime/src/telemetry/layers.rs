//! Subscribers of `tracing`: standard error or a file, and the collectors for traces and logs.
//!
//! **Invariant:** logs of the exporters are not exported, which would be an endless loop.

use std::fs::File;
use std::io::IsTerminal;
use std::sync::Arc;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::{ParseError, filter_fn};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::one_line::OneLine;
use super::{TelemetryError, filter};
use config::{LogConfig, LogFormat};

/// Targets of the libraries that carry exports.
const CARRIERS: [&str; 8] = [
    "opentelemetry",
    "tonic",
    "h2",
    "hyper",
    "hyper_util",
    "reqwest",
    "tower",
    "leasehold_runtime::telemetry",
];

/// Where the log is written.
#[derive(Debug)]
pub enum LogOutput {
    StandardError,
    /// Appended to, without colours.
    File(File),
}

impl LogOutput {
    fn is_terminal(&self) -> bool {
        matches!(self, Self::StandardError) && std::io::stderr().is_terminal()
    }

    fn writer(self) -> BoxMakeWriter {
        match self {
            Self::StandardError => BoxMakeWriter::new(std::io::stderr),
            Self::File(file) => BoxMakeWriter::new(Arc::new(file)),
        }
    }
}

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

pub(super) fn start(
    config: &LogConfig,
    output: LogOutput,
    tracer: Option<&SdkTracerProvider>,
    logger: Option<&SdkLoggerProvider>,
) -> Result<(), TelemetryError> {
    if tracer.is_none() && logger.is_none() {
        // One filter for everything: disabled events cost nothing.
        let (filter, handle) = filter::changeable(&config.filter, written_filter)?;
        tracing_subscriber::registry()
            .with(vec![written(config, output)])
            .with(filter)
            .try_init()?;
        filter::watch_filter(&config.filter, written_filter, handle);
        return Ok(());
    }
    let (filter, handle) = filter::changeable(&config.filter, written_filter)?;
    let mut layers: Vec<Boxed> = vec![written(config, output).with_filter(filter).boxed()];
    layers.extend(tracer.map(traces));
    let mut exported = None;
    if let Some(logger) = logger {
        let (filter, handle) = filter::changeable(&config.filter, exported_filter)?;
        layers.push(
            OpenTelemetryTracingBridge::new(logger)
                .with_filter(filter)
                .boxed(),
        );
        exported = Some(handle);
    }
    tracing_subscriber::registry().with(layers).try_init()?;
    filter::watch_filter(&config.filter, written_filter, handle);
    if let Some(handle) = exported {
        filter::watch_filter(&config.filter, exported_filter, handle);
    }
    Ok(())
}

fn written_filter(filter: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().parse(filter)
}

fn exported_filter(filter: &str) -> Result<EnvFilter, ParseError> {
    let mut filter = EnvFilter::builder().parse(filter)?;
    for carrier in CARRIERS {
        filter = filter.add_directive(format!("{carrier}=off").parse()?);
    }
    Ok(filter)
}

fn written(config: &LogConfig, output: LogOutput) -> Boxed {
    let is_terminal = output.is_terminal();
    let layer = tracing_subscriber::fmt::layer().with_writer(output.writer());
    match config.format {
        LogFormat::Human => layer
            .with_ansi(is_terminal)
            .event_format(OneLine::human(is_terminal))
            .boxed(),
        LogFormat::Json => layer.json().event_format(OneLine::json()).boxed(),
    }
}

/// Our own spans, independent of the log level.
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
