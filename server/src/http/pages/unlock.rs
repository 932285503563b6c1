//! `/unlock/…` and `/unlocks/…`: the forced unlock as pages without a script. Handlers parse, ask the unlocks, answer with a
//! page, or send on to one so that reloading repeats nothing.

pub(in crate::http) mod bulk;
pub(in crate::http) mod review;
pub(in crate::http) mod step;

use app::server_pages::layout::{Chrome, PageSection};
use app::server_pages::unlock::UnlockRefusal;

use crate::http::current_user::CurrentUser;
use crate::http::pages::response;
use crate::unlock::UnlockError;

fn chrome(viewer: &CurrentUser) -> Chrome {
    response::chrome(&viewer.0, PageSection::Locks)
}

/// Message at the top of a page whose step was rejected.
fn refusal(error: &UnlockError) -> UnlockRefusal {
    let text = match error {
        // The store's own words are not for display.
        UnlockError::AuditUnavailable(_) => {
            "Nothing was changed, because the audit log cannot be written now. Try again in a moment."
                .to_owned()
        }
        other => other.to_string(),
    };
    let remedy = match error {
        UnlockError::Unavailable { remedy, .. } | UnlockError::Stale { remedy, .. } => remedy.clone(),
        _ => None,
    };
    let holders = match error {
        UnlockError::HolderChanged { before, now } if before.is_some() || now.is_some() => {
            Some((before.as_deref().cloned(), now.as_deref().cloned()))
        }
        _ => None,
    };
    UnlockRefusal {
        text,
        remedy,
        holders,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
