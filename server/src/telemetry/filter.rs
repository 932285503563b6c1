//! The log's filter, which another configuration may change while the process runs.

use std::sync::{Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::reload::{self, Handle};

use super::TelemetryError;

type Read = fn(&str) -> Result<EnvFilter, ParseError>;
/// The filter, and what changes it.
type Changeable<S> = (reload::Layer<EnvFilter, S>, Handle<EnvFilter, S>);
type Set = dyn Fn(&str) -> Result<(), TelemetryError> + Send;

/// What counts now, and what sets another; nothing before logging was started.
struct Kept {
    now: String,
    set: Vec<Box<Set>>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// A filter that [`set_filter`] changes.
///
/// # Errors
/// It does not parse.
pub(super) fn changeable<S: 'static>(filter: &str, read: Read) -> Result<Changeable<S>, ParseError> {
    read(filter).map(reload::Layer::new)
}

/// Once the subscriber that `handle` belongs to is the process's.
pub(super) fn keep<S: 'static>(filter: &str, read: Read, handle: Handle<EnvFilter, S>)
where
    Handle<EnvFilter, S>: Send,
{
    let set = move |filter: &str| Ok(handle.reload(read(filter)?)?);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_with(|| Kept {
        now: filter.to_owned(),
        set: Vec::new(),
    });
    kept.set.push(Box::new(set));
}

/// From now on this filter. Answers whether it is another one.
///
/// # Errors
/// It does not parse (the configuration has checked it).
pub fn set_filter(filter: &str) -> Result<bool, TelemetryError> {
    EnvFilter::builder().parse(filter)?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kept) = kept.as_mut().filter(|kept| kept.now != filter) else {
        return Ok(false);
    };
    for set in &kept.set {
        set(filter)?;
    }
    filter.clone_into(&mut kept.now);
    Ok(true)
}
