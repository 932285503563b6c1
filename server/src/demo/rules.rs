//! Rules of the demo's own scale: what takes hours where locks do work is there within two minutes, with the others.

use std::collections::BTreeMap;

use domain::alerts::Draft;
use domain::names::BackendName;

use super::names;

/// On what the lease service holds, which is there with any of the servers missing.
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
            "demo_long_held",
            "Demo: held for a minute",
            "long_held",
            names::LONG,
            &[("times_p95", ""), ("longer_than", "60s"), ("at_least", "0s")],
        ),
        rule(
            "demo_contention",
            "Demo: a line that does not end",
            "contention",
            names::LINE,
            &[("share", "50%"), ("at_least", "2"), ("window", "3m")],
        ),
    ]
}
