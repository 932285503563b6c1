//! Fencing rejections page: owners with stale tokens, reporters, counts over time, granted
//! tokens.

mod empty_state;
mod tables;

use domain::charts::range::TimeRange;
use domain::charts::scale::TimeScale;
use domain::charts::ticks::{self, moment};
use domain::fencing_rejections::{self, Rejection, RejectionFilter};
use domain::format;
use domain::history::HistoryEvent;
use leptos::prelude::*;

use crate::charts::bars::{Bar, BarChart};
use crate::charts::chart_frame::{self, Frame};
use crate::charts::html_writer::Markup;
use crate::charts::range_links::range_links;
use crate::links;
use crate::server_pages::field::{Field, alert, choice};
use crate::server_pages::layout::{Chrome, Page, page};

pub struct Ledger {
    /// URL parameters as given, valid or not.
    pub pairs: Vec<(String, String)>,
    /// Names of backends to choose from.
    pub backends: Vec<String>,
    pub found: RejectionsResult,
    /// The user may create alert rules.
    pub may_alert: bool,
}

pub enum RejectionsResult {
    Rows(Box<Rows>),
    /// The invalid field and its error.
    BadQuestion(String, String),
    /// The store does not answer.
    Nothing,
}

/// Results of a valid query.
pub struct Rows {
    pub asked: RejectionFilter,
    pub scale: TimeScale,
    /// All matches of the range, newest first.
    pub rejections: Vec<Rejection>,
    /// No reports exist that the user may see.
    pub is_unused: bool,
    /// The range has more than the limit.
    pub is_cut: bool,
    /// Newest first.
    pub grants: Vec<HistoryEvent>,
}

/// Bars of the chart, rows per page, rows of the other lists.
const BARS: usize = 48;
const ROWS: usize = 50;
const FEW: usize = 10;

pub fn fencing(chrome: &Chrome, ledger: &Ledger) -> String {
    let (title, content) = match &ledger.found {
        RejectionsResult::Rows(rows) => (title(rows), body(ledger, rows)),
        RejectionsResult::BadQuestion(field, why) => (
            "Search not run".to_owned(),
            view! {
                {alert(Some(format!("{field} {why}.")))}
                {search(ledger)}
                <p class="foot"><a class="btn" href="/fencing">"The last 24 hours"</a></p>
            }
            .into_any(),
        ),
        RejectionsResult::Nothing => (
            "Fencing rejections unavailable".to_owned(),
            view! {
                <div class="empty"><h3>"The lease store does not answer"</h3>
                <p>"Reports are refused until it answers, so that resources can send them again."</p>
                <p class="do"><a class="btn" href="/fencing">"Try again"</a></p></div>
            }
            .into_any(),
        ),
    };
    let lead = "Each grant raises the fencing token. A write with an older token comes from a former owner: the resource rejects it and reports it here.";
    page(
        chrome,
        Page {
            title,
            lead: Some(lead.to_owned()),
            content,
        },
    )
}

fn title(rows: &Rows) -> String {
    let writes = rows.rejections.len() as u64;
    let range = range_words(rows.asked.range);
    match writes {
        0 => format!("No fencing rejections {range}"),
        writes => {
            let owners = fencing_rejections::stale_owners(&rows.rejections);
            let known = owners.iter().filter(|stale| stale.owner.is_some()).count() as u64;
            let writes = format::counted(writes, "write", "writes");
            match known {
                0 => format!("{writes} rejected {range}"),
                known => format!(
                    "{writes} of {} rejected {range}",
                    format::counted(known, "owner", "owners")
                ),
            }
        }
    }
}

fn range_words(range: TimeRange) -> String {
    match range {
        TimeRange::Last(last) => format!("in the last {}", last.word()),
        TimeRange::Between { .. } => format!("from {}", range.words()),
    }
}

fn body(ledger: &Ledger, rows: &Rows) -> AnyView {
    let is_asked = !rows.asked.filters().is_empty();
    let teach = (rows.is_unused && !is_asked).then(empty_state::teach);
    let cut = rows.is_cut.then(|| {
        view! { <p class="notice warning" role="status">{format!("Only the newest {} rejections of this range are shown.", format::count(rows.rejections.len() as u64))}</p> }
    });
    let lists = (!rows.rejections.is_empty()).then(|| {
        view! {
            <div class="two">{tables::stale(rows).view()}{tables::reporters(rows).view()}</div>
        }
    });
    view! {
        <div class="stack fencing">
            {search(ledger)}
            {cut}
            {teach}
            {(!rows.is_unused).then(|| chart(ledger, rows).view())}
            {lists}
            {(!rows.is_unused || is_asked).then(|| tables::rejections(rows).view())}
            {tables::grants(rows).view()}
        </div>
    }
    .into_any()
}

fn search(ledger: &Ledger) -> AnyView {
    let typed = |field: &str| {
        let found = ledger.pairs.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let fault = |field: &str| match &ledger.found {
        RejectionsResult::BadQuestion(name, why) if name == field => Some(format!("It {why}.")),
        _ => None,
    };
    let text = |name: &'static str, label: &'static str| {
        Field {
            is_required: false,
            fault: fault(name),
            ..Field::text(name, label, typed(name))
        }
        .view()
    };
    let mut backends = vec![(String::new(), "every backend".to_owned())];
    backends.extend(ledger.backends.iter().map(|name| (name.clone(), name.clone())));
    // The filter form keeps the range.
    let kept = ledger
        .pairs
        .iter()
        .filter(|(name, value)| TimeRange::FIELDS.contains(&name.as_str()) && !value.is_empty());
    let kept =
        kept.map(|(name, value)| view! { <input r#type="hidden" name=name.clone() value=value.clone()/> });
    let is_asked = RejectionFilter::FILTERS
        .into_iter()
        .any(|field| !typed(field).is_empty());
    let clear = is_asked.then(|| view! { <a class="btn plain" href="/fencing">"Clear"</a> });
    let ranges = match &ledger.found {
        RejectionsResult::Rows(rows) => {
            let pairs: Vec<(String, String)> = ledger
                .pairs
                .iter()
                .filter(|(name, value)| name != "before" && !value.is_empty())
                .cloned()
                .collect();
            range_links(rows.asked.range, "/fencing", &pairs).view()
        }
        RejectionsResult::BadQuestion(..) | RejectionsResult::Nothing => ().into_any(),
    };
    view! {
        <div class="sec fencing-asked">
            <form class="audit-search" method="get" action="/fencing" role="search" aria-label="fencing rejections">
                {text("prefix", "Resource begins with")}
                {text("owner", "Stale owner")}
                {text("source", "Refused by")}
                {choice("backend", "Backend", backends, &typed("backend"))}
                {kept.collect_view()}
                <div class="do"><button class="btn solid" r#type="submit">"Search"</button>{clear}</div>
            </form>
            {ranges}
        </div>
    }
    .into_any()
}

/// Rejections over time; each bar links to its interval.
fn chart(ledger: &Ledger, rows: &Rows) -> Markup {
    let scale = rows.scale;
    let counts = fencing_rejections::over_time(&rows.rejections, scale, BARS);
    let width = 100.0 / BARS as f64;
    let bars = counts.into_iter().enumerate().map(|(part, value)| {
        let (from, until) = (scale.part_begins(part, BARS), scale.part_begins(part + 1, BARS));
        Bar {
            at: part as f64 * width,
            width: width - 0.3,
            value,
            hue: "critical",
            title: format!("{} to {}", moment(from, scale), moment(until, scale)),
            href: (value > 0).then(|| narrowed(&rows.asked, from, until)),
        }
    });
    let chart = BarChart {
        title: format!(
            "{} over time",
            format::counted(rows.rejections.len() as u64, "rejection", "rejections")
        ),
        word: "rejections",
        bars: bars.collect(),
        rules: Vec::new(),
        gaps: Vec::new(),
        ticks: ticks::times(scale, 6),
        has_scale: true,
    };
    let mut end = Markup::new();
    if ledger.may_alert {
        let mut pairs = vec![
            ("condition", "fencing_rejections".to_owned()),
            ("with.count", "1".to_owned()),
        ];
        pairs.extend(
            rows.asked
                .filters()
                .into_iter()
                .filter(|(name, _)| *name == "prefix"),
        );
        let href = links::with_query("/alerts/rules/new", pairs);
        end.text_element("a", &[("class", "link"), ("href", &href)], "Add an alert rule");
    }
    chart_frame::frame(&Frame {
        id: "over-time",
        title: busiest(&chart),
        note: format!("{}, UTC", rows.asked.range.words()),
        end,
        drawing: chart.markup(),
        legend: Vec::new(),
        table: chart.table("Rejections over time, as drawn above", "when, UTC"),
    })
}

fn busiest(chart: &BarChart) -> String {
    let total: u64 = chart.bars.iter().map(|bar| bar.value).sum();
    let most = chart.bars.iter().max_by_key(|bar| bar.value);
    match most.filter(|bar| bar.value > 0) {
        Some(bar) if bar.value == total => format!("All rejected from {}", bar.title),
        Some(bar) => format!(
            "{} of {} rejected from {}",
            format::count(bar.value),
            format::count(total),
            bar.title
        ),
        None => "No rejections".to_owned(),
    }
}

/// The same query for a part of the range; at least a minute, the shortest range.
fn narrowed(asked: &RejectionFilter, from: i64, until: i64) -> String {
    let range = TimeRange::Between {
        from,
        to: until.max(from + 60_000),
    };
    let pairs = asked.filters().into_iter().chain(range.pairs());
    links::with_query("/fencing", pairs)
}
