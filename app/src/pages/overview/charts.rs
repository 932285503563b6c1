//! Charts and recent incidents of the overview. A section without data is replaced with a message.

use domain::overview::OverviewCharts;
use leptos::prelude::*;

use super::firing_alerts::FiringAlertsSection;
use super::recent_incidents::{Rejections, Unlocks};
use crate::charts::chart_frame::Unread;
use crate::charts::held_locks::HeldLocks;
use crate::charts::simulated_mark::provide_simulated;
use crate::components::reactive::changing;
use crate::links::PageUrl;
use crate::navigation::use_search_of;

#[component]
pub fn Alerts(charts: Memo<Option<OverviewCharts>>) -> impl IntoView {
    let alerts = Memo::new(move |_| charts.with(|charts| charts.as_ref()?.alerts.clone()));
    let is_read = Memo::new(move |_| alerts.with(Option::is_some));
    changing(move || {
        let is_read = is_read.get();
        match alerts.get_untracked().filter(|_| is_read) {
            Some(first) => {
                let alerts = Signal::derive(move || alerts.get().unwrap_or_else(|| first.clone()));
                view! { <FiringAlertsSection alerts/> }.into_any()
            }
            None => view! { <Unread id="firing" title="Alerts" what="alerts"/> }.into_any(),
        }
    })
}

#[component]
pub fn Incidents(charts: Memo<Option<OverviewCharts>>) -> impl IntoView {
    let is_read = Memo::new(move |_| charts.with(Option::is_some));
    provide_simulated(move || charts.with(|charts| charts.as_ref()?.range.simulated_mark()));
    changing(move || {
        let first = charts.get_untracked().filter(|_| is_read.get())?;
        let charts = Signal::derive(move || charts.get().unwrap_or_else(|| first.clone()));
        Some(
            view! {
                <div class="two low">
                    <Held charts/>
                    <div class="stack"><Rejections charts/><Unlocks charts/></div>
                </div>
            }
            .into_any(),
        )
    })
}

#[component]
fn Held(charts: Signal<OverviewCharts>) -> impl IntoView {
    let search = use_search_of("/");
    let held = Memo::new(move |_| charts.with(|charts| charts.held.clone()));
    let range = Memo::new(move |_| charts.with(|charts| charts.range.clone()));
    let url = Memo::new(move |_| PageUrl::new("/", &search.get()));
    let is_read = Memo::new(move |_| held.with(Option::is_some));
    changing(move || {
        let is_read = is_read.get();
        match held.get_untracked().filter(|_| is_read) {
            Some(first) => {
                let chart = Signal::derive(move || held.get().unwrap_or_else(|| first.clone()));
                view! { <HeldLocks chart range url/> }.into_any()
            }
            None => view! { <Unread id="held" title="Held and waiting"/> }.into_any(),
        }
    })
}
