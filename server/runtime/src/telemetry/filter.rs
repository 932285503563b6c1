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

/// Current filter and its setter; `None` before logging was started.
struct Kept {
    now: String,
    set: Vec<Box<Set>>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

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
    let mut kept = KEPT.lock();
    let kept = kept.get_or_insert_with(|| Kept {
        now: filter.to_owned(),
        set: Vec::new(),
    });
    kept.set.push(Box::new(set));
}

/// Sets the log filter. Returns whether it changed.
///
/// # Errors
/// It does not parse (the configuration has checked it).
pub fn set_filter(filter: &str) -> Result<bool, TelemetryError> {
    EnvFilter::builder().parse(filter)?;
    let mut kept = KEPT.lock();
    let Some(kept) = kept.as_mut().filter(|kept| kept.now != filter) else {
        return Ok(false);
    };
    for set in &kept.set {
        set(filter)?;
    }
    filter.clone_into(&mut kept.now);
    Ok(true)
}
