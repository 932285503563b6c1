//! Rules as Prometheus alerting rules over our metrics, for users of Prometheus paging.
//!
//! **Invariant:** an exported rule never differs in meaning. A condition that metrics cannot express is evaluated
//! here and passed on by the metric of open alerts, with a comment that says why.

mod expression;

use std::fmt::Write as _;

use domain::alerts::{ConditionKind, Rule, Unit};
use domain::escape::{is_hidden, visible};

use self::expression::{PromExpr, translate};

const HEAD: &str = "# Alerting rules for Prometheus over the metrics of Leasehold, made by `leasehold rules export --format prometheus`.
# Prometheus extrapolates the increase of a counter to the whole window: counts are close, not exact.
# Metrics know templates of names (tenant_*:ledger-post), never a lock, an owner or a token; the alerts in Leasehold do.
groups:
  - name: leasehold
    rules:
";

/// `home` is the public URL of the console, without a trailing slash.
pub fn prometheus<'a>(rules: impl Iterator<Item = &'a Rule>, home: &str) -> String {
    let mut out = HEAD.to_owned();
    let mut count = 0;
    for rule in rules {
        if rule.is_enabled {
            count += 1;
            put(&mut out, rule, home);
        } else {
            line(&mut out, 6, &format!("# {} is off.", commented(&rule.name)));
        }
    }
    if count == 0 {
        line(&mut out, 6, "[]");
    }
    out
}

fn put(out: &mut String, rule: &Rule, home: &str) {
    let (expr, is_judged_here) = match translate(rule) {
        PromExpr::Over { expr, note } => {
            if let Some(note) = note {
                line(out, 6, &format!("# {}: {note}.", commented(&rule.name)));
            }
            (expr, false)
        }
        PromExpr::PassedOn(why) => {
            let name = commented(&rule.name);
            line(out, 6, &format!("# {name}: not expressible in metrics: {why}."));
            line(
                out,
                6,
                "# Leasehold evaluates it, with its own `for`; this alert repeats its state.",
            );
            let id = rule.id.as_str();
            let expr =
                format!("max by (rule, severity) (distributed_lock_alert_active{{rule=\"{id}\"}}) > 0");
            (expr, true)
        }
    };
    line(out, 6, &format!("- alert: {}", quoted(&camel(rule.id.as_str()))));
    line(out, 8, &format!("expr: {}", quoted(&expr)));
    let spans = [
        ("for", rule.timing.for_ms),
        ("keep_firing_for", rule.timing.keep_ms),
    ];
    for (name, ms) in spans.into_iter().filter(|(_, ms)| *ms > 0 && !is_judged_here) {
        line(out, 8, &format!("{name}: {}", Unit::Duration.text(ms)));
    }
    line(out, 8, "labels:");
    line(out, 10, &format!("severity: {}", quoted(rule.severity.as_str())));
    line(out, 10, &format!("rule: {}", quoted(rule.id.as_str())));
    line(out, 8, "annotations:");
    for (name, text) in annotations(rule, home, is_judged_here) {
        line(out, 10, &format!("{name}: {}", quoted(&text)));
    }
}

fn annotations(rule: &Rule, home: &str, is_judged_here: bool) -> [(&'static str, String); 4] {
    let name = plain(&rule.name);
    let summary = match (is_judged_here, rule.condition.kind) {
        (true, _) => name,
        (false, ConditionKind::Contention | ConditionKind::WaitP95) => {
            format!(
                "{name}: {{{{ $labels.distributed_lock_prefix }}}} {{{{ $labels.distributed_lock_backend }}}}"
            )
        }
        (false, _) => format!("{name}: {{{{ $labels.distributed_lock_backend }}}}"),
    };
    let runbook = rule.runbook();
    let runbook = if runbook.starts_with('/') {
        format!("{home}{runbook}")
    } else {
        runbook
    };
    [
        ("summary", summary),
        ("description", plain(&rule.condition.sentence())),
        ("runbook_url", plain(&runbook)),
        ("console_url", format!("{home}/alerts")),
    ]
}

fn line(out: &mut String, indent: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:indent$}{text}", "");
}

/// Text for a comment: without line ends and characters that YAML forbids.
fn commented(text: &str) -> String {
    visible(text).replace(is_noncharacter, "\u{fffd}")
}

fn is_noncharacter(c: char) -> bool {
    matches!(u32::from(c) & 0xffff, 0xfffe..=0xffff)
}

/// A double-quoted YAML scalar. Escapes control characters, invisible characters and line ends: YAML 1.1 also ends a
/// line at U+0085, U+2028 and U+2029.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Writing to a string cannot fail.
            c if is_hidden(c) || is_noncharacter(c) => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Escapes braces of a user's text, which Prometheus would expand.
fn plain(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

/// Converts `long_held` to `LeaseholdLongHeld`.
fn camel(id: &str) -> String {
    let words = id.split(['_', '-']).map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    std::iter::once("Leasehold".to_owned()).chain(words).collect()
}
