//! Cells of a fencing rejection.

use domain::escape::visible;
use domain::fencing_rejections::Rejection;
use leptos::prelude::*;

use super::state_badge::Shape;

/// The writer; a token that was never granted has no owner.
pub fn owner(row: &Rejection) -> AnyView {
    match &row.owner {
        Some(owner) => view! { <bdi>{visible(owner.as_str()).into_owned()}</bdi> }.into_any(),
        None => {
            let why = "neither in the report nor in the history";
            view! { <span class="ink3" title=why>"unknown"</span> }.into_any()
        }
    }
}

/// `✕ 1840 < 1841`
pub fn tokens(row: &Rejection) -> AnyView {
    let against = match row.current {
        Some(current) => {
            let sign = if row.token < current { " < " } else { " against " };
            view! { <span class="ink3">{sign}</span>{current.to_string()} }.into_any()
        }
        None => view! { <span class="ink3">" was old"</span> }.into_any(),
    };
    view! { <span class="critical st"><Shape name="x"/>{row.token.to_string()}</span>{against} }.into_any()
}
