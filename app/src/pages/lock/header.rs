//! Header of a lock's page: breadcrumbs, name, states with reasons, copy buttons.

use domain::escape::visible;
use domain::expiry_bar::{self, Form};
use domain::lock::Lock;
use domain::lock_detail::LockDetail;
use domain::name_tree;
use domain::state::{LockState, StateReason};
use leptos::prelude::*;

use super::copy_commands::Copies;
use crate::components::reactive::changing;
use crate::components::state_badge::{Shape, StateBadge};
use crate::format;
use crate::links;

/// Most links to prefixes.
const CRUMBS_MAX: usize = 5;
/// Most line breaks in the heading; a name with more segments has the rest in its last one.
const SEGMENTS_MAX: usize = 64;
const SCROLLS_FROM_BYTES: usize = 300;
const TITLE_CHARS_MAX: usize = 80;

pub(super) fn document_title(detail: &LockDetail) -> String {
    let id = &detail.lock.id;
    let name = id.resource.text();
    let name = visible(&name);
    let count = name.chars().count();
    if count <= TITLE_CHARS_MAX {
        return format!("{name}, {}", id.backend);
    }
    // A truncated name loses its start, never its end.
    let end: String = name.chars().skip(count - TITLE_CHARS_MAX).collect();
    format!("\u{2026}{end}, {}", id.backend)
}

/// Note next to the section heading: length of the track.
pub(super) fn time_left_note(lock: &Lock) -> String {
    let track = format::period(expiry_bar::track_ms(lock));
    match expiry_bar::form(lock) {
        Form::Leased if lock.is_stale() => "as last seen; it may have been renewed since".to_owned(),
        Form::Leased if lock.ttl_ms.is_known() => {
            format!("TTL {track}; each renewal refills the bar")
        }
        Form::Leased => format!("TTL unknown; longest observed time left: {track}"),
        Form::Expired => "its lease has expired".to_owned(),
        Form::NoTtl => "no expiry".to_owned(),
        Form::Session => "bound to a session, not to time".to_owned(),
        Form::Unknown if lock.remaining_ms.is_known() => {
            "expired after the last scan unless the holder renewed it".to_owned()
        }
        Form::Unknown => "not reported by this backend".to_owned(),
    }
}

#[component]
pub fn Head(detail: Signal<LockDetail>) -> impl IntoView {
    let id = Memo::new(move |_| detail.with(|detail| detail.lock.id.clone()));
    // A released lock has no state.
    let states = Memo::new(move |_| {
        detail.with(|detail| {
            if detail.is_gone() {
                Vec::new()
            } else {
                states(&detail.lock)
            }
        })
    });
    let name = move || id.with(|id| view! { <BigName name=id.resource.text()/> }.into_any());
    // A name that scrolls must be reachable by keyboard.
    let scrolls = move || {
        if id.with(|id| id.resource.as_bytes().len()) > SCROLLS_FROM_BYTES {
            "0"
        } else {
            "-1"
        }
    };
    view! {
        {move || id.with(|id| view! { <Crumbs backend=id.backend.to_string() name=id.resource.text()/> }.into_any())}
        <div class="hero">
            <h1 tabindex=scrolls>{changing(name)}</h1>
            <div class="acts">
                <Copies detail/>
                <Unlock detail/>
            </div>
        </div>
        <ul class="reasons" aria-label="states">
            {move || states.get().into_iter().enumerate().map(|(index, reason)| view! {
                <li>
                    <StateBadge state=reason.state/>
                    <span>
                        {(index == 0 && !reason.why.is_empty()).then(|| view! { <b>"Reason: "</b> }.into_any())}
                        <bdi>{format::prose(&reason.why)}</bdi>
                    </span>
                </li>
            }.into_any()).collect_view()}
        </ul>
    }
    .into_any()
}

/// Link to the forced unlock, or why it is missing; nothing for a released lock.
#[component]
fn Unlock(detail: Signal<LockDetail>) -> impl IntoView {
    let way = Memo::new(move |_| {
        detail.with(|detail| {
            (!detail.is_gone()).then(|| {
                let rel = links::needs_browser(&detail.lock.id.resource.text()).then_some("external");
                (links::unlock_holding(&detail.lock), rel, detail.no_unlock.clone())
            })
        })
    });
    changing(move || {
        way.get().map(|(href, rel, why)| match why {
            None => view! {
                <a class="btn solid" href=href rel=rel data-unlock="" aria-keyshortcuts="u"><Shape name="unlock"/>"Unlock… "<kbd>"u"</kbd></a>
            }
            .into_any(),
            Some(why) => view! {
                <span class="no-unlock">
                    <button class="btn" type="button" disabled=true aria-describedby="no-unlock"><Shape name="unlock"/>"Unlock…"</button>
                    <small id="no-unlock">{format::prose(&why)}</small>
                </span>
            }
            .into_any(),
        })
    })
}

/// The name, with line breaks between segments; only what differs from its siblings is
/// emphasized.
#[component]
fn BigName(name: String) -> impl IntoView {
    let shared = shared_with_siblings(&name);
    let mut segments = Vec::new();
    let mut at = 0;
    while at < name.len() {
        let last = segments.len() + 1 == SEGMENTS_MAX;
        let end = if last {
            name.len()
        } else {
            at + name_tree::segment_len(name.as_bytes(), at)
        };
        let class = if at < shared { "seg dim" } else { "seg" };
        segments.push(view! { <span class=class>{visible(&name[at..end]).into_owned()}</span> });
        at = end;
    }
    view! { <bdi dir="ltr">{segments}</bdi> }
}

/// Length of all but the last segment: shared with its siblings.
fn shared_with_siblings(name: &str) -> usize {
    let bytes = name.as_bytes();
    let trimmed = bytes
        .iter()
        .rposition(|byte| !name_tree::is_separator(*byte))
        .map_or(0, |at| at + 1);
    name_tree::boundary(&bytes[..trimmed])
}

/// The current state first, even if the reasons list only the states before it.
fn states(lock: &Lock) -> Vec<StateReason> {
    let mut reasons = lock.reasons.clone();
    if reasons.first().is_none_or(|reason| reason.state != lock.state) {
        let why = match lock.state {
            LockState::Stale => {
                format!(
                    "Not observed for {}. State before:",
                    domain::format::age(lock.age_ms)
                )
            }
            _ => String::new(),
        };
        reasons.retain(|reason| reason.state != lock.state);
        reasons.insert(
            0,
            StateReason {
                state: lock.state,
                why,
            },
        );
    }
    reasons
}

#[component]
fn Crumbs(backend: String, name: String) -> impl IntoView {
    let by_backend = links::with_query("/locks", [("backend", backend.as_str())]);
    let (prefixes, left_out) = prefixes(&name);
    let prefixes = prefixes.into_iter().map(|(prefix, segment)| {
        view! { <li class="mono"><a class="link" href=links::prefix(&prefix)><bdi>{visible(&segment).into_owned()}</bdi></a></li> }.into_any()
    });
    view! {
        <nav class="crumbs" aria-label="breadcrumb">
            <ol>
                <li><a class="link" href="/locks">"Locks"</a></li>
                <li><a class="link" href=by_backend>{backend}</a></li>
                {prefixes.collect_view()}
                {left_out.then(|| view! { <li class="ink3">"…"</li> }.into_any())}
            </ol>
        </nav>
    }
    .into_any()
}

/// Every prefix of the name with its last segment, and whether some were left out.
fn prefixes(name: &str) -> (Vec<(String, String)>, bool) {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let len = name_tree::segment_len(name.as_bytes(), at);
        let end = at + len;
        if len == 0 || end >= name.len() {
            return (found, false);
        }
        if found.len() == CRUMBS_MAX {
            return (found, true);
        }
        found.push((name[..end].to_owned(), name[at..end].to_owned()));
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breadcrumbs_follow_segments_up_to_a_limit() {
        // A usual name, a path, a single word, and one with more segments than fit.
        let texts = |name| {
            prefixes(name)
                .0
                .into_iter()
                .map(|(prefix, _)| prefix)
                .collect::<Vec<_>>()
        };
        assert_eq!(texts("tenant_1:billing:2026"), ["tenant_1:", "tenant_1:billing:"]);
        assert_eq!(texts("/locks/a"), ["/locks/"]);
        assert!(texts("reindex").is_empty());
        let (many, left_out) = prefixes("a:b:c:d:e:f:g");
        assert_eq!((many.len(), left_out), (CRUMBS_MAX, true));
        assert_eq!(shared_with_siblings("a:b:"), 2);
    }
}
