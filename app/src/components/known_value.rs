//! A value, or the word that stands where there is none, with the reason on hover. Never a blank.

use domain::known::Known;
use leptos::either::Either;
use leptos::prelude::*;

#[component]
pub fn KnownValue(value: Known<String>) -> impl IntoView {
    match value {
        Known::Known(value) => Either::Left(value),
        Known::Unknown(why) => {
            Either::Right(view! { <span class="ink3" title=why.into_owned()>"unknown"</span> })
        }
        Known::Absent(why) => {
            Either::Right(view! { <span class="ink3" title=why.into_owned()>"none"</span> })
        }
    }
}
