//! The head of a lock's page: the way down to it, its name, its states with the reasons, and what can be copied.

use domain::detail::LockDetail;
use domain::escape::visible;
use domain::lock::Lock;
use domain::runway::{self, Form};
use domain::segments;
use domain::state::{LockState, Reason};
use leptos::prelude::*;

use super::copies::Copies;
use crate::components::changing::changing;
use crate::components::state_badge::{Shape, StateBadge};
use crate::links;

/// Links to prefixes shown before the rest is left out.
const CRUMBS_MAX: usize = 5;
/// Breaks in the big name; a name with more segments has them in its last one.
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
    // A cut name loses its start, never its end.
    let end: String = name.chars().skip(count - TITLE_CHARS_MAX).collect();
    format!("\u{2026}{end}, {}", id.backend)
}

/// Beside the section's head: what the track is.
pub(super) fn runway_note(lock: &Lock) -> String {
    let track = domain::human::period(runway::track_ms(lock));
    match runway::form(lock) {
        Form::Leased if lock.is_stale() => "as last seen; it may have been renewed since".to_owned(),
        Form::Leased if lock.ttl_ms.is_known() => {
            format!("TTL {track}; runs down to the left, each renewal sets it back")
        }
        Form::Leased => format!("TTL unknown; the most ever seen left is {track}"),
        Form::Expired => "its lease has run out".to_owned(),
        Form::NoTtl => "nothing runs down".to_owned(),
        Form::Session => "bound to a session, not to time".to_owned(),
        Form::Unknown if lock.remaining_ms.is_known() => {
            "it ran out after the last scan, unless the holder renewed it".to_owned()
        }
        Form::Unknown => "this backend does not tell".to_owned(),
    }
}

#[component]
pub fn Head(detail: Signal<LockDetail>) -> impl IntoView {
    let id = Memo::new(move |_| detail.with(|detail| detail.lock.id.clone()));
    // Of a lock that is gone, no state holds.
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
    // A name so long that it scrolls can be reached by keys.
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
                        {(index == 0 && !reason.why.is_empty()).then(|| view! { <b>"Why we think so: "</b> }.into_any())}
                        <bdi>{visible(&reason.why).into_owned()}</bdi>
                    </span>
                </li>
            }.into_any()).collect_view()}
        </ul>
    }
    .into_any()
}

/// The way to the forced unlock, or why there is none; nothing for a lock that is gone. A page of the server's alone.
#[component]
fn Unlock(detail: Signal<LockDetail>) -> impl IntoView {
    let way = Memo::new(move |_| {
        detail.with(|detail| {
            (!detail.is_gone()).then(|| (links::unlock_holding(&detail.lock), detail.no_unlock.clone()))
        })
    });
    changing(move || {
        way.get().map(|(href, why)| match why {
            None => view! {
                <a class="btn solid" href=href rel="external" data-unlock="" aria-keyshortcuts="u"><Shape name="unlock"/>"Unlock… "<kbd>"u"</kbd></a>
            }
            .into_any(),
            Some(why) => view! {
                <span class="no-unlock">
                    <button class="btn" type="button" disabled=true aria-describedby="no-unlock"><Shape name="unlock"/>"Unlock…"</button>
                    <small id="no-unlock">{visible(&why).into_owned()}</small>
                </span>
            }
            .into_any(),
        })
    })
}

/// The name, broken between its segments where a line ends; only what differs from its neighbours is bright.
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
            at + segments::segment_len(name.as_bytes(), at)
        };
        let class = if at < shared { "seg dim" } else { "seg" };
        segments.push(view! { <span class=class>{visible(&name[at..end]).into_owned()}</span> });
        at = end;
    }
    view! { <bdi dir="ltr">{segments}</bdi> }
}

/// All but the last segment: what this lock shares with its neighbours.
fn shared_with_siblings(name: &str) -> usize {
    let bytes = name.as_bytes();
    let trimmed = bytes
        .iter()
        .rposition(|byte| !segments::is_separator(*byte))
        .map_or(0, |at| at + 1);
    segments::boundary(&bytes[..trimmed])
}

/// The row's state first, also where its reasons keep only what held before.
fn states(lock: &Lock) -> Vec<Reason> {
    let mut reasons = lock.reasons.clone();
    if reasons.first().is_none_or(|reason| reason.state != lock.state) {
        let why = match lock.state {
            LockState::Stale => {
                format!(
                    "Not seen for {}. What held before:",
                    domain::human::age(lock.age_ms)
                )
            }
            _ => String::new(),
        };
        reasons.retain(|reason| reason.state != lock.state);
        reasons.insert(
            0,
            Reason {
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
        <nav class="crumbs" aria-label="the way to this lock">
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

/// Every prefix on the way down with its last segment, and whether some were left out.
fn prefixes(name: &str) -> (Vec<(String, String)>, bool) {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let len = segments::segment_len(name.as_bytes(), at);
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
    fn crumbs_lead_down_by_segments_and_stop_in_time() {
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
