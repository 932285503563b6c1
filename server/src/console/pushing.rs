//! How pushing of metrics, traces and logs goes, on the Backends page, beside what the console itself can tell.

use domain::backend::Capability;
use domain::moment;

use crate::telemetry::exports::Export;

pub(super) fn told(export: &std::sync::Arc<Export>) -> Capability {
    let told = export.told();
    let arrived = match told.arrived_at {
        Some(at) => format!("last arrived at {}", moment::dated(at)),
        None => "nothing has arrived yet".to_owned(),
    };
    let mut how = format!("{} by {}: {arrived}", export.address, export.protocol);
    if told.failures > 0 {
        how.push_str(&format!("; {} of {} pushes failed", told.failures, told.pushes));
    }
    if told.dropped > 0 {
        how.push_str(&format!("; {} dropped", told.dropped));
    }
    if let (Some(why), Some(at)) = (told.failing, told.failed_at) {
        how.push_str(&format!("; since {} {why}", moment::timed(at)));
    }
    Capability {
        name: format!("pushes {}", export.signal),
        can: told.failing.is_none() && told.arrived_at.is_some(),
        how,
    }
}
