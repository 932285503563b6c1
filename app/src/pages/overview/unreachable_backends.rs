//! Unreachable backends: one hatched line each, because unobserved locks are not healthy locks.

use domain::backend::{BackendStatus, BackendView};
use domain::overview::Overview;
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::components::state_badge::BackendBadge;
use crate::components::time::observed_time;
use crate::format;

#[component]
pub fn BlindBackends(data: Signal<Overview>) -> impl IntoView {
    let lines = move || {
        data.with(|data| {
            let blind = data
                .backends
                .iter()
                .filter(|backend| backend.status.blinds_rows());
            blind
                .map(|backend| view! { <Line backend=backend.clone()/> }.into_any())
                .collect_view()
        })
    };
    view! { <ul class="blind-backends">{changing(lines)}</ul> }
}

#[component]
fn Line(backend: BackendView) -> impl IntoView {
    let held = match (backend.observed_at, &backend.waiters) {
        (None, _) => String::new(),
        (Some(_), Reported::Value(waiters)) if *waiters > 0 => {
            format!(
                ", {}, {}",
                locks(&backend),
                format::counted(*waiters, "waiter", "waiters")
            )
        }
        (Some(_), _) => format!(", {}", locks(&backend)),
    };
    let seen = match backend.observed_at {
        Some(at) => view! { "last read at "{observed_time(at, backend.age_ms)}"." }.into_any(),
        None => "never read, its locks are unknown.".into_any(),
    };
    let then = match backend.needing_attention {
        0 => None,
        1 => Some(" One lock needed attention then.".to_owned()),
        many => Some(format!(" {} locks needed attention then.", format::count(many))),
    };
    let status = if backend.status == BackendStatus::Down {
        BackendStatus::Down
    } else {
        BackendStatus::Stale
    };
    view! {
        <li class="is-stale">
            <BackendBadge status/>
            <span>{format!("{}{held}: ", backend.name)}{seen}{then}</span>
            <a class="link" href=format!("/backends#{}", backend.name)>"Reason"</a>
        </li>
    }
}

fn locks(backend: &BackendView) -> String {
    format::counted(backend.locks, "lock", "locks")
}
