//! Owners, holding session, and the record as stored in the backend.

use domain::escape::visible;
use domain::format;
use domain::lock_detail::LockDetail;
use domain::names::OwnerId;
use domain::observation::{RawField, Session};
use leptos::prelude::*;

use crate::components::copy_button::CopyButton;
use crate::components::raw_record::{RawRecord, as_text};
use crate::components::reactive::changing;
use crate::components::time::Time;

const OWNERS_SHOWN: usize = 40;

/// Owners of a shared key, and the database session that holds the lock.
#[component]
pub fn Holders(detail: Signal<LockDetail>) -> impl IntoView {
    let pick = move |detail: &LockDetail| {
        let fresh = detail.fresh.known();
        (
            fresh.map(|fresh| fresh.owners.clone()).unwrap_or_default(),
            fresh.and_then(|fresh| fresh.session.clone()),
        )
    };
    let holders = Memo::new(move |_| detail.with(pick));
    changing(move || {
        let (owners, session) = holders.get();
        let owners = (owners.len() > 1).then(|| view! { <Owners owners/> }.into_any());
        let session = session.map(|session| view! { <SessionFacts session/> }.into_any());
        view! { {owners}{session} }.into_any()
    })
}

#[component]
fn Owners(owners: Vec<OwnerId>) -> impl IntoView {
    let more = owners.len().saturating_sub(OWNERS_SHOWN);
    let note = format!("{} share it", format::count(owners.len() as u64));
    let items = owners
        .iter()
        .take(OWNERS_SHOWN)
        .map(|owner| view! { <li><bdi>{visible(owner.as_str()).into_owned()}</bdi></li> }.into_any())
        .collect_view();
    view! {
        <section class="sec" aria-labelledby="owners-head">
            <header><h2 id="owners-head">"Owners"</h2><span class="note">{note}</span></header>
            <ul class="owners">
                {items}
                {(more > 0).then(|| view! { <li class="ink3">{format!("and {} more", format::count(more as u64))}</li> }.into_any())}
            </ul>
        </section>
    }
    .into_any()
}

#[component]
fn SessionFacts(session: Session) -> impl IntoView {
    let rows = [
        ("pid", session.pid.to_string()),
        ("application", session.application_name),
        (
            "client",
            session
                .client_address
                .unwrap_or_else(|| "a local socket".to_owned()),
        ),
        ("state", session.state),
        (
            "transaction",
            session.transaction_age_ms.map_or("none open".to_owned(), |ms| {
                format!("open for {}", format::duration(ms))
            }),
        ),
        ("query", session.query),
    ];
    let fields = rows
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| RawField {
            name: name.to_owned(),
            value,
        });
    view! {
        <section class="sec" aria-labelledby="session-head">
            <header><h2 id="session-head">"Session that holds it"</h2></header>
            <RawRecord fields=fields.collect()/>
        </section>
    }
    .into_any()
}

#[component]
pub fn Record(detail: Signal<LockDetail>) -> impl IntoView {
    let raw = Memo::new(move |_| {
        detail.with(|detail| {
            detail
                .fresh
                .known()
                .map(|fresh| (fresh.raw.clone(), fresh.read_at))
        })
    });
    let is_read = Memo::new(move |_| raw.with(|raw| raw.as_ref().is_some_and(|(raw, _)| !raw.is_empty())));
    let text = Signal::derive(move || {
        raw.with(|raw| raw.as_ref().map_or_else(String::new, |(raw, _)| as_text(raw)))
    });
    let place =
        move || detail.with(|detail| format!("{}, {}", detail.lock.id.backend, detail.lock.id.source));
    view! {
        <section class="sec" aria-labelledby="raw-head">
            <header>
                <h2 id="raw-head">"Raw record"</h2>
                <span class="note">
                    {changing(place)}
                    {move || raw.get().map(|(_, read_at)| view! { ", read at "<Time at=read_at/> }.into_any())}
                </span>
                {move || is_read.get().then(|| view! { <span class="end"><CopyButton label="copy" text/></span> }.into_any())}
            </header>
            {move || match raw.get() {
                Some((fields, _)) if !fields.is_empty() => view! { <RawRecord fields/> }.into_any(),
                Some(_) => view! { <p class="pad">"This backend has no raw record."</p> }.into_any(),
                None => view! { <p class="pad">"Not read."</p> }.into_any(),
            }}
        </section>
    }
    .into_any()
}
