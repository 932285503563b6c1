//! Alerts page: firing, silenced and resolved alerts, and the rules.

pub mod editor;
pub mod history;
pub mod preview;
pub mod preview_chart;
pub mod silence;

use chrono::DateTime;
use domain::alerts::{AlertSeverity, Subject};
use domain::{format, time_format};
use leptos::prelude::*;

use crate::components::resource_name::ResourceName;
use crate::server_pages::field::{alert, done};
use crate::server_pages::layout::{Chrome, Page, PageSection, page};

/// One pending or firing alert.
#[derive(Debug, Clone)]
pub struct AlertRow {
    pub id: i64,
    /// URL path of the rule; `None` if the reader may not see the rule.
    pub rule_path: Option<String>,
    pub rule: String,
    pub severity: AlertSeverity,
    pub is_firing: bool,
    pub subject: Subject,
    pub path: String,
    pub why: String,
    pub runbook: String,
    pub since: i64,
    pub for_ms: i64,
    pub acked_by: Option<String>,
    /// A silence suppresses it.
    pub is_silenced: bool,
    pub may_ack: bool,
}

#[derive(Debug, Clone)]
pub struct Quiet {
    pub id: String,
    pub matchers: String,
    pub comment: String,
    pub by: String,
    pub ends_at: i64,
    pub suppressed: u64,
    pub may_end: bool,
}

#[derive(Debug, Clone)]
pub struct ResolvedAlert {
    pub rule: String,
    pub subject: Subject,
    pub path: String,
    pub fired_at: i64,
    pub ended_at: i64,
}

#[derive(Debug, Clone)]
pub struct RuleLine {
    pub id: String,
    pub name: String,
    pub severity: AlertSeverity,
    pub sentence: String,
    pub is_enabled: bool,
    pub firing: usize,
}

#[derive(Debug, Clone, Default)]
pub struct AlertsPage {
    pub lines: Vec<AlertRow>,
    /// Number of firing alerts that are not shown.
    pub more: usize,
    pub quiet: Vec<Quiet>,
    pub past: Vec<ResolvedAlert>,
    pub rules: Vec<RuleLine>,
    pub now: i64,
    pub may_edit: bool,
    pub may_silence: bool,
    /// Rules and silences outside the reader's scope are not listed.
    pub is_limited: bool,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

/// A silence that ends within this time is marked, in milliseconds.
const SOON_MS: i64 = 30 * 60_000;

pub fn board(chrome: &Chrome, board: &AlertsPage) -> String {
    let firing = board.lines.iter().filter(|line| line.is_firing).count() + board.more;
    let pending = board.lines.iter().filter(|line| !line.is_firing).count();
    let title = match (firing, pending) {
        (0, 0) => "No alerts firing".to_owned(),
        (firing, 0) => format!("{firing} firing"),
        (firing, pending) => format!("{firing} firing, {pending} pending"),
    };
    let suppressed: u64 = board.quiet.iter().map(|quiet| quiet.suppressed).sum();
    let silences = format::counted(board.quiet.len() as u64, "silence", "silences");
    let lead = if board.is_limited {
        "Alerts on the locks in your scope.".to_owned()
    } else if board.quiet.is_empty() {
        "No silence is active.".to_owned()
    } else {
        format!(
            "{} suppressed by {silences}.",
            format::counted(suppressed, "alert", "alerts")
        )
    };
    let content = view! {
        {alert(board.refusal.clone())}
        {done(board.done.clone())}
        <div class="al-two">
            <div class="stack">
                {open(board)}
                {quiet(board)}
                {past(board)}
            </div>
            {rules(board)}
        </div>
    };
    let page_of = Page {
        title,
        lead: Some(lead),
        content: content.into_any(),
    };
    page(
        &Chrome {
            place: PageSection::Alerts,
            ..chrome.clone()
        },
        page_of,
    )
}

fn shape(line: &AlertRow) -> AnyView {
    let (shape, word) = if line.is_firing {
        ("not_renewing", "firing")
    } else {
        ("pending", "pending")
    };
    badge(line.severity, shape, word)
}

pub(super) fn badge(severity: AlertSeverity, shape: &'static str, word: &'static str) -> AnyView {
    let class = format!("st {}", hue(severity));
    view! { <span class=class><svg class="sh" viewBox="0 0 12 12" aria-hidden="true"><use href=format!("#s-{shape}")></use></svg>{word}</span> }.into_any()
}

pub(super) const fn hue(severity: AlertSeverity) -> &'static str {
    match severity {
        AlertSeverity::Critical => "critical",
        AlertSeverity::Warning => "warning",
        AlertSeverity::Info => "quiet",
    }
}

fn open(board: &AlertsPage) -> AnyView {
    let lines = board.lines.iter().map(|line| one(line, board.now)).collect_view();
    let more = (board.more > 0).then(|| {
        view! { <p class="small ink2">{format!("{} more are firing and not listed.", format::count(board.more as u64))}</p> }
    });
    let none = board.lines.is_empty().then(|| {
        view! { <p class="al-none ink2">"No rule condition is met."</p> }
    });
    view! {
        <section class="sec" aria-labelledby="open">
            <header><h2 id="open">"Firing and pending"</h2><span class="note">"grouped by rule; one notification per group"</span>
                <a class="end link" href="#over">"History"</a></header>
            {(!board.lines.is_empty()).then(|| view! { <ol class="als">{lines}</ol> })}{none}{more}
        </section>
    }
    .into_any()
}

fn one(line: &AlertRow, now: i64) -> AnyView {
    let past = (now - line.since).max(0) / 1_000 * 1_000;
    let span = if line.is_firing {
        format::period(past)
    } else {
        format!("{} of {}", format::period(past), format::period(line.for_ms))
    };
    let acked = line
        .acked_by
        .as_ref()
        .map(|by| format!(" Acknowledged by {by}."))
        .unwrap_or_default();
    let silenced = if line.is_silenced { " Silenced." } else { "" };
    let ack = (line.may_ack && line.acked_by.is_none() && line.is_firing).then(|| {
        let label = format!("Acknowledge {}: {}", line.rule, line.subject.display_name());
        view! {
            <form method="post" action=format!("/alerts/{}/ack", line.id)>
                <button class="btn s" r#type="submit" aria-label=label>"Acknowledge"</button>
            </form>
        }
    });
    let runbook = format!("Runbook: {}", line.rule);
    let rule = match &line.rule_path {
        Some(path) => view! { <a class="al-rule" href=path.clone()>{line.rule.clone()}</a> }.into_any(),
        None => view! { <span class="al-rule">{line.rule.clone()}</span> }.into_any(),
    };
    view! {
        <li class="al">
            <span class="x-s">{shape(line)}</span>
            <span class="x-r">{rule}{subject(&line.subject, &line.path)}</span>
            <span class="x-d num">{span}</span>
            <span class="x-w small ink2">{domain::escape::visible(&line.why).into_owned()}{acked}{silenced}</span>
            <span class="x-t small"><a class="link" href=line.runbook.clone() aria-label=runbook>"runbook"</a>{ack}</span>
        </li>
    }
    .into_any()
}

pub(super) fn subject(subject: &Subject, path: &str) -> AnyView {
    let name = subject.display_name();
    view! { <a class="al-of" href=path.to_owned()><ResourceName name=name cut=true/></a> }.into_any()
}

fn quiet(board: &AlertsPage) -> AnyView {
    let make = board
        .may_silence
        .then(|| view! { <a class="end link" href="/alerts/silences/new">"New silence"</a> });
    let lines = board.quiet.iter().map(|quiet| {
        let left = (quiet.ends_at - board.now).max(0);
        let span = format!("ends in {}", format::period(left / 60_000 * 60_000 + 60_000));
        let span = if left < SOON_MS {
            badge_text("warning", "near_expiry", span)
        } else {
            view! { {span} }.into_any()
        };
        let end = quiet.may_end.then(|| {
            let label = format!("End now: the silence on {}", quiet.matchers);
            view! {
                <form method="post" action=format!("/alerts/silences/{}/end", quiet.id)>
                    <button class="btn s" r#type="submit" aria-label=label>"End now"</button>
                </form>
            }
        });
        view! {
            <li class="al">
                <span class="x-s">{badge(AlertSeverity::Info, "mute", "silence")}</span>
                <span class="x-r mono small"><bdi>{domain::escape::visible(&quiet.matchers).into_owned()}</bdi></span>
                <span class="x-d num">{span}</span>
                <span class="x-w small ink2"><bdi>{format!("“{}”", domain::escape::visible(&quiet.comment))}</bdi>", "<bdi>{quiet.by.clone()}</bdi></span>
                <span class="x-t small ink2">{format!("suppressed {}", quiet.suppressed)}{end}</span>
            </li>
        }
    });
    let list = if board.quiet.is_empty() {
        let none = if board.is_limited {
            "Only roles that cover every lock see silences. Silenced alerts are marked."
        } else {
            "Firing alerts are sent to their receivers."
        };
        view! { <p class="al-none ink2">{none}</p> }.into_any()
    } else {
        view! { <ol class="als">{lines.collect_view()}</ol> }.into_any()
    };
    view! {
        <section class="sec" aria-labelledby="quiet">
            <header><h2 id="quiet">"Silences"</h2><span class="note">{(!board.is_limited).then(|| format!("{} active", board.quiet.len()))}</span>{make}</header>
            {list}
        </section>
    }
    .into_any()
}

fn badge_text(hue: &'static str, shape: &'static str, text: String) -> AnyView {
    view! { <span class=format!("st {hue}")><svg class="sh" viewBox="0 0 12 12" aria-hidden="true"><use href=format!("#s-{shape}")></use></svg>{text}</span> }.into_any()
}

fn past(board: &AlertsPage) -> AnyView {
    let rows = board.past.iter().map(|past| {
        let at = DateTime::from_timestamp_millis(past.ended_at).unwrap_or_default();
        view! {
            <tr>
                <td class="num"><time datetime=time_format::iso(at) title=time_format::dated(at)>{time_format::timed(at).replace(" UTC", "")}</time></td>
                <td>{badge(AlertSeverity::Info, "ok", "resolved")}</td>
                <td>{past.rule.clone()}</td>
                <td class="al-cut">{subject(&past.subject, &past.path)}</td>
                <td class="num">{format::period((past.ended_at - past.fired_at).max(0) / 1_000 * 1_000)}</td>
            </tr>
        }
    });
    let none = board
        .past
        .is_empty()
        .then(|| view! { <p class="al-none ink2">"No alert resolved in the last 30 days."</p> });
    let rows = rows.collect_view();
    let table = (!board.past.is_empty()).then(|| {
        view! {
            <div class="scroll"><table class="t al-hist">
                <caption class="sr">"Resolved alerts, newest first"</caption>
                <thead class="sr"><tr><th scope="col">"at, UTC"</th><th scope="col">"state"</th><th scope="col">"rule"</th><th scope="col">"subject"</th><th scope="col">"fired for"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table></div>
        }
    });
    view! {
        <section class="sec" aria-labelledby="over">
            <header><h2 id="over">"Resolved"</h2><span class="note">"newest first, times in UTC"</span></header>
            {table}{none}
        </section>
    }
    .into_any()
}

const fn no_rules(board: &AlertsPage) -> &'static str {
    if board.is_limited {
        "No rule covers only your prefixes. Rules with a wider scope are shown to roles that cover it; their alerts on your locks are listed here."
    } else {
        "No alert rules: nothing will fire."
    }
}

fn rules(board: &AlertsPage) -> AnyView {
    let make = board
        .may_edit
        .then(|| view! { <a class="end link" href="/alerts/rules/new">"New rule"</a> });
    let lines = board.rules.iter().map(|rule| {
        let state = match (rule.is_enabled, rule.firing) {
            (false, _) => badge(AlertSeverity::Info, "pause", "off"),
            (true, 0) => view! { <span class="ink3 small">"quiet"</span> }.into_any(),
            (true, firing) => badge_text(hue(rule.severity), "not_renewing", format!("{firing} firing")),
        };
        view! {
            <li class="al-r">
                <a class="al-rule" href=format!("/alerts/rules/{}", rule.id)>{rule.name.clone()}</a>
                <span class="num">{state}</span>
                <span class="small ink2">{rule.sentence.clone()}</span>
                <span class="small ink3">{rule.severity.as_str()}</span>
            </li>
        }
    });
    view! {
        <section class="sec" aria-labelledby="rules">
            <header><h2 id="rules">"Rules"</h2><span class="note">{format!("{}", board.rules.len())}</span>{make}</header>
            {if board.rules.is_empty() {
                view! { <p class="al-none ink2">{no_rules(board)}</p> }.into_any()
            } else {
                view! { <ul class="als">{lines.collect_view()}</ul> }.into_any()
            }}
            <p class="small ink2 al-foot"><a class="link" href="/v1/rules?format=toml">"Export as TOML"</a>" or "<a class="link" href="/v1/rules?format=prometheus">"Prometheus"</a></p>
        </section>
    }
    .into_any()
}
