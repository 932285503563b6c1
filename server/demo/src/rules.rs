//! Alert rules scaled for the demo: states that take hours in production occur within two minutes.

use std::collections::BTreeMap;

use domain::alerts::Draft;
use domain::names::BackendName;

use super::names;

/// The id of the rule that fires on [`names::LONG_LOCK`].
pub(super) const LONG_HELD: &str = "demo_long_held";

/// About the lease service, which exists even if servers are missing.
pub(super) fn rules() -> Vec<Draft> {
    let rule = |id: &str, name: &str, condition: &str, prefix: &str, with: &[(&str, &str)]| Draft {
        id: id.to_owned(),
        name: name.to_owned(),
        condition: condition.to_owned(),
        backends: vec![BackendName::builtin().to_string()],
        prefix: prefix.to_owned(),
        for_: Some("0s".to_owned()),
        enabled: true,
        with: with
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..Draft::default()
    };
    vec![
        rule(
            LONG_HELD,
            "Demo: held for a minute",
            "long_held",
            names::LONG,
            &[("times_p95", ""), ("longer_than", "60s"), ("at_least", "0s")],
        ),
        rule(
            "demo_contention",
            "Demo: a long queue",
            "contention",
            names::LINE,
            &[("share", "50%"), ("at_least", "2"), ("window", "3m")],
        ),
    ]
}
