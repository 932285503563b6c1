//! Tables of one backend: sources, account permissions, capabilities, past failures.

use domain::backend::{AccountPermission, BackendFailure, Capability, SourceView};
use domain::escape::visible;
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::state_badge::Shape;
use crate::components::time::short_time;
use crate::format;

const FAULTS_SHOWN: usize = 8;

#[component]
pub fn Sources(sources: Vec<SourceView>, is_seen: bool) -> impl IntoView {
    let rows = sources.into_iter().map(|source| {
        let fault = source.fault.map(|fault| {
            view! { <span class="st small critical wrap"><Shape name="x"/><bdi>{format::prose(&fault)}</bdi></span> }.into_any()
        });
        view! {
            <tr>
                <th scope="row" class="mono wrap"><bdi>{visible(source.source.as_str()).into_owned()}</bdi>{fault}</th>
                <td class="num">{if is_seen { format::count(source.locks).into_any() } else { view! { <span class="ink3">"unknown"</span> }.into_any() }}</td>
            </tr>
        }.into_any()
    });
    view! {
        <table class="t bt">
            <thead><tr><th scope="col">"source"</th><th scope="col" class="num">"locks"</th></tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

/// Permissions with a problem first; those without one are folded.
#[component]
pub fn Rights(rights: Vec<AccountPermission>) -> impl IntoView {
    let is_met = |right: &AccountPermission| matches!(right.allowed, Reported::Value(allowed) if allowed == right.wanted);
    let (met, unmet): (Vec<_>, Vec<_>) = rights.into_iter().partition(is_met);
    let unmet = (!unmet.is_empty()).then(|| permission_table(unmet));
    let folded = (!met.is_empty()).then(|| {
        let permissions = format::counted(
            met.len() as u64,
            "account permission is as it should be",
            "account permissions are as they should be",
        );
        view! {
            <details class="folded">
                <summary class="small ink2">{permissions}</summary>
                {permission_table(met)}
            </details>
        }
        .into_any()
    });
    view! { {unmet}{folded} }.into_any()
}

fn permission_table(rights: Vec<AccountPermission>) -> AnyView {
    let rows = rights.into_iter().map(|right| {
        let (shape, hue, label) = permission_status(&right);
        let unmet = matches!(right.allowed, Reported::Value(allowed) if allowed != right.wanted);
        let remedy = (unmet && !right.remedy.is_empty()).then(|| {
            view! { <span class="remedy mono"><bdi>{visible(&right.remedy).into_owned()}</bdi></span> }.into_any()
        });
        view! {
            <tr>
                <th scope="row" class="wrap"><bdi>{visible(&right.what).into_owned()}</bdi>{remedy}</th>
                <td><span class=format!("st {hue}") title=right.allowed.why().unwrap_or_default().to_owned()><Shape name=shape/>{label}</span></td>
            </tr>
        }.into_any()
    });
    view! {
        <table class="t bt">
            <thead><tr><th scope="col">"account permissions"</th><th scope="col"><span class="sr">"verdict"</span></th></tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

/// Missing and excess permissions are both problems, with different badges.
fn permission_status(right: &AccountPermission) -> (&'static str, &'static str, &'static str) {
    match (&right.allowed, right.wanted) {
        (Reported::Value(true), true) => ("ok", "healthy quiet", "granted"),
        (Reported::Value(false), false) => ("ok", "healthy quiet", "denied"),
        (Reported::Value(false), true) => ("x", "critical", "denied"),
        (Reported::Value(true), false) => ("near_expiry", "warning", "granted, not needed"),
        (Reported::Unknown(_) | Reported::NotApplicable(_), _) => ("unknown", "blind quiet", "unknown"),
    }
}

#[component]
pub fn Capabilities(capabilities: Vec<Capability>) -> impl IntoView {
    let rows = capabilities.into_iter().map(|capability| {
        let (shape, label) = if capability.can { ("ok", "yes") } else { ("unknown", "no") };
        view! {
            <tr>
                <th scope="row">{capability.name}</th>
                <td class="ink2 wrap"><bdi>{visible(&capability.how).into_owned()}</bdi></td>
                <td><span class="st quiet">{capability.can.then(|| view! { <Shape name=shape/> }.into_any())}{label}</span></td>
            </tr>
        }.into_any()
    });
    view! {
        <table class="t bt">
            <thead><tr><th scope="col">"capability"</th><th scope="col">"how"</th><th scope="col"><span class="sr">"supported"</span></th></tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

#[component]
pub fn PastFaults(faults: Vec<BackendFailure>) -> impl IntoView {
    let more = faults.len().saturating_sub(FAULTS_SHOWN);
    let is_empty = faults.is_empty();
    let rows = faults.into_iter().take(FAULTS_SHOWN).map(|fault| {
        let times = (fault.times > 1).then(|| format!(" \u{d7}{}", fault.times));
        view! {
            <tr>
                <td class="ink2">{short_time(fault.at.timestamp_millis(), true)}</td>
                <td class="wrap">
                    <bdi>{format::prose(&fault.message)}</bdi><span class="ink3">{times}</span>
                    <span class="remedy"><bdi>{visible(&fault.remedy).into_owned()}</bdi></span>
                </td>
            </tr>
        }
        .into_any()
    });
    let rows = rows.collect_view();
    view! {
        <table class="t bt past">
            <thead><tr><th scope="col">"past errors, UTC"</th><th scope="col"><span class="sr">"error and remedy"</span></th></tr></thead>
            <tbody>
                {rows}
                {is_empty.then(|| view! { <tr><td colspan="2" class="ink3">"none since this console started"</td></tr> }.into_any())}
                {(more > 0).then(|| view! { <tr><td colspan="2" class="ink3">{format!("and {more} more")}</td></tr> }.into_any())}
            </tbody>
        </table>
    }
    .into_any()
}
