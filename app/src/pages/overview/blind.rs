//! Backends whose locks are not judged: one hatched line each, because "unseen" is not "well".

use domain::backend::{BackendStatus, BackendView};
use domain::human;
use domain::known::Known;
use domain::overview::Overview;
use leptos::prelude::*;

use crate::components::changing::changing;
use crate::components::state_badge::BackendBadge;
use crate::components::time::Time;

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
        (Some(_), Known::Known(waiters)) if *waiters > 0 => {
            format!(
                ", {}, {}",
                locks(&backend),
                human::counted(*waiters, "waiter", "waiters")
            )
        }
        (Some(_), _) => format!(", {}", locks(&backend)),
    };
    let seen = match backend.observed_at {
        Some(at) => view! { "last seen at "<Time at/>"." }.into_any(),
        None => "never seen, so what it holds is unknown.".into_any(),
    };
    let then = match backend.needing_attention {
        0 => None,
        1 => Some(" One needed attention then.".to_owned()),
        many => Some(format!(" {} needed attention then.", human::count(many))),
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
            <a class="link" href=format!("/backends#{}", backend.name)>"Why"</a>
        </li>
    }
}

fn locks(backend: &BackendView) -> String {
    human::counted(backend.locks, "lock", "locks")
}
