//! What a rule would have done: the figure, the series with its threshold, a strip for each version, the newest firings.

use chrono::DateTime;
use domain::alerts::{Draft, Line, Param, Preview, Rule, Unit};
use domain::{human, moment};
use leptos::prelude::*;

use super::editor::shown;
use super::series::{Threshold, series, strips};
use super::subject;

/// Where the parts stand in the page. No text of a page has it: a `<` is escaped.
pub(super) const MARK: &str = "<!--preview-->";

/// What a rule would have done: one part, the newest or the whole.
#[derive(Debug, Clone)]
pub struct Foreseen {
    pub preview: Preview,
    pub rule: Rule,
    pub draft: Draft,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// What the saved version would have done, where it is another, and its threshold.
    pub saved: Option<(Preview, Option<i64>)>,
    /// Of the newest firings, newest first.
    pub paths: Vec<String>,
    pub may_edit: bool,
}

/// The place of the parts. Each part is shown until the next one comes behind it (style/alerts.css): no script.
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

/// In place of a part.
pub fn preview_failed() -> String {
    let failed = view! {
        <section class="sec" aria-label="Preview">
            <header><h2>"Preview"</h2></header>
            <p class="fault">"The store does not answer, so there is no preview. Reload the page to try again."</p>
        </section>
    };
    failed.to_html()
}

/// The threshold as a line over the series, where there is a series and a threshold to drag.
fn line_of(of: &Foreseen) -> Option<(&'static Param, Line)> {
    // A form has one line: the whole preview brings it.
    let preview = Some(&of.preview).filter(|preview| of.may_edit && !preview.is_partial)?;
    let most = preview.series.iter().filter_map(|point| point.measure).max()?;
    let param = of.rule.condition.kind.main_param()?;
    Some((param, Line::over(param, of.rule.condition.main_value()?, most)))
}

/// What tells a line that was dragged from one that was not: where it stood, in which unit, beside which number.
fn as_shown(of: &Foreseen) -> AnyView {
    let Some((param, line)) = line_of(of) else {
        return ().into_any();
    };
    view! {
        <input form="rule" r#type="hidden" name="line.was" value=line.number(line.value)/>
        <input form="rule" r#type="hidden" name="line.unit" value=line.suffix/>
        <input form="rule" r#type="hidden" name="line.typed" value=shown(&of.draft, param)/>
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
                <p class="ink2">{format!("What it would have done cannot be told: {why}.")}</p></section>
        };
        return unknown.to_html();
    }
    let main = rule.condition.kind.main_param();
    let unit = main.map_or(Unit::Count, |param| param.unit);
    let saved = of.saved.as_ref().map(|(saved, _)| {
        format!(
            "The saved rule: {}.",
            human::counted(saved.count, "time", "times")
        )
    });
    // Of what was recorded beside history there is no list of locks.
    let of_locks = match preview.locks {
        0 => String::new(),
        locks => format!(" of {}", human::counted(locks, "lock", "locks")),
    };
    let said = format!(
        "{}{of_locks}, in {took_ms} ms; same code as the live rule, for included.",
        human::counted(preview.events, "event", "events"),
    );
    let less = (preview.without_ttl > 0).then(|| {
        format!(
            "{} of {} acquisitions had no TTL recorded: less can be told of them.",
            human::count(preview.without_ttl),
            human::count(preview.acquisitions)
        )
    });
    let gaps = (!preview.gaps.is_empty()).then(|| {
        let lengths = preview.gaps.iter().map(|(began, ended)| ended - began);
        let length = human::period(lengths.sum::<i64>() / 1_000 * 1_000);
        let gaps = human::counted(preview.gaps.len() as u64, "gap", "gaps");
        format!("Hatched: {gaps} in the history, {length} in all. Nothing fires or resolves in a gap.")
    });
    let span = span(preview);
    let note = if preview.is_partial {
        format!("the last {span}, the rest of 7 days is being read")
    } else if preview.is_cut {
        format!("only the last {span} were read: more happened than one preview reads")
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
            <p class="pv-fig"><b>{human::count(preview.count)}</b>{format!(" {times} in {span}")}</p>
            <p class="small ink2">"would have fired. "{saved}" "{said}</p>
            {series(preview, unit, &threshold)}
            {strips(preview, of.saved.as_ref().map(|(saved, _)| saved))}
            <p class="small ink2">{gaps}" "{less}</p>
            {table(preview, unit, &of.paths)}
        </section>
    };
    part.to_html()
}

/// `7 days`; less where more happened than is read.
fn span(preview: &Preview) -> String {
    const DAY_MS: i64 = 24 * 3_600_000;
    let ms = preview.to - preview.from;
    if ms % DAY_MS == 0 {
        human::counted((ms / DAY_MS).unsigned_abs(), "day", "days")
    } else {
        human::period(ms / 60_000 * 60_000)
    }
}

fn table(preview: &Preview, unit: Unit, paths: &[String]) -> AnyView {
    if preview.firings.is_empty() {
        return ().into_any();
    }
    let rows = preview.firings.iter().rev().take(20).enumerate().map(|(index, firing)| {
        let at = DateTime::from_timestamp_millis(firing.at).unwrap_or_default();
        let path = paths.get(index).cloned().unwrap_or_default();
        let held = firing.until.map_or_else(|| "on".to_owned(), |until| human::period((until - firing.at) / 1_000 * 1_000));
        view! { <tr>
            <td class="num"><time datetime=moment::iso(at)>{moment::dated(at).replace(" UTC", "")}</time></td>
            <td class="al-cut">{subject(&firing.subject, &path)}</td>
            <td class="num">{unit.shown(firing.measure)}</td><td class="num">{held}</td>
        </tr> }
    });
    view! {
        <div class="scroll"><table class="t">
            <caption class="sr">"When it would have fired, newest first"</caption>
            <thead><tr><th scope="col">"at, UTC"</th><th scope="col">{format!("newest of {}", human::count(preview.count))}</th><th scope="col" class="num">"measured"</th><th scope="col" class="num">"for"</th></tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table></div>
    }
    .into_any()
}
