//! Exact message bodies.

use std::collections::BTreeMap;

use domain::notification::NoticeStatus;
use serde_json::{Value, json};

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn alert(resource: &str) -> NoticeAlert {
    NoticeAlert {
        status: NoticeStatus::Firing,
        labels: map(&[
            ("alertname", "LongHeld"),
            ("severity", "warning"),
            ("resource", resource),
        ]),
        annotations: map(&[
            ("summary", "held for 41 m"),
            ("runbook_url", "https://wiki/long|held"),
        ]),
        starts_at: 1_700_000_000_000,
        ends_at: None,
        path: "/locks/builtin/jobs".to_owned(),
        fingerprint: "00ff".to_owned(),
    }
}

fn notice(alerts: Vec<NoticeAlert>) -> Notice {
    Notice {
        group: "long-held".to_owned(),
        receivers: Vec::new(),
        group_labels: map(&[("alertname", "LongHeld")]),
        alerts,
        truncated: 0,
    }
}

fn target() -> MessageTarget<'static> {
    let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
    MessageTarget {
        home: "https://locks.example.com",
        now: at(1_700_000_100),
        lapses_at: at(1_700_000_340),
    }
}

#[test]
fn alertmanager_gets_expiry_or_end_as_ends_at() {
    // One firing, one that ended before its start by another clock, and a label name that Alertmanager rejects.
    let mut ended = alert("b");
    (ended.status, ended.ends_at) = (NoticeStatus::Resolved, Some(1));
    ended.labels.insert("9-odd".to_owned(), "x".to_owned());
    ended.labels.insert("empty".to_owned(), String::new());
    let body = alertmanager::body(&[alert("a"), ended], target());
    assert_eq!(
        body[0],
        json!({
            "labels": {"alertname": "LongHeld", "resource": "a", "severity": "warning"},
            "annotations": {"runbook_url": "https://wiki/long|held", "summary": "held for 41 m"},
            "startsAt": "2023-11-14T22:13:20.000Z",
            "endsAt": "2023-11-14T22:19:00.000Z",
            "generatorURL": "https://locks.example.com/locks/builtin/jobs",
        })
    );
    assert_eq!(body[1]["endsAt"], body[1]["startsAt"]);
    let labels = json!({"alertname": "LongHeld", "resource": "b", "severity": "warning", "_9_odd": "x"});
    assert_eq!(body[1]["labels"], labels);
    let endpoint = |peer: &str| alertmanager::endpoint(&peer.parse().unwrap()).to_string();
    assert_eq!(endpoint("https://am:9093"), "https://am:9093/api/v2/alerts");
    assert_eq!(endpoint("https://am/below/"), "https://am/below/api/v2/alerts");
}

#[test]
fn a_webhook_gets_the_alertmanager_v4_format() {
    // Two alerts that differ only in the resource; one has ended; further ones are not listed.
    let mut ended = alert("b");
    (ended.status, ended.ends_at) = (NoticeStatus::Resolved, Some(1_700_000_060_000));
    let mut both = notice(vec![alert("a"), ended]);
    both.truncated = 7;
    let body = webhook::body(&both, "ops", "https://locks.example.com");
    let about = |name: &str| body[name].clone();
    assert_eq!(
        (about("version"), about("status"), about("receiver")),
        (json!("4"), json!("firing"), json!("ops"))
    );
    assert_eq!(
        (about("groupKey"), about("truncatedAlerts")),
        (json!("long-held"), json!(7))
    );
    assert_eq!(
        about("commonLabels"),
        json!({"alertname": "LongHeld", "severity": "warning"})
    );
    assert_eq!(about("externalURL"), "https://locks.example.com");
    assert_eq!(
        body["alerts"][0],
        json!({
            "status": "firing",
            "labels": {"alertname": "LongHeld", "resource": "a", "severity": "warning"},
            "annotations": {"runbook_url": "https://wiki/long|held", "summary": "held for 41 m"},
            "startsAt": "2023-11-14T22:13:20.000Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "https://locks.example.com/locks/builtin/jobs",
            "fingerprint": "00ff",
        })
    );
    assert_eq!(body["alerts"][1]["endsAt"], "2023-11-14T22:14:20.000Z");
    assert_eq!(body["alerts"][1]["status"], "resolved");
}

#[test]
fn slack_gets_text_and_blocks() {
    // One alert, complete body.
    let body = slack::body(&notice(vec![alert("jobs")]), "https://locks.example.com");
    let plain = |text: &str| json!({"type": "plain_text", "emoji": false, "text": text});
    let links = "<https://locks.example.com/locks/builtin/jobs|Open in Leasehold> · <https://wiki/long%7Cheld|Runbook>";
    assert_eq!(
        body,
        json!({
            "text": "Firing: LongHeld",
            "blocks": [
                {"type": "header", "text": plain("Firing: LongHeld")},
                {"type": "section", "text": plain("held for 41 m\nfiring · resource: jobs · severity: warning")},
                {"type": "context", "elements": [{"type": "mrkdwn", "text": links}]},
            ]
        })
    );
}

#[test]
fn a_hostile_name_mentions_no_user_in_slack() {
    // Mentions, links, markup, bidi, control characters and 10,000 letters, as name, summary, label and path.
    let long = "x".repeat(10_000);
    for hostile in [
        "<!channel>",
        "<https://evil|click>",
        "*bold* `code`",
        "a\u{202e}b\u{7}\nc",
        &long,
    ] {
        let mut one = alert(hostile);
        one.labels.insert("alertname".to_owned(), hostile.to_owned());
        one.annotations.insert("summary".to_owned(), hostile.to_owned());
        one.annotations
            .insert("runbook_url".to_owned(), "javascript:alert(1)".to_owned());
        let body = slack::body(&notice(vec![one]), "https://h");
        let mut markup = vec![body["text"].as_str().unwrap().to_owned()];
        for block in body["blocks"].as_array().unwrap() {
            let elements = block["elements"].as_array().cloned().unwrap_or_default();
            let texts: Vec<Value> = elements.into_iter().chain([block["text"].clone()]).collect();
            for text in texts.iter().filter(|text| !text.is_null()) {
                let message_text = text["text"].as_str().unwrap();
                assert!(message_text.chars().count() <= 3_000, "{}", message_text.len());
                assert!(!message_text.contains(['\u{202e}', '\u{7}']), "{message_text:?}");
                if text["type"] == "mrkdwn" {
                    markup.push(message_text.to_owned());
                }
            }
        }
        assert_eq!(markup[1], "<https://h/locks/builtin/jobs|Open in Leasehold>");
        assert!(!markup[0].contains(['<', '>']), "{}", markup[0]);
    }
}

#[test]
fn slack_messages_respect_the_block_limit() {
    // Two hundred alerts, and a thousand that are not listed.
    let mut many = notice((0..200).map(|n| alert(&n.to_string())).collect());
    many.truncated = 1_000;
    let body = slack::body(&many, "https://h");
    let blocks = body["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 50);
    assert_eq!(blocks[49]["elements"][0]["text"], "and 1176 more");
    assert_eq!(body["text"], "Firing: LongHeld (1200)");
}
