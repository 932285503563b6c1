//! Preview of a rule on past data: two figures, one chart per part of the condition, a strip per
//! version, the newest firings, and one of them enlarged.

use chrono::DateTime;
use domain::alerts::Unit;
use domain::charts::shown_range::simulated_before;
use domain::time_format;
use leptos::prelude::*;

use super::PreviewRequest;
use super::chart::{PartChart, param_of, strips};
use super::newest_firing::newest_firing;
use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::format;
use crate::pages::alerts::data::owner_text;
use crate::pages::rule_editor::data::{FiringRow, PreviewData, RulePreview};

#[component]
pub fn PreviewView(data: Signal<RulePreview>, request: PreviewRequest) -> impl IntoView {
    // The last preview stays while the next one is computed; its plots are dimmed.
    let class = move || {
        if request.is_pending.get() {
            "stack is-computing"
        } else {
            "stack"
        }
    };
    let shown = Memo::new(move |before: Option<&RulePreview>| match before {
        Some(before) if !request.line.is_still() => before.clone(),
        _ => data.get(),
    });
    let spoken = Memo::new(move |_| shown.with(spoken));
    view! {
        <div class=class>
            <p class="re-progress small ink2" role="status">{move || request.is_pending.get().then_some("Computing the preview…")}</p>
            {changing(move || {
                request.line.sync_after_redraw();
                shown.with(|data| content(data, request))
            })}
            <p class="sr" role="status">{changing(move || spoken.get())}</p>
        </div>
    }
    .into_any()
}

/// Text that a screen reader announces for a new preview, without its charts and tables. Empty until the preview is complete.
fn spoken(data: &RulePreview) -> String {
    let Some(edited) = data.edited.as_ref().filter(|edited| !edited.is_partial) else {
        return match data.faults.is_empty() {
            true => String::new(),
            false => "No preview: a field is invalid.".to_owned(),
        };
    };
    let counted = |preview: &PreviewData| format::counted(preview.count, "firing", "firings");
    match (&edited.unknown, &data.saved) {
        (Some(why), _) => format!("No preview: {why}."),
        (None, Some(saved)) => format!(
            "{} now, {} with this change",
            counted(saved),
            format::count(edited.count)
        ),
        (None, None) => counted(edited),
    }
}

fn content(data: &RulePreview, request: PreviewRequest) -> AnyView {
    if !data.faults.is_empty() {
        return view! { <section class="sec"><header><h2>"Preview"</h2></header><p class="al-none ink2">"No preview: a field is invalid."</p></section> }
            .into_any();
    }
    let Some(edited) = &data.edited else {
        return ().into_any();
    };
    if let Some(why) = &edited.unknown {
        let why = format!("No preview: {why}.");
        return view! { <section class="sec"><header><h2>"Preview"</h2></header><p class="al-none ink2">{why}</p></section> }
            .into_any();
    }
    let note = match edited.is_partial {
        true => format!("last {}; loading the rest of 7 days", span(edited)),
        false => format!("last {}, UTC; follows the form", span(edited)),
    };
    let simulated = simulated_before(edited.simulated_until);
    let simulated = simulated.map(|text| view! { <span class="simulated">{text}</span> }.into_any());
    let parts: Vec<AnyView> = edited
        .parts
        .iter()
        .enumerate()
        .map(|(at, part)| {
            let saved = data.saved.as_ref().and_then(|saved| saved.parts.get(at));
            let saved = saved.and_then(|saved| saved.threshold);
            let letter = (edited.parts.len() > 1).then(|| char::from(b'A' + u8::try_from(at).unwrap_or(0)));
            let most = request.highest(part);
            view! { <PartChart part=part.clone() most range=(edited.from, edited.to) gaps=edited.gaps.clone() saved letter is_main=at == 0/> }
                .into_any()
        })
        .collect();
    view! {
        <section class="sec" aria-label="Preview">
            <header><h2>"Preview"</h2>{simulated}<span class="note">{note}</span></header>
            {figures(data, edited)}
            {parts}
            {strips(edited, data.saved.as_ref())}
            {exclusions_note(edited)}
        </section>
        {firings(edited)}
        {newest_firing(edited)}
    }
    .into_any()
}

/// Firings now and with this change.
fn figures(data: &RulePreview, edited: &PreviewData) -> AnyView {
    let figure = |count: u64, label: &'static str, class: &'static str| {
        view! { <p class=class><b>{format::count(count)}</b><span class="small ink2">{label}</span></p> }
            .into_any()
    };
    let figures = match &data.saved {
        Some(saved) => view! {
            {figure(saved.count, "firings now", "fig ink2")}
            <span class="fig-to" aria-hidden="true">"›"</span>
            {figure(edited.count, "with this change", "fig")}
        }
        .into_any(),
        None => figure(edited.count, "firings", "fig"),
    };
    let of_locks = match edited.locks {
        0 => String::new(),
        locks => format!("{}, ", format::counted(locks, "lock", "locks")),
    };
    let cost = format!(
        "{of_locks}{}, in {} ms; same code as the live rule",
        format::counted(edited.events, "event", "events"),
        data.took_ms
    );
    let cut = edited.is_cut.then(|| {
        view! { <span>" A preview reads a limited number of events: older ones are left out."</span> }
            .into_any()
    });
    view! { <div class="figs">{figures}<p class="small ink2 figs-note">{cost}{cut}</p></div> }.into_any()
}

/// Range of the preview: `7 days`, or less if the history has more events than a preview reads.
fn span(preview: &PreviewData) -> String {
    const DAY_MS: i64 = 24 * 3_600_000;
    let ms = preview.to - preview.from;
    if ms % DAY_MS == 0 {
        format::counted((ms / DAY_MS).unsigned_abs(), "day", "days")
    } else {
        format::period(ms / 60_000 * 60_000)
    }
}

/// Data that the preview does not have.
fn exclusions_note(preview: &PreviewData) -> AnyView {
    let ttl = (preview.without_ttl > 0).then(|| {
        format!(
            "{} of {} acquisitions have no recorded TTL and are evaluated in part. ",
            format::count(preview.without_ttl),
            format::count(preview.acquisitions)
        )
    });
    let gaps = (!preview.gaps.is_empty()).then(|| {
        let lengths = preview.gaps.iter().map(|(began, ended)| ended - began);
        let length = format::period(lengths.sum::<i64>() / 1_000 * 1_000);
        let gaps = format::counted(preview.gaps.len() as u64, "gap", "gaps");
        format!("Hatched: {gaps} in the history, {length} in all. Nothing fires or resolves in a gap.")
    });
    view! { <p class="small ink2">{ttl}{gaps}</p> }.into_any()
}

/// Unit of the threshold that the firings are measured in.
pub(super) fn main_unit(preview: &PreviewData) -> Unit {
    let param = preview.parts.first().and_then(param_of);
    param.map_or(Unit::Count, |param| param.unit)
}

fn firings(preview: &PreviewData) -> AnyView {
    if preview.firings.is_empty() {
        return ().into_any();
    }
    let unit = main_unit(preview);
    let rows: Vec<AnyView> = preview.firings.iter().map(|firing| row(firing, unit)).collect();
    let note = format!(
        "newest {} of {}",
        preview.firings.len(),
        format::count(preview.count)
    );
    view! {
        <section class="sec" aria-labelledby="firings">
            <header><h2 id="firings">"Firings with this change"</h2><span class="note">{note}</span></header>
            <div class="scroll"><table class="t">
                <caption class="sr">"When it would have fired, newest first"</caption>
                <thead><tr><th scope="col">"at, UTC"</th><th scope="col">"lock, prefix or backend"</th><th scope="col">"held by"</th>
                    <th scope="col" class="num">"measured"</th><th scope="col" class="num">"firing for"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table></div>
        </section>
    }
    .into_any()
}

fn row(firing: &FiringRow, unit: Unit) -> AnyView {
    let at = DateTime::from_timestamp_millis(firing.at).unwrap_or_default();
    let held = firing.until.map_or_else(
        || "still firing".to_owned(),
        |until| format::period((until - firing.at) / 1_000 * 1_000),
    );
    let owner = domain::escape::visible(owner_text(firing.owner.as_deref(), &firing.path)).into_owned();
    let why = domain::escape::visible(&firing.why).into_owned();
    view! {
        <tr>
            <td class="num"><time datetime=time_format::iso(at)>{time_format::dated(at).replace(" UTC", "")}</time></td>
            <td class="al-cut"><a class="al-of" href=firing.path.clone() title=why><ResourceName name=firing.subject.clone() cut=true/></a></td>
            <td><bdi>{owner}</bdi></td>
            <td class="num">{unit.format(firing.measure)}</td>
            <td class="num">{held}</td>
        </tr>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_preview_is_announced_by_its_counts() {
        let of = |count, is_partial| PreviewData {
            count,
            is_partial,
            ..PreviewData::default()
        };
        let mut data = RulePreview {
            edited: Some(of(2, true)),
            saved: Some(of(14, true)),
            ..RulePreview::default()
        };
        assert_eq!(spoken(&data), "");
        data.edited = Some(of(2, false));
        assert_eq!(spoken(&data), "14\u{a0}firings now, 2 with this change");
        data.saved = None;
        assert_eq!(spoken(&data), "2\u{a0}firings");
        assert_eq!(spoken(&RulePreview::default()), "");
    }
}
