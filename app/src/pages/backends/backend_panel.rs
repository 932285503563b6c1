//! One backend: heading, current failure with its remedy, health, tables.

use domain::backend::{BackendFailure, BackendView};
use domain::escape::visible;
use domain::observation::Coverage;
use domain::reported::Reported;
use leptos::prelude::*;

use super::cluster::Members;
use super::health::Health;
use super::tables::{Capabilities, PastFaults, Rights, Sources};
use crate::components::reactive::changing;
use crate::components::state_badge::{BackendBadge, Shape};
use crate::components::time::Time;
use crate::format;
use crate::links;

#[component]
pub fn OneBackend(backend: Memo<BackendView>) -> impl IntoView {
    let name = backend.with_untracked(|backend| backend.name.to_string());
    let locks = links::with_query("/locks", [("backend", name.as_str())]);
    let class = move || match backend.with(|backend| backend.status.blinds_rows()) {
        true => "sec backend is-blind",
        false => "sec backend",
    };
    let part = move |view: fn(&BackendView) -> AnyView| changing(move || backend.with(view));
    // Created again only when the permissions change, so that an unfolded list stays open over scans.
    let rights =
        Memo::new(move |_| backend.with(|backend| (!backend.is_limited).then(|| backend.rights.clone())));
    let capabilities = Memo::new(move |_| backend.with(|backend| backend.capabilities.clone()));
    let (head, labelled_by) = (format!("{name}-head"), format!("{name}-head"));
    view! {
        <section class=class id=name.clone() aria-labelledby=labelled_by tabindex="-1">
            <header>
                <h2 id=head>{name.clone()}</h2>
                {part(|backend| view! { <BackendBadge status=backend.status/> }.into_any())}
                <span class="note">{part(version)}</span>
                <span class="note mono address">{part(address)}</span>
                <a class="end link" href=locks>"Its locks"</a>
            </header>
            {part(|backend| notice(backend).into_any())}
            <div class="backend-parts">
                {part(|backend| view! { <Health backend=backend.clone()/> }.into_any())}
                {part(or_limited)}
                <div class="stack">
                    {changing(move || rights.get().map(|rights| view! { <Rights rights/> }.into_any()))}
                    {changing(move || view! { <Capabilities capabilities=capabilities.get()/> }.into_any())}
                </div>
            </div>
            {part(|backend| backend.clusters.iter().cloned().map(|cluster| view! { <Members cluster/> }.into_any()).collect_view().into_any())}
        </section>
    }
    .into_any()
}

fn version(backend: &BackendView) -> AnyView {
    match &backend.version {
        Reported::Value(version) => {
            let shown = visible(version).into_owned();
            let names_itself = shown.to_ascii_lowercase().contains(backend.kind.as_str());
            if names_itself {
                shown.into_any()
            } else {
                format!("{} {shown}", backend.kind.as_str()).into_any()
            }
        }
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            let text = format!("{}, version unknown", backend.kind.as_str());
            view! { <span title=why.to_string()>{text}</span> }.into_any()
        }
    }
}

fn address(backend: &BackendView) -> AnyView {
    view! { <bdi>{visible(&backend.address).into_owned()}</bdi> }.into_any()
}

/// Sources and past failures, or why the reader may not see them.
fn or_limited(backend: &BackendView) -> AnyView {
    if backend.is_limited {
        return view! {
            <p class="notice">
                <Shape name="unknown"/>
                <span>
                    <b>"Limited view. "</b>
                    "Counts are of the locks in your scope. Address, sources, members, errors, coverage and the account's permissions are shown to roles that cover the whole backend."
                </span>
            </p>
        }
        .into_any();
    }
    view! {
        <div class="stack">
            <Sources sources=backend.sources.clone() is_seen=backend.age_ms.is_some()/>
            <PastFaults faults=backend.past_faults.clone()/>
        </div>
    }
    .into_any()
}

/// The current failure, or the reason for partial coverage.
fn notice(backend: &BackendView) -> Option<AnyView> {
    if let Some(fault) = &backend.fault {
        return Some(view! { <Present fault=fault.clone() blind=backend.status.blinds_rows()/> }.into_any());
    }
    match &backend.coverage {
        Coverage::Partial { .. } if backend.is_limited => None,
        Coverage::Partial { seen, of, why } => {
            let much = match of {
                Some(of) => format!(
                    "{} of about {} were read.",
                    format::count(*seen),
                    format::count(*of)
                ),
                None => format!("{} were read.", format::count(*seen)),
            };
            let why = format::prose(why);
            Some(
                view! {
                    <p class="notice warning">
                        <Shape name="near_expiry"/>
                        <span><b>"Partial coverage. "</b><bdi>{why}</bdi>". "{much}</span>
                    </p>
                }
                .into_any(),
            )
        }
        Coverage::Complete => None,
    }
}

#[component]
fn Present(fault: BackendFailure, blind: bool) -> impl IntoView {
    let hue = if blind {
        "notice critical is-stale"
    } else {
        "notice warning"
    };
    let times = (fault.times > 1).then(|| format!(", {} times in a row", fault.times));
    let remedy = (!fault.remedy.is_empty()).then(|| {
        // Text between backticks is code. The command line prints the same remedy.
        let parts = visible(&fault.remedy)
            .split('`')
            .enumerate()
            .map(|(at, part)| {
                let part = part.to_owned();
                if at % 2 == 0 {
                    part.into_any()
                } else {
                    view! { <code>{part}</code> }.into_any()
                }
            })
            .collect_view();
        view! { <span class="remedy"><b>"Remedy: "</b><bdi>{parts}</bdi></span> }.into_any()
    });
    view! {
        <p class=hue>
            <Shape name="x"/>
            <span>
                <b><bdi>{format::prose(&fault.message)}</bdi></b>
                <span class="ink2">" at "<Time at=fault.at with_date=true/>{times}"."</span>
                {remedy}
            </span>
        </p>
    }
    .into_any()
}
