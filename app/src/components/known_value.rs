//! A value, or the word that stands where there is none, with the reason on hover. Never a blank.

use domain::known::Known;
use leptos::prelude::*;

#[component]
pub fn KnownValue(value: Known<String>) -> impl IntoView {
    match value {
        Known::Known(value) => value.into_any(),
        Known::Unknown(why) => {
            view! { <span class="ink3" title=why.into_owned()>"unknown"</span> }.into_any()
        }
        Known::Absent(why) => view! { <span class="ink3" title=why.into_owned()>"none"</span> }.into_any(),
    }
}
