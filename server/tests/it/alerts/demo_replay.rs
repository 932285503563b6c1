//! Ten minutes of the demo under the built-in rules, replayed with the time of the recording: every planted fault is
//! found, and at most ten notifications are sent.
//!
//! `demo_replay.tsv` says when each condition held: rule, backend, source, name, owner, holding, and from when until
//! when, in milliseconds since the start. It was recorded from `leasehold demo`.

use std::collections::{BTreeMap, BTreeSet};

use ::config::NotifyConfig;
use domain::alerts::{
    Active, EvaluationResult, LeftOut, Rule, Subject, SubjectKind, builtin, group_of, labels, notices, round,
};
use domain::names::{BackendName, LockId, Resource, Source};
use leasehold::notify::{Occasion, ReceiverKind, enqueue_at};
use runtime::clock::Clock;
use sqlx::Row as _;

use crate::notify::notifier::{Store, TestNotifier, config};
use crate::support::webhook_sink::WebhookSink;

const RECORDED: &str = include_str!("demo_replay.tsv");
const SECONDS: i64 = 600;
const GROUPS_MAX: usize = 10;
const NOTIFICATIONS_MAX: i64 = 10;
/// Conditions of the faults that the demo plants on purpose.
const PLANTED: [&str; 13] = [
    "backend_unreachable",
    "contention",
    "deadlock",
    "expired",
    "fencing_rejections",
    "hold_near_ttl",
    "near_expiry",
    "no_ttl",
    "not_renewing",
    "orphaned",
    "quorum_lost",
    "split",
    "waiter_age",
];

/// A time in which a condition held.
struct Held {
    found: EvaluationResult,
    from: i64,
    until: i64,
}

fn recorded(rules: &[Rule]) -> Vec<Held> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| held(rules, line)).collect()
}

/// `None`: of a rule that the demo has in addition.
fn held(rules: &[Rule], line: &str) -> Option<Held> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [rule, backend, source, name, owner, holding, from, until] = fields[..] else {
        panic!("not eight fields: {line}");
    };
    let rule = rules.iter().position(|known| known.id.as_str() == rule)?;
    let backend = BackendName::parse(backend).unwrap();
    let subject = match rules[rule].condition.kind.about() {
        SubjectKind::Backend => Subject::Backend(backend),
        SubjectKind::Prefix => Subject::Prefix {
            backend,
            prefix: name.to_owned(),
        },
        SubjectKind::Lock => Subject::Lock(LockId {
            backend,
            source: Source::parse(source).unwrap(),
            resource: Resource::from(name),
        }),
    };
    Some(Held {
        found: EvaluationResult {
            rule,
            subject,
            owner: (!owner.is_empty()).then(|| owner.to_owned()),
            holding: holding.to_owned(),
            measure: 0,
            why: String::new(),
        },
        from: from.parse().unwrap(),
        until: until.parse().unwrap(),
    })
}

/// As the delivery task does, at the replayed time.
async fn deliver(notifier: &TestNotifier, at: i64) -> i64 {
    let due = format!(
        "UPDATE deliveries SET state = 'delivered', attempts = 1, ended_at = {at} WHERE state = 'pending' AND next_at <= {at}"
    );
    notifier.sql(&due).await;
    let runtime::db::Db::Sqlite(pool) = &notifier.db else {
        panic!("not SQLite")
    };
    let count = "SELECT count(*) FROM deliveries WHERE state = 'delivered'";
    sqlx::query(count).fetch_one(pool).await.unwrap().get(0)
}

#[tokio::test]
async fn ten_minutes_of_the_demo_send_ten_notifications() {
    let rules = builtin();
    let holds = recorded(&rules);
    let sink = WebhookSink::open().await;
    let test_notifier = TestNotifier::on(Store::sqlite(), config()).await;
    test_notifier
        .add("hook", ReceiverKind::Webhook, &[&sink.url])
        .await;
    let pacing = test_notifier.notifier.pacing();
    assert_eq!(
        pacing.group_interval_ms,
        i64::try_from(NotifyConfig::default().group_interval.as_millis()).unwrap()
    );
    // In the future of the notifier, which therefore sends nothing by itself.
    let base = Clock::start().now().wall.timestamp_millis() + 3_600_000;
    let mut active: Vec<Active> = Vec::new();
    let (mut next_id, mut most) = (1, 0);
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut sent = 0;
    for second in 0..SECONDS {
        let now = base + second * 1_000;
        let holds = holds
            .iter()
            .filter(|held| (held.from..held.until).contains(&(second * 1_000)));
        let found: Vec<EvaluationResult> = holds.map(|held| held.found.clone()).collect();
        seen.extend(found.iter().map(|one| rules[one.rule].id.as_str()));
        let mut outcome = round(&rules, active, found, &|_, _| false, now);
        let resolved: Vec<Active> = outcome.over.iter().map(|(alert, _)| alert.clone()).collect();
        let path = |_: &Subject| "/".to_owned();
        let news = notices(
            &rules,
            &outcome.active,
            &resolved,
            &LeftOut::default(),
            &[],
            &path,
            now,
        );
        for place in &news.notified {
            let alert = &mut outcome.active[*place];
            if let Some(rule) = rules.iter().find(|rule| rule.id == alert.rule) {
                alert.mark_notified(rule, 0);
            }
        }
        let mut tx = test_notifier.db.begin().await.unwrap();
        for notice in &news.notices {
            enqueue_at(&mut tx, notice, Occasion::Change, pacing, now)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        sent = deliver(&test_notifier, now).await;
        for alert in outcome.active.iter_mut().filter(|alert| alert.id == 0) {
            alert.id = next_id;
            next_id += 1;
        }
        most = most.max(firing_groups(&rules, &outcome.active));
        active = outcome.active;
    }
    let missing: Vec<&&str> = PLANTED.iter().filter(|rule| !seen.contains(**rule)).collect();
    assert!(missing.is_empty(), "without an alert: {missing:?}");
    assert!((1..=GROUPS_MAX).contains(&most), "{most} groups fire at once");
    assert!(
        (1..=NOTIFICATIONS_MAX).contains(&sent),
        "{sent} notifications in ten minutes"
    );
}

fn firing_groups(rules: &[Rule], active: &[Active]) -> usize {
    let by_id: BTreeMap<&str, &Rule> = rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
    let firing = active.iter().filter(|alert| alert.is_firing());
    let groups: BTreeSet<String> = firing
        .map(|alert| {
            let rule = by_id[alert.rule.as_str()];
            group_of(rule, alert, &labels(rule, alert)).0
        })
        .collect();
    groups.len()
}
