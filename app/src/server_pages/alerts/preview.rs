//! Rule preview: count, series with threshold, a strip per version, newest firings.

use chrono::DateTime;
use domain::alerts::{Draft, Param, Preview, Rule, ThresholdSlider, Unit};
use domain::{format, time_format};
use leptos::prelude::*;

use super::editor::param_value;
use super::preview_chart::{Threshold, series, strips};
use super::subject;

/// Position of the parts in the page. Cannot occur in a text, where `<` is escaped.
pub(super) const MARK: &str = "<!--preview-->";

/// One part of a preview: the newest, or the complete one.
#[derive(Debug, Clone)]
pub struct Foreseen {
    pub preview: Preview,
    pub rule: Rule,
    pub draft: Draft,
    /// Computation time in milliseconds.
    pub took_ms: i64,
    /// Preview and threshold of the saved version, if it differs.
    pub saved: Option<(Preview, Option<i64>)>,
    /// URL paths of the newest firings, newest first.
    pub paths: Vec<String>,
    pub may_edit: bool,
}

/// Container of the parts. Each part is visible until the next one follows (style/alerts.css),
/// without script.
pub(super) fn parts() -> AnyView {
    let reading = view! {
        <section class="sec" aria-label="Preview">
            <header><h2>"Preview"</h2></header>
            <p class="ink2">"Reading the last 7 days of history…"</p>
        </section>
    };
    let first = format!("{}{MARK}", reading.to_html());
    view! { <div class="pv-parts" aria-live="polite" inner_html=first></div> }.into_any()
}

/// Shown in place of a part.
pub fn preview_failed() -> String {
    let failed = view! {
        <section class="sec" aria-label="Preview">
            <header><h2>"Preview"</h2></header>
            <p class="fault">"No preview: the store does not answer. Reload the page to try again."</p>
        </section>
    };
    failed.to_html()
}

/// The threshold as a slider over the series, if both exist.
fn line_of(of: &Foreseen) -> Option<(&'static Param, ThresholdSlider)> {
    // A form has one slider: the complete preview brings it.
    let preview = Some(&of.preview).filter(|preview| of.may_edit && !preview.is_partial)?;
    let most = preview.series.iter().filter_map(|point| point.measure).max()?;
    let param = of.rule.condition.kind.main_param()?;
    Some((
        param,
        ThresholdSlider::new(param, of.rule.condition.main_value()?, most),
    ))
}

/// Initial state of the slider, to detect whether it was moved: position, unit and number.
fn as_shown(of: &Foreseen) -> AnyView {
    let Some((param, line)) = line_of(of) else {
        return ().into_any();
    };
    view! {
        <input form="rule" r#type="hidden" name="line.was" value=line.number(line.value)/>
        <input form="rule" r#type="hidden" name="line.unit" value=line.suffix/>
        <input form="rule" r#type="hidden" name="line.typed" value=param_value(&of.draft, param)/>
    }
    .into_any()
}

/// One part as HTML.
pub fn preview_part(of: &Foreseen) -> String {
    let Foreseen {
        preview,
        rule,
        took_ms,
        ..
    } = of;
    if let Some(why) = &preview.unknown {
        let unknown = view! {
            <section class="sec"><header><h2>"Preview"</h2></header>
                <p class="ink2">{format!("No preview: {why}.")}</p></section>
        };
        return unknown.to_html();
    }
    let main = rule.condition.kind.main_param();
    let unit = main.map_or(Unit::Count, |param| param.unit);
    let saved = of.saved.as_ref().map(|(saved, _)| {
        format!(
            "The saved rule: {}.",
            format::counted(saved.count, "time", "times")
        )
    });
    // Counted records other than history have no list of locks.
    let of_locks = match preview.locks {
        0 => String::new(),
        locks => format!(" of {}", format::counted(locks, "lock", "locks")),
    };
    let said = format!(
        "{}{of_locks}, in {took_ms} ms; evaluated like the live rule.",
        format::counted(preview.events, "event", "events"),
    );
    let less = (preview.without_ttl > 0).then(|| {
        format!(
            "{} of {} acquisitions have no recorded TTL and are evaluated in part.",
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
    let span = span(preview);
    let note = if preview.is_partial {
        format!("the last {span}; loading the rest of 7 days")
    } else if preview.is_cut {
        format!("only the last {span}: event limit of a preview reached")
    } else {
        format!("the last {span} of this installation")
    };
    let threshold = Threshold {
        at: rule.condition.main_value(),
        saved: of.saved.as_ref().and_then(|(_, at)| *at),
        line: line_of(of),
    };
    let times = if preview.count == 1 { "time" } else { "times" };
    let part = view! {
        <section class="sec" aria-label="Preview">
            {as_shown(of)}
            <header><h2>"Preview"</h2><span class="note">{note}</span></header>
            <p class="pv-fig"><b>{format::count(preview.count)}</b>{format!(" {times} in {span}")}</p>
            <p class="small ink2">"would have fired. "{saved}" "{said}</p>
            {series(preview, unit, &threshold)}
            {strips(preview, of.saved.as_ref().map(|(saved, _)| saved))}
            <p class="small ink2">{gaps}" "{less}</p>
            {table(preview, unit, &of.paths)}
        </section>
    };
    part.to_html()
}

/// `7 days`; less if more events happened than a preview reads.
fn span(preview: &Preview) -> String {
    const DAY_MS: i64 = 24 * 3_600_000;
    let ms = preview.to - preview.from;
    if ms % DAY_MS == 0 {
        format::counted((ms / DAY_MS).unsigned_abs(), "day", "days")
    } else {
        format::period(ms / 60_000 * 60_000)
    }
}

fn table(preview: &Preview, unit: Unit, paths: &[String]) -> AnyView {
    if preview.firings.is_empty() {
        return ().into_any();
    }
    let rows = preview.firings.iter().rev().take(20).enumerate().map(|(index, firing)| {
        let at = DateTime::from_timestamp_millis(firing.at).unwrap_or_default();
        let path = paths.get(index).cloned().unwrap_or_default();
        let held = firing.until.map_or_else(|| "still firing".to_owned(), |until| format::period((until - firing.at) / 1_000 * 1_000));
        view! { <tr>
            <td class="num"><time datetime=time_format::iso(at)>{time_format::dated(at).replace(" UTC", "")}</time></td>
            <td class="al-cut">{subject(&firing.subject, &path)}</td>
            <td class="num">{unit.format(firing.measure)}</td><td class="num">{held}</td>
        </tr> }
    });
    view! {
        <div class="scroll"><table class="t">
            <caption class="sr">"When it would have fired, newest first"</caption>
            <thead><tr><th scope="col">"at, UTC"</th><th scope="col">{format!("newest of {}", format::count(preview.count))}</th><th scope="col" class="num">"measured"</th><th scope="col" class="num">"for"</th></tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table></div>
    }
    .into_any()
}
