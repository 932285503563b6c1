//! Slack's incoming webhook and compatible ones: a fallback text, and at most 50 blocks.
//!
//! Names and reasons are untrusted: they are sent as plain text, and escaped where Slack reads markup.

use domain::escape::visible;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use serde_json::{Value, json};

use super::link;
use super::webhook::status;

/// Two blocks per alert, one header, one footer.
const BLOCKS_MAX: usize = 50;
const ALERTS_MAX: usize = (BLOCKS_MAX - 2) / 2;
/// Characters, as counted by Slack.
const HEADER_MAX: usize = 150;
const TEXT_MAX: usize = 2_900;
const LINE_MAX: usize = 600;

pub(super) fn body(notice: &Notice, home: &str) -> Value {
    let title = title(notice);
    let mut blocks = vec![json!({"type": "header", "text": plain(&title, HEADER_MAX)})];
    for alert in notice.alerts.iter().take(ALERTS_MAX) {
        blocks.push(json!({"type": "section", "text": plain(&alert_line(alert), TEXT_MAX)}));
        blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": links(alert, home)}]}));
    }
    let unlisted = notice.alerts.len().saturating_sub(ALERTS_MAX) as u64;
    let unlisted = unlisted.saturating_add(notice.truncated);
    if unlisted > 0 {
        let more = format!("and {unlisted} more");
        blocks.push(json!({"type": "context", "elements": [plain(&more, TEXT_MAX)]}));
    }
    json!({"text": escaped(&title), "blocks": blocks})
}

fn title(notice: &Notice) -> String {
    let names: Vec<&str> = notice.alerts.iter().map(name).collect();
    let first = names.first().copied().unwrap_or("Leasehold");
    let is_one_kind = names.iter().all(|name| *name == first);
    let what = if is_one_kind { first } else { "several alerts" };
    let count = names.len() as u64 + notice.truncated;
    let count = if count == 1 {
        String::new()
    } else {
        format!(" ({count})")
    };
    let status = match notice.status() {
        NoticeStatus::Firing => "Firing",
        NoticeStatus::Resolved => "Resolved",
    };
    format!("{status}: {}{count}", visible(what))
}

fn name(alert: &NoticeAlert) -> &str {
    alert.labels.get("alertname").map_or("alert", String::as_str)
}

/// Summary and description, then the subject.
fn alert_line(alert: &NoticeAlert) -> String {
    let text = |name| alert.annotations.get(name).filter(|text| !text.is_empty());
    let mut lines = vec![text("summary").map_or_else(|| name(alert).to_owned(), Clone::clone)];
    lines.extend(text("description").cloned());
    let labels = alert.labels.iter().filter(|(label, _)| *label != "alertname");
    let labels: Vec<String> = labels.map(|(label, value)| format!("{label}: {value}")).collect();
    lines.push(format!("{} · {}", status(alert.status), labels.join(" · ")));
    let lines = lines.iter().map(|line| cut(&visible(line), LINE_MAX));
    lines.collect::<Vec<_>>().join("\n")
}

fn links(alert: &NoticeAlert, home: &str) -> String {
    let mut links = vec![format!("<{}|Open in Leasehold>", target(&link(home, alert)))];
    let runbook = alert.annotations.get("runbook_url");
    let runbook = runbook.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    links.extend(runbook.map(|url| format!("<{}|Runbook>", target(url))));
    links.join(" · ")
}

/// Escapes characters that would end the link.
fn target(url: &str) -> String {
    escaped(url).replace('|', "%7C")
}

/// Escapes `&`, `<` and `>`, as Slack's documentation requires for markup text.
fn escaped(text: &str) -> String {
    let text = visible(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn plain(text: &str, chars_max: usize) -> Value {
    json!({"type": "plain_text", "emoji": false, "text": cut(text, chars_max)})
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let start: String = text.chars().take(chars_max - 1).collect();
    format!("{start}…")
}
