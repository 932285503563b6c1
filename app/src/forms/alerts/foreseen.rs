//! What a rule would have done: the figure, the series with its threshold, a strip for each version, the newest firings.

use chrono::DateTime;
use domain::alerts::{Line, Param, Preview, Unit};
use domain::{human, moment};
use leptos::prelude::*;

use super::editor::Editor;
use super::series::{Threshold, series, strips};
use super::subject;

/// The threshold as a line over the series, where there is a series and a threshold to drag.
pub(super) fn line_of(editor: &Editor) -> Option<(&'static Param, Line)> {
    let (preview, rule, _) = editor.preview.as_ref().filter(|_| editor.may_edit)?;
    let most = preview.series.iter().filter_map(|point| point.measure).max()?;
    let param = rule.condition.kind.main_param()?;
    Some((param, Line::over(param, rule.condition.main_value()?, most)))
}

pub(super) fn foreseen(editor: &Editor) -> AnyView {
    let Some((preview, rule, took_ms)) = &editor.preview else {
        return ().into_any();
    };
    if let Some(why) = &preview.unknown {
        return view! {
            <section class="sec"><header><h2>"Preview"</h2></header>
                <p class="ink2">{format!("What it would have done cannot be told: {why}.")}</p></section>
        }
        .into_any();
    }
    let main = rule.condition.kind.main_param();
    let unit = main.map_or(Unit::Count, |param| param.unit);
    let saved = editor.saved.as_ref().map(|(saved, _)| {
        format!(
            "The saved rule: {}.",
            human::counted(saved.count, "time", "times")
        )
    });
    // Of what was recorded beside history there is no list of locks.
    let of = match preview.locks {
        0 => String::new(),
        locks => format!(" of {}", human::counted(locks, "lock", "locks")),
    };
    let said = format!(
        "{}{of}, in {took_ms} ms; same code as the live rule, for included.",
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
        let gaps = human::counted(preview.gaps.len() as u64, "time", "times");
        format!("Hatched: {gaps} that nobody watched; nothing fires or resolves in them.")
    });
    let span = span(preview);
    let note = if preview.is_cut {
        format!("only the last {span} were read: more happened than one preview reads")
    } else {
        format!("the last {span} of this installation")
    };
    let threshold = Threshold {
        at: rule.condition.main_value(),
        saved: editor.saved.as_ref().and_then(|(_, at)| *at),
        line: line_of(editor),
    };
    let times = if preview.count == 1 { "time" } else { "times" };
    view! {
        <section class="sec" aria-labelledby="pv">
            <header><h2 id="pv">"Preview"</h2><span class="note">{note}</span></header>
            <p class="pv-fig"><b>{human::count(preview.count)}</b>{format!(" {times} in {span}")}</p>
            <p class="small ink2">"would have fired. "{saved}" "{said}</p>
            {series(preview, unit, &threshold)}
            {strips(preview, editor.saved.as_ref().map(|(saved, _)| saved))}
            <p class="small ink2">{gaps}" "{less}</p>
            {table(preview, unit, &editor.paths)}
        </section>
    }
    .into_any()
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
