//! Panicked background tasks, among the errors of the Backends page: observers with their backend, all others with
//! the built-in lease service.

use domain::backend::{BackendFailure, BackendView};
use domain::names::BackendName;

use runtime::tasks::PanickedTask;

const REMEDY: &str = "The supervisor restarts the task. The log has the whole panic: please report it to the maintainers of Leasehold.";

pub(super) fn with_tasks(mut views: Vec<BackendView>, tasks: Vec<PanickedTask>) -> Vec<BackendView> {
    for task in tasks {
        let builtin = BackendName::builtin();
        let of = task.name.of.as_deref().unwrap_or(builtin.as_str());
        // A panic message may contain names of locks: only for readers of the whole backend.
        let of_whole = |view: &&mut BackendView| view.name.as_str() == of && !view.is_limited;
        let Some(view) = views.iter_mut().find(of_whole) else {
            continue;
        };
        let fault = fault(&task);
        if task.running_since.is_none() && view.fault.is_none() {
            view.fault = Some(fault);
        } else {
            view.past_faults.insert(0, fault);
        }
    }
    views
}

fn fault(task: &PanickedTask) -> BackendFailure {
    let name = &task.name;
    let panics = match task.running_since {
        Some(since) => format!(
            "it was restarted ({}), the last time at {} UTC",
            times(task.restarts),
            since.format("%Y-%m-%d %H:%M:%S")
        ),
        None => format!(
            "it is restarted {} s after the panic",
            task.restart_delay.as_secs_f64()
        ),
    };
    BackendFailure {
        message: format!(
            "the console's task \u{201c}{name}\u{201d} panicked: {}; {panics}",
            task.why
        ),
        remedy: REMEDY.to_owned(),
        at: task.at,
        times: 1,
    }
}

fn times(restarts: u64) -> String {
    domain::format::counted(restarts, "restart", "restarts")
}
