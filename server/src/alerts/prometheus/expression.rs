//! PromQL expression of a rule's condition, if it has one.

use domain::alerts::{ConditionKind, Pattern, Rule, Unit};
use domain::history::template;

/// Labels to aggregate by.
const BY_PREFIX: &str = "distributed_lock_backend, distributed_lock_prefix";
const BY_BACKEND: &str = "distributed_lock_backend";

pub(super) enum PromExpr {
    Over {
        expr: String,
        /// A clause: what the expression leaves out.
        note: Option<&'static str>,
    },
    /// A clause: why there is no expression.
    PassedOn(&'static str),
}

impl PromExpr {
    fn over(expr: String) -> Self {
        Self::Over { expr, note: None }
    }

    fn with_note(expr: String, note: &'static str) -> Self {
        let note = Some(note);
        Self::Over { expr, note }
    }
}

pub(super) fn translate(rule: &Rule) -> PromExpr {
    let matchers = match matchers(rule) {
        Ok(matchers) => matchers,
        Err(why) => return PromExpr::PassedOn(why),
    };
    let value = |name: &str| rule.condition.value(name);
    let window = Unit::Duration.text(value("window").unwrap_or(300_000));
    let gained = |metric: &str, more: &str, by: &str| {
        let of = selector(metric, &matchers, more);
        format!("sum by ({by}) (increase({of}[{window}]))")
    };
    let at_least = |metric: &str, more: &str, by: &str| {
        format!("{} >= {}", gained(metric, more, by), value("count").unwrap_or(1))
    };
    match rule.condition.kind {
        ConditionKind::LongHeld | ConditionKind::FencingRejections | ConditionKind::LeaseLosses
            if !rule.scope.prefix.is_everything() =>
        {
            PromExpr::PassedOn("it selects names, and its metric has no label for a prefix")
        }
        ConditionKind::LongHeld => long_held(rule, &matchers),
        ConditionKind::FencingRejections if value("count") != Some(1) => PromExpr::PassedOn(
            "it counts the rejected writes of each lock, and metrics have no label for a lock",
        ),
        ConditionKind::FencingRejections => {
            PromExpr::over(at_least("fencing_rejections_total", "", BY_BACKEND))
        }
        ConditionKind::Contention => {
            let refused = gained(
                "acquire_attempts_total",
                "outcome=~\"contended|timeout\"",
                BY_PREFIX,
            );
            let all = gained("acquire_attempts_total", "", BY_PREFIX);
            let (share, enough) = (value("share").unwrap_or(0), value("at_least").unwrap_or(1));
            let expr = format!(
                "({refused} / {all} > {}) and ({all} >= {enough})",
                decimal(share, 1_000)
            );
            let note = "of attempts at the lease service; those that waited and then got the lock are not in the share, so it \
                        fires later than the rule in Leasehold and never without it";
            PromExpr::with_note(expr, note)
        }
        ConditionKind::WaitP95 => {
            let buckets = gained("wait_duration_seconds_bucket", "", &format!("{BY_PREFIX}, le"));
            let count = gained("wait_duration_seconds_count", "", BY_PREFIX);
            let (limit, enough) = (value("longer_than").unwrap_or(0), value("at_least").unwrap_or(1));
            let limit = decimal(limit, 1_000);
            PromExpr::over(format!(
                "(histogram_quantile(0.95, {buckets}) > {limit}) and ({count} >= {enough})"
            ))
        }
        ConditionKind::LeaseLosses if value("count") != Some(1) => PromExpr::PassedOn(
            "it counts the expired leases of each prefix, and their metric has no label for a prefix",
        ),
        ConditionKind::LeaseLosses => PromExpr::over(at_least("lease_expirations_total", "", BY_BACKEND)),
        ConditionKind::RenewalFailures => PromExpr::over(at_least("lease_losses_total", "", BY_BACKEND)),
        ConditionKind::Coverage => {
            let below = decimal(value("below").unwrap_or(0), 1_000);
            PromExpr::over(format!(
                "{} < {below}",
                selector("backend_coverage_ratio", &matchers, "")
            ))
        }
        kind => PromExpr::PassedOn(why_not(kind)),
    }
}

/// Only the fixed limit; the usual hold time is not in the metrics.
fn long_held(rule: &Rule, matchers: &[String]) -> PromExpr {
    let (Some(longer), at_least) = (
        rule.condition.value("longer_than"),
        rule.condition.value("at_least"),
    ) else {
        return PromExpr::PassedOn("no metric has the usual hold time of each lock");
    };
    let limit = longer.max(at_least.unwrap_or(0));
    let expr = format!(
        "{} > {}",
        selector("lease_oldest_age_seconds", matchers, ""),
        decimal(limit, 1_000)
    );
    if rule.condition.value("times_p95").is_some() {
        PromExpr::with_note(
            expr,
            "without the p95 of each lock, which no metric has: only holds longer than the fixed time",
        )
    } else {
        PromExpr::over(expr)
    }
}

const fn why_not(kind: ConditionKind) -> &'static str {
    match kind {
        ConditionKind::NearExpiry | ConditionKind::NotRenewing => {
            "it uses the renewal interval of each holder, and metrics have no label for a holder"
        }
        ConditionKind::HoldNearTtl => "no metric has the TTL of a hold",
        ConditionKind::WaiterAge => "metrics count waiters, not how long they wait",
        ConditionKind::ForcedUnlocks | ConditionKind::BreakGlass => {
            "it counts the forced unlocks of each lock, and metrics have no label for a lock"
        }
        ConditionKind::DualOwner
        | ConditionKind::Split
        | ConditionKind::QuorumLost
        | ConditionKind::NoTtl
        | ConditionKind::Expired
        | ConditionKind::Orphaned
        | ConditionKind::Leaked => "it is a state of one lock, and metrics have no label for a lock",
        ConditionKind::Deadlock => "it compares the owners of waits, and metrics have no label for an owner",
        ConditionKind::BackendUnreachable => {
            "stale is older than two poll intervals of the backend, and no metric has the interval"
        }
        ConditionKind::ClockOffset => "no metric has how far the measured offset may be wrong",
        ConditionKind::RelistDifference => "no metric has it",
        _ => "no metric counts it",
    }
}

/// `distributed_lock_…{…}`
fn selector(metric: &str, matchers: &[String], more: &str) -> String {
    let mut all: Vec<&str> = matchers.iter().map(String::as_str).collect();
    if !more.is_empty() {
        all.push(more);
    }
    if all.is_empty() {
        return format!("distributed_lock_{metric}");
    }
    format!("distributed_lock_{metric}{{{}}}", all.join(","))
}

/// The rule's scope as label matchers.
fn matchers(rule: &Rule) -> Result<Vec<String>, &'static str> {
    let scope = &rule.scope;
    if !scope.owner.is_everything() {
        return Err("it selects owners, and metrics have no label for an owner");
    }
    if scope.safety.is_some() {
        return Err("it selects a safety class, and metrics have no label for it");
    }
    let mut all = Vec::new();
    if !scope.backends.is_empty() {
        let names: Vec<String> = scope.backends.iter().map(|name| escaped(name.as_str())).collect();
        all.push(format!("distributed_lock_backend=~\"{}\"", names.join("|")));
    }
    if !scope.prefix.is_everything() {
        let names =
            names(&scope.prefix).ok_or("it selects names with ids, which metrics replace with templates")?;
        all.push(format!("distributed_lock_prefix=~\"{names}\""));
    }
    Ok(all)
}

/// Templates of the names that a pattern matches, as a regular expression; `None` if a template lost the part that
/// the pattern needs.
fn names(pattern: &Pattern) -> Option<String> {
    let text = pattern.as_str();
    if template::from_text(text) != text || text.chars().count() >= template::TEMPLATE_MAX {
        return None;
    }
    let parts: Vec<String> = text.split('*').map(escaped).collect();
    let end = if text.ends_with([':', '/']) {
        ".*"
    } else {
        "([:/].*)?"
    };
    Some(format!("{}{end}", parts.join("[^:/]*")))
}

/// Escapes regular expression characters for a PromQL string, where `\` is doubled.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\\\\\"),
            '"' => out.push_str("\\\""),
            '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
                out.push_str("\\\\");
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A ratio as a decimal number.
fn decimal(value: i64, parts: i64) -> String {
    let text = format!("{}.{:03}", value / parts, value % parts * 1_000 / parts);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
