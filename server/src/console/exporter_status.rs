//! Status of metric, trace and log export, for the Backends page.

use domain::backend::Capability;
use domain::time_format;

use runtime::telemetry::export_status::Export;

pub(super) fn capability(export: &std::sync::Arc<Export>) -> Capability {
    let stats = export.stats();
    let arrived = match stats.arrived_at {
        Some(at) => format!("last arrived at {}", time_format::dated(at)),
        None => "nothing has arrived yet".to_owned(),
    };
    let mut how = format!("{} by {}: {arrived}", export.address, export.protocol);
    if stats.failures > 0 {
        how.push_str(&format!("; {} of {} pushes failed", stats.failures, stats.pushes));
    }
    if stats.dropped > 0 {
        how.push_str(&format!("; {} dropped", stats.dropped));
    }
    if let (Some(why), Some(at)) = (stats.failing, stats.failed_at) {
        how.push_str(&format!("; since {} {why}", time_format::timed(at)));
    }
    Capability {
        name: format!("pushes {}", export.signal),
        can: stats.failing.is_none() && stats.arrived_at.is_some(),
        how,
    }
}
