//! Rules and silences as people write them, right and wrong.

use crate::alerts::{Condition, Draft, Fault, Kind, Known, SilenceDraft, builtin, parse};

const BACKENDS: [&str; 2] = ["builtin", "redis-cache"];

fn refused(draft: &Draft) -> Vec<Fault> {
    let backends = BACKENDS.map(str::to_owned);
    let is_seen = |prefix: &crate::alerts::Pattern| prefix.covers(b"jobs/1");
    let receivers = ["ops".to_owned()];
    let known = Known {
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
fn every_built_in_rule_reads_back_from_what_it_writes() {
    // All conditions of the table, in order, on.
    let rules = builtin();
    assert_eq!(rules.len(), Kind::ALL.len());
    for rule in rules {
        assert!(rule.is_enabled);
        let backends = BACKENDS.map(str::to_owned);
        let known = Known {
            backends: &backends,
            prefix: None,
            receivers: None,
        };
        let written = Draft::from(&rule);
        assert_eq!(parse(&written, &known).as_ref(), Ok(&rule));
        let json = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Draft>(&json).unwrap(), written);
    }
}

#[test]
fn each_mistake_is_told_with_its_field_and_a_mend() {
    // One mistake at a time, and the field it is told of.
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
        assert!(!faults[0].mend.is_empty() && !faults[0].why.is_empty());
    }
    let mut both = draft("long_held");
    for name in ["times_p95", "longer_than"] {
        both.with.insert(name.to_owned(), String::new());
    }
    assert_eq!(refused(&both)[0].field, "with.longer_than");
    assert!(refused(&with("long_held", "longer_than", "")).is_empty());
}

#[test]
fn a_silence_needs_an_end_a_comment_and_something_to_match() {
    // Each missing alone, and each too much.
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
fn a_sentence_names_only_the_thresholds_that_say_something() {
    // One left out is not said, nor is "at least no time at all"; and what is left is no alternative to nothing.
    let mut condition = Condition::default_of(Kind::LongHeld);
    assert!(
        condition
            .sentence()
            .contains(", or longer than 2 h, but not below")
    );
    condition.values = vec![None, Some(60_000), Some(0)];
    assert_eq!(condition.sentence(), "longer than 1 m");
    let contention = Condition::default_of(Kind::Contention).sentence();
    assert_eq!(
        contention,
        "more than 50 % of those who wanted it waited or were refused, of at least 5 attempts, within 5 m"
    );
}

#[test]
fn every_sentence_has_its_values_where_they_belong() {
    // A place without a value, or a value without its place, in any kind.
    for kind in Kind::ALL {
        let condition = Condition::default_of(kind);
        let sentence = condition.sentence();
        assert!(!sentence.contains('…'), "{sentence}");
        for param in kind.info().params {
            assert!(
                param.said.is_none_or(|said| said.matches('…').count() == 1),
                "{}",
                param.words
            );
        }
    }
}
