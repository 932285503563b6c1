//! Worst prefixes with figures and recommendations.

use domain::contention::{By, ContentionRow, rounded};
use domain::format;
use domain::names::BackendName;
use leptos::prelude::*;

use super::{Shown, address, locks};

/// Rows of the table.
const ROWS: usize = 10;

pub(super) fn section(shown: &Shown) -> AnyView {
    let by = shown.asked.by;
    let (title, other, word) = match by {
        By::Wait => ("Top prefixes by wait", By::Refusals, "By refusals"),
        By::Refusals => ("Top prefixes by refusals", By::Wait, "By wait"),
    };
    let href = address(&shown.asked, &[("by", other.as_str())]);
    let rows: Vec<&ContentionRow> = shown
        .worst
        .rows
        .iter()
        .filter(|row| counts(row, by))
        .take(ROWS)
        .collect();
    let advised = shown
        .worst
        .rows
        .iter()
        .filter(|row| !counts(row, by) && !row.advice.is_empty());
    let advised: Vec<&ContentionRow> = advised.take(ROWS).collect();
    let most = rows.iter().map(|row| weight(row, by)).max().unwrap_or(0).max(1);
    let content = if rows.is_empty() && advised.is_empty() {
        let nothing = match by {
            By::Wait => "No waits",
            By::Refusals => "No refusals",
        };
        view! { <div class="empty"><h3>{nothing}</h3><p>"As the backends report; only the lease service reports refusals."</p></div> }.into_any()
    } else {
        let lines = rows
            .iter()
            .chain(&advised)
            .map(|row| line(row, by, most))
            .collect_view();
        view! {
            <table class="t tp">
                <thead><tr><th>"prefix"</th><th class="num">"waited"</th><th><span class="sr">"share"</span></th><th class="num">"waits"</th><th class="num">"p95"</th><th class="num">"refused"</th></tr></thead>
                <tbody>{lines}</tbody>
            </table>
        }
        .into_any()
    };
    view! {
        <section class="sec" aria-labelledby="worst">
            <header><h2 id="worst">{title}</h2><span class="note">{shown.asked.range.words()}</span><a class="end link" href=href>{word}</a></header>
            {content}
        </section>
    }
    .into_any()
}

fn weight(row: &ContentionRow, by: By) -> u64 {
    match by {
        By::Wait => row.total.waiting_ms,
        By::Refusals => row.total.refused,
    }
}

fn counts(row: &ContentionRow, by: By) -> bool {
    weight(row, by) > 0
}

fn line(row: &ContentionRow, by: By, most: u64) -> AnyView {
    let width = weight(row, by) as f64 / most as f64 * 100.0;
    let total = &row.total;
    let refused = if row.backend == BackendName::builtin() {
        refused(total.refused_share().unwrap_or(0.0))
    } else {
        "unknown".to_owned()
    };
    let (waits, p95) = if row.is_known {
        let p95 = total
            .waits
            .quantile(0.95)
            .map_or_else(|| "\u{2013}".to_owned(), format::latency);
        (format::count(total.waits.count()), p95)
    } else {
        ("unknown".to_owned(), "unknown".to_owned())
    };
    let waited = if row.is_known {
        format::period(rounded(total.waiting_ms))
    } else {
        "unknown".to_owned()
    };
    let name = domain::escape::visible(&row.prefix).into_owned();
    let name = view! { <span class="res"><bdi>{name}</bdi></span> };
    let name = match locks(row.backend.as_str(), &row.prefix) {
        Some(href) => view! { <a href=href>{name}</a> }.into_any(),
        None => name.into_any(),
    };
    let dim = |word: &str| if word == "unknown" { "num ink3" } else { "num" };
    let (waits_class, p95_class, refused_class) = (dim(&waits), dim(&p95), dim(&refused));
    let advice = row.advice.iter().map(|advice| {
        view! {
            <tr class="adv"><td colspan="6"><span class="small ink2"><bdi>{domain::escape::visible(&advice.why).into_owned()}</bdi>": "<b>{advice.what.clone()}</b></span></td></tr>
        }
    });
    view! {
        <tr>
            <td>{name}" "<small class="ink3">{row.backend.to_string()}</small></td>
            <td class=dim(&waited)>{waited.clone()}</td>
            <td class="bar-c"><svg width="100%" height="8" aria-hidden="true"><rect class="waited" width=format!("{width:.1}%") height="8"></rect></svg></td>
            <td class=waits_class>{waits}</td>
            <td class=p95_class>{p95}</td>
            <td class=refused_class>{refused}</td>
        </tr>
        {advice.collect_view()}
    }
    .into_any()
}

fn refused(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}
