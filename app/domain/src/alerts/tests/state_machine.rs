//! Holders that renew, fall silent or disappear behind an outage, and the notifications that
//! result.

use crate::alerts::evaluate::{Active, EvaluationResult, Subject, round};
use crate::alerts::rule::{AlertSeverity, GroupBy, Rule};
use crate::alerts::state_machine::{AlertPhase, AlertTransition};
use crate::alerts::{
    ConditionResult, LeftOut, LockSnapshot, Silence, SilenceDraft, builtin, evaluate_lock, lock_sentence,
    notices,
};
use crate::diagnosis::{CadenceFacts, Facts, LifetimeFacts, near_below_ms};
use crate::names::{BackendName, LockId, Resource, Source};
use crate::notification::Notice;
use crate::renewal_interval::Cadence;
use crate::tick::Tick;

pub(super) fn rule(id: &str) -> Rule {
    builtin().into_iter().find(|rule| rule.id.as_str() == id).unwrap()
}

/// The built-in rule, firing as soon as its condition holds.
pub(super) fn immediate(id: &str) -> Rule {
    let mut rule = rule(id);
    rule.timing.for_ms = 0;
    rule
}

pub(super) fn lock(name: &str) -> LockId {
    LockId {
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: Resource::from(name),
    }
}

/// A holder with this TTL that renews at these moments.
struct Holder {
    ttl_ms: i64,
    renewals: Vec<i64>,
}

impl Holder {
    fn deadline(&self, now: i64) -> i64 {
        let last = self.renewals.iter().rev().find(|at| **at <= now);
        last.copied().unwrap_or(0) + self.ttl_ms
    }

    /// Results of all rules at a moment.
    fn verdicts(&self, rules: &[Rule], now: i64) -> Vec<EvaluationResult> {
        let id = lock("jobs/1");
        let mut cadence: Option<Cadence> = None;
        let mut before = 0;
        for at in self.renewals.iter().filter(|at| **at <= now) {
            let used = at - std::mem::replace(&mut before, *at);
            match &mut cadence {
                Some(cadence) => cadence.renewed(Tick(*at), 0, used),
                None => cadence = Some(Cadence::begin(Tick(*at), 0, used)),
            }
        }
        let snapshot = LockSnapshot {
            backend: &id.backend,
            source: &id.source,
            name: id.resource.as_bytes(),
            owner: Some("w"),
            safety: None,
            facts: Facts {
                lifetime: LifetimeFacts::Leased {
                    remaining_ms: self.deadline(now) - now,
                    track_ms: self.ttl_ms,
                },
                cadence: cadence.as_ref().and_then(|cadence| {
                    Some(CadenceFacts {
                        interval_ms: cadence.interval_ms()?,
                        longest_ms: cadence.longest_ms()?,
                        silent_ms: now - cadence.last().0,
                    })
                }),
                renewals: cadence.as_ref().map_or(0, Cadence::count),
                near_below_ms: cadence
                    .as_ref()
                    .map(|cadence| near_below_ms(cadence.used_max_ms(), self.ttl_ms, 251, 1)),
                sampling_ms: 251,
                waiters: None,
                oldest_waiter_ms: None,
                condition: None,
                is_long_held: false,
            },
            token: Some(1),
            acquired_at: Some(0),
            held_ms: now,
            lag_ms: 3_000,
        };
        let mut found = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let (sign, measure) = evaluate_lock(&rule.condition, &snapshot, &|_| None);
            if sign == ConditionResult::Holds {
                found.push(EvaluationResult {
                    rule: index,
                    subject: Subject::Lock(id.clone()),
                    owner: Some("w".to_owned()),
                    holding: snapshot.holding(),
                    measure,
                    why: lock_sentence(&rule.condition, &snapshot, measure, None),
                });
            }
        }
        found
    }
}

/// Scans every two seconds, observed one second late: returns when the first alert fires and
/// how long before the expiry.
fn first_alert(holder: &Holder, until: i64) -> Option<(i64, i64)> {
    let rules = [rule("near_expiry"), rule("not_renewing")];
    let mut active = Vec::new();
    for now in (0..until).step_by(2_000) {
        let outcome = round(&rules, active, holder.verdicts(&rules, now), &|_, _| false, now);
        let told_at = now + 1_000;
        if outcome.active.iter().any(Active::is_firing) {
            return Some((told_at, holder.deadline(now) - told_at));
        }
        active = outcome.active;
    }
    None
}

#[test]
fn a_holder_that_renews_30_s_every_25_s_never_alerts() {
    // One hour with renewals down to 5 s left; also with a jitter of two seconds.
    for jitter in [0, 2_000] {
        let renewals = (1..144).map(|n| n * 25_000 + (n % 3) * jitter / 2).collect();
        let holder = Holder {
            ttl_ms: 30_000,
            renewals,
        };
        assert_eq!(first_alert(&holder, 143 * 25_000), None);
    }
}

#[test]
fn silent_holder_alerts_five_seconds_before_its_lease_ends() {
    // Renewed every 10 s of 30 s for a while, then silent; likewise every 5 s of 30 s and 20 s
    // of 60 s.
    for (interval, ttl_ms) in [(10_000, 30_000), (5_000, 30_000), (20_000, 60_000)] {
        let holder = Holder {
            ttl_ms,
            renewals: (1..=12).map(|n| n * interval).collect(),
        };
        let (_, left) = first_alert(&holder, 12 * interval + ttl_ms).unwrap();
        assert!(left >= 5_000, "{interval} of {ttl_ms}: {left} ms left");
    }
}

#[test]
fn an_alert_on_a_silent_holder_stays_until_the_lock_ends() {
    // Near expiry first, then not renewing as well; both keep firing past the expiry.
    let rules = [rule("near_expiry"), rule("not_renewing")];
    let holder = Holder {
        ttl_ms: 30_000,
        renewals: (1..=5).map(|n| n * 10_000).collect(),
    };
    let (mut active, mut most) = (Vec::new(), 0);
    for now in (0..79_000).step_by(1_000) {
        let outcome = round(&rules, active, holder.verdicts(&rules, now), &|_, _| false, now);
        assert!(outcome.over.is_empty(), "{now}: {:?}", outcome.over);
        active = outcome.active;
        most = most.max(active.len());
    }
    assert_eq!(most, 2);
}

pub(super) fn result(rule: usize, name: &str, owner: &str) -> EvaluationResult {
    EvaluationResult {
        rule,
        subject: Subject::Lock(lock(name)),
        owner: Some(owner.to_owned()),
        holding: "t1".to_owned(),
        measure: 0,
        why: "It is so.".to_owned(),
    }
}

fn backend_down() -> EvaluationResult {
    EvaluationResult {
        rule: 1,
        subject: Subject::Backend(BackendName::builtin()),
        owner: None,
        holding: String::new(),
        measure: 0,
        why: "The last answer was 14 s ago.".to_owned(),
    }
}

#[test]
fn an_outage_is_one_alert_and_freezes_the_others() {
    // Ten locks fire and the backend goes down: one more alert and no change of the ten for an
    // hour; then all resolve once.
    let rules = [rule("orphaned"), rule("backend_unreachable")];
    let ten = || {
        (0..10)
            .map(|n| result(0, &format!("jobs/{n}"), "w"))
            .collect::<Vec<_>>()
    };
    let mut active = round(&rules, Vec::new(), ten(), &|_, _| false, 0).active;
    let of_locks = |_: &Rule, alert: &Active| matches!(alert.subject, Subject::Lock(_));
    let mut changes = 0;
    for now in (10_000..3_600_000).step_by(10_000) {
        let outcome = round(&rules, active, vec![backend_down()], &of_locks, now);
        changes += outcome.changed.len() + outcome.over.len();
        active = outcome.active;
    }
    assert_eq!((changes, active.len()), (1, 11));
    let after = round(&rules, active, Vec::new(), &|_, _| false, 3_600_000);
    assert_eq!(after.over.len(), 11);
    assert!(
        after
            .over
            .iter()
            .all(|(_, change)| *change == AlertTransition::Resolved)
    );
}

#[test]
fn locks_of_one_dead_owner_share_one_notification() {
    // All in one notification; a second round sends none, nor does a restart from the store;
    // then the end.
    let rules = [rule("orphaned")];
    let all = || {
        (0..100)
            .map(|n| result(0, &format!("jobs/{n}"), "worker-7"))
            .collect::<Vec<_>>()
    };
    let path = |_: &Subject| "/locks".to_owned();
    let mut active = round(&rules, Vec::new(), all(), &|_, _| false, 0).active;
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &[], &path, 0);
    assert_eq!((sent.notices.len(), sent.notified.len()), (1, 100));
    assert_eq!(sent.notices[0].alerts.len(), 100);
    for place in sent.notified {
        active[place].notified = Some(rules[0].severity);
    }
    // A restart reads the stored alerts.
    let again = round(&rules, active.clone(), all(), &|_, _| false, 5_000);
    assert!(again.changed.is_empty());
    assert!(
        notices(&rules, &again.active, &[], &LeftOut::default(), &[], &path, 5_000)
            .notices
            .is_empty()
    );
    let over = round(&rules, again.active, Vec::new(), &|_, _| false, 9_000);
    let resolved: Vec<Active> = over.over.into_iter().map(|(alert, _)| alert).collect();
    let sent = notices(
        &rules,
        &over.active,
        &resolved,
        &LeftOut::default(),
        &[],
        &path,
        9_000,
    );
    assert_eq!(sent.notices.len(), 1);
    assert_eq!(
        sent.notices[0].status(),
        crate::notification::NoticeStatus::Resolved
    );
}

#[test]
fn a_new_holder_of_the_same_lock_is_another_alert() {
    // The old alert resolves in the round in which the new one begins.
    let rules = [rule("orphaned")];
    let first = round(&rules, Vec::new(), vec![result(0, "a", "w1")], &|_, _| false, 0);
    let mut second = result(0, "a", "w2");
    second.holding = "t2".to_owned();
    let outcome = round(&rules, first.active, vec![second], &|_, _| false, 1_000);
    assert_eq!(outcome.over.len(), 1);
    assert_eq!(outcome.active.len(), 1);
    assert_eq!(outcome.active[0].owner.as_deref(), Some("w2"));
    assert!(matches!(
        outcome.active[0].phase,
        AlertPhase::Firing { fired_at: 1_000, .. }
    ));
}

#[test]
fn a_silence_suppresses_until_its_end_and_counts_once() {
    // Two alerts, one matched; later the silence ends while both still fire.
    let rules = [rule("orphaned")];
    let draft = SilenceDraft {
        matchers: vec![("prefix".to_owned(), "jobs/".to_owned())],
        lasts: "1h".to_owned(),
        comment: "a migration".to_owned(),
    };
    let (matchers, lasts, comment) = draft.parse().unwrap();
    let silence = Silence {
        id: "s".to_owned(),
        matchers,
        starts_at: 0,
        ends_at: lasts,
        comment,
        by: "op".to_owned(),
        suppressed: 0,
    };
    let path = |_: &Subject| String::new();
    let news = vec![result(0, "jobs/1", "w"), result(0, "other", "w")];
    let mut active = round(&rules, Vec::new(), news, &|_, _| false, 0).active;
    let silences = [silence];
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &silences, &path, 0);
    assert_eq!(sent.notices[0].alerts.len(), 1);
    assert_eq!(sent.suppressed, [(0, "s".to_owned())]);
    active[0].silenced_by = Some("s".to_owned());
    active[1].notified = Some(rules[0].severity);
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &silences, &path, 1_000);
    assert!(sent.notices.is_empty() && sent.suppressed.is_empty());
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &silences, &path, lasts);
    assert_eq!(sent.notified, [0]);
}

#[test]
fn alerts_beyond_the_limit_are_counted_by_group() {
    // 500 alerts are stored, 100 are listed; the message counts this owner's alerts and none of
    // another's.
    let mut by_owner = rule("orphaned");
    by_owner.group_by = vec![GroupBy::Owner];
    let rules = [by_owner];
    let found: Vec<EvaluationResult> = (0..2_000)
        .map(|n| {
            result(
                0,
                &format!("jobs/{n}"),
                if n % 4 == 0 { "worker-8" } else { "worker-7" },
            )
        })
        .collect();
    let mut outcome = round(&rules, Vec::new(), found, &|_, _| false, 0);
    let path = |_: &Subject| "/locks".to_owned();
    let sent = notices(&rules, &outcome.active, &[], &outcome.left_out, &[], &path, 0);
    let mut sizes: Vec<u64> = sent
        .notices
        .iter()
        .map(crate::notification::Notice::size)
        .collect();
    sizes.sort_unstable();
    assert_eq!((sizes, sent.storms.len()), (vec![500, 1_500], 0));
    for alert in &mut outcome.active {
        alert.notified = Some(rules[0].severity);
    }
    let sent = notices(&rules, &outcome.active, &[], &outcome.left_out, &[], &path, 1_000);
    assert_eq!(
        (sent.notices.len(), sent.storms.len()),
        (0, 2),
        "nothing is new but the count"
    );
}

#[test]
fn a_group_is_notified_again_when_its_severity_rises() {
    // The rule of a firing, notified alert becomes a warning, then critical, then a warning.
    let mut rules = [rule("no_ttl")];
    rules[0].timing.for_ms = 0;
    let path = |_: &Subject| String::new();
    let mut active = round(&rules, Vec::new(), vec![result(0, "jobs", "w")], &|_, _| false, 0).active;
    let messages = |notices: &[Notice]| {
        let alerts = notices.iter().flat_map(|notice| &notice.alerts);
        let messages = alerts.map(|alert| format!("{:?} {}", alert.status, alert.labels["severity"]));
        let mut messages: Vec<String> = messages.collect();
        messages.sort_unstable();
        messages
    };
    let steps: [(AlertSeverity, &[&str]); 5] = [
        (AlertSeverity::Info, &["Firing info"]),
        (AlertSeverity::Info, &[]),
        (AlertSeverity::Warning, &["Firing warning", "Resolved info"]),
        (AlertSeverity::Critical, &["Firing critical", "Resolved warning"]),
        (AlertSeverity::Warning, &[]),
    ];
    for (severity, news) in steps {
        rules[0].severity = severity;
        let sent = notices(&rules, &active, &[], &LeftOut::default(), &[], &path, 0);
        assert_eq!(messages(&sent.notices), news, "{severity:?}");
        for place in sent.notified {
            active[place].notified = Some(severity);
        }
    }
    // It ends under the label that was notified.
    let sent = notices(&rules, &[], &active, &LeftOut::default(), &[], &path, 0);
    assert_eq!(messages(&sent.notices), ["Resolved critical"]);
}
