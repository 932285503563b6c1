//! Parsing of rules and silences: valid and invalid input.

use crate::alerts::{Condition, ConditionKind, Draft, FieldError, KnownNames, SilenceDraft, builtin, parse};

const BACKENDS: [&str; 2] = ["builtin", "redis-cache"];

fn refused(draft: &Draft) -> Vec<FieldError> {
    let backends = BACKENDS.map(str::to_owned);
    let is_seen = |prefix: &crate::alerts::Pattern| prefix.covers(b"jobs/1");
    let receivers = ["ops".to_owned()];
    let known = KnownNames {
        backends: &backends,
        prefix: Some(&is_seen),
        receivers: Some(&receivers),
    };
    parse(draft, &known).err().unwrap_or_default()
}

fn draft(condition: &str) -> Draft {
    Draft {
        condition: condition.to_owned(),
        enabled: true,
        ..Draft::default()
    }
}

#[test]
fn built_in_rules_survive_a_round_trip() {
    // All conditions of the table, in order, enabled.
    let rules = builtin();
    assert_eq!(rules.len(), ConditionKind::ALL.len());
    for rule in rules {
        assert!(rule.is_enabled);
        let backends = BACKENDS.map(str::to_owned);
        let known = KnownNames {
            backends: &backends,
            prefix: None,
            receivers: None,
        };
        let draft_of_rule = Draft::from(&rule);
        assert_eq!(parse(&draft_of_rule, &known).as_ref(), Ok(&rule));
        let json = serde_json::to_string(&draft_of_rule).unwrap();
        assert_eq!(serde_json::from_str::<Draft>(&json).unwrap(), draft_of_rule);
    }
}

#[test]
fn each_input_error_names_its_field_and_a_remedy() {
    // One error at a time, with the field it names.
    let with = |condition: &str, name: &str, value: &str| {
        let mut draft = draft(condition);
        draft.with.insert(name.to_owned(), value.to_owned());
        draft
    };
    let set = |change: &dyn Fn(&mut Draft)| {
        let mut draft = draft("long_held");
        change(&mut draft);
        draft
    };
    let table: Vec<(Draft, &str)> = vec![
        (draft("too_long"), "condition"),
        (with("contention", "share", "120%"), "with.share"),
        (with("contention", "share", "most"), "with.share"),
        (with("contention", "window", "1s"), "with.window"),
        (with("contention", "window", "60d"), "with.window"),
        (with("contention", "count", "3"), "with.count"),
        (with("contention", "share", ""), "with.share"),
        (with("no_ttl", "share", "5%"), "with.share"),
        (set(&|draft| draft.for_ = Some("soon".to_owned())), "for"),
        (
            set(&|draft| draft.keep_firing_for = Some("30d".to_owned())),
            "keep_firing_for",
        ),
        (
            set(&|draft| draft.backends = vec!["mysql".to_owned()]),
            "backends",
        ),
        (set(&|draft| draft.prefix = "jbos/".to_owned()), "prefix"),
        (set(&|draft| draft.safety = "very".to_owned()), "safety"),
        (set(&|draft| draft.severity = "red".to_owned()), "severity"),
        (
            set(&|draft| draft.group_by = Some(vec!["mood".to_owned()])),
            "group_by",
        ),
        (
            set(&|draft| draft.receivers = vec!["nobody".to_owned()]),
            "receivers",
        ),
        (set(&|draft| draft.template = "{resource".to_owned()), "template"),
        (set(&|draft| draft.runbook = "javascript:x".to_owned()), "runbook"),
        (set(&|draft| draft.name = "a\nb".to_owned()), "name"),
        (set(&|draft| draft.id = "A B".to_owned()), "id"),
    ];
    for (draft, field) in table {
        let faults = refused(&draft);
        assert_eq!(faults.len(), 1, "{draft:?}: {faults:?}");
        assert_eq!(faults[0].field, field);
        assert!(!faults[0].remedy.is_empty() && !faults[0].why.is_empty());
    }
    let mut both = draft("long_held");
    for name in ["times_p95", "longer_than"] {
        both.with.insert(name.to_owned(), String::new());
    }
    assert_eq!(refused(&both)[0].field, "with.longer_than");
    assert!(refused(&with("long_held", "longer_than", "")).is_empty());
}

#[test]
fn a_silence_requires_an_end_a_comment_and_a_matcher() {
    // Each field missing, and each too long.
    let good = SilenceDraft {
        matchers: vec![("owner".to_owned(), "worker-3*".to_owned())],
        lasts: "2h".to_owned(),
        comment: "Draining the old pool".to_owned(),
    };
    assert!(good.parse().is_ok());
    let change = |change: &dyn Fn(&mut SilenceDraft)| {
        let mut draft = good.clone();
        change(&mut draft);
        draft.parse().unwrap_err()[0].field.clone()
    };
    assert_eq!(change(&|draft| draft.lasts.clear()), "lasts");
    assert_eq!(change(&|draft| draft.lasts = "400d".to_owned()), "lasts");
    assert_eq!(change(&|draft| draft.comment = " .. ".to_owned()), "comment");
    assert_eq!(change(&|draft| draft.matchers.clear()), "matchers");
    assert_eq!(change(&|draft| draft.matchers[0].1 = "**".to_owned()), "matchers");
    assert_eq!(
        change(&|draft| draft.matchers[0].0 = "mood".to_owned()),
        "matchers"
    );
}

#[test]
fn a_sentence_omits_thresholds_that_are_left_out() {
    // A threshold that is left out is not in the sentence, nor is a duration of zero; the
    // remaining one is not an alternative.
    let mut condition = Condition::default_of(ConditionKind::LongHeld);
    assert!(
        condition
            .sentence()
            .contains(", or held longer than 2 h, by its p95 only if")
    );
    condition.values = vec![None, Some(60_000), Some(0)];
    assert_eq!(condition.sentence(), "held longer than 1 m");
    let contention = Condition::default_of(ConditionKind::Contention).sentence();
    assert_eq!(
        contention,
        "more than 50 % of attempts waited or were refused, of at least 5 attempts, within 5 m"
    );
}

#[test]
fn every_sentence_has_all_of_its_values() {
    // A placeholder without a value, or a value without a placeholder, for every kind; also in the labels of the form.
    for kind in ConditionKind::ALL {
        let condition = Condition::default_of(kind);
        let sentence = condition.sentence();
        assert!(!sentence.contains('…'), "{sentence}");
        for param in kind.info().params {
            for text in [param.label, param.clause] {
                assert_eq!(text.matches('…').count(), 1, "{text}");
            }
        }
    }
}
