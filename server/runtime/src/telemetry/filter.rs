//! The log filter, which a configuration reload can change.

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::reload::{self, Handle};

use super::TelemetryError;

type Read = fn(&str) -> Result<EnvFilter, ParseError>;
/// The filter layer, and the handle that changes it.
type Changeable<S> = (reload::Layer<EnvFilter, S>, Handle<EnvFilter, S>);
type Set = dyn Fn(&str) -> Result<(), TelemetryError> + Send;

struct CurrentFilter {
    text: String,
    setters: Vec<Box<Set>>,
}

/// `None` before logging was started.
static CURRENT: Mutex<Option<CurrentFilter>> = Mutex::new(None);

/// A filter layer that [`set_filter`] changes.
///
/// # Errors
/// It does not parse.
pub(super) fn changeable<S: 'static>(filter: &str, read: Read) -> Result<Changeable<S>, ParseError> {
    read(filter).map(reload::Layer::new)
}

/// Call after the subscriber of `handle` is installed.
pub(super) fn watch_filter<S: 'static>(filter: &str, read: Read, handle: Handle<EnvFilter, S>)
where
    Handle<EnvFilter, S>: Send,
{
    let set = move |filter: &str| Ok(handle.reload(read(filter)?)?);
    let mut current = CURRENT.lock();
    let current = current.get_or_insert_with(|| CurrentFilter {
        text: filter.to_owned(),
        setters: Vec::new(),
    });
    current.setters.push(Box::new(set));
}

/// Sets the log filter. Returns whether it changed.
///
/// # Errors
/// It does not parse (the configuration has checked it).
pub fn set_filter(filter: &str) -> Result<bool, TelemetryError> {
    EnvFilter::builder().parse(filter)?;
    let mut current = CURRENT.lock();
    let Some(current) = current.as_mut().filter(|current| current.text != filter) else {
        return Ok(false);
    };
    for set in &current.setters {
        set(filter)?;
    }
    filter.clone_into(&mut current.text);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use tracing::level_filters::LevelFilter;

    use config::LogConfig;

    #[test]
    fn the_filter_limits_the_level_of_the_process() {
        // Fails if a layer without a limit enables debug spans: acquire, renew and release would then go through the router.
        super::super::start(&LogConfig::default()).unwrap();
        assert_eq!(LevelFilter::current(), LevelFilter::INFO);
        assert!(super::set_filter("leasehold=debug,info").unwrap());
        assert_eq!(LevelFilter::current(), LevelFilter::DEBUG);
        assert!(super::set_filter("warn").unwrap());
        assert_eq!(LevelFilter::current(), LevelFilter::WARN);
    }
}
