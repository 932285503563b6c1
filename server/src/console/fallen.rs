//! Background tasks of this console that have panicked, among the faults that the Backends page shows: those of an observer
//! with its backend, all others with the lease service of our own.

use domain::backend::{BackendView, Fault};
use domain::names::BackendName;

use crate::tasks::Fallen;

const MEND: &str = "It is started again by itself. The log has the whole panic: please report it to whoever makes Leasehold.";

pub(super) fn with_tasks(mut views: Vec<BackendView>, fallen: Vec<Fallen>) -> Vec<BackendView> {
    for fallen in fallen {
        let own = BackendName::builtin();
        let of = fallen.name.of.as_deref().unwrap_or(own.as_str());
        // A panic's text may name locks: it is for readers of the whole backend.
        let of_whole = |view: &&mut BackendView| view.name.as_str() == of && !view.is_limited;
        let Some(view) = views.iter_mut().find(of_whole) else {
            continue;
        };
        let fault = fault(&fallen);
        if fallen.again_since.is_none() && view.fault.is_none() {
            view.fault = Some(fault);
        } else {
            view.past_faults.insert(0, fault);
        }
    }
    views
}

fn fault(fallen: &Fallen) -> Fault {
    let name = &fallen.name;
    let standing = match fallen.again_since {
        Some(since) => format!(
            "it was started again, {}, and runs since {} UTC",
            times(fallen.restarts),
            since.format("%Y-%m-%d %H:%M:%S")
        ),
        None => format!("it is started again {} s after that", fallen.rest.as_secs_f64()),
    };
    Fault {
        message: format!(
            "the console's task \u{201c}{name}\u{201d} panicked: {}; {standing}",
            fallen.why
        ),
        mend: MEND.to_owned(),
        at: fallen.at,
        times: 1,
    }
}

fn times(restarts: u64) -> String {
    domain::human::counted(restarts, "restart", "restarts")
}
