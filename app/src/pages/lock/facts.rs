//! Fact row: owner, hold time, renewals, token, expiry, lease, safety class.

use domain::escape::visible;
use domain::lock::Lock;
use domain::lock_detail::LockDetail;
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::elapsed::{Age, Elapsing, Held};
use crate::components::fact_list::{Facts, known_or_why};
use crate::components::reactive::changing;
use crate::components::time::{Time, is_of_another_day};
use crate::format;

/// Longer lease ids show their two ends.
const LEASE_CHARS_MAX: usize = 20;

#[component]
pub fn LockFacts(detail: Signal<LockDetail>) -> impl IntoView {
    changing(move || detail.with(|detail| view! { <Row lock=detail.lock.clone()/> }.into_any()))
}

#[component]
fn Row(lock: Lock) -> impl IntoView {
    let token = known_or_why(&lock.fencing_token, |token| token.to_string().into_any());
    let safety = {
        let why = lock.safety.why.to_string();
        view! { {lock.safety.class.as_str()}<small>{why}</small> }.into_any()
    };
    let cells = [
        ("held by", owner(&lock)),
        ("since", since(&lock)),
        ("renewing", renewing(&lock)),
        ("fencing token", token),
        ("held until, as observed", until(&lock)),
        ("lease", lease(&lock)),
        ("safety class", safety),
    ];
    view! { <Facts cells=cells.into()/> }
}

fn owner(lock: &Lock) -> AnyView {
    let others = lock.owner_count.saturating_sub(1);
    let others = (others > 0).then(|| {
        let text = format!("and {} more share it", format::count(u64::from(others)));
        view! { <small>{text}</small> }.into_any()
    });
    let source = format!("source {}", lock.id.source);
    known_or_why(&lock.owner_id, |owner| {
        let name = visible(owner.as_str()).into_owned();
        view! { <bdi class="long">{name}</bdi>{others}<small>{source}</small> }.into_any()
    })
}

fn since(lock: &Lock) -> AnyView {
    match &lock.acquired_at {
        Reported::Value(at) => {
            let with_date = is_of_another_day(*at, lock.observed_at);
            view! { <Time at=*at with_date/><small><Held lock=lock.clone()/>" ago"</small> }.into_any()
        }
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            let why = why.to_string();
            view! { <Held lock=lock.clone()/><small>{why}</small> }.into_any()
        }
    }
}

fn renewing(lock: &Lock) -> AnyView {
    known_or_why(&lock.renewal, |renewal| {
        let seen = format::counted(u64::from(renewal.count), "renewal", "renewals");
        view! {
            {format!("every {}", format::duration(renewal.interval_ms))}
            <small>"last "<Age ms=renewal.last_ago_ms/>" ago, "{seen}" seen"</small>
        }
        .into_any()
    })
}

/// The observed expiry. It is labelled as an observation, because a renewal or a release may have followed.
fn until(lock: &Lock) -> AnyView {
    let age = lock.age_ms;
    let backend = lock.id.backend.to_string();
    known_or_why(&lock.expires_at, |at| {
        let with_date = is_of_another_day(*at, lock.observed_at);
        view! { <Time at=*at with_date/><small>"as observed "<Elapsing ms=age/>" ago by "{backend.clone()}</small> }.into_any()
    })
}

fn lease(lock: &Lock) -> AnyView {
    known_or_why(&lock.lease_id, |lease| {
        let full = visible(lease).into_owned();
        let count = full.chars().count();
        let short = if count <= LEASE_CHARS_MAX {
            full.clone()
        } else {
            let ends: String = full
                .chars()
                .take(8)
                .chain(['\u{2026}'])
                .chain(full.chars().skip(count - 6))
                .collect();
            ends
        };
        view! { <bdi class="mono" title=full>{short}</bdi> }.into_any()
    })
}
