//! The newest firing enlarged: `for` as dashed outline, firing filled, keep-firing tinted.

use chrono::DateTime;
use domain::time_format;
use leptos::prelude::*;

use crate::format;
use crate::pages::rule_editor::data::PreviewData;

const WIDTH: i64 = 600;

pub(super) fn newest_firing(preview: &PreviewData) -> AnyView {
    let Some(firing) = preview.firings.first() else {
        return ().into_any();
    };
    let (began, fired) = (firing.at - preview.for_ms, firing.at);
    // Keep-firing is the last part of the firing.
    let ended = firing.until.unwrap_or(preview.to);
    let keep_firing_from = match firing.until {
        Some(_) => (ended - preview.keep_ms).max(fired),
        None => ended,
    };
    let margin = ((ended - began) / 8).max(60_000);
    let (from, to) = (began - margin, ended + margin);
    let x = |at: i64| (at - from).clamp(0, to - from) * WIDTH / (to - from).max(1);
    let block = |from: i64, to: i64, class: &'static str| {
        (to > from).then(|| {
            view! { <rect x=x(from) y="4" width=(x(to) - x(from)).max(3) height="16" class=class></rect> }
                .into_any()
        })
    };
    let at = DateTime::from_timestamp_millis(fired).unwrap_or_default();
    let phases = [
        (preview.for_ms > 0).then(|| format!("for {}", format::period(preview.for_ms))),
        Some(format!("fires {}", time_format::timed(at))),
        (preview.keep_ms > 0 && firing.until.is_some())
            .then(|| format!("keeps firing for {}", format::period(preview.keep_ms))),
        Some(match firing.until {
            Some(_) => "resolved".to_owned(),
            None => "still firing".to_owned(),
        }),
    ];
    let phases = phases.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let title = format!("{}, enlarged", time_format::dated(at));
    view! {
        <section class="sec" aria-label="The newest firing">
            <header><h2>{format::unbroken(&title).into_owned()}</h2><span class="note"><bdi>{domain::escape::visible(&firing.subject).into_owned()}</bdi></span>
                <a class="end link" href=firing.path.clone()>"Open"</a></header>
            <svg class="pv-large" viewBox=format!("0 0 {WIDTH} 24") preserveAspectRatio="none" role="img" aria-label=phases.clone()>
                {block(began, fired, "is-for")}
                {block(fired, keep_firing_from, "is-firing")}
                {block(keep_firing_from, ended, "is-kept")}
            </svg>
            <p class="small ink2">{phases}</p>
        </section>
    }
    .into_any()
}
