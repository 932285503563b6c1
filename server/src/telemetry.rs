//! Logging: what is written, and how it looks. To standard error, so that output stays for data.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

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
    #[error("the log filter cannot be set")]
    Reload(#[from] tracing_subscriber::reload::Error),
}

/// The filter that counts, and what sets another; none before logging was started.
static FILTER: Mutex<Option<(String, Box<SetFilter>)>> = Mutex::new(None);

type SetFilter = dyn Fn(EnvFilter) -> Result<(), tracing_subscriber::reload::Error> + Send;

/// From now on this filter. Answers whether it is another one.
///
/// # Errors
/// It does not parse (the configuration has checked it).
pub fn set_filter(filter: &str) -> Result<bool, TelemetryError> {
    let parsed = EnvFilter::builder().parse(filter)?;
    let mut held = FILTER.lock().unwrap_or_else(PoisonError::into_inner);
    match held.as_mut() {
        Some((now, set)) if now != filter => {
            set(parsed)?;
            filter.clone_into(now);
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn keep(
    filter: &str,
    set: impl Fn(EnvFilter) -> Result<(), tracing_subscriber::reload::Error> + Send + 'static,
) {
    let mut held = FILTER.lock().unwrap_or_else(PoisonError::into_inner);
    *held = Some((filter.to_owned(), Box::new(set)));
}

/// Starts logging for this process.
///
/// # Errors
/// The filter does not parse (the configuration has checked it), or logging was started before.
pub fn start(config: &LogConfig) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;
    let filter = EnvFilter::builder().parse(&config.filter)?;
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr);
    match config.format {
        LogFormat::Human => {
            let builder = builder.with_ansi(std::io::stderr().is_terminal());
            let builder = builder.with_env_filter(filter).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.finish().try_init()?;
            keep(&config.filter, move |filter| handle.reload(filter));
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true);
            let builder = builder.with_env_filter(filter).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.finish().try_init()?;
            keep(&config.filter, move |filter| handle.reload(filter));
        }
    }
    Ok(())
}
