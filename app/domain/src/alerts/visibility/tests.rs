use proptest::prelude::*;

use super::*;
use crate::access::{Grant, Grants, Role};
use crate::alerts::{EvaluationResult, Labels, Pattern, Silence, builtin, round};

fn visible(grants: &[(Option<&str>, Option<&str>)]) -> Visible {
    let grants = grants.iter().map(|(backend, prefix)| Grant {
        role: Role::Viewer,
        backend: backend.map(|name| BackendName::parse(name).unwrap()),
        prefix: prefix.map(str::to_owned),
    });
    Visible::to(&Grants::new(grants.collect()))
}

fn rule(backends: &[&str], prefix: &str) -> Rule {
    let mut rule = builtin().into_iter().next().unwrap();
    rule.scope.backends = backends
        .iter()
        .map(|name| BackendName::parse(name).unwrap())
        .collect();
    rule.scope.prefix = Pattern::parse(prefix).unwrap();
    rule
}

/// After a round in which the rule finds this subject, if it is some.
fn after_round(rule: &Rule, before: Vec<Active>, subject: Option<&Subject>) -> Vec<Active> {
    let found = subject.map(|subject| EvaluationResult {
        rule: 0,
        subject: subject.clone(),
        owner: None,
        holding: String::new(),
        measure: 1,
        why: String::new(),
    });
    let found = found.into_iter().collect();
    round(std::slice::from_ref(rule), before, found, &|_, _| true, 0).active
}

fn matcher(label: &'static str, value: &str) -> Matcher {
    Matcher {
        label,
        value: Pattern::parse(value).unwrap(),
    }
}

#[test]
fn rules_outside_of_the_scope_are_not_visible() {
    // A tenant on all backends, a reader of one backend, a reader without limits.
    let tenant = visible(&[(None, Some("tenant_1"))]);
    for (prefix, expected) in [
        ("tenant_1", true),
        ("tenant_1:jobs*", true),
        ("tenant_1*", false),
        ("tenant_12", false),
        ("tenant_*:jobs", false),
        ("", false),
    ] {
        assert_eq!(rule(&[], prefix).is_visible(&tenant), expected, "{prefix}");
        assert_eq!(rule(&["db"], prefix).is_visible(&tenant), expected, "{prefix}");
    }
    let one_backend = visible(&[(Some("db"), None)]);
    assert!(rule(&["db"], "").is_visible(&one_backend));
    assert!(!rule(&["db", "cache"], "").is_visible(&one_backend));
    assert!(!rule(&[], "").is_visible(&one_backend));
    assert!(rule(&[], "").is_visible(&Visible::default()));
}

#[test]
fn scoped_readers_see_only_harmless_backend_alerts() {
    // Every condition on backends, for a tenant and for a reader of the whole backend.
    let tenant = visible(&[(None, Some("tenant_1"))]);
    let whole = visible(&[(Some("db"), None)]);
    let subject = Subject::Backend(BackendName::parse("db").unwrap());
    for rule in builtin() {
        let kind = rule.condition.kind;
        let is_harmless = matches!(
            kind,
            ConditionKind::BackendUnreachable | ConditionKind::ClockOffset
        );
        let alert = &after_round(&rule, Vec::new(), Some(&subject))[0];
        assert_eq!(
            is_alert_visible(&tenant, alert, Some(kind)),
            is_harmless,
            "{kind:?}"
        );
        assert!(is_alert_visible(&whole, alert, Some(kind)));
        let why = "The last answer was 9 s ago. Connection to 10.1.2.3 refused.";
        let shown = visible_why(&tenant, &subject, kind, why);
        assert_eq!(
            shown.contains("10.1.2.3"),
            kind != ConditionKind::BackendUnreachable
        );
        assert_eq!(visible_why(&whole, &subject, kind, why), why);
    }
}

#[test]
fn a_template_is_visible_by_the_prefix_that_found_it() {
    // The rule is limited to the tenant, and later to another one: it counts once the alert is found again.
    let tenant = visible(&[(None, Some("tenant_1"))]);
    let whole = visible(&[(Some("db"), None)]);
    let subject = Subject::Prefix {
        backend: BackendName::parse("db").unwrap(),
        prefix: "tenant_*:jobs".to_owned(),
    };
    let mut active = Vec::new();
    for (prefix, is_found, expected) in [
        ("", true, false),
        ("tenant_1:", false, false),
        ("tenant_1:", true, true),
        ("tenant_2:", false, true),
        ("tenant_2:", true, false),
    ] {
        active = after_round(&rule(&[], prefix), active, is_found.then_some(&subject));
        let [alert] = &active[..] else {
            panic!("{active:?}")
        };
        assert_eq!(
            is_alert_visible(&tenant, alert, None),
            expected,
            "{prefix} {is_found}"
        );
        assert!(is_alert_visible(&whole, alert, None));
    }
}

#[test]
fn silences_end_at_whole_segments_and_whole_names() {
    // The patterns of a tenant's operator and of a backend's operator, with near misses.
    let tenant = || [(None, Scope::prefixes(["tenant_1".to_owned()]))];
    for (value, expected) in [
        ("tenant_1", true),
        ("tenant_1:", true),
        ("tenant_1:job*", true),
        ("tenant_1*", false),
        ("tenant_*", false),
        ("tenant_12", false),
        ("*", false),
    ] {
        for label in ["prefix", "resource"] {
            assert_eq!(
                silence_stays_within(&[matcher(label, value)], tenant()),
                expected,
                "{label} {value}"
            );
        }
    }
    let backend = || [(Some(BackendName::parse("db").unwrap()), Scope::everything())];
    assert!(silence_stays_within(&[matcher("backend", "db")], backend()));
    assert!(!silence_stays_within(&[matcher("backend", "db*")], backend()));
    assert!(!silence_stays_within(&[matcher("rule", "long_held")], backend()));
}

fn text(alphabet: &'static [char], most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(alphabet), 1..most).prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn allowed_silences_match_only_names_in_scope(
        prefix in text(&['a', 'b', ':', '/'], 6),
        on in proptest::option::of(proptest::sample::select(&["d", "da", "db"][..])),
        is_below in any::<bool>(),
        rest in text(&['a', 'b', ':', '/', '*'], 8),
        backend in proptest::option::of(text(&['d', 'a', '*'], 4)),
        tail in text(&['a', 'b', ':', '/'], 6),
        names in proptest::collection::vec(text(&['a', 'b', ':', '/'], 8), 8),
    ) {
        let scope = Scope::prefixes([prefix.clone()]);
        let pattern = if is_below { format!("{prefix}{rest}") } else { rest };
        let on = on.map(|name| BackendName::parse(name).unwrap());
        let mut matchers = vec![matcher("resource", &pattern)];
        matchers.extend(backend.as_deref().map(|name| matcher("backend", name)));
        if !silence_stays_within(&matchers, [(on.clone(), scope.clone())]) {
            return Ok(());
        }
        let silence = Silence {
            id: String::new(),
            matchers,
            starts_at: 0,
            ends_at: 1,
            comment: String::new(),
            by: String::new(),
            suppressed: 0,
        };
        // Names that the pattern is likely to cover, and others.
        let likely = ["", "a", "ab", ":", &tail].map(|star| format!("{}{tail}", pattern.replace('*', star)));
        let exact = ["", "a", "b"].map(|star| pattern.replace('*', star));
        for name in names.iter().chain(&likely).chain(&exact) {
            for place in ["d", "da", "db"] {
                let labels = Labels::from([
                    ("resource".to_owned(), name.clone()),
                    ("backend".to_owned(), place.to_owned()),
                ]);
                let is_here = on.as_ref().is_none_or(|on| on.as_str() == place);
                prop_assert!(!silence.matches(&labels) || (scope.covers(name) && is_here), "{pattern} {name} {place}");
            }
        }
    }
}
