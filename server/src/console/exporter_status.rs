//! Status of metric, trace and log export, for the Backends page.

use domain::backend::Capability;
use domain::time_format;

use runtime::telemetry::export_status::Export;

pub(super) fn capability(export: &std::sync::Arc<Export>) -> Capability {
    let told = export.stats();
    let arrived = match told.arrived_at {
        Some(at) => format!("last arrived at {}", time_format::dated(at)),
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
        how.push_str(&format!("; since {} {why}", time_format::timed(at)));
    }
    Capability {
        name: format!("pushes {}", export.signal),
        can: told.failing.is_none() && told.arrived_at.is_some(),
        how,
    }
}
