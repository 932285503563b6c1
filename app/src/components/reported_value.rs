//! A value, or the label for its absence with the reason on hover. Never blank.

use domain::reported::Reported;
use leptos::prelude::*;

#[component]
pub fn ReportedValue(value: Reported<String>) -> impl IntoView {
    match value {
        Reported::Value(value) => value.into_any(),
        Reported::Unknown(why) => {
            view! { <span class="ink3" title=why.into_owned()>"unknown"</span> }.into_any()
        }
        Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.into_owned()>"none"</span> }.into_any()
        }
    }
}
