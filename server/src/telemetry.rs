//! Logging: what is written, and how it looks. To standard error, so that output stays for data.

use std::io::IsTerminal;

use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::TryInitError;

use crate::config::{LogConfig, LogFormat};

#[derive(Debug, Error)]
pub enum TelemetryError {
    #[error("the log filter does not fit")]
    Filter(#[from] ParseError),
    #[error("logging was started before")]
    Started(#[from] TryInitError),
}

/// Starts logging for this process.
///
/// # Errors
/// The filter does not parse (the configuration has checked it), or logging was started before.
pub fn start(config: &LogConfig) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;
    let filter = EnvFilter::builder().parse(&config.filter)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match config.format {
        LogFormat::Human => {
            builder
                .with_ansi(std::io::stderr().is_terminal())
                .finish()
                .try_init()?;
        }
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init()?,
    }
    Ok(())
}
