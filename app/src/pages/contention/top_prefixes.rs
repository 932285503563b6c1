//! Worst prefixes with figures and recommendations.

use domain::charts::shown_range::ShownRange;
use domain::contention::{ContentionPage, ContentionSort, TopPrefix, rounded};
use domain::escape::visible;
use leptos::prelude::*;

use super::locks;
use crate::charts::simulated_mark::SimulatedMark;
use crate::charts::svg::percent;
use crate::components::reactive::changing;
use crate::format;
use crate::links::PageUrl;

/// Rows of the table.
const ROWS: usize = 10;

#[component]
pub fn TopPrefixes(data: Signal<ContentionPage>, url: Signal<PageUrl>) -> impl IntoView {
    let by = Memo::new(move |_| data.with(|data| data.by));
    let title = move || match by.get() {
        ContentionSort::Wait => "Top prefixes by wait",
        ContentionSort::Refusals => "Top prefixes by refusals",
        ContentionSort::Held => "Top prefixes by time held",
    };
    let range = Memo::new(move |_| data.with(|data| data.range.clone()));
    let orders = move || orders(by.get(), &url.get());
    view! {
        <section class="sec" aria-labelledby="worst">
            <header>
                <h2 id="worst">{changing(title)}</h2>
                <SimulatedMark/>
                <span class="note">{move || range.with(ShownRange::label)}</span>
                <span class="end">{changing(orders)}</span>
            </header>
            {changing(move || data.with(|data| content(data, &url.get())))}
        </section>
    }
    .into_any()
}

/// Links to the other orders.
fn orders(by: ContentionSort, url: &PageUrl) -> Vec<AnyView> {
    let others = ContentionSort::ALL.into_iter().filter(|other| *other != by);
    let link = |other: ContentionSort| {
        let label = match other {
            ContentionSort::Wait => "By wait",
            ContentionSort::Refusals => "By refusals",
            ContentionSort::Held => "By time held",
        };
        let href = url.with(&[("by", other.as_str())]).href();
        view! { <a class="link" href=href data-noscroll="">{label}</a>" " }.into_any()
    };
    others.map(link).collect()
}

fn content(data: &ContentionPage, url: &PageUrl) -> AnyView {
    let by = data.by;
    let counted = data.top.iter().filter(|row| weight(row, by) > 0).take(ROWS);
    let advised = data
        .top
        .iter()
        .filter(|row| weight(row, by) == 0 && !row.advice.is_empty());
    let rows: Vec<&TopPrefix> = counted.chain(advised.take(ROWS)).collect();
    let most = rows.iter().map(|row| weight(row, by)).max().unwrap_or(0).max(1);
    if rows.is_empty() {
        let none = match by {
            ContentionSort::Wait => "No waits",
            ContentionSort::Refusals => "No refusals",
            ContentionSort::Held => "No held locks",
        };
        let why = "As the backends report; only the lease service reports refusals.";
        return view! { <div class="empty"><h3>{none}</h3><p>{why}</p></div> }.into_any();
    }
    let rows: Vec<AnyView> = rows
        .into_iter()
        .map(|row| table_row(row, by, most, url))
        .collect();
    let head = if by == ContentionSort::Held {
        "held"
    } else {
        "waited"
    };
    view! {
        <table class="t tp">
            <thead>
                <tr>
                    <th scope="col">"prefix"</th>
                    <th scope="col" class="num">{head}</th>
                    <th scope="col"><span class="sr">"share"</span></th>
                    <th scope="col" class="num">"waits"</th>
                    <th scope="col" class="num">"wait p95"</th>
                    <th scope="col" class="num">"hold p95"</th>
                    <th scope="col" class="num">"refused"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

const fn weight(row: &TopPrefix, by: ContentionSort) -> u64 {
    match by {
        ContentionSort::Wait => row.waited_ms,
        ContentionSort::Refusals => row.refused,
        ContentionSort::Held => row.held_ms,
    }
}

fn table_row(row: &TopPrefix, by: ContentionSort, most: u64, url: &PageUrl) -> AnyView {
    const NONE: &str = "\u{2013}";
    let backend = row.backend.as_str();
    let known = |text: String| if row.is_known { text } else { "unknown".to_owned() };
    let latency = |ms: Option<i64>| ms.map_or_else(|| NONE.to_owned(), format::latency);
    let total = match by {
        ContentionSort::Held => format::period(rounded(row.held_ms)),
        ContentionSort::Wait | ContentionSort::Refusals => known(format::period(rounded(row.waited_ms))),
    };
    let refused = row.refused_permille.map_or_else(|| "unknown".to_owned(), share);
    let figures = [
        known(format::count(row.waits)),
        known(latency(row.wait_p95_ms)),
        latency(row.hold_p95_ms),
        refused,
    ];
    let figures: Vec<AnyView> = figures.into_iter().map(figure).collect();
    let width = percent(weight(row, by) as f64 / most as f64 * 100.0);
    let name = visible(&row.prefix).into_owned();
    let selected = url
        .with(&[("backend", backend), ("prefix", &row.prefix), ("at", "")])
        .href();
    let locks = locks(backend, &row.prefix)
        .map(|href| view! { " "<a class="link small" href=href>"locks"</a> }.into_any());
    view! {
        <tr>
            <td>
                <a href=selected title="its hold and wait times" data-noscroll=""><span class="res"><bdi>{name}</bdi></span></a>
                " "<small class="ink3">{backend.to_owned()}</small>
                {locks}
            </td>
            {figure(total)}
            <td class="bar-c"><svg width="100%" height="8" aria-hidden="true"><rect class="waited" width=width height="8"></rect></svg></td>
            {figures}
        </tr>
        {row.advice.iter().map(|advice| advice_row(&advice.why, &advice.what)).collect::<Vec<_>>()}
    }
    .into_any()
}

fn figure(text: String) -> AnyView {
    let class = if text == "unknown" { "num ink3" } else { "num" };
    view! { <td class=class>{text}</td> }.into_any()
}

fn advice_row(why: &str, what: &str) -> AnyView {
    let (why, what) = (format::prose(why), what.to_owned());
    view! {
        <tr class="adv"><td colspan="7"><span class="small ink2"><bdi>{why}</bdi>": "<b>{what}</b></span></td></tr>
    }
    .into_any()
}

/// `0 %`, `0.4 %`, `11 %`.
fn share(permille: u32) -> String {
    match permille {
        0 => "0 %".to_owned(),
        1..100 => format!("{}.{} %", permille / 10, permille % 10),
        _ => format!("{} %", (permille + 5) / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_a_decimal() {
        assert_eq!(
            [0, 4, 81, 112, 1_000].map(share),
            ["0 %", "0.4 %", "8.1 %", "11 %", "100 %"]
        );
    }
}
