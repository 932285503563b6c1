//! Settings: users, permissions, credentials.

pub mod account;
pub mod grants;
pub mod protected_prefixes;
pub mod roles;
pub mod secret_panel;
pub mod sessions;
pub mod tokens;
pub mod user;
pub mod users;

use leptos::prelude::*;

use crate::components::relative_time::RelativeTime;
use crate::live::topics::Topics;

/// Changes of users, tokens and settings are entries of the audit log.
const TOPICS: Topics = Topics::ACTIVITY;

/// Age of a moment in milliseconds since 1970; `none` without one.
pub(crate) fn age(at: Option<i64>, now: i64, none: &'static str) -> AnyView {
    match at {
        Some(at) => view! { <RelativeTime at now/> }.into_any(),
        None => view! { <span class="ink3">{none}</span> }.into_any(),
    }
}
